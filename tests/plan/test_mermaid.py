"""The plan as Mermaid text: the whole drawing, and labels that can't break it."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flowstate import Failure, build_plan, handler, sequencer
from flowstate.testing.compositions import sequencers


@handler
async def plan(value: int) -> int:
    return value


@handler
async def mend(failure: Failure[Exception]) -> int:
    return 0


def test_a_drawing_reads_well() -> None:
    """Shapes by kind, groups around what belongs together, dots and thick lines with a meaning."""
    built = (
        sequencer("turn", int)
        .step(plan)
        .tap(plan)
        .rescue(ValueError, mend)
        .map(lambda value: value)
        .do_until(bool, plan, max_iterations=3)
    )
    assert build_plan(built).mermaid() == (
        "flowchart TD\n"
        '  n0(("int"))\n'
        '  n8(("int"))\n'
        '  subgraph g0 ["turn"]\n'
        '    n1["plan"]\n'
        '    n2[/"plan#35;2"/]\n'
        '    n3["mend"]\n'
        '    n4(["map"])\n'
        '    subgraph g1 ["plan#35;3: do until, ≤ 3"]\n'
        '      n5(("again"))\n'
        '      n6["plan#35;3"]\n'
        '      n7[["done"]]\n'
        "    end\n"
        "  end\n"
        "  n0 --> n1\n"
        "  n1 --> n2\n"
        '  n2 ==>|"ValueError"| n3\n'
        "  n2 --> n4\n"
        "  n3 --> n4\n"
        "  n4 --> n5\n"
        "  n5 -.-> n6\n"
        "  n6 --> n7\n"
        "  n7 --> n8\n"
    )


LINE = re.compile(
    r"""^\s*(
        flowchart\ TD
      | end
      | subgraph\ g\d+\ \["[^"`\\\n]*"\]
      | n\d+(\[\[|\[/|\[|\(\(|\(\[|\{)"[^"`\\\n]*"(\]\]|/\]|\]|\)\)|\]\)|\})
      | n\d+\ (-->|-\.->|==>)(\|"[^"`\\\n]*"\|)?\ n\d+
    )$""",
    re.VERBOSE,
)


def well_formed(drawing: str) -> None:
    """Each line is one of the few forms we write, and groups are closed."""
    lines = drawing.splitlines()
    for line in lines:
        assert LINE.match(line), line
    assert sum("subgraph" in line for line in lines) == sum(line.strip() == "end" for line in lines)


@settings(max_examples=60)
@given(block=sequencers())
def test_any_composition_is_drawn_in_whole(block: Any) -> None:
    """As many nodes and edges as its graph has, in lines that Mermaid reads."""
    built = build_plan(block)
    drawing = built.mermaid()
    well_formed(drawing)
    described = built.describe()
    arrows = re.findall(r"-->|-\.->|==>", drawing)
    assert len(arrows) == len(described["edges"])
    assert len(set(re.findall(r"n\d+", drawing))) == len(described["nodes"])


NASTY = st.text(
    alphabet=st.one_of(
        st.sampled_from(list("\"'`<>#&;|{}()\\\n\r\t\x0b\x0c\u2028\u0085%-=.~")),
        st.characters(blacklist_characters="/[]", blacklist_categories=["Cs"]),
    ),
    min_size=1,
)


@settings(max_examples=150)
@given(name=NASTY)
def test_no_name_breaks_out_of_its_label(name: str) -> None:
    """Quotes, brackets, entities, backticks, line breaks: a label stays a label."""
    built = (
        sequencer("turn", int)
        .step(plan.configure(name=name))
        .branch((bool, plan.configure(name=name)))
    )
    drawing = build_plan(built).mermaid()
    assert len(drawing.splitlines()) == len(drawing.split("\n")) - 1
    well_formed(drawing)


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("a<b>", "a#lt;b#gt;"),
        ('say "hi"', "say #quot;hi#quot;"),
        ("fish & chips", "fish #amp; chips"),
        ("c#", "c#35;"),
        ("`code`", "#96;code#96;"),
        ("two\nlines", "two lines"),
        ("end", "end"),
    ],
)
def test_what_means_something_to_mermaid_is_written_as_an_entity(name: str, shown: str) -> None:
    """So that it is read back as it was."""
    assert f'["{shown}"]' in build_plan(plan.configure(name=name)).mermaid()
