"""Runs a frame's program with what it begins beside itself, where nobody else looks after that."""

from __future__ import annotations

from typing import Any

from flowstate.run.frame import Frame
from flowstate.run.scheduler import execute


async def drive(frame: Frame, value: Any) -> Any:
    """
    Run a program and wait for the side chains it began, also when it fails, and then for its
    watchers. A request does this by itself, since its output is answered before that.
    """
    if not (frame.program.has_side_chains or frame.program.watches):
        return await execute(frame, value)
    services = frame.services
    failure: Exception | None = None
    result: Any = None
    async with services.side_chains:
        # Not raised in here: the side chains go on when the main chain fails.
        try:
            result = await execute(frame, value)
        except Exception as error:
            failure = error
        except BaseException:
            frame.gate.close()
            raise
        await services.side_chains.drained()
        services.watchers.tell(services.book.last)
    if failure is not None:
        raise failure
    return result
