"""
The wire messages of Claude Code, one function for each, and the SDK's objects for them.

``block`` writes the usual messages of one block: it opens, its pieces stream, it is said in full,
it closes; ``message`` those of a whole message of the model. ``messages`` reads what was written
with the SDK's own parser, so that a test meets the objects that a run meets.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import count
from typing import Any, TypeAlias

Wire: TypeAlias = dict[str, Any]

SESSION = "0d041a97-a6be-4468-878b-4c6943f12999"
MODEL = "claude-sonnet-4-5"

_numbers = count(1)


def messages(recording: Iterable[Wire]) -> list[object]:
    """The SDK's objects for a recording."""
    from claude_agent_sdk._internal.message_parser import parse_message

    parsed = (parse_message(wire) for wire in recording)
    return [message for message in parsed if message is not None]


def _wire(type_: str, **fields: Any) -> Wire:
    return {"type": type_, "session_id": SESSION, "uuid": f"uuid-{next(_numbers)}", **fields}


def system(subtype: str, **data: Any) -> Wire:
    return _wire("system", subtype=subtype, **data)


def init(**data: Any) -> Wire:
    known = {"model": MODEL, "apiKeySource": "ANTHROPIC_API_KEY", "sandbox_enabled": False}
    return system("init", cwd="/repo", tools=["Task", "Bash", "Read"], **{**known, **data})


def state(name: str) -> Wire:
    return system("session_state_changed", state=name)


def requesting() -> Wire:
    return system("status", status="requesting")


def turn_begins() -> list[Wire]:
    """What every turn begins with."""
    return [state("running"), init(), requesting()]


def retry(attempt: int, of: int, delay_ms: int, status: int | None, error: str) -> Wire:
    return system(
        "api_retry",
        attempt=attempt,
        max_retries=of,
        retry_delay_ms=delay_ms,
        error_status=status,
        error=error,
    )


def event(type_: str, **fields: Any) -> Wire:
    return _wire("stream_event", event={"type": type_, **fields}, parent_tool_use_id=None)


def start(message_id: str, *, model: str = MODEL, tokens: int = 10) -> Wire:
    usage = {"input_tokens": tokens, "output_tokens": 1, "cache_read_input_tokens": 0}
    begun = {"id": message_id, "role": "assistant", "model": model, "content": [], "usage": usage}
    return event("message_start", message=begun)


def opened(index: int, of: Wire) -> Wire:
    """A block opens, empty: ``text()``, ``thinking()`` or a call without its arguments."""
    return event("content_block_start", index=index, content_block=of)


def piece(index: int, text: str) -> Wire:
    return event("content_block_delta", index=index, delta={"type": "text_delta", "text": text})


def thought(index: int, text: str) -> Wire:
    delta = {"type": "thinking_delta", "thinking": text}
    return event("content_block_delta", index=index, delta=delta)


def signed(index: int) -> Wire:
    delta = {"type": "signature_delta", "signature": "c2ln"}
    return event("content_block_delta", index=index, delta=delta)


def argument(index: int, text: str) -> Wire:
    delta = {"type": "input_json_delta", "partial_json": text}
    return event("content_block_delta", index=index, delta=delta)


def closed(index: int) -> Wire:
    return event("content_block_stop", index=index)


def counted(output: int, stop: str | None, **usage: int) -> Wire:
    delta = {"stop_reason": stop, "stop_sequence": None}
    return event("message_delta", delta=delta, usage={"output_tokens": output, **usage})


def done() -> Wire:
    return event("message_stop")


def text(value: str = "") -> Wire:
    return {"type": "text", "text": value}


def thinking(value: str = "") -> Wire:
    return {"type": "thinking", "thinking": value, "signature": "c2ln"}


def tool(call_id: str, name: str, **arguments: Any) -> Wire:
    return {"type": "tool_use", "id": call_id, "name": name, "input": arguments}


def said(
    message_id: str, of: Wire, *, parent: str | None = None, model: str = MODEL, **fields: Any
) -> Wire:
    usage = {"input_tokens": 10, "output_tokens": 1}
    message = {"id": message_id, "model": model, "content": [of], "usage": usage}
    return _wire("assistant", message=message, parent_tool_use_id=parent, **fields)


def synthetic(message_id: str, value: str, error: str, *, parent: str | None = None) -> Wire:
    return said(message_id, text(value), parent=parent, model="<synthetic>", error=error)


def block(message_id: str, index: int, of: Wire, *, model: str = MODEL) -> list[Wire]:
    """A block opens, its pieces stream, it is said in full (``of``), it closes."""
    match of["type"]:
        case "text":
            empty, pieces = text(), [piece(index, part) for part in _parts(of["text"], 24)]
        case "thinking":
            empty = thinking()
            pieces = [*(thought(index, part) for part in _parts(of["thinking"], 24)), signed(index)]
        case "tool_use":
            empty = {**of, "input": {}}
            pieces = [argument(index, part) for part in _parts(json.dumps(of["input"]), 64)]
        case _:
            empty, pieces = of, []
    return [opened(index, empty), *pieces, said(message_id, of, model=model), closed(index)]


def message(message_id: str, *blocks: Wire, model: str = MODEL, tokens: int = 10) -> list[Wire]:
    """The model says these blocks."""
    said_ = [wire for i, of in enumerate(blocks) for wire in block(message_id, i, of, model=model)]
    stop = "tool_use" if any(of["type"] == "tool_use" for of in blocks) else "end_turn"
    begun = start(message_id, model=model, tokens=tokens)
    return [begun, *said_, counted(5, stop), done()]


def _parts(whole: str, size: int) -> Iterable[str]:
    return (whole[i : i + size] for i in range(0, len(whole), size))


def answer(
    call_id: str,
    content: Any,
    *,
    is_error: bool | None = None,
    parent: str | None = None,
    detail: Any = None,
) -> Wire:
    """A tool's result."""
    result: Wire = {"type": "tool_result", "tool_use_id": call_id, "content": content}
    if is_error is not None:
        result["is_error"] = is_error
    message = {"role": "user", "content": [result]}
    return _wire("user", message=message, parent_tool_use_id=parent, tool_use_result=detail)


def note(content: Any, *, parent: str | None = None) -> Wire:
    """A text in the user's name that the binary wrote itself."""
    return _wire("user", message={"role": "user", "content": content}, parent_tool_use_id=parent)


def task_started(task_id: str, call_id: str, description: str, **data: Any) -> Wire:
    known = {"task_type": "local_agent", "is_backgrounded": True, **data}
    return system(
        "task_started", task_id=task_id, tool_use_id=call_id, description=description, **known
    )


def task_progress(task_id: str, call_id: str, description: str, last_tool: str) -> Wire:
    return system(
        "task_progress",
        task_id=task_id,
        tool_use_id=call_id,
        description=description,
        last_tool_name=last_tool,
        usage={"total_tokens": 12, "tool_uses": 1, "duration_ms": 572},
    )


def task_updated(task_id: str, status: str, **patch: Any) -> Wire:
    return system("task_updated", task_id=task_id, patch={"status": status, **patch})


def task_notification(task_id: str, call_id: str, status: str, summary: str) -> Wire:
    return system(
        "task_notification",
        task_id=task_id,
        tool_use_id=call_id,
        status=status,
        summary=summary,
        output_file="",
    )


def tasks(*running: str) -> Wire:
    listed = [{"task_id": task, "task_type": "local_agent"} for task in running]
    return system("background_tasks_changed", tasks=listed)


def limit(**info: Any) -> Wire:
    return _wire("rate_limit_event", rate_limit_info=info)


def result(
    said_last: str | None, input_: int | None, output: int | None, cost: float, **fields: Any
) -> Wire:
    usage = None if input_ is None else {"input_tokens": input_, "output_tokens": output}
    known: Wire = {
        "subtype": "success",
        "is_error": False,
        "num_turns": 1,
        "duration_ms": 558,
        "duration_api_ms": 179,
        "terminal_reason": "completed",
    }
    fields = {**known, **fields}
    return _wire("result", result=said_last, usage=usage, total_cost_usd=cost, **fields)


def launched(task_id: str) -> Wire:
    """The record of a sub-agent that runs in the background."""
    return {"isAsync": True, "status": "async_launched", "agentId": task_id}
