"""The lines of recorded runs."""

from __future__ import annotations

from typing import Any

from flowstate.cli.narration import Line, Narration
from flowstate.item.book import ItemBook
from flowstate.item.content import (
    BlockTrace,
    Container,
    ErrorReport,
    Message,
    Reasoning,
    RouterDecision,
    Status,
    ToolOutput,
)
from flowstate.item.event import ItemEvent


class Recorder:
    """A book whose events are told at once; one second passes with every event."""

    def __init__(self) -> None:
        self.told = Narration()
        self.lines: list[Line] = []
        self._now = 0
        self._count = 0
        self.book = ItemBook("req", clock=self._clock, ids=self._id, emit=self._take)
        self.turn = self.book.writer("turn/agent", "agent")

    def _clock(self) -> int:
        self._now += 1000
        return self._now

    def _id(self, prefix: str) -> str:
        self._count += 1
        return f"{prefix}_{self._count}"

    def _take(self, event: ItemEvent) -> None:
        self.lines += self.told.take(event)

    @property
    def brief(self) -> list[tuple[str, str]]:
        return [(line.kind, line.text) for line in self.lines]


def call(call_id: str = "c1", **more: Any) -> ToolOutput:
    return ToolOutput(call_id=call_id, name="Bash", arguments={"command": "ls"}, **more)


def test_a_step_that_tells_nothing_takes_one_line() -> None:
    """Its beginning is held back until there is something to tell."""
    run = Recorder()
    step = run.turn.open(BlockTrace(block="agent", kind="handler"))
    assert run.brief == []
    assert run.told.step == "agent"
    step.settle(BlockTrace(block="agent", kind="handler", duration=0.25))
    assert run.brief == [("done", "agent")]
    assert run.lines[0].aside == "250 ms"
    assert run.told.step is None


def test_a_step_that_tells_something_begins_before_it() -> None:
    """Two lines around what it tells."""
    run = Recorder()
    step = run.turn.open(BlockTrace(block="agent", kind="handler"))
    run.turn.add(Message(text="Hi."))
    step.settle()
    assert run.brief == [("begin", "agent"), ("message", "Hi."), ("done", "agent")]
    assert [line.depth for line in run.lines] == [0, 1, 0]


def test_a_step_held_back_can_be_told_early() -> None:
    """For when it works for long and tells nothing; then it isn't told again."""
    run = Recorder()
    run.turn.open(BlockTrace(block="agent", kind="handler"))
    assert [line.text for line in run.told.flush()] == ["agent"]
    run.turn.add(Message(text="Hi."))
    assert run.brief == [("message", "Hi.")]


def test_a_failed_and_a_stopped_step_say_so() -> None:
    """A failure names the error's class."""
    run = Recorder()
    first = run.turn.open(BlockTrace(block="a", kind="handler"))
    first.settle(BlockTrace(block="a", kind="handler", error="ValueError"), status="failed")
    run.turn.open(BlockTrace(block="b", kind="handler")).settle(status="incomplete")
    assert [(line.kind, line.aside) for line in run.lines] == [
        ("failed", "ValueError"),
        ("stopped", "stopped"),
    ]


def test_a_message_streams_and_is_told_when_it_is_whole() -> None:
    """In between its end can be shown."""
    run = Recorder()
    message = run.turn.open(Message())
    message.append("Hello ")
    message.append("\x1b[31mthere")
    assert run.told.streaming == "Hello there"
    assert run.brief == []
    message.settle()
    assert run.brief == [("message", "Hello there")]
    assert run.told.streaming == ""


def test_a_message_that_was_cut_off_says_so() -> None:
    """So does one that isn't the agent's."""
    run = Recorder()
    run.turn.open(Message(text="Hel")).settle(status="incomplete")
    run.turn.add(Message(text="Do it", role="user"))
    assert [line.aside for line in run.lines] == ["(cut off)", "(user)"]


def test_empty_speech_is_no_line() -> None:
    """Thinking whose text is withheld."""
    run = Recorder()
    run.turn.add(Reasoning(text=""))
    run.turn.add(Reasoning(text="Hm."))
    assert run.brief == [("reasoning", "Hm.")]


def test_a_call_is_told_at_once_and_its_result_below() -> None:
    """The result needs no name where the call's line is the one above."""
    run = Recorder()
    tool = run.turn.open(call())
    run.turn.open(Status(text="List"), transient=True)
    tool.settle(call(output="a\nb"))
    assert run.brief == [("call", "Bash"), ("fleeting", "List"), ("result", "a\nb")]
    assert run.lines[0].aside == "ls"


def test_results_of_parallel_calls_are_named() -> None:
    """Each result says whose it is."""
    run = Recorder()
    first, second = run.turn.open(call("c1")), run.turn.open(call("c2"))
    first.settle(call("c1", output="a"))
    second.settle(call("c2", output="b", is_error=True))
    assert run.brief[2:] == [("result", "Bash ls: a"), ("bad_result", "Bash ls: b")]


def test_a_call_without_a_result_is_told_as_such() -> None:
    """The run was stopped while it went on."""
    run = Recorder()
    run.turn.open(call())
    run.book.close()
    assert run.brief == [("call", "Bash"), ("result", "no result")]


def test_the_status_is_the_latest_and_goes() -> None:
    """Kept ones are lines of their own."""
    run = Recorder()
    status = run.book.status(run.turn)
    status.show("One…")
    assert run.told.status == "One…"
    status.show("Two…")
    assert run.told.status == "Two…"
    status.keep("Done.")
    assert run.told.status is None
    assert run.brief == [("fleeting", "One…"), ("fleeting", "Two…"), ("status", "Done.")]


def test_what_a_container_holds_stands_deeper() -> None:
    """A container in a container, deeper still."""
    run = Recorder()
    outer = run.turn.open(Container(label="Sub-agent"))
    inner = run.turn.open(Container(label="Its own"), parent=outer.id)
    run.turn.add(Message(text="Hi."), parent=inner.id)
    inner.settle()
    outer.settle()
    run.turn.add(Message(text="Back."))
    assert [(line.text, line.depth) for line in run.lines] == [
        ("Sub-agent", 1),
        ("Its own", 2),
        ("Hi.", 3),
        ("Back.", 1),
    ]


def test_errors_and_decisions_are_told_in_words() -> None:
    """An error by its code and message, a decision by its route."""
    run = Recorder()
    run.turn.add(ErrorReport(code="run_failed", message="It \x1b[2Jdied."), status="failed")
    run.turn.add(RouterDecision(router="pick", route="slow"))
    assert run.brief == [("error", "run_failed: It died."), ("note", "pick takes slow")]


def test_times_count_from_the_first_event() -> None:
    """In seconds, from the items' own times."""
    run = Recorder()
    run.turn.add(Message(text="a"))
    run.turn.add(Message(text="b"))
    assert [line.at for line in run.lines] == [0.0, 1.0]


def test_names_from_elsewhere_are_cleaned() -> None:
    """A tool's name, a label and a status come from the agent too."""
    run = Recorder()
    bad = "x\x1b]0;owned\x07\ny"
    run.turn.add(ToolOutput(call_id="c", name=bad, arguments={"command": bad}, output=bad))
    run.turn.open(Container(label=bad)).settle()
    run.turn.add(Status(text=bad, kept=True))
    run.turn.open(BlockTrace(block=bad, kind="handler")).settle()
    for line in run.lines:
        assert "\x1b" not in line.text + line.aside
        assert "owned" not in line.text + line.aside
