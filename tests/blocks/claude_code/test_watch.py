"""When a run is over."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from flowstate.blocks.claude_code.heard import (
    AssistantHeard,
    Heard,
    ResultHeard,
    StateHeard,
    StreamStarted,
    TaskEnded,
    TaskStarted,
    Took,
)
from flowstate.blocks.claude_code.watch import RunWatch

RESULT = ResultHeard(subtype="success")
TOOK = Took(uuids=("other", "prompt"))
IDLE, RUNNING = StateHeard(state="idle"), StateHeard(state="running")
SPOKE = AssistantHeard(message_id="m", blocks=())
AGENT = TaskStarted(task_id="t", kind="local_agent")
AGENT_ENDED = TaskEnded(task_id="t", status="completed")


def _watch(*heard: Heard) -> RunWatch:
    watch = RunWatch("prompt")
    for one in heard:
        watch.note(one)
    return watch


def test_result_and_idle_end_a_run_in_either_order() -> None:
    """Both are needed, and it doesn't matter which comes first."""
    assert _watch(RUNNING, SPOKE, RESULT, IDLE).over
    assert _watch(RUNNING, SPOKE, IDLE, RESULT).over
    assert not _watch(RUNNING, SPOKE, RESULT).over
    assert not _watch(RUNNING, SPOKE, IDLE).over


def test_a_background_agent_keeps_a_run_going() -> None:
    """The first of several results doesn't end the run; the idle state after the last does."""
    watch = _watch(RUNNING, SPOKE, AGENT, RESULT)
    assert not watch.over
    assert not watch.settled

    watch.note(AGENT_ENDED)
    watch.note(SPOKE)
    assert not watch.settled
    watch.note(RESULT)
    watch.note(IDLE)
    assert watch.over
    assert watch.answers == 2


def test_without_states_a_result_ends_it() -> None:
    """A release that tells no state is over at a result, unless a sub-agent is at work."""
    assert _watch(SPOKE, RESULT).over
    assert not _watch(SPOKE, AGENT, RESULT).over
    assert not _watch(SPOKE).over


def test_a_result_stands_until_something_new_begins() -> None:
    """After it the process may die; a new message of the main thread makes it stale."""
    assert _watch(RUNNING, SPOKE, RESULT).settled
    assert not _watch(RUNNING, SPOKE, RESULT, StreamStarted(message_id="m")).settled
    of_a_sub_agent = StreamStarted(message_id="m", parent="toolu_1")
    assert _watch(RUNNING, SPOKE, RESULT, of_a_sub_agent).settled


def test_a_turn_that_is_not_the_prompt_s_does_not_end_it() -> None:
    """
    A resumed conversation tells in a turn of its own what became of killed commands, and may be
    idle between that turn's result and the prompt's turn.
    """
    watch = _watch(AGENT_ENDED, RUNNING, RESULT, IDLE)
    assert not watch.over
    assert not watch.settled

    then: list[Heard] = [RUNNING, TOOK, SPOKE, RESULT, IDLE]
    for heard in then:
        watch.note(heard)
    assert watch.over
    assert _watch(RUNNING, TOOK, RESULT, IDLE).over
    assert not _watch(RUNNING, Took(uuids=("other",)), RESULT, IDLE).over


def test_a_turn_that_failed_ends_it_all_the_same() -> None:
    """An interrupted turn may not tell what it took in."""
    failed = ResultHeard(subtype="error_during_execution", is_error=True)

    assert _watch(RUNNING, failed, IDLE).over


def test_tasks_that_were_not_heard_to_end_are_known() -> None:
    """Background commands are among them: they would hold up the exit."""
    command = TaskStarted(task_id="b", kind="local_bash")

    assert _watch(AGENT, command, AGENT_ENDED, AGENT_ENDED).live_tasks == ("b",)


@given(st.lists(st.sampled_from([RESULT, IDLE, RUNNING, SPOKE, AGENT, AGENT_ENDED, TOOK])))
def test_no_run_is_over_without_a_result(heard: list[Heard]) -> None:
    """Whatever comes in whatever order, it doesn't raise, and an outcome needs a result."""
    watch = _watch(*heard)

    assert not watch.over or 0 < watch.answers <= heard.count(RESULT)
