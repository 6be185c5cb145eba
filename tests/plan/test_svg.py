"""Drawings: well-formed, complete, and with a recording laid over them."""

from __future__ import annotations

import itertools
import xml.etree.ElementTree as ElementTree
from typing import Any

import anyio
import pytest
from hypothesis import given, settings

from flowstate.define.handler import handler
from flowstate.define.sequencer import sequencer
from flowstate.plan.boxes import laid_out
from flowstate.plan.build import build_plan
from flowstate.plan.marks import Node
from flowstate.plan.recorded import duration
from flowstate.plan.site import sites
from flowstate.run.once import run_block
from flowstate.run.recording import Recording
from flowstate.testing.compositions import sequencers


@handler
async def fine(value: int) -> int:
    return value


@handler
async def broken(value: int) -> int:
    raise OSError("<disk>")


@settings(max_examples=60, deadline=None)
@given(block=sequencers())
def test_every_composition_has_a_drawing(block: Any) -> None:
    """It is well-formed XML, names every handler, and no two nodes lie on each other."""
    plan = build_plan(block)
    root = ElementTree.fromstring(plan.svg())
    texts = {element.text for element in root.iter("{http://www.w3.org/2000/svg}text")}
    assert {site.name for site in sites(plan.root) if site.kind == "handler"} <= texts
    nodes = [mark for mark in laid_out(plan.root).marks if isinstance(mark, Node)]
    for one, other in itertools.combinations(nodes, 2):
        apart = (
            one.x + one.width <= other.x
            or other.x + other.width <= one.x
            or one.y + one.height <= other.y
            or other.y + other.height <= one.y
        )
        assert apart, (one, other)


def test_a_recording_shows_what_ran_and_what_failed() -> None:
    """A node shows how often it ran and what failed; one that did not run is pale."""
    block = sequencer("work", int).step_all(fine, fine).map(sum).step(broken).step(fine)
    plan = build_plan(block)
    recording = Recording()
    with pytest.raises(OSError, match="disk"):
        anyio.run(lambda: run_block(plan, 1, listener=recording))
    nodes = recording.nodes
    assert nodes["work/step_all/fine"].runs == 1
    assert nodes["work/broken"].failures == 1
    assert "work/fine" not in nodes
    drawing = plan.svg(nodes)
    assert "OSError" in drawing
    assert 'opacity="0.45"' in drawing
    assert 'opacity="0.45"' not in plan.svg()


def test_text_of_users_is_escaped() -> None:
    """A name with marks of XML in it can't end the drawing."""
    block = sequencer('<b>&"', int).step(fine.configure(name="</svg>".replace("/", "")))
    root = ElementTree.fromstring(build_plan(block).svg())
    assert root.find("{http://www.w3.org/2000/svg}title") is not None


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0, "0 µs"),
        (0.0009, "900 µs"),
        (0.001, "1 ms"),
        (1, "1.0 s"),
        (119, "119.0 s"),
        (120, "2.0 min"),
    ],
)
def test_durations_are_shown_in_their_own_unit(seconds: float, shown: str) -> None:
    """Each in the unit that reads best."""
    assert duration(seconds) == shown
