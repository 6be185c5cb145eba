from dataclasses import dataclass
from typing import assert_type, Never
from pydantic import BaseModel
from flowstate.define.handler import handler, Handler
from flowstate.define.sequencer import sequencer, Sequencer
from flowstate.define.block import Failure, Block
from flowstate.context import Context
from flowstate.define.flow import action, define_flow

class Ask(BaseModel):
    text: str
class Plan(BaseModel):
    steps: list[str]
class Review(BaseModel):
    plan: Plan
    risk: int
    text: str = ""
class HarnessRunInput(BaseModel):
    prompt: str
class Handle(BaseModel):
    x: int

@handler(uses=[])
async def plan(ask: Ask, ctx: Context) -> Plan:
    return Plan(steps=[ask.text])
@handler
async def refine(p: Plan) -> Plan:
    return p
@handler
def assess(p: Plan) -> int:
    return 1
@handler
async def mend(f: Failure[ValueError | OSError]) -> Review:
    return Review(plan=Plan(steps=[]), risk=0)
@handler
async def agent(i: HarnessRunInput, ctx: Context) -> Handle:
    return Handle(x=1)

assert_type(plan, Handler[Ask, Plan])
assert_type(assess, Handler[Plan, int])
turn = (
    sequencer("turn", Ask)
    .step(plan)
    .exit_if(lambda p: not p.steps)
    .parallel(Review, plan=refine, risk=assess)
    .rescue((ValueError, OSError), mend)
    .step(lambda r: HarnessRunInput(prompt=r.text), agent)
)
assert_type(turn, Sequencer[Ask, Handle, Plan])
b: Block[Ask, Handle | Plan] = turn
implement = action("implement", turn, concurrency="queue")
reveal_type(implement)
s2 = sequencer("x", list[int]).for_each(handler(lambda i: str(i))).map(len)
reveal_type(s2)
@handler
async def inc(x: int) -> int:
    return x+1
@handler
async def tostr(x: int) -> str:
    return str(x)
reveal_type(sequencer("l", int).do_until(lambda x: x > 3, inc, max_iterations=4))
reveal_type(sequencer("l", int).step_all(inc, tostr))
reveal_type(sequencer("l", int).race(inc, tostr))
reveal_type(sequencer("l", int).branch((lambda x: x > 1, inc), otherwise=tostr))
reveal_type(sequencer("l", int).step_if(lambda x: x > 1, tostr))
reveal_type(sequencer("l", int).parallel(a=inc, b=inc))
reveal_type(sequencer("l", list[int]).for_each(inc).tap(lambda xs: print(len(xs))).map(len))
reveal_type(sequencer("l", int).step(turn))  # wrong
sequencer("l", Ask).step(plan).step(plan)  # wrong
