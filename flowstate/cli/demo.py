"""
``flowstate demo``: a coding agent as a step of a flow, from the request to the files it wrote.

Three requests of one session. The second continues the first one's conversation; the third is
sent while the second runs, and waits for it or is refused. What the demo shows it also checks, so
that it fails rather than shows something else.
"""

from __future__ import annotations

import tempfile
import uuid
from pathlib import Path
from typing import TypeAlias, cast, final

import anyio
import anyio.to_thread
from rich.console import Console
from rich.style import Style
from rich.text import Text

from flowstate.blocks.claude_code import ClaudeCodeHandle
from flowstate.cli.checkout_files import FileChange, changes, look
from flowstate.cli.demo_flow import CodingTask, implement_action
from flowstate.cli.demo_model import DemoFailed, Model, demo_model
from flowstate.cli.demo_script import PROMPTS
from flowstate.cli.handle_table import handle_rows
from flowstate.cli.invocation import DONE, FAILED, OUTPUT_CLOSED
from flowstate.cli.live_view import LiveView
from flowstate.cli.show import OutputClosed
from flowstate.cli.stop_signal import StopSignals
from flowstate.cli.terminal_text import one_line, printable, traceback_of
from flowstate.define.flow import Action, define_flow
from flowstate.define.policy import PolicyName
from flowstate.errors import FlowError, RequestRefused
from flowstate.harness.checkout import checkout_for
from flowstate.request.lifecycle import ENDED
from flowstate.request.run import Run
from flowstate.request.runtime import Runtime

CodingRun: TypeAlias = Run[ClaudeCodeHandle]

_HEAD = Style(bold=True, color="cyan")
_DIM = Style(dim=True)
_GOOD = Style(color="green", bold=True)
_BAD = Style(color="red", bold=True)
_WARN = Style(color="yellow")

NOTICE_LIMIT = 10.0
"""Seconds after which a third request that neither waits nor runs is a fault."""


async def run_demo(console: Console, *, policy: PolicyName, live: bool, root: Path | None) -> int:
    """
    Play the demo and give the exit code: 0, or 1 if it failed; as of ``invoke`` for signals.

    Args:
        console: where it is shown.
        policy: the action's concurrency, ``queue`` or ``reject``.
        live: talk to the real service.
        root: holds the checkouts and the store; None makes a temporary directory, which is left
            for the user to look at.
    """
    view = LiveView(console)
    stop = StopSignals(lambda text: view.say(Text(text, style=_WARN)))
    code = FAILED
    async with anyio.create_task_group() as tasks:
        await tasks.start(stop.watch)
        with stop.scope:
            try:
                directory = await anyio.to_thread.run_sync(_made, root)
                async with demo_model(live=live, third=policy == "queue") as model:
                    await _play(view, stop, model, policy, directory)
                code = DONE
            except OutputClosed:
                code = OUTPUT_CLOSED
            except Exception as error:
                # Stopped by a signal, its runs end without an output: that is no failure.
                if stop.exit_code is None:
                    _tell_failure(view, error, live=live)
        tasks.cancel_scope.cancel()
    return code if stop.exit_code is None else stop.exit_code


async def _play(
    view: LiveView, stop: StopSignals, model: Model, policy: PolicyName, root: Path
) -> None:
    implement = implement_action(root / "checkouts", model.env, policy)
    flow = define_flow("coding", actions=[implement])
    async with Runtime(flow, store=f"sqlite:///{root / 'demo.db'}", trace=True) as runtime:
        await _Demo(view, stop, model, runtime, implement, root).play()


@final
class _Demo:
    """The three requests and what is told of them."""

    def __init__(
        self,
        view: LiveView,
        stop: StopSignals,
        model: Model,
        runtime: Runtime,
        implement: Action[CodingTask, ClaudeCodeHandle],
        root: Path,
    ) -> None:
        self._view = view
        self._stop = stop
        self._model = model
        self._runtime = runtime
        self._implement = implement
        self._root = root
        # One of its own each time: the conversations of a former demo are gone with its home.
        self._session = f"demo-{uuid.uuid4().hex[:8]}"
        self._checkout = checkout_for(root / "checkouts", None, self._session)
        self._conversation: str | None = None
        self._failures: list[Exception] = []

    async def play(self) -> None:
        """
        All of it.

        Raises:
            DemoFailed: something wasn't as it should be.
            OutputClosed: nobody reads any more.
        """
        for line in self._model.introduction:
            self._view.say(Text(line, style=_DIM))
        self._view.say(Text(f"Session {self._session}, kept in {self._root}", style=_DIM))
        await self._first()
        await self._second_and_third()
        self._heading("4", "The plan, as Mermaid text")
        for line in self._runtime.plan(self._implement).mermaid().rstrip().split("\n"):
            self._view.say(line)
        self._view.say()
        self._view.say(Text.assemble(("Done. ", _GOOD), "The agent's work is in"))
        self._view.say(str(self._checkout), whole=True)

    async def _first(self) -> None:
        self._heading("1", "A request")
        await self._tell("1", await self._send("1", PROMPTS[0]))
        self._raise_failure()

    async def _second_and_third(self) -> None:
        self._heading("2", "The conversation goes on")
        second = await self._send("2", PROMPTS[1])
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._tell, "2", second)
            await self._model.until_at_work(second)
            self._heading("3", "A third request, while the second runs")
            third = await self._send_third(second)
            self._model.go_on()
            if third is not None:
                tasks.start_soon(self._tell, "3", third)
        self._raise_failure()

    async def _send(self, label: str, prompt: str) -> CodingRun:
        self._view.say(Text(f"“{prompt}”", style=Style(italic=True)), label=label)
        run = await self._runtime.dispatch(
            self._implement, CodingTask(prompt=prompt), session=self._session
        )
        self._stop.add(run)
        self._view.say(Text(f"request {run.id}", style=_DIM), label=label)
        return run

    async def _send_third(self, second: CodingRun) -> CodingRun | None:
        try:
            third = await self._send("3", PROMPTS[2])
            with anyio.move_on_after(NOTICE_LIMIT):
                # There is no event for "it waits", and its stream tells it in words only.
                while third.waiting_behind is None and third.status in ("accepted", "waiting"):  # noqa: ASYNC110
                    await anyio.sleep(0.01)
        except RequestRefused as refusal:
            self._view.say(Text(f"refused: {printable(str(refusal))}", style=_WARN), label="3")
            who = " (2)" if refusal.in_flight == second.id else ""
            self._view.say(
                Text(f"in flight: request {refusal.in_flight}{who}", style=_WARN), label="3"
            )
            return None
        except Exception as error:
            self._failures.append(error)
            return None
        if third.waiting_behind is not None:
            who = " (2)" if third.waiting_behind == second.id else ""
            self._view.say(
                Text(f"waits behind request {third.waiting_behind}{who}", style=_WARN), label="3"
            )
        elif second.status not in ENDED:
            self._failures.append(DemoFailed("The third request didn't wait for the second."))
        return third

    async def _tell(self, label: str, run: CodingRun) -> None:
        """A request to its end; what went wrong is kept in ``_failures``."""
        try:
            await self._tell_to_end(label, run)
        except Exception as error:
            self._failures.append(error)
            run.cancel("the demo has failed")

    async def _tell_to_end(self, label: str, run: CodingRun) -> None:
        failure: Exception | None = None
        handle: ClaudeCodeHandle | None = None
        changed: list[FileChange] = []
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._follow, label, run)
            # The next request of the session begins when this one is over, and takes its time
            # before it writes: what lies between these two looks is this one's work.
            await run.started()
            before = await anyio.to_thread.run_sync(look, self._checkout)
            try:
                handle = await run.output()
            except Exception as error:
                failure = error
            after = await anyio.to_thread.run_sync(look, self._checkout)
            changed = changes(before, after)
            # Its place is given back after its last line is told.
            await run.finished()
        if failure is not None:
            raise failure
        assert handle is not None
        self._report(label, handle, changed)
        self._check(label, handle, changed)

    async def _follow(self, label: str, run: CodingRun) -> None:
        try:
            await self._view.follow(cast("Run[object]", run), label)
        except OutputClosed as closed:
            self._failures.append(closed)
            run.cancel("nobody reads the output any more")

    # --- what is told and checked -----------------------------------------------------------------

    def _report(self, label: str, handle: ClaudeCodeHandle, changed: list[FileChange]) -> None:
        good = handle.status == "completed"
        self._view.say(
            Text.assemble(
                (f"{'✓' if good else '✗'} {handle.status}", _GOOD if good else _BAD),
                ("  and this is its handle", _DIM),
            ),
            label=label,
        )
        marks = {"added": "+", "changed": "~", "removed": "-"}
        files = [f"{marks[c.kind]} {printable(c.path)} ({c.lines} lines)" for c in changed]
        rows = [
            *handle_rows(handle),
            ("files", ", ".join(files) or "none changed"),
            ("checkout", str(self._checkout)),
        ]
        width = max(len(name) for name, _ in rows)
        for name, value in rows:
            self._view.say(one_line(value, 400), label=label, heading=f"  {name:<{width}}  ")

    def _check(self, label: str, handle: ClaudeCodeHandle, changed: list[FileChange]) -> None:
        if handle.status != "completed":
            raise DemoFailed("Claude Code reports that it failed; its reason is above.")
        if not changed:
            raise DemoFailed(f"Request {label} changed no file.")
        if label == "1":
            self._conversation = handle.session_id
        elif handle.session_id != self._conversation:
            raise DemoFailed(f"Request {label} didn't continue the conversation.")
        if label == "2":
            self._view.say(Text(self._model.history(), style=_GOOD), label=label)

    def _heading(self, number: str, text: str) -> None:
        self._view.say()
        self._view.say(Text(f"━━ {number} · {text} ━━", style=_HEAD))

    def _raise_failure(self) -> None:
        closed = [error for error in self._failures if isinstance(error, OutputClosed)]
        for error in (*closed, *self._failures):
            raise error


def _made(root: Path | None) -> Path:
    if root is None:
        return Path(tempfile.mkdtemp(prefix="flowstate-demo-")).resolve()
    root.mkdir(parents=True, exist_ok=True)
    return root.resolve()


def _tell_failure(view: LiveView, error: Exception, *, live: bool) -> None:
    view.say()
    view.say(Text(f"The demo failed: {printable(str(error) or type(error).__name__)}", style=_BAD))
    if live:
        view.say("It needs a key (ANTHROPIC_API_KEY), or a sign-in (start claude and sign in).")
    if not isinstance(error, FlowError | DemoFailed | OSError):
        for line in traceback_of(error).rstrip().split("\n"):
            view.say(Text(line, style=_DIM))
