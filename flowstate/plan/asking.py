"""Where a question to a person may not stand: under a limit of time, and beside the chain."""

from __future__ import annotations

from flowstate.errors import Fault
from flowstate.plan.site import Site


def misplaced_questions(root: Site) -> list[Fault]:
    """
    A fault for every question that can't wait for its answer where it stands.

    A person may take days: a timeout or deadline around the question would count them, and a side
    chain is waited for only as long as its request drains.
    """
    faults: list[Fault] = []
    _look(root, None, faults)
    return faults


def _look(site: Site, around: Fault | None, faults: list[Fault]) -> None:
    """``around``: what is wrong with a question here, as a fault of the site that makes it so."""
    block = site.block
    if around is None and block is not None and not (block.timeout is block.deadline is None):
        limit = "timeout" if block.deadline is None else "deadline"
        around = Fault(
            where=site.path,
            problem=f"its {limit} would count the time that a person takes to answer",
            way_out=f"Put the {limit} on the blocks around the question, or leave it out.",
        )
    if around is None and site.kind == "side_chain":
        around = Fault(
            where=site.path,
            problem="a side chain can't wait for a person: it ends when its request has drained",
            way_out="Ask in the chain: .ask(...), or in a branch of .parallel(...).",
        )
    if site.kind == "ask" and around is not None:
        faults.append(
            Fault(
                where=site.path,
                problem=f"it asks a person inside {around.where!r}: {around.problem}",
                way_out=around.way_out,
            )
        )
    for child in site.children:
        _look(child, around, faults)
