"""
Asks a run's resolvers: each once, with the run's own context, never with the prompt.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Awaitable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from flowstate.blocks.claude_code.arguments import Resolved
from flowstate.blocks.claude_code.conversation import (
    Conversation,
    DetachedConversation,
    SessionConversation,
)
from flowstate.blocks.claude_code.options import AgentSettings
from flowstate.context import Context
from flowstate.errors import DefinitionError

if TYPE_CHECKING:
    from flowstate.blocks.claude_code.mcp_serving import ToolServers

T = TypeVar("T")


async def resolve(
    settings: AgentSettings, conversation: Conversation, servers: ToolServers, ctx: Context
) -> Resolved:
    """
    What the resolvers say, in this order: cwd, model, the conversation, sandbox, mcp_tools, which
    come last since they hold what has to be closed.

    Raises:
        DefinitionError: an answer can't be used.
        UnknownConversationError: the conversation to continue has an id that none can have.
        Exception: whatever a resolver raised, bare.
    """
    directory: str | None = None
    if settings.cwd is not None:
        directory = _directory(settings.name, await awaited(settings.cwd(ctx)))
    model = settings.model
    if callable(model):
        model = _model(settings.name, await awaited(model(ctx)))
    wanted = await conversation.wanted()
    sandbox = settings.sandbox
    if callable(sandbox):
        sandbox = _sandbox(settings.name, await awaited(sandbox(ctx)))
    served: tuple[str, ...] | None = None
    if settings.mcp_tools is not None:
        served = await servers.open(settings.name, settings.mcp_tools)
    return Resolved(
        cwd=directory, model=model, conversation=wanted, sandbox=sandbox, mcp_tools=served
    )


def find_conversation(settings: AgentSettings, ctx: Context) -> Conversation:
    """Who says which conversation a run continues: the author, or the session's provider."""
    if settings.detached:
        return DetachedConversation(settings.resume, settings.on_session, ctx)
    return SessionConversation(settings.name, ctx, settings.provider)


async def awaited(answer: T | Awaitable[T]) -> T:
    """The answer of a function that may be async or not."""
    if inspect.isawaitable(answer):
        return await answer
    return answer


def _directory(name: str, answer: object) -> str:
    # None is no answer either: a forgotten return would run the agent where the server runs.
    if isinstance(answer, str | os.PathLike):
        path: str = os.fsdecode(cast("Any", answer))
        if path:
            return path
    raise DefinitionError(name, f"cwd returned {answer!r}", "Return the path of a directory.")


def _model(name: str, answer: object) -> str | None:
    if answer is None or isinstance(answer, str):
        return answer or None
    raise DefinitionError(name, f"model returned {answer!r}", "Return a model id, or None.")


def _sandbox(name: str, answer: object) -> Mapping[str, Any] | None:
    if answer is None or isinstance(answer, Mapping):
        return cast("Mapping[str, Any] | None", answer)
    raise DefinitionError(
        name, f"sandbox returned a {type(answer).__name__}", "Return a mapping, or None."
    )
