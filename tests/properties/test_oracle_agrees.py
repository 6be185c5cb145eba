"""Random compositions end as the oracle allows, on every backend, and leave no task behind."""

from __future__ import annotations

import asyncio
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flowstate.plan.build import build_plan
from flowstate.run.once import run_block
from flowstate.testing.compositions import METHODS, sequencers
from flowstate.testing.oracle import outcome_of, outcomes
from tests.properties.effort import examples

BACKENDS = ["asyncio", "trio"]


async def _observed(block: Any, value: int) -> tuple[Any, list[Any]]:
    allowed = await outcomes(block, value)
    before = asyncio.all_tasks() if _on_asyncio() else set()
    try:
        seen: Any = ("value", await run_block(build_plan(block), value))
    except Exception as error:
        seen = outcome_of(error)
    if _on_asyncio():
        assert asyncio.all_tasks() == before
    return seen, allowed


def _on_asyncio() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


@pytest.mark.parametrize("backend", BACKENDS)
@examples(150)
@given(block=sequencers(), value=st.integers(0, 9))
def test_every_run_ends_as_the_oracle_allows(backend: str, block: Any, value: int) -> None:
    """Whatever is composed of whatever methods, the outcome is one of the oracle's."""
    seen, allowed = anyio.run(_observed, block, value, backend=backend)
    assert seen in allowed


DETERMINISTIC = [m for m in METHODS if m not in ("race", "parallel", "step_all", "for_each")]


@pytest.mark.parametrize("backend", BACKENDS)
@examples(100)
@given(block=sequencers(methods=DETERMINISTIC), value=st.integers(0, 9))
def test_without_concurrency_there_is_one_outcome(backend: str, block: Any, value: int) -> None:
    """Without branches side by side the oracle allows one outcome, and that is the one."""
    seen, allowed = anyio.run(_observed, block, value, backend=backend)
    assert [seen] == allowed


@pytest.mark.parametrize("backend", BACKENDS)
@examples(100)
@given(
    block=sequencers(failing=False, methods=[m for m in METHODS if m != "race"]),
    value=st.integers(0, 9),
)
def test_without_failures_there_is_one_outcome(backend: str, block: Any, value: int) -> None:
    """Where no block fails and nothing races, every schedule gives the same."""
    seen, allowed = anyio.run(_observed, block, value, backend=backend)
    assert [seen] == allowed


@examples(60)
@given(block=sequencers())
def test_building_is_deterministic(block: Any) -> None:
    """Two builds of one definition have the same fingerprint, nodes and drawing."""
    first, second = build_plan(block), build_plan(block)
    assert first.fingerprint == second.fingerprint
    assert first.mermaid() == second.mermaid()
    paths = [site.path for site in _sites(first)]
    assert len(set(paths)) >= len(paths) - _shared(first)


def _sites(plan: Any) -> list[Any]:
    from flowstate.plan.site import sites

    return list(sites(plan.root))


def _shared(plan: Any) -> int:
    """A loop, a for_each and a rescue share their path with the block they hold."""
    return sum(
        1 for site in _sites(plan) if site.kind in ("loop", "for_each", "rescue", "side_chain")
    )
