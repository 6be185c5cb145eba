"""
An approval function for calls that a person decides later: ``on_tool_approval=HeldAnswers(...)``.

What has no answer is held. The run then stops and its handle names the calls that wait; once a
person has answered, the next run in the conversation finds the answer here. Where answers are kept
is the author's: they are asked for with the context of the run.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias, final
from weakref import WeakKeyDictionary

from flowstate.blocks.claude_code.approval import (
    AllowTool,
    DenyTool,
    HoldTool,
    ToolApprovalRequest,
    ToolDecision,
)
from flowstate.blocks.claude_code.resolving import awaited
from flowstate.context import Context

Answers: TypeAlias = Mapping[str, AllowTool | DenyTool]
"""What a person decided, by the fingerprint of the call that waits."""

AnswersResolver: TypeAlias = Callable[[Context], Answers | Awaitable[Answers]]


@final
class HeldAnswers:
    """
    Decides a call by a person's answer to it, and holds what has none.

    An answer decides one call of a run, and in session only a call that was held before: an agent
    that does the same thing again asks again. Detached, where the block remembers nothing, give
    each run only the answers that it is to use.

    Args:
        answers: the answers that are there now; asked at every call, with the run's context.
    """

    def __init__(self, answers: AnswersResolver) -> None:
        self._answers = answers
        self._used: WeakKeyDictionary[Context, set[str]] = WeakKeyDictionary()

    async def __call__(self, request: ToolApprovalRequest, ctx: Context) -> ToolDecision:
        """Decide one call."""
        fingerprint = request.fingerprint
        answer = (await awaited(self._answers(ctx))).get(fingerprint)
        used = self._used.setdefault(ctx, set())
        if answer is None or request.held_before is False or fingerprint in used:
            return HoldTool()
        used.add(fingerprint)
        return answer
