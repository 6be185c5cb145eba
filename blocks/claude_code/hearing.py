"""
Hearing Claude Code: one message of its SDK in, what it says out.

Goes by the names of classes and attributes and imports nothing of the SDK, whose import takes
seconds. ``hear`` is total: a message that it doesn't know, or that isn't what its class promises,
gives nothing or what could be made of it; it never raises. It keeps no state and knows no items.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, cast

from flowstate.blocks.claude_code.heard import (
    Answered,
    ApiFailureHeard,
    AssistantHeard,
    Block,
    Called,
    CompactionHeard,
    Heard,
    ResultHeard,
    RetryHeard,
    SessionHeard,
    Spoken,
    StateHeard,
    StreamCounted,
    Streamed,
    StreamedKind,
    StreamStarted,
    TaskEnded,
    TaskEndStatus,
    TaskProgressed,
    TaskStarted,
    Took,
    UsageHeard,
)
from flowstate.blocks.claude_code.json_value import (
    items_of,
    mapping_of,
    number_of,
    plain,
    text_of,
    whole_of,
)
from flowstate.blocks.claude_code.windows import usage_window_of

SYNTHETIC: Final = "<synthetic>"
"""The model of a message that Claude Code wrote itself."""


def hear(message: object) -> tuple[Heard, ...]:
    """
    What a message of the SDK says, in order; nothing for one that says nothing to us.

    >>> hear(object())
    ()
    """
    try:
        read = _READERS.get(type(message).__name__)
        if read is not None:
            return read(message)
        # Each kind of system message may have a class of its own, in some releases of the SDK.
        subtype = getattr(message, "subtype", None)
        return _system(subtype, message) if isinstance(subtype, str) else ()
    except Exception:
        # The message came from another program. One that can't even be looked at must not end a
        # run that goes on without it.
        return ()


def _system(subtype: str, message: object) -> tuple[Heard, ...]:
    read = _SYSTEM_READERS.get(subtype)
    return read(mapping_of(getattr(message, "data", None))) if read is not None else ()


def _init(data: Mapping[object, object]) -> tuple[Heard, ...]:
    session_id = text_of(data.get("session_id"))
    if session_id is None:
        return ()
    sandboxed = data.get("sandbox_enabled")
    return (
        SessionHeard(
            session_id=session_id,
            model=text_of(data.get("model")),
            sandboxed=sandboxed if isinstance(sandboxed, bool) else None,
            api_key_source=text_of(data.get("apiKeySource")),
        ),
    )


def _state(data: Mapping[object, object]) -> tuple[Heard, ...]:
    state = text_of(data.get("state"))
    return (StateHeard(state=state),) if state is not None else ()


def _retry(data: Mapping[object, object]) -> tuple[Heard, ...]:
    return (
        RetryHeard(
            attempt=whole_of(data.get("attempt")),
            attempts=whole_of(data.get("max_retries")),
            delay_ms=number_of(data.get("retry_delay_ms")),
        ),
    )


def _task_started(data: Mapping[object, object]) -> tuple[Heard, ...]:
    return (
        TaskStarted(
            task_id=text_of(data.get("task_id")) or "",
            call_id=text_of(data.get("tool_use_id")),
            description=text_of(data.get("description")),
            kind=text_of(data.get("task_type")),
            in_background=data.get("is_backgrounded") is True,
        ),
    )


def _task_progress(data: Mapping[object, object]) -> tuple[Heard, ...]:
    return (
        TaskProgressed(
            task_id=text_of(data.get("task_id")) or "",
            call_id=text_of(data.get("tool_use_id")),
            summary=text_of(data.get("summary")),
            last_tool=text_of(data.get("last_tool_name")),
        ),
    )


def _task_ended(data: Mapping[object, object]) -> tuple[Heard, ...]:
    # A notification has the status itself, an update has it in its patch.
    change = mapping_of(data.get("patch"))
    status = _TASK_ENDS.get(data.get("status") or change.get("status"))
    if status is None:
        return ()
    return (
        TaskEnded(
            task_id=text_of(data.get("task_id")) or "",
            status=status,
            call_id=text_of(data.get("tool_use_id")),
            reason=text_of(change.get("error") or data.get("summary"))
            if status == "failed"
            else None,
        ),
    )


def _assistant(message: object) -> tuple[Heard, ...]:
    model = text_of(getattr(message, "model", None))
    parent = text_of(getattr(message, "parent_tool_use_id", None))
    blocks = _blocks(getattr(message, "content", None), parent)
    if model == SYNTHETIC:
        code = text_of(getattr(message, "error", None))
        said = "\n".join(block.text for block in blocks if isinstance(block, Spoken))
        return (ApiFailureHeard(code=code, text=said, parent=parent),) if code is not None else ()
    spoken = AssistantHeard(
        message_id=text_of(getattr(message, "message_id", None)),
        blocks=blocks,
        parent=parent,
        uuid=text_of(getattr(message, "uuid", None)),
        model=model,
        input_tokens=whole_of(mapping_of(getattr(message, "usage", None)).get("input_tokens")),
    )
    return (*_took(message), spoken)


def _blocks(content: object, parent: str | None, detail: object = None) -> tuple[Block, ...]:
    read: list[Block] = []
    for block in items_of(content):
        match type(block).__name__:
            case "TextBlock":
                read.append(Spoken(kind="text", text=text_of(getattr(block, "text", None)) or ""))
            case "ThinkingBlock":
                thought = text_of(getattr(block, "thinking", None)) or ""
                read.append(Spoken(kind="thinking", text=thought))
            case "ToolUseBlock" | "ServerToolUseBlock" as kind:
                read.append(
                    Called(
                        call_id=text_of(getattr(block, "id", None)) or "",
                        name=text_of(getattr(block, "name", None)) or "unknown",
                        arguments=plain(getattr(block, "input", None)),
                        on_server=kind == "ServerToolUseBlock",
                    )
                )
            case "ToolResultBlock" | "ServerToolResultBlock":
                output = plain(getattr(block, "content", None))
                read.append(
                    Answered(
                        call_id=text_of(getattr(block, "tool_use_id", None)) or "",
                        output="" if output is None else output,
                        is_error=getattr(block, "is_error", None) is True,
                        parent=parent,
                        detail=detail,
                    )
                )
            case _:
                continue
    return tuple(read)


def _user(message: object) -> tuple[Heard, ...]:
    # Only tool results matter: texts in the user's name are Claude Code's own.
    blocks = _blocks(
        getattr(message, "content", None),
        text_of(getattr(message, "parent_tool_use_id", None)),
        getattr(message, "tool_use_result", None),
    )
    return tuple(block for block in blocks if isinstance(block, Answered))


def _streamed(message: object) -> tuple[Heard, ...]:
    # Most of what is heard is a piece of a text: hardly a call is made that needn't be.
    event = mapping_of(getattr(message, "event", None))
    read = _EVENT_READERS.get(text_of(event.get("type")))
    heard: tuple[Heard, ...] = ()
    if read is not None:
        parent: object = getattr(message, "parent_tool_use_id", None)
        heard = read(event, text_of(parent) if parent else None)
    if getattr(message, "user_message_uuid", None) or getattr(message, "user_message_uuids", None):
        return _took(message) + heard
    return heard


def _piece(event: Mapping[object, object], parent: str | None) -> tuple[Heard, ...]:
    said = mapping_of(event.get("delta") or event.get("content_block"))
    for name, kind in _PIECES:
        text = said.get(name)
        if text and (text := text_of(text)) is not None:
            return (Streamed(whole_of(event.get("index")) or 0, kind, text, parent),)
    return ()


def _started(event: Mapping[object, object], parent: str | None) -> tuple[Heard, ...]:
    begun = mapping_of(event.get("message"))
    usage = mapping_of(begun.get("usage"))
    return (
        StreamStarted(
            message_id=text_of(begun.get("id")),
            parent=parent,
            model=text_of(begun.get("model")),
            input_tokens=whole_of(usage.get("input_tokens")),
            output_tokens=whole_of(usage.get("output_tokens")),
        ),
    )


def _counted(event: Mapping[object, object], parent: str | None) -> tuple[Heard, ...]:
    usage = mapping_of(event.get("usage"))
    return (
        StreamCounted(
            input_tokens=whole_of(usage.get("input_tokens")),
            output_tokens=whole_of(usage.get("output_tokens")),
            parent=parent,
        ),
    )


def _result(message: object) -> tuple[Heard, ...]:
    usage = mapping_of(getattr(message, "usage", None))
    errors = items_of(getattr(message, "errors", None))
    result = ResultHeard(
        subtype=text_of(getattr(message, "subtype", None)) or "unknown",
        is_error=getattr(message, "is_error", None) is True,
        text=text_of(getattr(message, "result", None)),
        errors=tuple(text for error in errors if (text := text_of(error)) is not None),
        terminal_reason=text_of(getattr(message, "terminal_reason", None)),
        input_tokens=whole_of(usage.get("input_tokens")),
        output_tokens=whole_of(usage.get("output_tokens")),
        total_cost_usd=number_of(getattr(message, "total_cost_usd", None)),
        model_usage=cast(object, getattr(message, "model_usage", None)),
        session_id=text_of(getattr(message, "session_id", None)),
        uuid=text_of(getattr(message, "uuid", None)),
    )
    return (*_took(message), result)


def _limit(message: object) -> tuple[Heard, ...]:
    window = usage_window_of(getattr(message, "rate_limit_info", None))
    return (UsageHeard(window=window),) if window is not None else ()


def _took(message: object) -> tuple[Took, ...]:
    listed = getattr(message, "user_message_uuids", None)
    named = getattr(message, "user_message_uuid", None)
    if listed is None and named is None:
        return ()
    listed, named = items_of(listed), text_of(named)
    uuids = [uuid for value in listed if (uuid := text_of(value)) is not None]
    if named is not None and named not in uuids:
        uuids.append(named)
    return (Took(uuids=tuple(uuids)),) if uuids else ()


_PIECES: Final[tuple[tuple[str, StreamedKind], ...]] = (
    ("text", "text"),
    ("thinking", "thinking"),
    ("partial_json", "arguments"),
)

_TASK_ENDS: Final[Mapping[object, TaskEndStatus]] = {
    "completed": "completed",
    "failed": "failed",
    "stopped": "stopped",
    "killed": "stopped",
}

_SYSTEM_READERS: Final[Mapping[str, Callable[[Mapping[object, object]], tuple[Heard, ...]]]] = {
    "init": _init,
    "session_state_changed": _state,
    "api_retry": _retry,
    "compact_boundary": lambda data: (CompactionHeard(),),
    "task_started": _task_started,
    "task_progress": _task_progress,
    "task_notification": _task_ended,
    "task_updated": _task_ended,
}

_EVENT_READERS: Final[
    Mapping[object, Callable[[Mapping[object, object], str | None], tuple[Heard, ...]]]
] = {
    "content_block_start": _piece,
    "content_block_delta": _piece,
    "message_start": _started,
    "message_delta": _counted,
}

_READERS: Final[Mapping[str, Callable[[object], tuple[Heard, ...]]]] = {
    "AssistantMessage": _assistant,
    "UserMessage": _user,
    "StreamEvent": _streamed,
    "ResultMessage": _result,
    "RateLimitEvent": _limit,
}
