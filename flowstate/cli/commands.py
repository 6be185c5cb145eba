"""
The commands and their options. What they do is elsewhere; here is only how they are asked for.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Callable, Coroutine, Generator, Sequence
from enum import StrEnum
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated, Any, TextIO

import anyio
import structlog
import typer

from flowstate.cli.action_input import BadInput, parse_input
from flowstate.cli.invocation import (
    FAILED,
    INTERRUPTED,
    NOT_RUN,
    OUTPUT_CLOSED,
    Invocation,
    invoke,
    store_name,
)
from flowstate.cli.live_view import open_console
from flowstate.cli.ndjson import JsonLines
from flowstate.cli.screen import Screen
from flowstate.cli.show import OutputClosed, Show
from flowstate.cli.target import BadTarget, find_action, load_flow
from flowstate.cli.terminal_text import printable
from flowstate.define.policy import PolicyName
from flowstate.errors import PlanError
from flowstate.plan.build import build_plan

app = typer.Typer(
    name="flowstate",
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


class Busy(StrEnum):
    """What the demo's action does with a request that comes while another runs."""

    queue = "queue"
    reject = "reject"


Target = Annotated[
    str, typer.Argument(metavar="FILE:FLOW", help="A Python file and the flow's name in it.")
]


def run_command_line(arguments: Sequence[str] | None) -> int:
    """Do what the arguments say and give the exit code; None takes the process's arguments."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A terminal that can't show a character shows another one, instead of an error.
            stream.reconfigure(errors="backslashreplace")
    if not structlog.is_configured():
        # By default logs go to the standard output, which belongs to the results. They may hold
        # an agent's words.
        structlog.configure(
            processors=[
                structlog.contextvars.merge_contextvars,
                structlog.processors.add_log_level,
                structlog.processors.StackInfoRenderer(),
                structlog.dev.set_exc_info,
                structlog.processors.TimeStamper(fmt="%H:%M:%S", utc=False),
                structlog.dev.ConsoleRenderer(
                    colors=False, exception_formatter=structlog.dev.plain_traceback
                ),
                _printable_line,
            ],
            logger_factory=_stderr_logger,
        )
    try:
        code = app(
            args=None if arguments is None else list(arguments),
            prog_name="flowstate",
            standalone_mode=True,
        )
    except SystemExit as left:
        code = left.code
    except OutputClosed:
        _discard_output()
        return OUTPUT_CLOSED
    return code if isinstance(code, int) else FAILED if code else 0


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"flowstate {_version()}")
        raise typer.Exit


@app.callback()
def flowstate(
    show_version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Show the version and leave."
        ),
    ] = False,
) -> None:
    """Flows of typed blocks, some of them real coding agents."""


@app.command()
def run(
    target: Target,
    action: Annotated[str, typer.Argument(metavar="ACTION", help="One of the flow's actions.")],
    session: Annotated[
        str,
        typer.Option(
            "--session", metavar="ID", help="Any text; requests of one session share its state."
        ),
    ],
    given: Annotated[
        str | None,
        typer.Option("--input", metavar="JSON", help="The action's input; - reads it from stdin."),
    ] = None,
    store: Annotated[
        str | None,
        typer.Option(
            "--store",
            metavar="FILE",
            help="A SQLite file, made if it isn't there: the next process goes on with the "
            "session. By default nothing outlives this one.",
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Write one line of JSON for every event.")
    ] = False,
    tenant: Annotated[str | None, typer.Option("--tenant", metavar="ID")] = None,
    user: Annotated[str | None, typer.Option("--user", metavar="ID")] = None,
) -> None:
    """
    Run an action of a flow and show it as it happens.

    Exit code: 0 completed, 1 failed, 2 nothing was run, 130 stopped by Ctrl-C.
    """
    with _results(as_json) as stream:
        show: Show = JsonLines(stream) if as_json else Screen(open_console(stream))
        try:
            invocation = _invocation(target, action, given, session, store, tenant, user)
        except BadTarget as error:
            show.refused(error, error.details)
            raise typer.Exit(NOT_RUN) from None
        except (BadInput, PlanError) as error:
            show.refused(error)
            raise typer.Exit(NOT_RUN) from None
        code = _run_to_exit_code(lambda: invoke(invocation, show))
    raise typer.Exit(code)


@app.command()
def demo(
    policy: Annotated[
        Busy,
        typer.Option("--policy", help="What becomes of a request sent while another runs."),
    ] = Busy.queue,
    live: Annotated[
        bool, typer.Option("--live", help="Use the real service, with your key or sign-in.")
    ] = False,
    directory: Annotated[
        Path | None,
        typer.Option("--dir", metavar="DIR", help="Keep checkouts and store here."),
    ] = None,
) -> None:
    """
    Show a coding agent at work as a step of a flow, with no key and no network.

    Exit code: 0 it did all that it shows, 1 it didn't, 130 stopped by Ctrl-C.
    """
    # Here, since the other commands need no agent and no endpoint.
    from flowstate.cli.demo import run_demo

    async def play() -> int:
        console = open_console(sys.stdout)
        name: PolicyName = "queue" if policy is Busy.queue else "reject"
        return await run_demo(console, policy=name, live=live, root=directory)

    raise typer.Exit(_run_to_exit_code(play))


@app.command()
def graph(
    target: Target,
    action: Annotated[
        str | None, typer.Argument(metavar="[ACTION]", help="Only this one's plan.")
    ] = None,
    svg: Annotated[bool, typer.Option("--svg", help="An SVG drawing of one action.")] = False,
) -> None:
    """Print the plan of a flow's actions as Mermaid text, or of one action as an SVG drawing."""
    with _results(alone=True) as stream:
        try:
            flow = load_flow(target)
            actions = flow.actions if action is None else (find_action(flow, action),)
            if svg and len(actions) > 1:
                names = ", ".join(each.name for each in actions)
                raise BadTarget("--svg draws one action", f"Name one of: {names}.")
            for number, each in enumerate(actions):
                plan = build_plan(each.block)
                text = (plan.svg() if svg else plan.mermaid()).rstrip("\n") + "\n"
                title = f"%% {flow.kind}.{each.name}\n" if len(actions) > 1 else ""
                stream.write(("\n" if number else "") + title + text)
        except BadTarget as error:
            Screen(open_console(stream)).refused(error, error.details)
            raise typer.Exit(NOT_RUN) from None
        except PlanError as error:
            Screen(open_console(stream)).refused(error)
            raise typer.Exit(NOT_RUN) from None


def _invocation(
    target: str,
    action_name: str,
    given: str | None,
    session: str,
    store: str | None,
    tenant: str | None,
    user: str | None,
) -> Invocation:
    flow = load_flow(target)
    action = find_action(flow, action_name)
    text = sys.stdin.read() if given == "-" else given
    value: Any = parse_input(text, build_plan(action.block).input_type, action.name)
    return Invocation(
        flow=flow,
        action=action,
        value=value,
        session=session,
        tenant=tenant,
        user=user,
        store=store_name(store),
    )


@contextlib.contextmanager
def _results(alone: bool) -> Generator[TextIO]:
    """
    The stream of the results; ``alone``: what the flow itself prints goes to the standard error.
    """
    stream = sys.stdout
    if not alone:
        yield stream
        return
    with contextlib.redirect_stdout(sys.stderr):
        yield stream


def _run_to_exit_code(work: Callable[[], Coroutine[Any, Any, int]]) -> int:
    try:
        code = anyio.run(work)
    except KeyboardInterrupt:
        # It came before or after the work, which watches for signals itself.
        return INTERRUPTED
    if code == OUTPUT_CLOSED:
        _discard_output()
    return code


def _discard_output() -> None:
    """Let the interpreter's last flush go nowhere, since the reader of our output has gone."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _stderr_logger(*_: object) -> structlog.PrintLogger:
    # Looked up when a logger is made: a live view may have put its own stream there.
    return structlog.PrintLogger(sys.stderr)


def _printable_line(_: object, __: str, line: Any) -> str:
    return printable(str(line))


def _version() -> str:
    try:
        return version("flowstate-engine")
    except PackageNotFoundError:
        return "(not installed)"
