"""
What a scripted model says: turns as values.

A :class:`Turn` is one assistant message and the way it is delivered (late, in slow pieces, hanging
before its end, cut off); an :class:`ApiError` is a refusal. Both are checked when they are built,
so that a script that exists can be played. ``flowstate.testing.turn_encoding`` makes answers of
them.

Pure: no socket, clock, random number or task. Whoever plays a turn decides what "late" and
"hanging" mean.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal, TypeAlias, final

from flowstate.errors import DefinitionError

NO_HEADERS: Mapping[str, str] = MappingProxyType({})

FAR_RESET = 4_102_444_800
"""2100-01-01 in Unix seconds: a reset time that lies in the future whenever a test runs."""


# --- what a message is made of ------------------------------------------------------------------


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """Prose for the user."""

    text: str


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Thinking:
    """Extended thinking. An empty ``thinking`` is thinking whose text the service withheld."""

    thinking: str
    signature: str


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RedactedThinking:
    """Thinking that the service sent only encrypted."""

    data: str


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """
    A request to run one tool.

    Raises:
        DefinitionError: the input can't be written as a JSON object.
    """

    name: str
    """The tool's name as the client offers it, for example ``Write`` or ``mcp__tracker__add``."""
    input: Mapping[str, object]
    """The arguments; kept as a copy, so that a later change of the original has no effect."""
    id: str | None = None
    """The call's id; by default one made of the message's id and the block's place in it."""

    def __post_init__(self) -> None:
        try:
            copy = json.loads(json.dumps(dict(self.input), allow_nan=False))
        except (TypeError, ValueError) as error:
            raise DefinitionError(
                f"tool_call({self.name!r})",
                f"its input is no JSON object: {error}",
                "Pass str, int, finite float, bool, None, lists and dicts with str keys.",
            ) from error
        object.__setattr__(self, "input", MappingProxyType(copy))


Block: TypeAlias = Text | Thinking | RedactedThinking | ToolCall


def text(value: str) -> Text:
    """Prose for the user; any characters, U+2028 and lone surrogates included."""
    return Text(text=value)


def thinking(value: str = "", *, signature: str = "c2lnbmF0dXJl") -> Thinking:
    """Extended thinking; without a value, thinking whose text is withheld."""
    return Thinking(thinking=value, signature=signature)


def redacted_thinking(data: str = "cmVkYWN0ZWQ=") -> RedactedThinking:
    """Thinking that is sent only encrypted; ``data`` is opaque to a client."""
    return RedactedThinking(data=data)


def tool_call(
    name: str, input: Mapping[str, object] | None = None, /, **fields: object
) -> ToolCall:
    """
    A request to run one tool, its arguments as a mapping, as keywords, or both (keywords win).

    >>> tool_call("Bash", command="ls").input["command"]
    'ls'
    """
    return ToolCall(name=name, input={**(input or {}), **fields})


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """
    The tokens that one answer reports.

    Raises:
        DefinitionError: a number is negative.
    """

    input: int = 10
    output: int = 5
    cache_read: int = 0
    cache_write: int = 0

    def __post_init__(self) -> None:
        if min(self.input, self.output, self.cache_read, self.cache_write) < 0:
            raise DefinitionError(repr(self), "tokens can't be negative", "Use 0 for none.")


# --- what the endpoint does with one request ----------------------------------------------------


@final
@dataclass(frozen=True, slots=True, init=False)
class Turn:
    """
    One assistant message, made of blocks in order, and how it is delivered.

    >>> Turn(text("I'll look."), tool_call("Read", file_path="a.txt")).stop_reason
    'tool_use'

    Raises:
        DefinitionError: an option has a value that can't be played.
    """

    blocks: tuple[Block, ...]
    stop_reason: str
    """By default ``tool_use`` if the message calls a tool, else ``end_turn``."""
    usage: Usage
    headers: Mapping[str, str]
    """Further headers of the answer, :func:`rate_limit_headers` for example."""
    model: str | None
    """The model that the answer names; None repeats the one that was asked for."""
    delay: float
    """Seconds before the first byte of the answer; infinity waits until released."""
    chunk_delay: float
    """Seconds after every event of a streamed answer."""
    hang: bool
    """Everything is sent but the end of the message, which waits until released."""
    drop_after: int | None
    """The connection is cut after that many events; 0 cuts it after the headers."""

    def __init__(
        self,
        *blocks: Block,
        stop_reason: str | None = None,
        usage: Usage | None = None,
        headers: Mapping[str, str] = NO_HEADERS,
        model: str | None = None,
        delay: float = 0.0,
        chunk_delay: float = 0.0,
        hang: bool = False,
        drop_after: int | None = None,
    ) -> None:
        if drop_after is not None and drop_after < 0:
            raise DefinitionError("Turn", f"drop_after={drop_after}", "Count events from 0.")
        calls = any(isinstance(block, ToolCall) for block in blocks)
        values: dict[str, object] = {
            "blocks": blocks,
            "stop_reason": stop_reason or ("tool_use" if calls else "end_turn"),
            "usage": usage or Usage(),
            "headers": _checked_headers("Turn", headers),
            "model": model,
            "delay": _checked_seconds("Turn", "delay", delay),
            "chunk_delay": _checked_seconds("Turn", "chunk_delay", chunk_delay),
            "hang": hang,
            "drop_after": drop_after,
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)


@final
@dataclass(frozen=True, slots=True)
class ApiError:
    """
    A refusal: an HTTP status and the error object of the Messages API.

    >>> ApiError(529).type
    'overloaded_error'

    Raises:
        DefinitionError: the status isn't one of an error, or another option can't be played.
    """

    status: int
    type: str = field(default="", kw_only=True)
    """By default the type that the service uses for the status, ``api_error`` for unlisted ones."""
    message: str = field(default="", kw_only=True)
    """By default a sentence that names the type."""
    headers: Mapping[str, str] = field(default_factory=lambda: NO_HEADERS, kw_only=True)
    """Further headers of the answer, ``retry-after`` for example."""
    delay: float = field(default=0.0, kw_only=True)
    """Seconds before the answer; infinity waits until released."""

    def __post_init__(self) -> None:
        where = f"ApiError({self.status})"
        if not 400 <= self.status <= 599:
            raise DefinitionError(where, "no error status", "Use one from 400 to 599.")
        kind = self.type or _ERROR_TYPES.get(self.status, "api_error")
        object.__setattr__(self, "type", kind)
        object.__setattr__(self, "message", self.message or f"a scripted {kind}")
        object.__setattr__(self, "headers", _checked_headers(where, self.headers))
        _checked_seconds(where, "delay", self.delay)


_ERROR_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    500: "api_error",
    529: "overloaded_error",
}


def rate_limit_headers(
    status: Literal["allowed", "allowed_warning", "rejected"] = "allowed",
    *,
    window: Literal["five_hour", "seven_day"] = "five_hour",
    resets_at: int = FAR_RESET,
    utilization: float | None = None,
    surpassed: float | None = None,
    overage: str | None = None,
    fallback: bool = False,
) -> dict[str, str]:
    """
    The ``anthropic-ratelimit-unified-*`` headers with which a subscription's usage is told.

    Claude Code reads them only when it runs on an OAuth token, not on a key.

    Args:
        status: whether the account may go on, may go on but is near its limit, or may not.
        window: the window that the status is about.
        resets_at: when that window begins anew, in Unix seconds.
        utilization: the part of the window that is used up, from 0 to 1.
        surpassed: the threshold that was passed, from 0 to 1. Claude Code reports
            ``allowed_warning`` only together with one.
        overage: the status of paid usage beyond the subscription.
        fallback: the service offers a smaller model.
    """
    prefix = "anthropic-ratelimit-unified"
    short = {"five_hour": "5h", "seven_day": "7d"}[window]
    headers = {
        f"{prefix}-status": status,
        f"{prefix}-reset": str(resets_at),
        f"{prefix}-representative-claim": window,
        f"{prefix}-{short}-status": status,
        f"{prefix}-{short}-reset": str(resets_at),
    }
    optional = {
        f"{prefix}-{short}-utilization": utilization,
        f"{prefix}-{short}-surpassed-threshold": surpassed,
        f"{prefix}-overage-status": overage,
        f"{prefix}-fallback": "available" if fallback else None,
    }
    headers.update({name: str(value) for name, value in optional.items() if value is not None})
    return headers


def _checked_headers(where: str, headers: Mapping[str, str]) -> Mapping[str, str]:
    for name, value in headers.items():
        if not (name.isascii() and value.isascii() and (name + value).isprintable()):
            raise DefinitionError(
                where, f"header {name!r} holds {value!r}", "Use printable ASCII characters."
            )
    return MappingProxyType(dict(headers))


def _checked_seconds(where: str, option: str, seconds: float) -> float:
    if not seconds >= 0:  # also true of NaN
        raise DefinitionError(where, f"{option}={seconds}", "Give seconds, 0 or more.")
    return seconds
