"""
What mypy and pyright infer for every method of a sequencer. Never imported: only checked.

Each ``assert_type`` holds in both checkers. What they must refuse stands in ``wrong/``.
"""

from __future__ import annotations

from typing import Never, assert_type

from pydantic import BaseModel

from flowstate import (
    Action,
    Block,
    Context,
    Failure,
    Handler,
    Plan,
    Router,
    Run,
    Runtime,
    Sequencer,
    Tool,
    action,
    build_plan,
    define_flow,
    handler,
    router,
    run_block,
    sequencer,
)
from flowstate.blocks.generator import generator


class Ask(BaseModel):
    text: str


class Outline(BaseModel):
    steps: list[str]


class Review(BaseModel):
    plan: Outline
    risk: int
    text: str = ""


class Prompt(BaseModel):
    prompt: str


class Handle(BaseModel):
    outcome: str


@handler(uses=[], timeout=5.0)
async def plan(ask: Ask, ctx: Context) -> Outline:
    return Outline(steps=[ask.text, ctx.path])


@handler
async def refine(outline: Outline) -> Outline:
    return outline


@handler
def assess(outline: Outline) -> int:
    return len(outline.steps)


@handler
async def mend(failure: Failure[ValueError | OSError]) -> Review:
    return Review(plan=Outline(steps=[]), risk=len(failure.step))


@handler
async def agent(prompt: Prompt, ctx: Context) -> Handle:
    return Handle(outcome=prompt.prompt + ctx.path)


@handler
async def more(number: int) -> int:
    return number + 1


@handler(inline=True)
def words(number: int) -> str:
    return str(number)


@handler
async def halves(number: int, ctx: Context) -> float:
    return number / (2 + ctx.attempt)


# --- blocks -------------------------------------------------------------------------------------

assert_type(plan, Handler[Ask, Outline])
assert_type(assess, Handler[Outline, int])
assert_type(words, Handler[int, str])
assert_type(plan.configure(name="planner"), Handler[Ask, Outline])


def length(text: str) -> int:
    return len(text)


@handler
async def described(failure: Failure[ValueError]) -> str:
    return str(failure.error)


assert_type(more.connect_input(length), Block[str, int])
assert_type(more.rescued(ValueError, described), Block[int, int | str])
assert_type(more.as_tool("Adds one"), Tool)

# --- the design's example -----------------------------------------------------------------------

turn = (
    sequencer("turn", Ask)
    .step(plan)
    .exit_if(lambda p: not p.steps)
    .parallel(Review, plan=refine, risk=assess)
    .rescue((ValueError, OSError), mend)
    .step(lambda r: Prompt(prompt=r.text), agent)
)
assert_type(turn, Sequencer[Ask, Handle, Outline])
as_block: Block[Ask, Handle | Outline] = turn
implement = action("implement", turn, concurrency="queue")
coding = define_flow("coding", actions=[implement])
assert_type(build_plan(as_block), Plan[Ask, Handle | Outline])

# --- every method -------------------------------------------------------------------------------

ints = sequencer("ints", int)
assert_type(ints, Sequencer[int, int, Never])
assert_type(ints.step(more), Sequencer[int, int, Never])
assert_type(ints.step(words), Sequencer[int, str, Never])
assert_type(ints.step(lambda n: Outline(steps=[str(n)]), assess), Sequencer[int, int, Never])
assert_type(ints.step_if(lambda n: n > 1, words), Sequencer[int, int | str, Never])
assert_type(
    ints.step_if(lambda n: n > 1, lambda n: Outline(steps=[str(n)]), refine),
    Sequencer[int, int | Outline, Never],
)
assert_type(ints.map(lambda n: [n]), Sequencer[int, list[int], Never])
assert_type(ints.map(str).map(len), Sequencer[int, int, Never])
assert_type(ints.tap(words), Sequencer[int, int, Never])
assert_type(ints.tap(lambda n: [n]), Sequencer[int, int, Never])
assert_type(ints.tap(lambda n: Ask(text=str(n)), plan), Sequencer[int, int, Never])
assert_type(ints.tap_if(lambda n: n > 1, words), Sequencer[int, int, Never])
assert_type(ints.parallel(a=more, b=more), Sequencer[int, dict[str, int], Never])
assert_type(ints.map(str).map(lambda s: Ask(text=s)).step(plan), Sequencer[int, Outline, Never])
assert_type(ints.step_all(more, words), Sequencer[int, tuple[int, str], Never])
assert_type(ints.step_all(more, words, halves), Sequencer[int, tuple[int, str, float], Never])
assert_type(
    ints.step_all(more, words, halves, more), Sequencer[int, tuple[int, str, float, int], Never]
)
assert_type(
    ints.step_all(more, more, more, more, more, max_concurrency=2),
    Sequencer[int, tuple[int, ...], Never],
)
assert_type(ints.step_any(more, words), Sequencer[int, int | str, Never])
assert_type(ints.race(more, words), Sequencer[int, int | str, Never])
assert_type(ints.race(more, words, halves), Sequencer[int, int | str | float, Never])
assert_type(sequencer("all", list[int]).for_each(words), Sequencer[list[int], list[str], Never])
assert_type(
    ints.for_each(lambda n: range(n), words, max_concurrency=4), Sequencer[int, list[str], Never]
)
assert_type(
    sequencer("pick", list[int]).for_each(lambda n: "more", blocks=[more]),
    Sequencer[list[int], list[int], Never],
)
assert_type(ints.do_until(lambda n: n > 3, more, max_iterations=4), Sequencer[int, int, Never])
assert_type(ints.do_while(lambda n: n < 3, more, max_iterations=None), Sequencer[int, int, Never])
assert_type(
    ints.step(more).loop_back("more", lambda n: n < 3, max_iterations=9), Sequencer[int, int, Never]
)
assert_type(
    ints.wait_for_condition(lambda items: len(items) > 2, timeout=5.0), Sequencer[int, int, Never]
)
assert_type(ints.ask("sure", bool, question=lambda n: n + 1), Sequencer[int, bool, Never])
assert_type(ints.exit_if(lambda n: n > 3).ask("why", str).map(len), Sequencer[int, int, int])
assert_type(ints.branch((lambda n: n > 1, more)), Sequencer[int, int, Never])
assert_type(ints.branch((lambda n: n > 1, more), otherwise=words), Sequencer[int, int | str, Never])
assert_type(ints.exit_if(lambda n: n > 3).step(words), Sequencer[int, str, int])
assert_type(
    ints.exit_if(lambda n: n > 3).step(words).exit_if(lambda s: s == "1").map(len),
    Sequencer[int, int, int | str],
)
assert_type(ints.throw_if(lambda n: n > 3, ValueError("big")), Sequencer[int, int, Never])
assert_type(ints.throw_if(lambda n: n > 3, lambda n: ValueError(n)), Sequencer[int, int, Never])
assert_type(ints.side_chain(words), Sequencer[int, int, Never])
assert_type(ints.side_chain(lambda n: Ask(text=str(n)), plan), Sequencer[int, int, Never])
assert_type(ints.side_chain_if(lambda n: n > 1, words), Sequencer[int, int, Never])
assert_type(
    sequencer("all", list[int]).for_each_side_chain(words), Sequencer[list[int], list[int], Never]
)
assert_type(ints.for_each_side_chain(lambda n: range(n), words), Sequencer[int, int, Never])
assert_type(ints.side_chain(words).wait_for_side_chains(timeout=5), Sequencer[int, int, Never])


@handler
async def one_error(failure: Failure[ValueError]) -> str:
    return str(failure.error)


assert_type(ints.step(more).rescue(ValueError, one_error), Sequencer[int, int | str, Never])
assert_type(
    router("sizes", routes=[more, more.configure(name="again")], select=lambda n: "again"),
    Router[int, int],
)
assert_type(sequencer("nested", Ask).step(turn), Sequencer[Ask, Handle | Outline, Never])

# --- generators ---------------------------------------------------------------------------------

reviewer = generator(
    "review", input=Ask, output=Review, model="test", prompt=lambda ask: ask.text, tools=[more]
)
assert_type(reviewer, Handler[Ask, Review])
any_reviewer: Block[Ask, Review] = reviewer
assert_type(generator("text", model=lambda ctx: ctx.path), Handler[str, str])
assert_type(generator("in", input=Ask, model="test"), Handler[Ask, str])
assert_type(generator("out", output=list[Review], model="test"), Handler[str, list[Review]])
assert_type(sequencer("asked", Ask).step(reviewer), Sequencer[Ask, Review, Never])
assert_type(sequencer("read", Ask).step(reviewer).map(lambda r: r.risk), Sequencer[Ask, int, Never])


# --- running ------------------------------------------------------------------------------------


async def running(runtime: Runtime) -> None:
    assert_type(await run_block(more, 1), int)
    run = await runtime.dispatch(implement, Ask(text="hello"), session="s1")
    assert_type(run, Run[Handle | Outline])
    assert_type(await run.output(), Handle | Outline)
    assert_type(implement, Action[Ask, Handle | Outline])
