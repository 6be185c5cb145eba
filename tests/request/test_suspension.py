"""Requests that ask people: suspended while nothing of them can go on, then admitted anew."""

from __future__ import annotations

import random
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flowstate import Runtime, action, define_flow, handler, sequencer
from flowstate.define.flow import Action
from flowstate.define.policy import queue
from flowstate.errors import (
    InvalidValue,
    QueueTimeout,
    RequestCancelled,
    RequestInterrupted,
    RequestRefused,
    UnknownQuestion,
)
from flowstate.item.content import Suspension
from flowstate.lease.memory import MemoryLease
from flowstate.request.run import Run
from flowstate.testing.compositions import ALL_METHODS, scripted_answer, sequencers
from flowstate.testing.oracle import outcome_of, outcomes
from tests.properties.effort import examples

pytestmark = pytest.mark.anyio


@handler
async def double(value: int) -> int:
    return value * 2


def asking(**options: Any) -> Action[int, int]:
    """Doubles, asks for a number, doubles that."""
    chain = sequencer("turn", int).step(double).ask("which", int, question=lambda v: v).step(double)
    return action("asking", chain, **options)


class Gate:
    """A block that waits until it is let through."""

    def __init__(self) -> None:
        self.event = anyio.Event()

        @handler
        async def slow(value: int) -> int:
            await self.event.wait()
            return value

        self.block = slow


async def suspended(run: Run[Any]) -> str:
    """Wait until a run is suspended; gives the id of its first question."""
    (question, *_) = await run.asked()
    with anyio.fail_after(5):
        while run.status != "suspended":  # noqa: ASYNC110
            await anyio.sleep(0.001)
    return question.id


async def test_it_is_suspended_and_goes_on_with_the_answer() -> None:
    """The status is stored, the question is an item, and the answer is the running value."""
    ask = asking()
    async with Runtime(define_flow("f", actions=[ask])) as runtime:
        run = await runtime.dispatch(ask, 4, session="s")
        question = await suspended(run)
        assert question == "turn/which"
        assert [q.text for q in run.questions] == [8]
        record = await runtime.store.request(run.id)
        assert record is not None
        assert record.status == "suspended"
        (item,) = await runtime.store.items(run.id)
        assert '"suspension"' in item.data

        await run.answer(question, 5)
        assert run.questions == ()
        assert await run.output() == 10
        assert await run.finished() == "completed"
        (shown,) = [i async for i in run.items() if isinstance(i.content, Suspension)]
        assert (shown.status, shown.content.answer) == ("completed", 5)  # type: ignore[union-attr]


async def test_its_place_is_free_meanwhile_and_the_answer_queues() -> None:
    """Another request of the session runs, and the answered one waits for its turn behind it."""
    gate = Gate()
    slow = gate.block
    ask, other = asking(), action("other", slow)
    lease = MemoryLease()
    flow = define_flow("f", actions=[ask, other], concurrency="queue")
    async with Runtime(flow, lease=lease) as runtime:
        run = await runtime.dispatch(ask, 1, session="s")
        question = await suspended(run)
        second = await runtime.dispatch(other, 7, session="s")
        assert await second.started()
        await run.answer(question, 3)
        with anyio.fail_after(5):
            while run.status != "waiting":  # noqa: ASYNC110
                await anyio.sleep(0.001)
        assert run.waiting_behind == second.id
        gate.event.set()
        assert (await second.output(), await run.output()) == (7, 6)
        await run.finished()


async def test_an_answer_that_is_refused_leaves_the_question_open() -> None:
    """``reject`` refuses to admit it while another runs; once that has ended, the answer counts."""
    gate = Gate()
    slow = gate.block
    ask, other = asking(), action("other", slow)
    flow = define_flow("f", actions=[ask, other], concurrency="reject")
    async with Runtime(flow) as runtime:
        run = await runtime.dispatch(ask, 1, session="s")
        question = await suspended(run)
        second = await runtime.dispatch(other, 7, session="s")
        with pytest.raises(RequestRefused, match=second.id):
            await run.answer(question, 3)
        assert run.status == "suspended"
        assert [q.id for q in run.questions] == [question]
        gate.event.set()
        await second.finished()
        await run.answer(question, 3)
        assert await run.output() == 6


async def test_a_turn_that_does_not_come_fails_it() -> None:
    """Answered, it waits like a request that arrives, and no longer."""
    ask = asking(concurrency=queue(wait=0.05))
    hold = action("hold", sequencer("hold", int).step(_forever), concurrency="queue")
    async with Runtime(define_flow("f", actions=[ask, hold])) as runtime:
        run = await runtime.dispatch(ask, 1, session="s")
        question = await suspended(run)
        holder = await runtime.dispatch(hold, 1, session="s")
        assert await holder.started()
        await run.answer(question, 3)
        with pytest.raises(QueueTimeout):
            await run.output()
        assert await run.finished() == "failed"
        holder.cancel()


@handler
async def _forever(value: int) -> int:
    await anyio.sleep_forever()
    return value


async def test_branches_beside_a_question_run_on() -> None:
    """Only what asks is parked; suspended is the request when nothing else moves."""
    gate = Gate()
    slow = gate.block
    chain = (
        sequencer("turn", int)
        .step_all(sequencer("person", int).ask("which", int), slow)
        .map(lambda both: both[0] + both[1])
    )
    ask = action("ask", chain)
    async with Runtime(define_flow("f", actions=[ask])) as runtime:
        run = await runtime.dispatch(ask, 4, session="s")
        await run.asked()
        await anyio.sleep(0.02)
        assert run.status == "running"
        gate.event.set()
        question = await suspended(run)
        await run.answer(question, 10)
        assert await run.output() == 14

        again = await runtime.dispatch(ask, 4, session="s")
        gate.event = anyio.Event()
        (open_question,) = await again.asked()
        await again.answer(open_question.id, 1)
        with anyio.fail_after(5):
            gate.event.set()
            assert await again.output() == 5


async def test_all_questions_are_open_at_once_and_each_answer_resumes() -> None:
    """Three branches ask; whichever is answered goes on, and the request is suspended again."""
    branch = sequencer("branch", int).ask("which", int).step(double)
    ask = action("ask", sequencer("turn", list[int]).for_each(branch))
    async with Runtime(define_flow("f", actions=[ask])) as runtime:
        run = await runtime.dispatch(ask, [0, 0, 0], session="s")
        await suspended(run)
        ids = [q.id for q in run.questions]
        assert ids == [f"turn/branch/item[{n}]/which" for n in range(3)]
        for number, question in enumerate(reversed(ids)):
            await run.answer(question, number)
            if number < 2:
                await suspended(run)
        assert await run.output() == [4, 2, 0]


async def test_a_bound_on_branches_bounds_the_questions() -> None:
    """A parked branch keeps its place among ``max_concurrency``."""
    branch = sequencer("branch", int).ask("which", int)
    ask = action("ask", sequencer("turn", list[int]).for_each(branch, max_concurrency=2))
    async with Runtime(define_flow("f", actions=[ask])) as runtime:
        run = await runtime.dispatch(ask, [0, 0, 0], session="s")
        for number in range(3):
            question = await suspended(run)
            assert len(run.questions) == min(2, 3 - number)
            await run.answer(question, number)
        assert await run.output() == [0, 1, 2]


async def test_wrong_answers_leave_it_as_it_is() -> None:
    """An answer of the wrong type, to no question, or given twice, is told and changes nothing."""
    ask, plain = asking(), action("plain", double)
    async with Runtime(define_flow("f", actions=[ask, plain])) as runtime:
        run = await runtime.dispatch(ask, 4, session="s")
        question = await suspended(run)
        with pytest.raises(InvalidValue, match="turn/which: expected int, got str"):
            await run.answer(question, "five")
        with pytest.raises(UnknownQuestion, match="'turn/other' is not open"):
            await run.answer("turn/other", 5)
        assert run.status == "suspended"
        await run.answer(question, 5)
        with pytest.raises(UnknownQuestion):
            await run.answer(question, 6)
        assert await run.output() == 10
        assert await run.asked() == ()
        with pytest.raises(UnknownQuestion, match="Open are: none"):
            await run.answer(question, 6)
        other = await runtime.dispatch(plain, 4, session="s")
        assert await other.asked() == ()
        with pytest.raises(UnknownQuestion):
            await other.answer("x", 1)


async def test_a_cancel_while_suspended_withdraws_the_question() -> None:
    """It ends cancelled, at once, and the item says that nobody waits any more."""
    ask = asking(concurrency="queue")
    async with Runtime(define_flow("f", actions=[ask])) as runtime:
        run = await runtime.dispatch(ask, 4, session="s")
        question = await suspended(run)
        run.cancel("not needed")
        with pytest.raises(RequestCancelled, match="not needed"):
            await run.output()
        assert await run.finished() == "cancelled"
        with pytest.raises(UnknownQuestion):
            await run.answer(question, 5)
        (shown,) = [i async for i in run.items() if i.content.type == "suspension"]
        assert shown.status == "incomplete"


async def test_leaving_the_runtime_interrupts_what_waits_for_a_person() -> None:
    """Before it is suspended or after: nobody is waited for who can't answer any more."""
    ask = asking(concurrency="queue")
    async with Runtime(define_flow("f", actions=[ask])) as runtime:
        first = await runtime.dispatch(ask, 4, session="a")
        await suspended(first)
        second = await runtime.dispatch(ask, 4, session="b")
    for run in (first, second):
        assert run.status == "interrupted"
        with pytest.raises(RequestInterrupted, match="while the request waited for an answer"):
            await run.output()


async def test_a_suspended_request_takes_no_slot() -> None:
    """``max_running`` counts what runs; an answered one waits for a slot again."""
    ask, plain = asking(), action("plain", double)
    async with Runtime(define_flow("f", actions=[ask, plain]), max_running=1) as runtime:
        run = await runtime.dispatch(ask, 4, session="s")
        question = await suspended(run)
        other = await runtime.dispatch(plain, 4, session="t")
        assert await other.output() == 8
        await other.finished()
        await run.answer(question, 5)
        assert await run.output() == 10
        await run.finished()
        assert await (await runtime.dispatch(plain, 1, session="t")).output() == 2


async def test_a_side_chain_holds_the_suspension_up() -> None:
    """Its place is held until everything that runs on it has ended."""
    gate = Gate()
    slow = gate.block
    ask = action("ask", sequencer("turn", int).side_chain(slow).ask("which", int))
    async with Runtime(define_flow("f", actions=[ask])) as runtime:
        run = await runtime.dispatch(ask, 4, session="s")
        await run.asked()
        await anyio.sleep(0.02)
        assert run.status == "running"
        gate.event.set()
        question = await suspended(run)
        await run.answer(question, 9)
        assert await run.output() == 9


async def test_no_rescue_retry_or_race_sees_a_suspension() -> None:
    """They stand around it and are not asked; a race that is won withdraws the question."""
    person = sequencer("person", int).ask("which", int)
    caught = person.rescue(Exception, _mend).configure(name="caught")
    race = action("race", sequencer("turn", int).race(caught, double))
    first = action("first", sequencer("turn", int).step_any(caught, double))
    async with Runtime(define_flow("f", actions=[race, first])) as runtime:
        run = await runtime.dispatch(race, 4, session="s")
        assert await run.output() == 8
        assert await run.finished() == "completed"
        run = await runtime.dispatch(first, 4, session="s")
        question = await suspended(run)
        await run.answer(question, 3)
        assert await run.output() == 3


@handler
async def _mend(failure: Any) -> int:
    return -1


async def test_a_run_is_found_by_its_id_while_it_is_under_way() -> None:
    """An answer arrives elsewhere than the request did."""
    ask = asking()
    async with Runtime(define_flow("f", actions=[ask])) as runtime:
        run = await runtime.dispatch(ask, 4, session="s", request_id="mine")
        question = await suspended(run)
        found = runtime.under_way("mine")
        assert found is not None
        assert found.identity == run.identity
        await found.answer(question, 1)
        assert await run.output() == 2
        await run.finished()
        assert runtime.under_way("mine") is None
        assert runtime.under_way("nobody's") is None


@examples(40)
@given(
    block=sequencers(methods=ALL_METHODS, max_steps=4),
    value=st.integers(0, 9),
    seed=st.integers(0, 99),
)
async def test_any_composition_is_suspended_only_when_nothing_moves(
    anyio_backend: object, block: Any, value: int, seed: int
) -> None:
    """
    Answered late, in any order: the outcome is one the oracle allows, a suspended request holds no
    place, nothing moves while it is suspended, and at the end all is given back.
    """
    allowed = await outcomes(block, value, answers=scripted_answer)
    rng = random.Random(seed)
    act = action("act", block, concurrency="queue")
    lease = MemoryLease()
    async with Runtime(define_flow("f", actions=[act]), lease=lease) as runtime:
        run = await runtime.dispatch(act, value, session="s")
        execution = runtime._live[run.id]
        with anyio.fail_after(20):
            while questions := await run.asked():
                for _ in range(rng.randrange(6)):
                    await anyio.lowlevel.checkpoint()
                if run.status == "suspended":
                    assert execution.standing.place is None
                    assert execution.pauses is not None
                    assert execution.pauses._questions.still
                if run.questions != questions and rng.random() < 0.5:
                    continue
                if not run.questions:
                    continue
                question = rng.choice(run.questions)
                try:
                    await run.answer(question.id, scripted_answer(question))
                except UnknownQuestion:
                    # A race was won meanwhile, or a sibling failed.
                    assert question not in run.questions
            try:
                ended = ("value", await run.output())
            except Exception as error:
                ended = outcome_of(error)
            status = await run.finished()
        assert ended in allowed
        assert status == ("completed" if ended[0] == "value" else "failed")
        if execution.pauses is not None:
            assert execution.pauses._questions._movers == 1
        assert (
            execution.standing.place is None
            or await lease.places(execution.standing.place.key) == ()
        )
