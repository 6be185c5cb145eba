"""Questions to people in a run by itself, and where a plan refuses them."""

from __future__ import annotations

from functools import partial
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from flowstate import build_plan, handler, run_block, sequencer
from flowstate.errors import DefinitionError, InvalidValue, NobodyToAsk, PlanError
from flowstate.item.content import Suspension
from flowstate.item.event import ItemEvent
from flowstate.run.questions import Question
from flowstate.testing import simulate
from flowstate.testing.compositions import ALL_METHODS, scripted_answer, sequencers
from flowstate.testing.oracle import outcomes
from tests.properties.effort import examples

pytestmark = pytest.mark.anyio


class Verdict(BaseModel):
    approved: bool
    why: str = ""


@handler
async def double(value: int) -> int:
    return value * 2


def asking(name: str = "turn") -> Any:
    return sequencer(name, int).step(double).ask("ok", Verdict, question=lambda v: f"Keep {v}?")


async def test_the_answer_becomes_the_running_value() -> None:
    """The one who answers sees the path, name, text, type and schema of the question."""
    seen: list[Question] = []

    def answers(question: Question) -> Verdict:
        seen.append(question)
        return Verdict(approved=True)

    assert await run_block(asking(), 4, answers=answers) == Verdict(approved=True)
    (question,) = seen
    assert (question.id, question.name, question.text) == ("turn/ok", "ok", "Keep 8?")
    assert question.answer_type is Verdict
    assert question.schema == Verdict.model_json_schema()


async def test_the_question_is_an_item_and_so_is_its_answer() -> None:
    """In progress with the question and the answer's schema, then completed with the answer."""
    events: list[ItemEvent] = []
    await run_block(asking(), 1, emit=events.append, answers=lambda _: Verdict(approved=False))
    added, settled = (event.item for event in events)
    assert added is not None
    assert settled is not None
    assert isinstance(added.content, Suspension)
    assert isinstance(settled.content, Suspension)
    assert (added.status, settled.status) == ("in_progress", "completed")
    assert added.content.question == "Keep 2?"
    assert added.content.answer is None
    assert added.content.answer_schema == Verdict.model_json_schema()
    assert settled.content.answer == {"approved": False, "why": ""}
    assert added.visibility == "client"


async def test_an_answer_that_does_not_fit_is_told_at_its_place() -> None:
    """The answer is a value that is made, so it is validated where it is."""
    with pytest.raises(InvalidValue, match="turn/ok: expected Verdict, got str"):
        await run_block(asking(), 1, answers=lambda _: "yes")


async def test_without_anybody_to_ask_it_says_what_to_do() -> None:
    """A run by itself has nobody: the error names the way out, and rescues see it as any other."""
    with pytest.raises(NobodyToAsk, match=r"turn/ok: nobody can answer 'ok' here.*answers="):
        await run_block(asking(), 1)


async def test_a_question_that_is_no_json_is_refused() -> None:
    """What a person is shown travels in an item."""
    chain = sequencer("turn", int).ask("ok", bool, question=lambda _: object())
    with pytest.raises(InvalidValue, match="turn/ok: expected JSON"):
        await run_block(chain, 1, answers=lambda _: True)


def test_a_limit_around_a_question_is_refused() -> None:
    """Every question inside, at any depth, and the fault names the block whose limit it is."""
    inner = sequencer("inner", int).step_all(asking("a"), asking("b")).map(lambda _: 1)
    limited = sequencer("outer", int).step(inner.configure(timeout=5))
    with pytest.raises(PlanError) as caught:
        build_plan(limited)
    faults = [(fault.where, fault.problem) for fault in caught.value.faults]
    assert [where for where, _ in faults] == [
        "outer/inner/step_all/a/ok",
        "outer/inner/step_all/b/ok",
    ]
    assert "'outer/inner': its timeout would count" in faults[0][1]
    with pytest.raises(PlanError, match="its deadline would count"):
        build_plan(asking().configure(deadline=5))


def test_a_question_beside_the_chain_is_refused() -> None:
    """A side chain is waited for only as long as its request drains."""
    with pytest.raises(PlanError, match="asks a person inside 'turn/beside'"):
        build_plan(sequencer("turn", int).side_chain(asking("beside")))


def test_types_follow_the_answer() -> None:
    """What comes after a question is judged by the answer's type; the question by the value's."""
    with pytest.raises(PlanError, match="'ok' gives Verdict, but 'double#2' takes int"):
        build_plan(asking().step(double))

    def wrong(value: str) -> str:
        return value

    with pytest.raises(PlanError, match="gives int, but the question takes str"):
        build_plan(sequencer("turn", int).ask("ok", bool, question=wrong))  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["", "a/b", "x[1]"])
def test_a_name_that_can_not_stand_in_a_path_is_refused(name: str) -> None:
    """A question's id is its path."""
    with pytest.raises(DefinitionError):
        sequencer("turn", int).ask(name, bool)


def test_it_is_drawn_and_described() -> None:
    """A question is a node of its own in every view of the plan."""
    plan = build_plan(asking())
    assert "ok?" in plan.mermaid()
    assert "ok" in plan.svg()
    assert {node["label"] for node in plan.describe()["nodes"]} >= {"ok?"}


@examples(60)
@given(
    block=sequencers(methods=ALL_METHODS),
    value=st.integers(0, 9),
    seed=st.integers(0, 99),
)
def test_compositions_that_ask_agree_with_the_oracle(block: Any, value: int, seed: int) -> None:
    """Wherever questions stand, every schedule gives one of the allowed outcomes, cleanly."""
    allowed = anyio.run(partial(outcomes, block, value, answers=scripted_answer))
    run = simulate(block, value, seed=seed, answers=scripted_answer)
    assert run.faults == ()
    assert run.outcome in allowed


@examples(40)
@given(block=sequencers(methods=ALL_METHODS, max_steps=3), value=st.integers(0, 9), data=st.data())
def test_a_cancel_while_it_asks_leaves_nothing(block: Any, value: int, data: st.DataObject) -> None:
    """At any await: nothing starts afterwards, every question settles, no task is left."""
    turns = simulate(block, value, answers=scripted_answer).turns
    at = data.draw(st.integers(1, turns))
    assert simulate(block, value, answers=scripted_answer, cancel_at=at).faults == ()
