"""
One request that a scripted endpoint received, and what a test asks about it.

A frozen record without credentials. It reads what a client of the Messages API sent, trusts no
shape of it, and knows nothing of how it was answered but the name of the place the answer is from.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, cast, final

RequestKind: TypeAlias = Literal["conversation", "aux", "count_tokens", "models", "other"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """What a client answered one tool call with."""

    tool_use_id: str
    text: str
    """The text blocks of the result, joined by newlines."""
    is_error: bool | None
    """None where the client didn't say."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ReceivedRequest:
    """One request as it came in, without its credentials."""

    kind: RequestKind
    method: str
    path: str
    """Without the query."""
    headers: Mapping[str, str]
    """Lower-case names; the values of those that hold credentials are ``[redacted]``."""
    body: Mapping[str, Any]
    """The JSON object sent, empty if there was none; a credential in it is ``[redacted]``."""
    received_at: float
    """Unix seconds."""
    answered_from: str
    """``script``, ``route <marker>``, ``exhausted`` (no turn was left) or ``endpoint``."""

    @property
    def user_texts(self) -> tuple[str, ...]:
        """The text of each user message that has any, in order; tool results are left out."""
        sent = (m for m in self._messages() if m.get("role") == "user")
        return tuple(found for m in sent if (found := _text_of(m.get("content"))))

    @property
    def system_text(self) -> str:
        """The system prompt, its blocks joined by newlines."""
        return _text_of(self.body.get("system"))

    @property
    def tool_names(self) -> tuple[str, ...]:
        """The tools that the client offers, in its order."""
        return tuple(str(tool.get("name", "")) for tool in _objects(self.body.get("tools")))

    @property
    def tool_results(self) -> tuple[ToolResult, ...]:
        """What answers the calls of the last assistant message; earlier results are left out."""
        results: list[ToolResult] = []
        for sent in self._messages():
            if sent.get("role") == "assistant":
                results.clear()
            results.extend(
                ToolResult(
                    tool_use_id=str(block.get("tool_use_id", "")),
                    text=_text_of(block.get("content")),
                    is_error=block.get("is_error"),
                )
                for block in _objects(sent.get("content"))
                if block.get("type") == "tool_result"
            )
        return tuple(results)

    def _messages(self) -> Iterator[Mapping[str, Any]]:
        return _objects(self.body.get("messages"))


def _objects(value: object) -> Iterator[Mapping[str, Any]]:
    """The JSON objects in a list; a client may send anything, and then there are none."""
    if isinstance(value, list):
        for item in cast("list[object]", value):
            if isinstance(item, dict):
                yield cast("dict[str, Any]", item)


def _text_of(content: object) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(str(b.get("text", "")) for b in _objects(content) if b.get("type") == "text")
