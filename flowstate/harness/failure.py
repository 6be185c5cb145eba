"""
Why an agent refused to start, in words that are the same for every agent.

Only refusals that a host acts upon have a kind. Everything else is an error like any other, and
the agent's own text is never matched here: each block classifies its vendor's errors itself.
"""

from __future__ import annotations

from typing import Literal, TypeAlias, cast, final

from flowstate.errors import HarnessError

HarnessFailureKind: TypeAlias = Literal["unknown-conversation"]


@final
class UnknownConversationError(HarnessError):
    """
    The agent was asked to continue a conversation that it doesn't know.

    Attributes:
        agent: the agent's name, for example ``Claude Code``.
        conversation_id: the id it was asked for.
    """

    def __init__(self, agent: str, conversation_id: str, reason: str) -> None:
        super().__init__(
            f"{agent} doesn't know conversation {conversation_id!r} ({reason}). Start a fresh one."
        )
        self.agent = agent
        self.conversation_id = conversation_id


def harness_failure_kind(error: BaseException) -> HarnessFailureKind | None:
    """
    What kind of refusal lies in this error; None for every other failure.

    It reads through wrapped errors (causes, and contexts that were not suppressed) and through
    exception groups, so the error that a flow hands on works as well as the agent's own.
    """
    seen: set[int] = set()
    waiting: list[BaseException] = [error]
    while waiting:
        current = waiting.pop()
        if id(current) in seen:
            continue
        seen.add(id(current))
        if isinstance(current, UnknownConversationError):
            return "unknown-conversation"
        if isinstance(current, BaseExceptionGroup):
            waiting.extend(cast("BaseExceptionGroup[BaseException]", current).exceptions)
        if current.__cause__ is not None:
            waiting.append(current.__cause__)
        if current.__context__ is not None and not current.__suppress_context__:
            waiting.append(current.__context__)
    return None
