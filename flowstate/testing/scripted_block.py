"""
Blocks whose behaviour is a value: what random compositions are made of.

A scripted block says beforehand what it will do with every input, so that an oracle can say what
must come out of any composition of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anyio.lowlevel

from flowstate.define.block import Failure
from flowstate.define.handler import Handler, make_handler


def scripted_block(
    name: str,
    act: Callable[[int], int],
    *,
    waits: int = 0,
    recorder: Callable[[str, Any], None] | None = None,
) -> Handler[int, int]:
    """
    A block from int to int that does ``act`` after giving way ``waits`` times.

    Args:
        name: the block's name.
        act: pure; may raise.
        waits: how often it lets other tasks run first.
        recorder: told of ``("start", name)``, ``("end", name)`` and ``("cancel", name)``.
    """

    async def run(value: int) -> int:
        if recorder is not None:
            recorder("start", name)
        try:
            for _ in range(waits):
                await anyio.lowlevel.checkpoint()
        except BaseException:
            if recorder is not None:
                recorder("cancel", name)
            raise
        try:
            return act(value)
        finally:
            if recorder is not None:
                recorder("end", name)

    run.__name__ = name
    return make_handler(run, name=name, input_type=int, output_type=int)


def scripted_rescue(name: str, result: int, *, waits: int = 0) -> Handler[Failure[Exception], int]:
    """A rescue's handler that gives ``result`` for any failure."""

    async def run(failure: Failure[Exception]) -> int:
        for _ in range(waits):
            await anyio.lowlevel.checkpoint()
        return result

    return make_handler(run, name=name, input_type=Failure[Exception], output_type=int)
