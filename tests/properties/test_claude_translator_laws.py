"""
What holds of every Claude Code stream, however bent: laws of hearing and of translation.

Recordings of the real binary are dropped from, repeated, reordered and cut; made-up ones are thrown
together from a few ids, so that everything collides. The stage is strict: it fails on an item that
is opened twice, on text for an item that isn't open, and on a container that isn't there.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

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
)
from flowstate.blocks.claude_code.hearing import hear
from flowstate.blocks.claude_code.json_value import plain
from flowstate.blocks.claude_code.translator import Translator
from flowstate.blocks.claude_code.windows import usage_window_of
from flowstate.item.content import Container, ToolOutput
from tests.blocks.claude_code import wire
from tests.blocks.claude_code.recordings import RECORDINGS
from tests.blocks.claude_code.stage import Clock, Stage, heard_of, play
from tests.blocks.claude_code.wire import Wire

# --- strategies ---------------------------------------------------------------------------------

NAMES = st.sampled_from(sorted(RECORDINGS))


@cache
def heard_in(name: str) -> tuple[Heard, ...]:
    return tuple(heard_of(RECORDINGS[name]))


@st.composite
def bent(draw: st.DrawFn) -> list[Heard]:
    """A recording of which parts were lost, said again, put elsewhere or cut off."""
    said = list(heard_in(draw(NAMES)))
    for _ in range(draw(st.integers(0, 12))):
        if not said:
            break
        at = draw(st.integers(0, len(said) - 1))
        match draw(st.sampled_from(["drop", "repeat", "move", "cut", "swap"])):
            case "drop":
                del said[at]
            case "repeat":
                said.insert(draw(st.integers(0, len(said))), said[at])
            case "move":
                one = said.pop(at)
                said.insert(draw(st.integers(0, len(said))), one)
            case "swap" if at:
                said[at - 1], said[at] = said[at], said[at - 1]
            case "cut" if draw(st.booleans()):
                del said[at:]
            case _:
                pass
    return said


IDS = st.sampled_from(["", "a", "b", "text/1", "a/inside", "run/error", "a/failure", "odd/0"])
SOME_IDS = IDS | st.none()
TEXTS = st.sampled_from(["", "x", "xy", "y"])
SOME_TEXTS = TEXTS | st.none()
COUNTS = st.integers(0, 9) | st.none()
TOOLS = st.sampled_from(["Agent", "Task", "Bash", "Read", "unknown"])
ARGUMENTS = st.sampled_from(
    [None, {}, {"description": "d"}, {"run_in_background": True, "subagent_type": "s"}, [1], "x"]
)
OUTPUTS = st.sampled_from(["", "x", [], [{"type": "text", "text": "x"}], [1]])
DETAILS = st.sampled_from(
    [None, {"isAsync": True}, {"status": "async_launched"}, "User rejected tool use", [1]]
)

ANSWERED = st.builds(
    Answered, call_id=IDS, output=OUTPUTS, is_error=st.booleans(), parent=SOME_IDS, detail=DETAILS
)
BLOCKS = st.one_of(
    st.builds(Spoken, kind=st.sampled_from(["text", "thinking"]), text=TEXTS),
    st.builds(Called, call_id=IDS, name=TOOLS, arguments=ARGUMENTS, on_server=st.booleans()),
    ANSWERED,
)
SAID: st.SearchStrategy[Heard] = st.one_of(
    st.builds(SessionHeard, session_id=st.sampled_from(["s", "t"]), model=SOME_TEXTS),
    st.builds(StateHeard, state=st.sampled_from(["running", "idle", "requires_action"])),
    st.builds(RetryHeard, attempt=COUNTS, attempts=COUNTS, delay_ms=COUNTS),
    st.builds(CompactionHeard),
    st.builds(
        StreamStarted,
        message_id=SOME_IDS,
        parent=SOME_IDS,
        input_tokens=COUNTS,
        output_tokens=COUNTS,
    ),
    st.builds(
        Streamed,
        index=st.integers(0, 2),
        kind=st.sampled_from(["text", "thinking", "arguments"]),
        text=st.sampled_from(["x", "y"]),
        parent=SOME_IDS,
    ),
    st.builds(StreamCounted, input_tokens=COUNTS, output_tokens=COUNTS, parent=SOME_IDS),
    st.builds(
        AssistantHeard,
        message_id=SOME_IDS,
        blocks=st.lists(BLOCKS, max_size=3).map(tuple),
        parent=SOME_IDS,
        uuid=SOME_IDS,
        input_tokens=COUNTS,
    ),
    ANSWERED,
    st.builds(ApiFailureHeard, code=TEXTS, text=TEXTS, parent=SOME_IDS),
    st.builds(
        TaskStarted,
        task_id=IDS,
        call_id=SOME_IDS,
        description=SOME_TEXTS,
        kind=st.sampled_from(["local_agent", "local_bash", None]),
        in_background=st.booleans(),
    ),
    st.builds(
        TaskProgressed, task_id=IDS, call_id=SOME_IDS, summary=SOME_TEXTS, last_tool=SOME_TEXTS
    ),
    st.builds(
        TaskEnded,
        task_id=IDS,
        call_id=SOME_IDS,
        status=st.sampled_from(["completed", "failed", "stopped"]),
        reason=SOME_TEXTS,
    ),
    st.builds(
        ResultHeard,
        subtype=st.sampled_from(["success", "error_max_turns", "error_during_execution", "odd"]),
        is_error=st.booleans(),
        text=SOME_TEXTS,
        errors=st.lists(TEXTS, max_size=2).map(tuple),
        terminal_reason=st.sampled_from(["completed", "aborted_tools", None]),
        input_tokens=COUNTS,
        output_tokens=COUNTS,
        uuid=SOME_IDS,
    ),
)


# --- laws ---------------------------------------------------------------------------------------


def run(said: Sequence[Heard], *, forward: bool, reason: str | None, held: Sequence[str]) -> None:
    """A whole run on the strict stage, and all that has to hold when it is over."""
    translator, stage = Translator(now=Clock(), forward_partial_messages=forward), Stage()
    stage.perform(translator.started())
    for call in held:
        translator.hold(call)
    for heard in said:
        stage.perform(translator.feed(heard))
        assert translator.outcome.status in ("completed", "errored")
        assert translator.usage is None or translator.usage.output_tokens >= 0
    stage.perform(translator.end(reason, held=bool(held)))
    assert stage.open == []
    assert stage.line is None
    assert len(stage.sessions) <= 1
    assert len(stage.kept) == (0 if held and reason is None else 1)
    failed = reason is not None or (not held and translator.outcome.status == "errored")
    ending = [error for error in stage.errors if error.code != "sub_agent_failed"]
    assert len(ending) == failed
    assert all(" errored (" in kept for kept in stage.kept) or not failed
    for key, item in stage.items.items():
        parents = {key}
        while item.parent is not None:
            assert item.parent not in parents, "a container lies in itself"
            parents.add(item.parent)
            item = stage.items[item.parent]
    assert [effect for heard in said for effect in translator.feed(heard)] == []
    assert translator.end() == []


RUNS = {
    "forward": st.booleans(),
    "reason": st.none() | st.sampled_from(["", "it broke"]),
    "held": st.lists(IDS, max_size=1),
}


@given(said=bent(), **RUNS)
def test_a_bent_recording_is_translated_in_full(
    said: list[Heard], forward: bool, reason: str | None, held: list[str]
) -> None:
    """Whatever is lost, repeated, out of order or cut: nothing raises, nothing stays open."""
    run(said, forward=forward, reason=reason, held=held)


@given(said=st.lists(SAID, max_size=30), **RUNS)
def test_any_stream_is_translated_in_full(
    said: list[Heard], forward: bool, reason: str | None, held: list[str]
) -> None:
    """Also one that no agent would ever send."""
    run(said, forward=forward, reason=reason, held=held)


@given(name=NAMES, forward=st.booleans(), data=st.data())
def test_lost_pieces_change_no_text(name: str, forward: bool, data: st.DataObject) -> None:
    """Without some of its pieces a recording ends with the same messages, tools and containers."""
    kept = [
        heard
        for heard in heard_in(name)
        if not isinstance(heard, Streamed | StreamStarted) or data.draw(st.booleans())
    ]
    translator, stage = Translator(now=Clock(), forward_partial_messages=forward), Stage()
    for heard in kept:
        stage.perform(translator.feed(heard))
    stage.perform(translator.end())
    _, whole = play(RECORDINGS[name])
    assert _settled(stage) == _settled(whole)


def _settled(stage: Stage) -> list[tuple[str, str]]:
    """What a stage ends with, cut-off texts left out; keys are the translator's own affair."""
    return sorted(
        (item.content.model_dump_json(), item.status)
        for item in stage.items.values()
        if item.status != "incomplete" or isinstance(item.content, ToolOutput | Container)
    )


BLOCK = st.one_of(
    st.text(min_size=1).map(wire.text),
    st.text(min_size=1).map(wire.thinking),
    st.sampled_from([wire.thinking(), wire.text(), wire.tool("", "Bash"), wire.tool("", "Read")]),
)
CONVERSATION = st.lists(st.lists(BLOCK, min_size=1, max_size=4), max_size=5)


@given(conversation=CONVERSATION, forward=st.booleans())
def test_an_ordinary_conversation_shows_each_thing_once(
    conversation: list[list[Wire]], forward: bool
) -> None:
    """Every text, thought and call is one completed item, in the order they were said."""
    recording: list[Wire] = wire.turn_begins()
    said: list[tuple[str, str]] = []
    for number, blocks in enumerate(conversation):
        named = [
            {**of, "id": f"call-{number}-{place}"} if of["type"] == "tool_use" else of
            for place, of in enumerate(blocks)
        ]
        # A block that stays empty streams and is never said.
        message = wire.message(f"msg-{number}", *named)
        empty = [w for w in message if w.get("message", {}).get("content") == [wire.text()]]
        recording += [w for w in message if w not in empty]
        recording += [wire.answer(of["id"], "ok") for of in named if of["type"] == "tool_use"]
        for of in named:
            kind = {"text": "text", "thinking": "thinking", "tool_use": "id"}[of["type"]]
            if of[kind]:
                said.append((of["type"], of[kind]))
    recording += [wire.result("x", 1, 1, 0.0), wire.state("idle")]
    _, stage = play(recording, forward=forward)
    shown: list[tuple[str, str]] = []
    for item in stage.items.values():
        assert item.status == "completed"
        if isinstance(item.content, ToolOutput):
            shown.append(("tool_use", item.content.call_id))
        else:
            kind = {"message": "text", "reasoning": "thinking"}[item.content.type]
            shown.append((kind, item.text))
    assert shown == said
    assert stage.said == [text for kind, text in said if kind == "text"]


# --- hearing ------------------------------------------------------------------------------------

LEAVES: st.SearchStrategy[Any] = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.just("\ud800")
)
VALUES: st.SearchStrategy[Any] = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text() | LEAVES, inner),
    max_leaves=8,
)
FIELDS = st.sampled_from([
    "content", "model", "parent_tool_use_id", "error", "usage", "message_id", "uuid", "data",
    "tool_use_result", "subtype", "is_error", "result", "errors", "event", "rate_limit_info",
    "total_cost_usd", "user_message_uuids", "text", "thinking", "id", "name", "input",
    "tool_use_id",
])  # fmt: skip
CLASSES = st.sampled_from([
    "AssistantMessage", "UserMessage", "StreamEvent", "ResultMessage", "RateLimitEvent",
    "SystemMessage", "TextBlock", "ThinkingBlock", "ToolUseBlock", "ToolResultBlock",
    "ServerToolUseBlock", "Odd",
])  # fmt: skip


def _objects(values: st.SearchStrategy[Any]) -> st.SearchStrategy[object]:
    return st.builds(
        lambda name, fields: type(name, (), fields)(), CLASSES, st.dictionaries(FIELDS, values)
    )


@given(message=_objects(VALUES | st.lists(_objects(VALUES), max_size=3)))
def test_any_object_is_heard_without_an_exception(message: object) -> None:
    """And whatever is heard of it is translated without one, and is valid Unicode throughout."""
    translator, stage = Translator(now=Clock()), Stage()
    for heard in hear(message):
        stage.perform(translator.feed(heard))
    stage.perform(translator.end())
    for item in stage.items.values():
        item.content.model_dump_json().encode()
    assert stage.open == []


@given(data=st.dictionaries(st.text() | FIELDS, VALUES), subtype=st.sampled_from(
    ["init", "api_retry", "task_started", "task_progress", "task_updated", "task_notification"]
))  # fmt: skip
def test_any_system_message_is_heard_without_an_exception(
    data: dict[Any, Any], subtype: str
) -> None:
    """Its data is whatever the binary sent."""
    message = type("SystemMessage", (), {"subtype": subtype, "data": data})()
    assert isinstance(hear(message), tuple)


@given(value=VALUES)
def test_plain_json_stays_as_it_is(value: Any) -> None:
    """What is made plain is JSON, and making it plain again changes nothing."""
    once = plain(value)
    assert plain(once) == once
    ToolOutput(call_id="c", name="n", output=once).model_dump_json().encode()


@given(
    info=st.dictionaries(
        st.sampled_from(["status", "rateLimitType", "utilization", "resetsAt", "unifiedWindows"]),
        VALUES,
    )
)
def test_any_limit_is_a_window_or_none(info: dict[str, Any]) -> None:
    """Its numbers are within bounds, whatever came in."""
    window = usage_window_of(info)
    assert window is None or window.used_percent is None or 0 <= window.used_percent <= 100


@given(fraction=st.floats(0, 1))
def test_a_fraction_becomes_its_percent(fraction: float) -> None:
    """Never a hundredth of it."""
    window = usage_window_of({"rateLimitType": "five_hour", "utilization": fraction})
    assert window is not None
    assert window.used_percent is not None
    assert abs(window.used_percent - fraction * 100) < 1e-5
