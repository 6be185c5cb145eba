"""
``loop_back`` taken apart: each slice becomes a loop over a sequencer of its steps.

Slices may nest. Two that overlap, and a rescue inside a slice (which would reach back out of it),
have no meaning as loops; the fault names the nested sequencer to write instead.
"""

from __future__ import annotations

from collections.abc import Sequence

from flowstate.define.sequencer import Sequencer, of_steps
from flowstate.define.step import LoopBackStep, LoopStep, RescueStep, Step, step_name
from flowstate.errors import Fault


def without_loop_backs(
    name: str, path: str, steps: Sequence[Step]
) -> tuple[list[Step], list[Fault]]:
    """The steps with every slice as a LoopStep, and what kept one from becoming one."""
    if not any(isinstance(step, LoopBackStep) for step in steps):
        return list(steps), []
    done: list[Step] = []
    names: list[str] = []
    swallowed: set[str] = set()
    faults: list[Fault] = []
    for step in steps:
        if not isinstance(step, LoopBackStep):
            done.append(step)
            names.append(unique_name(step_name(step), names))
            continue
        if step.step not in names:
            overlaps = step.step in swallowed
            faults.append(
                Fault(
                    where=f"{path}/loop_back",
                    problem=f"loop_back({step.step!r}) "
                    + (
                        "goes into the middle of another loop_back's slice"
                        if overlaps
                        else f"names no step before it; there are: {', '.join(names) or 'none'}"
                    ),
                    way_out="Put the steps that repeat together into a sequencer of their own: "
                    f".do_while(condition, sequencer({step.step!r}, ...)...)."
                    if overlaps
                    else "Name the step to go back to as it stands in its path.",
                )
            )
            continue
        start = names.index(step.step)
        slice_ = done[start:]
        rescues = [part for part in slice_ if isinstance(part, RescueStep)]
        if rescues:
            faults.append(
                Fault(
                    where=f"{path}/loop_back",
                    problem=f"a rescue inside the slice of loop_back({step.step!r}) reaches back "
                    "to steps before the slice",
                    way_out=f"Put the slice and its rescue into a sequencer of their own: "
                    f".do_while(condition, sequencer({step.step!r}, ...)...rescue(...)).",
                )
            )
            continue
        body: Sequencer[object, object, object] = of_steps(step.step, slice_)
        swallowed.update(names[start + 1 :])
        done[start:] = [
            LoopStep(
                block=body,
                condition=step.when,
                until=False,
                max_iterations=step.max_iterations,
                on_exhausted=step.on_exhausted,
                is_slice=True,
            )
        ]
        names[start:] = [step.step]
    return done, faults


def unique_name(name: str, taken: Sequence[str]) -> str:
    """The name a step gets beside these: its own, ``#n`` only for a duplicate."""
    unique, count = name, 1
    while unique in taken:
        count += 1
        unique = f"{name}#{count}"
    return unique
