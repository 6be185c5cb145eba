"""
One ``flowstate run``: a Runtime for one request, told as it happens, ended cleanly by a signal.

It doesn't know how things are told (``flowstate.cli.show``) or where its parts came from.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from typing import Any, final

import anyio

from flowstate.cli.answering import Lines, answer_questions
from flowstate.cli.show import OutputClosed, Show
from flowstate.cli.stop_signal import StopSignals
from flowstate.define.flow import Action, Flow
from flowstate.errors import DefinitionError, FlowError, InvalidValue, PlanError
from flowstate.request.run import Run
from flowstate.request.runtime import Runtime

DONE, FAILED, NOT_RUN = 0, 1, 2
INTERRUPTED = 128 + 2
"""What a shell shows for a program that Ctrl-C ended."""
OUTPUT_CLOSED = 128 + 13
"""What a shell shows for a program that SIGPIPE ended."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Invocation:
    """What to run, for whom."""

    flow: Flow
    action: Action[Any, Any]
    value: Any
    session: str
    tenant: str | None = None
    user: str | None = None
    store: str = "memory:"
    """As of ``store_name``."""


def store_name(option: str | None) -> str:
    """
    The store that ``--store`` means: a name as ``Runtime`` takes it, or the path of a SQLite file.

    >>> store_name(None), store_name("app.data")[:10]
    ('memory:', 'sqlite:///')
    """
    if option is None or option == "memory:" or option.startswith("sqlite:"):
        return option or "memory:"
    return f"sqlite:///{os.path.abspath(option)}"


async def invoke(invocation: Invocation, show: Show) -> int:
    """
    Run it and give the exit code.

    Returns:
        0: completed. 1: it failed or could not be recorded. 2: nothing was run. 128 and the
        signal's number: stopped by a signal. 141: nobody read the output any more.
    """
    stop = StopSignals(show.say)
    code = FAILED
    async with anyio.create_task_group() as tasks:
        await tasks.start(stop.watch)
        with stop.scope:
            try:
                code = await _run(invocation, show, stop)
            except (DefinitionError, PlanError, InvalidValue) as error:
                show.refused(error)
                code = NOT_RUN
            except FlowError as error:
                show.refused(error)
        tasks.cancel_scope.cancel()
    return code if stop.exit_code is None else stop.exit_code


async def _run(invocation: Invocation, show: Show, stop: StopSignals) -> int:
    async with Runtime(invocation.flow, store=invocation.store, trace=True) as runtime:
        run: Run[object] = await runtime.dispatch(
            invocation.action,
            invocation.value,
            session=invocation.session,
            tenant=invocation.tenant,
            user=invocation.user,
        )
        stop.add(run)
        code, failure = FAILED, None
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(answer_questions, run, show, Lines(sys.stdin))
            # Not raised in here: the group would wrap it.
            try:
                code = await _tell(run, show)
            except Exception as error:
                failure = error
            tasks.cancel_scope.cancel()
        if failure is not None:
            raise failure
        return code


async def _tell(run: Run[object], show: Show) -> int:
    try:
        await show.follow(run)
        await run.finished()
        try:
            output = await run.output()
        except Exception as error:
            show.ended(run, error)
            return FAILED
        show.completed(run, output)
        return DONE
    except OutputClosed:
        run.cancel("nobody reads the output any more")
        await run.finished()
        return OUTPUT_CLOSED
