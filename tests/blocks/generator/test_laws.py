"""Laws of a generator's items, over random scripts, tools and cancels, on both event loops."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import anyio
import anyio.lowlevel
import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st

from flowstate import handler, run_block
from flowstate.blocks.generator import ModelError, generator
from flowstate.item.content import Message, Reasoning, ToolOutput
from flowstate.testing import RecordingSink
from tests.blocks.generator.script import Piece, Script, Think, Use
from tests.properties.effort import examples

BACKENDS = pytest.mark.parametrize("backend", ["asyncio", "trio"])

WORDS = st.text(st.characters(exclude_categories=()), min_size=1, max_size=6)
TOOLS = st.sampled_from(["good", "bad", "slow", "missing"])
CALLS: st.SearchStrategy[Piece] = st.builds(
    Use, TOOLS, st.builds(lambda text: {"value": text}, WORDS) | st.just("{no json")
)
SPEECH: st.SearchStrategy[Piece] = WORDS | st.builds(Think, WORDS)
FAILURES: st.SearchStrategy[Piece] = st.builds(ConnectionError, st.just("lost"))
TURNS = st.lists(SPEECH | CALLS, min_size=1, max_size=5)
LAST: st.SearchStrategy[list[Piece]] = st.lists(SPEECH | CALLS | FAILURES, min_size=1, max_size=4)


@handler
async def good(text: str) -> str:
    """Gives what it gets."""
    return text


@handler
async def bad(text: str) -> str:
    """Always fails."""
    raise LookupError(text)


@handler
async def slow(text: str) -> str:
    """Takes a few turns of the loop."""
    for _ in range(3):
        await anyio.lowlevel.checkpoint()
    return text


@dataclass
class Played:
    """How a run ended, and what it showed."""

    outcome: str
    sink: RecordingSink


async def _play(turns: list[list[Piece]], cancel_after: int | None) -> Played:
    script = Script(*turns)
    sink = RecordingSink()
    outcome = "cancelled"
    block = generator("ask", model=script.model, tools=[good, bad, slow], max_turns=4)
    async with anyio.create_task_group() as tasks:

        async def run() -> None:
            nonlocal outcome
            try:
                await run_block(block, "go", emit=sink)
                outcome = "answered"
            except ModelError:
                outcome = "failed"

        tasks.start_soon(run)
        if cancel_after is not None:
            for _ in range(cancel_after):
                await anyio.lowlevel.checkpoint()
            tasks.cancel_scope.cancel()
    return Played(outcome, sink)


def play(backend: str, turns: list[list[Piece]], cancel_after: int | None = None) -> Played:
    """Run a script to its end, or cancel it after so many turns of the loop."""
    with structlog.testing.capture_logs():
        played: Played = anyio.run(_play, turns, cancel_after, backend=backend)
    return played


def spoken(turns: list[list[Piece]]) -> list[tuple[str, Any]]:
    """What a model says in these turns, neighbours joined, up to its failure: kind and text."""
    told: list[tuple[str, Any]] = []
    for turn in turns:
        calls: list[tuple[str, Any]] = []
        before: Piece | None = None
        for piece in turn:
            if isinstance(piece, Exception):
                return told
            if isinstance(piece, Use):
                calls.append(("tool_output", piece.name))
            else:
                assert isinstance(piece, str | Think)
                kind = "message" if isinstance(piece, str) else "reasoning"
                text = piece if isinstance(piece, str) else piece.text
                if before is not None and type(before) is type(piece):
                    told[-1] = (kind, told[-1][1] + text)
                else:
                    told.append((kind, text))
            before = piece
        told += calls
        if not calls and any(isinstance(p, str) and p.strip() for p in turn):
            return told
    return told


@BACKENDS
@examples(40)
@given(st.lists(TURNS, max_size=3), LAST, st.none() | st.integers(0, 40))
def test_items_are_balanced_whatever_happens(
    backend: str, turns: list[list[Piece]], last: list[Piece], cancel_after: int | None
) -> None:
    """
    Every item that opens settles once, deltas come between, and text is the sum of its pieces;
    nothing stays open, the status line included, however the run ends.
    """
    played = play(backend, [*turns, last], cancel_after)
    open_ids: set[str] = set()
    settled: set[str] = set()
    for number, event in enumerate(played.sink.events, 1):
        assert event.sequence == number
        assert event.item_id not in settled
        match event.kind:
            case "added":
                assert event.item_id not in open_ids
                open_ids.add(event.item_id)
            case "settled":
                open_ids.discard(event.item_id)
                settled.add(event.item_id)
            case _:
                assert event.item_id in open_ids
    assert open_ids == set()
    for item in played.sink.items:
        if isinstance(item.content, Message | Reasoning):
            assert item.content.text == "".join(played.sink.streamed(item))
        if isinstance(item.content, ToolOutput):
            assert item.content.is_error == (item.status == "failed")
            assert (item.content.output is None) == (item.status == "incomplete")
        if item.status == "incomplete":
            assert played.outcome != "answered"


@BACKENDS
@examples(40)
@given(st.lists(TURNS, max_size=3), LAST)
def test_items_keep_the_order_of_what_the_model_said(
    backend: str, turns: list[list[Piece]], last: list[Piece]
) -> None:
    """Speech in its order, then the calls of its turn, turn after turn, until it fails or ends."""
    played = play(backend, [*turns, last])
    shown = [
        (
            item.content.type,
            item.content.name if isinstance(item.content, ToolOutput) else item.content.text,
        )
        for item in played.sink.items
        if isinstance(item.content, Message | Reasoning | ToolOutput)
    ]
    expected = spoken([*turns, last])
    assert shown[: len(expected)] == expected[: len(shown)]
    assert len(shown) >= len(expected) or played.outcome == "failed"
