"""What is heard of the SDK's messages: by shape, in full, and never an exception."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from subprocess import run
from typing import Any

import pytest

from flowstate.blocks.claude_code.heard import (
    Answered,
    ApiFailureHeard,
    AssistantHeard,
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
    StreamStarted,
    TaskEnded,
    TaskProgressed,
    TaskStarted,
    Took,
    UsageHeard,
)
from flowstate.blocks.claude_code.hearing import hear
from flowstate.blocks.claude_code.json_value import DEEPEST, JsonValue, plain
from flowstate.harness.clean_text import clean_text
from flowstate.harness.usage import HarnessUsageWindow
from tests.blocks.claude_code import wire
from tests.blocks.claude_code.recordings import RECORDINGS
from tests.blocks.claude_code.wire import Wire


def heard(*recording: Wire) -> list[Heard]:
    return [said for message in wire.messages(recording) for said in hear(message)]


def one(written: Wire) -> Heard:
    (said,) = heard(written)
    return said


def test_an_init_names_the_conversation() -> None:
    """With the model, the sandbox and where the key came from."""
    assert one(wire.init()) == SessionHeard(
        session_id=wire.SESSION,
        model=wire.MODEL,
        sandboxed=False,
        api_key_source="ANTHROPIC_API_KEY",
    )
    assert heard({**wire.init(), "session_id": None}) == []
    odd = one(wire.init(model=None, sandbox_enabled="yes", apiKeySource=3))
    assert odd == SessionHeard(session_id=wire.SESSION)


@pytest.mark.parametrize(
    ("written", "said"),
    [
        (wire.state("idle"), [StateHeard(state="idle")]),
        (wire.system("session_state_changed"), []),
        (
            wire.retry(2, 10, 592, 529, "overloaded"),
            [RetryHeard(attempt=2, attempts=10, delay_ms=592)],
        ),
        (wire.system("api_retry", attempt="x", retry_delay_ms=-1), [RetryHeard()]),
        (wire.system("compact_boundary"), [CompactionHeard()]),
        (wire.requesting(), []),
        (wire.system("status", status="compacting"), []),
        (wire.tasks("t"), []),
        (wire.system("thinking_tokens", estimated_tokens=3), []),
        (wire.system("model_fallback"), []),
        (wire.system("made_up"), []),
    ],
)
def test_system_messages(written: Wire, said: list[Heard]) -> None:
    """Those that mean something to a run; the others say nothing."""
    assert heard(written) == said


def test_tasks() -> None:
    """The start keeps the task's own description; a progress describes only its step."""
    assert one(wire.task_started("t", "call", "Refactor")) == TaskStarted(
        task_id="t", call_id="call", description="Refactor", kind="local_agent", in_background=True
    )
    assert one(wire.task_progress("t", "call", "Running x", "Bash")) == TaskProgressed(
        task_id="t", call_id="call", last_tool="Bash"
    )
    assert one(wire.task_updated("t", "killed")) == TaskEnded(task_id="t", status="stopped")
    assert heard(wire.task_updated("t", "running")) == []
    assert heard(wire.task_updated("t", "paused")) == []
    failed = wire.task_updated("t", "failed", error="zero tools")
    assert one(failed) == TaskEnded(task_id="t", status="failed", reason="zero tools")
    assert one(wire.task_notification("t", "call", "completed", "done")) == TaskEnded(
        task_id="t", call_id="call", status="completed"
    )
    assert one(wire.task_notification("t", "call", "failed", "API error")) == TaskEnded(
        task_id="t", call_id="call", status="failed", reason="API error"
    )


def test_what_the_model_says() -> None:
    """One message a block, all under one id; each has an id of its own."""
    written = wire.said("msg", wire.text("Hello"), parent="call")
    assert one(written) == AssistantHeard(
        message_id="msg",
        blocks=(Spoken(kind="text", text="Hello"),),
        parent="call",
        uuid=written["uuid"],
        model=wire.MODEL,
        input_tokens=10,
    )
    for of, block in [
        (wire.thinking("Hm"), Spoken(kind="thinking", text="Hm")),
        (wire.thinking(""), Spoken(kind="thinking", text="")),
        (
            wire.tool("call", "Read", file_path="a"),
            Called(call_id="call", name="Read", arguments={"file_path": "a"}),
        ),
        (
            {"type": "server_tool_use", "id": "srv", "name": "web_search", "input": {"query": "x"}},
            Called(call_id="srv", name="web_search", arguments={"query": "x"}, on_server=True),
        ),
        (
            {"type": "advisor_tool_result", "tool_use_id": "srv", "content": {"type": "advice"}},
            Answered(call_id="srv", output={"type": "advice"}),
        ),
    ]:
        said = one(wire.said("msg", of))
        assert isinstance(said, AssistantHeard)
        assert said.blocks == (block,)


def test_redacted_thinking_is_a_message_without_blocks() -> None:
    """It is output all the same."""
    said = one(wire.said("msg", {"type": "redacted_thinking", "data": "x"}))
    assert isinstance(said, AssistantHeard)
    assert said.blocks == ()


def test_the_binarys_own_words_are_not_the_models() -> None:
    """With an error they are an API failure; without one they are nothing."""
    written = wire.synthetic("msg", "Not logged in", "authentication_failed")
    assert one(written) == ApiFailureHeard(code="authentication_failed", text="Not logged in")
    mute = wire.said("msg", wire.text("No response requested."), model="<synthetic>")
    assert heard(mute) == []
    inside = wire.synthetic("msg", "400", "unknown", parent="call")
    assert one(inside) == ApiFailureHeard(code="unknown", text="400", parent="call")


def test_only_tool_results_are_heard_of_the_user() -> None:
    """Texts in the user's name are the binary's: notes, summaries, a sub-agent's prompt."""
    assert heard(wire.note("This session is being continued […]")) == []
    assert heard(wire.note([wire.text("[Request interrupted by user]")])) == []
    assert one(wire.answer("call", "1\thello", parent="agent")) == Answered(
        call_id="call", output="1\thello", parent="agent"
    )


@pytest.mark.parametrize(
    ("content", "output"),
    [
        ("text", "text"),
        ("", ""),
        (None, ""),
        ([{"type": "text", "text": "row"}], [{"type": "text", "text": "row"}]),
        ([], []),
    ],
)
def test_a_tools_output_is_text_or_blocks(content: Any, output: JsonValue) -> None:
    """As the model was told it; a result without content is an empty text, not None."""
    assert one(wire.answer("call", content)) == Answered(call_id="call", output=output)


@pytest.mark.parametrize(("told", "is_error"), [(None, False), (False, False), (True, True)])
def test_only_true_is_an_error(told: bool | None, is_error: bool) -> None:
    """Most tools leave the flag out when all is well; Bash says False."""
    said = one(wire.answer("call", "x", is_error=told))
    assert isinstance(said, Answered)
    assert said.is_error is is_error


@pytest.mark.parametrize(
    "detail", [{"success": False, "error": "Task not found"}, [{"type": "text"}], "Error: x", None]
)
def test_a_tools_own_record_comes_along_as_it_is(detail: object) -> None:
    """What a plan or a file record reads later; a dict, a list or a text."""
    said = one(wire.answer("call", "x", detail=detail))
    assert isinstance(said, Answered)
    assert said.detail == detail


def test_the_stream_of_a_message() -> None:
    """Pieces of text, thinking and arguments; signatures and ends say nothing."""
    assert heard(
        wire.start("msg"),
        wire.opened(0, wire.thinking()),
        wire.thought(0, "Hm"),
        wire.signed(0),
        wire.closed(0),
        wire.opened(1, wire.text("early ")),
        wire.piece(1, "Hello"),
        wire.piece(1, ""),
        wire.opened(2, wire.tool("call", "Read")),
        wire.argument(2, '{"a'),
        wire.counted(5, "tool_use"),
        wire.done(),
    ) == [
        StreamStarted(message_id="msg", model=wire.MODEL, input_tokens=10, output_tokens=1),
        Streamed(index=0, kind="thinking", text="Hm"),
        Streamed(index=1, kind="text", text="early "),
        Streamed(index=1, kind="text", text="Hello"),
        Streamed(index=2, kind="arguments", text='{"a'),
        StreamCounted(output_tokens=5),
    ]


def test_a_result() -> None:
    """Its tokens are of the turn, its cost of the conversation."""
    written = wire.result(
        None,
        20,
        10,
        0.00021,
        subtype="error_max_turns",
        is_error=True,
        terminal_reason="max_turns",
        errors=["Reached maximum number of turns (2)", ""],
        modelUsage={"m": {"inputTokens": 20}},
    )
    assert one(written) == ResultHeard(
        subtype="error_max_turns",
        is_error=True,
        errors=("Reached maximum number of turns (2)",),
        terminal_reason="max_turns",
        input_tokens=20,
        output_tokens=10,
        total_cost_usd=0.00021,
        model_usage={"m": {"inputTokens": 20}},
        session_id=wire.SESSION,
        uuid=written["uuid"],
    )


def test_a_result_without_numbers_has_none() -> None:
    """None is never 0."""
    said = one({**wire.result("x", None, None, 0.0), "total_cost_usd": None})
    assert isinstance(said, ResultHeard)
    assert (said.input_tokens, said.output_tokens, said.total_cost_usd) == (None, None, None)


def test_a_rate_limit_is_a_usage_window() -> None:
    """And nothing when it names no window."""
    written = wire.limit(status="allowed_warning", rateLimitType="five_hour", utilization=0.91)
    window = HarnessUsageWindow(id="five_hour", minutes=300, used_percent=91, level="warning")
    assert one(written) == UsageHeard(window=window)
    assert heard(wire.limit(status="allowed", isUsingOverage=False)) == []


def test_the_messages_that_a_turn_took_in() -> None:
    """A steered line counts as delivered once the agent lists it."""
    said = heard(
        {**wire.said("m", wire.text("x")), "user_message_uuid": "a"},
        {**wire.start("m"), "user_message_uuid": "b", "user_message_uuids": ["a", "b"]},
        {**wire.result("x", 1, 1, 0.0), "user_message_uuids": ["c", None, 3]},
        {**wire.start("m"), "event": {"type": ["odd"]}, "user_message_uuid": "d"},
    )
    assert [h for h in said if isinstance(h, Took)] == [
        Took(uuids=("a",)),
        Took(uuids=("a", "b")),
        Took(uuids=("c",)),
        Took(uuids=("d",)),
    ]


def test_every_recording_is_heard() -> None:
    """No message of the real binary is taken for garbage where it says something."""
    kinds = {type(said).__name__ for recording in RECORDINGS.values() for said in heard(*recording)}
    assert kinds == {
        "AssistantHeard",
        "Answered",
        "ApiFailureHeard",
        "CompactionHeard",
        "ResultHeard",
        "RetryHeard",
        "SessionHeard",
        "StateHeard",
        "StreamCounted",
        "Streamed",
        "StreamStarted",
        "TaskEnded",
        "TaskProgressed",
        "TaskStarted",
        "UsageHeard",
    }


def test_a_release_without_classes_for_tasks_is_heard_all_the_same() -> None:
    """Older SDKs hand every system message over as one class, with the raw data."""

    @dataclass
    class SystemMessage:
        subtype: str
        data: dict[str, Any] = field(default_factory=dict)

    written = wire.task_started("t", "call", "Refactor")
    assert hear(SystemMessage("task_started", written)) == tuple(heard(written))
    assert hear(SystemMessage("init")) == ()
    assert hear(SystemMessage("task_started")) == (TaskStarted(task_id=""),)


class Hostile:
    """Raises whatever is asked of it."""

    def __getattr__(self, name: str) -> object:
        raise ValueError(name)


def _named(name: str, /, **attributes: object) -> object:
    return type(name, (), attributes)()


def _odd() -> Iterable[object]:
    names = ("AssistantMessage", "UserMessage", "StreamEvent", "ResultMessage", "RateLimitEvent")
    block = _named("ToolUseBlock", id=5, name=None, input={1: object()})
    for name in names:
        yield _named(name)
        yield _named(name, content=7, event=[1], usage="x", rate_limit_info=3, errors=5)
        yield _named(name, content=[None, 3, block, Hostile()], event={"type": [1]})
        yield type(name, (Hostile,), {})()
    yield from (None, 3, "x", {"type": "assistant"}, object(), Hostile(), Hostile)
    yield _named("SystemMessage", subtype="init", data=[1])
    yield _named("SystemMessage", subtype="task_updated", data={"patch": 3, "status": [1]})


@pytest.mark.parametrize("message", list(_odd()), ids=lambda message: type(message).__name__)
def test_nothing_raises(message: object) -> None:
    """An odd message gives nothing, or what could be made of it."""
    assert isinstance(hear(message), tuple)


def test_what_could_be_made_of_a_half_read_call() -> None:
    """A call without a name or an id is still a call, and its arguments become plain JSON."""
    block = _named("ToolUseBlock", id=5, name=None, input={1: {2}})
    (said,) = hear(_named("AssistantMessage", content=[block], model="m"))
    assert isinstance(said, AssistantHeard)
    assert said.blocks == (Called(call_id="", name="unknown", arguments={"1": "{2}"}),)


def test_hearing_imports_nothing_of_the_sdk() -> None:
    """Its import takes seconds, and translation needs none of it."""
    code = (
        "import sys, flowstate.blocks.claude_code.translator, flowstate.blocks.claude_code.hearing;"
        "sys.exit('claude_agent_sdk' in sys.modules)"
    )
    assert run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0


def test_three_million_characters_come_through_whole() -> None:
    """A long result is one value, to the last character."""
    long = "→ line\n" * 428_572
    said = one(wire.answer("call", long))
    assert isinstance(said, Answered)
    assert said.output == long


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("plain", "plain"),
        ("→ é 😀 \x00", "→ é 😀 \x00"),
        ("a\ud800b", "a�b"),
        ("\ud83d\ude00", "😀"),
        ("\udc00", "�"),
    ],
)
def test_texts_are_valid_unicode(text: str, clean: str) -> None:
    """JSON can carry half a character; no store and no stream can."""
    assert clean_text(text) == clean
    said = one(wire.answer("call", [{"type": "text", "text": text}]))
    assert isinstance(said, Answered)
    assert said.output == [{"type": "text", "text": clean}]


def test_values_are_plain_json() -> None:
    """Ordinary JSON comes out equal; what isn't JSON, or is too deep, becomes something that is."""
    value = {"a": [1, 2.5, None, True, {"b": ""}], "c": "→"}
    assert plain(value) == value
    assert plain({"n": float("inf"), 3: (1,), "\ud800": b"x"}) == {
        "n": "inf",
        "3": [1],
        "�": "b'x'",
    }
    deep: object = 1
    for _ in range(5000):
        deep = [deep]
    flat = repr(plain(deep))
    assert flat == "[" * DEEPEST + "'…'" + "]" * DEEPEST
