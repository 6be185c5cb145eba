"""How a held call is known when it comes again, and which ones wait."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flowstate.blocks.claude_code.conversation import KEPT_RUNS, SdkAgentRun, SdkAgentRuns
from flowstate.blocks.claude_code.waiting_call import (
    MOST_WAITING,
    WaitingCall,
    fingerprint_of,
    merged,
    waiting_call,
)

ONE = "11111111-2222-4333-8444-555555555555"
TWO = "aaaaaaaa-2222-4333-8444-555555555555"

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
INPUTS = st.dictionaries(st.text(), JSON, max_size=4)


@given(INPUTS)
def test_the_order_of_keys_does_not_matter(given_input: dict[str, Any]) -> None:
    """A model that makes the same call again may name its arguments in another order."""
    turned = dict(reversed(list(given_input.items())))
    assert fingerprint_of("Write", given_input) == fingerprint_of("Write", turned)


@given(INPUTS, INPUTS)
def test_other_input_is_another_call(one: dict[str, Any], two: dict[str, Any]) -> None:
    """An approval holds for what was approved, and for nothing else."""
    # By repr: in Python True equals 1, and in JSON it doesn't.
    same = repr(sorted(one.items())) == repr(sorted(two.items()))
    if not same and one != two:
        assert fingerprint_of("Write", one) != fingerprint_of("Write", two)
    assert fingerprint_of("Write", one) != fingerprint_of("Edit", one)


def test_what_a_store_can_not_tell_apart_still_differs() -> None:
    """Lone surrogates become the same sign in the state; the calls stay two."""
    one = waiting_call("Write", {"content": "\ud800"}, "toolu_1")
    two = waiting_call("Write", {"content": "\udfff"}, "toolu_2")

    assert one.input == two.input
    assert one.fingerprint != two.fingerprint
    assert WaitingCall.model_validate_json(one.model_dump_json(by_alias=True)) == one


def test_only_bash_has_a_description_that_does_nothing() -> None:
    """Elsewhere it may be what the tool is about."""
    assert fingerprint_of("Bash", {"command": "ls", "description": "a"}) == fingerprint_of(
        "Bash", {"command": "ls"}
    )
    assert fingerprint_of("Agent", {"description": "a"}) != fingerprint_of("Agent", {})


def _calls(*names: str) -> tuple[WaitingCall, ...]:
    return tuple(waiting_call("Write", {"path": name}, f"toolu_{name}") for name in names)


def test_a_call_that_is_held_again_waits_once() -> None:
    """With the id it has now, and only so many are kept."""
    (old,), (new,) = _calls("a"), (waiting_call("Write", {"path": "a"}, "toolu_new"),)

    assert merged([old, *_calls("b")], [new]) == (*_calls("b"), new)
    assert len(merged(_calls(*map(str, range(99))), [old])) == MOST_WAITING


def test_waiting_calls_are_the_conversation_s() -> None:
    """Each conversation has its own; deciding the last leaves none; runs aren't touched."""
    run = SdkAgentRun(agent="coder", session_id=ONE, request_id="req_1", path="turn")
    runs = (
        SdkAgentRuns(runs=(run,)).with_waiting(ONE, _calls("a", "b")).with_waiting(TWO, _calls("c"))
    )
    a, b = _calls("a", "b")

    assert runs.waiting_in(ONE) == (a, b)
    left = runs.with_decided(ONE, a.fingerprint)
    assert (left.waiting_in(ONE), left.waiting_in(TWO)) == ((b,), _calls("c"))
    none = left.with_decided(ONE, b.fingerprint)
    assert [held.session_id for held in none.waiting] == [TWO]
    assert none.runs == (run,)
    assert none.with_decided(ONE, b.fingerprint) == none


def test_runs_and_totals_keep_what_waits() -> None:
    """Only a conversation that is gone takes its waiting calls with it."""
    run = SdkAgentRun(agent="coder", session_id=ONE, request_id="req_1", path="turn")
    runs = SdkAgentRuns().with_waiting(ONE, _calls("a")).with_run(run).with_total(ONE, 0.1)

    assert runs.waiting_in(ONE) == _calls("a")
    assert runs.without(ONE) == SdkAgentRuns()


@pytest.mark.parametrize("conversations", [KEPT_RUNS + 5])
def test_only_so_many_conversations_are_kept(conversations: int) -> None:
    """The one that was held first is forgotten first."""
    runs = SdkAgentRuns()
    for number in range(conversations):
        runs = runs.with_waiting(str(number), _calls("a"))

    assert len(runs.waiting) == KEPT_RUNS
    assert runs.waiting_in("0") == ()
    assert runs.waiting_in(str(conversations - 1)) == _calls("a")
