"""
How a scripted turn becomes an answer of the Messages API: one JSON message, or the server-sent
events that a streaming client puts together again.

Pure. Whoever plays a turn hands in the message's id; the same turn, id and model always give the
same bytes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import final

from flowstate.testing.scripted_turns import (
    ApiError,
    Block,
    RedactedThinking,
    Text,
    Thinking,
    ToolCall,
    Turn,
)

TEXT_PIECE = 24
"""Characters of text or thinking in one delta: small, so that a client has pieces to join."""

INPUT_PIECE = 64
"""Characters of a tool call's JSON in one delta."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSentEvent:
    """One event of a streamed answer."""

    name: str
    data: Mapping[str, object]

    def encode(self) -> bytes:
        """The event as it is sent, with the empty line that ends it."""
        return b"event: %s\ndata: %s\n\n" % (self.name.encode(), json_bytes(self.data))


def json_bytes(value: object) -> bytes:
    r"""
    JSON as UTF-8, characters beyond ASCII as themselves, the way the service sends it.

    A lone surrogate has no UTF-8; it is sent as the JSON escape that stands for it.

    >>> json_bytes("é\ud800")
    b'"\xc3\xa9\\ud800"'
    """
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "backslashreplace")


def message(turn: Turn, *, message_id: str, model: str) -> dict[str, object]:
    """The answer to a request that doesn't stream: the finished message."""
    return {
        **_envelope(turn, message_id, model, turn.usage.output),
        "content": [_finished(b, i, message_id) for i, b in enumerate(turn.blocks)],
        "stop_reason": turn.stop_reason,
    }


def events(turn: Turn, *, message_id: str, model: str) -> Iterator[ServerSentEvent]:
    """The answer to a request that streams: the message in pieces, in the service's order."""
    # The service can't know the length of what it has yet to say: a message starts with 1.
    yield _event("message_start", message=_envelope(turn, message_id, model, 1))
    yield _event("ping")
    for index, block in enumerate(turn.blocks):
        finished = _finished(block, index, message_id)
        start, deltas = _in_pieces(block, finished)
        yield _event("content_block_start", index=index, content_block=start)
        for delta in deltas:
            yield _event("content_block_delta", index=index, delta=delta)
        yield _event("content_block_stop", index=index)
    yield _event(
        "message_delta",
        delta={"stop_reason": turn.stop_reason, "stop_sequence": None},
        usage={"output_tokens": turn.usage.output},
    )
    yield _event("message_stop")


def error_body(error: ApiError, *, request_id: str) -> dict[str, object]:
    """The body of a refusal."""
    return {
        "type": "error",
        "error": {"type": error.type, "message": error.message},
        "request_id": request_id,
    }


def _event(name: str, **data: object) -> ServerSentEvent:
    return ServerSentEvent(name=name, data={"type": name, **data})


def _envelope(turn: Turn, message_id: str, model: str, output_tokens: int) -> dict[str, object]:
    return {
        "id": message_id,
        "type": "message",
        "role": "assistant",
        "model": turn.model or model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {
            "input_tokens": turn.usage.input,
            "cache_creation_input_tokens": turn.usage.cache_write,
            "cache_read_input_tokens": turn.usage.cache_read,
            "output_tokens": output_tokens,
        },
    }


def _finished(block: Block, index: int, message_id: str) -> dict[str, object]:
    match block:
        case Text():
            return {"type": "text", "text": block.text}
        case Thinking():
            return {
                "type": "thinking",
                "thinking": block.thinking,
                "signature": block.signature,
            }
        case RedactedThinking():
            return {"type": "redacted_thinking", "data": block.data}
        case ToolCall():
            made_id = f"toolu_{message_id.removeprefix('msg_')}_{index}"
            return {
                "type": "tool_use",
                "id": block.id or made_id,
                "name": block.name,
                "input": dict(block.input),
            }


def _in_pieces(
    block: Block, finished: dict[str, object]
) -> tuple[dict[str, object], list[dict[str, object]]]:
    """How a block starts, and the deltas that complete it."""
    match block:
        case Text():
            pieces = _cut(block.text, TEXT_PIECE)
            return {**finished, "text": ""}, [{"type": "text_delta", "text": p} for p in pieces]
        case Thinking():
            pieces = _cut(block.thinking, TEXT_PIECE)
            deltas: list[dict[str, object]] = [
                {"type": "thinking_delta", "thinking": p} for p in pieces
            ]
            deltas.append({"type": "signature_delta", "signature": block.signature})
            return {**finished, "thinking": "", "signature": ""}, deltas
        case RedactedThinking():
            return finished, []
        case ToolCall():
            # ASCII within the string, so that a lone surrogate stays an escape until the client
            # parses the joined pieces.
            pieces = _cut(json.dumps(dict(block.input)), INPUT_PIECE)
            return {**finished, "input": {}}, [
                {"type": "input_json_delta", "partial_json": p} for p in pieces
            ]


def _cut(value: str, size: int) -> list[str]:
    return [value[start : start + size] for start in range(0, len(value), size)]
