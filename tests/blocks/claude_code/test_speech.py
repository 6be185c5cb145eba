"""What the model says and thinks, as items: each text once, whole or cut off."""

from __future__ import annotations

import pytest

from flowstate.harness.handle import HarnessUsage
from flowstate.item.content import Reasoning
from tests.blocks.claude_code import recordings, wire
from tests.blocks.claude_code.recordings import RECORDINGS
from tests.blocks.claude_code.stage import after, play

COMPLETED = "Claude Code agent run completed in 5 seconds."


@pytest.mark.parametrize("forward", [True, False])
def test_a_message_is_one_item(forward: bool) -> None:
    """Whether it grew piece by piece or came whole, its text is there once, and completed."""
    translator, stage = play(recordings.PLAIN, forward=forward)
    whole = "Hello there, this is a fairly plain answer in several pieces."
    assert stage.texts == [(whole, "completed")]
    assert stage.said == [whole]
    assert translator.final_message == whole
    assert stage.kept == [COMPLETED]


def test_a_message_grows_while_it_streams() -> None:
    """A reader sees the pieces before the message is whole."""
    _, stage = after(wire.start("m"), wire.opened(0, wire.text()), wire.piece(0, "Hel"))
    assert stage.texts == [("Hel", "in_progress")]
    assert stage.said == []


def test_without_partial_messages_nothing_shows_before_it_is_whole() -> None:
    """The pieces are heard, for the tokens in them, and not shown."""
    written = [wire.start("m"), wire.opened(0, wire.text()), wire.piece(0, "Hel")]
    _, stage = play([*wire.turn_begins(), *written], forward=False, end=False)
    assert stage.texts == []
    _, stage = play([*wire.turn_begins(), *written], forward=False)
    assert stage.texts == []


@pytest.mark.parametrize("forward", [True, False])
def test_thinking_is_reasoning_and_withheld_thinking_is_nothing(forward: bool) -> None:
    """Nor is redacted thinking; two texts of one message are two items."""
    _, stage = play(recordings.TOOLS, forward=forward)
    assert [i.text for i in stage.items.values() if isinstance(i.content, Reasoning)] == [
        "Let me look at the file first."
    ]
    _, stage = play(recordings.WITHHELD, forward=forward)
    assert stage.texts == [("Answer.", "completed"), ("Second block.", "completed")]


@pytest.mark.parametrize("forward", [True, False])
def test_an_empty_text_is_no_item(forward: bool) -> None:
    """A block that stays empty never becomes an item."""
    _, stage = play(recordings.EMPTY_BLOCK, forward=forward)
    assert stage.texts == [("Real.", "completed")]


def test_a_text_that_was_cut_off_is_incomplete_and_said_again() -> None:
    """After a broken connection the message streams anew; the first one counts for nothing."""
    translator, stage = play(recordings.DROPPED)
    whole = "This answer is cut before it ends and must be said again."
    assert stage.texts == [(whole[:48], "incomplete"), (whole, "completed")]
    assert stage.said == [whole]
    assert translator.usage == HarnessUsage(input_tokens=20, output_tokens=6)


def test_only_the_block_that_was_cut_off_is_incomplete() -> None:
    """What was said before in the same message stands."""
    translator, stage = play(recordings.CUT_OFF)
    assert stage.texts == [
        ("First block done.", "completed"),
        ("Second block is cut off ", "incomplete"),
        ("Said again.", "completed"),
    ]
    assert translator.final_message == "Said again."


def test_lost_pieces_are_made_good_by_the_whole_message() -> None:
    """The text ends as it was said, whatever of its stream was lost."""
    whole = wire.said("m", wire.text("abc"))
    pieces = [wire.piece(0, "a"), wire.piece(0, "c")]
    _, stage = after(wire.start("m"), pieces, whole)
    assert stage.texts == [("abc", "completed")]


@pytest.mark.parametrize("late", [True, False])
def test_a_message_is_matched_on_either_side_of_its_pieces(late: bool) -> None:
    """Pieces that come after the whole message add nothing to it."""
    pieces = [wire.piece(0, "ab"), wire.piece(0, "c")]
    whole = [wire.said("m", wire.text("abc"))]
    first, second = (whole, pieces) if late else (pieces, whole)
    _, stage = after(wire.start("m"), first, second, wire.piece(0, "d"))
    assert stage.texts == [("abc", "completed")]


def test_a_message_without_its_start_is_matched_too() -> None:
    """The pieces of a stream whose beginning was lost belong to the next message of the thread."""
    _, stage = after(wire.piece(0, "ab"), wire.said("m", wire.text("abc")))
    assert stage.texts == [("abc", "completed")]


def test_a_message_that_was_never_streamed_is_an_item() -> None:
    """As with an agent that sends no pieces."""
    _, stage = after(wire.said("m", wire.text("abc")), wire.said("m", wire.thinking("hm")))
    assert stage.texts == [("abc", "completed"), ("hm", "completed")]


def test_of_two_open_texts_the_one_that_fits_is_completed() -> None:
    """The other one, whose whole message was lost, is cut off."""
    _, stage = after(
        wire.start("m"),
        wire.piece(0, "first"),
        wire.piece(1, "second"),
        wire.said("m", wire.text("second")),
        wire.start("n"),
    )
    assert stage.texts == [("first", "incomplete"), ("second", "completed")]
    _, stage = after(
        wire.start("m"),
        wire.piece(0, "first"),
        wire.piece(1, "sec"),
        wire.said("m", wire.text("second")),
    )
    assert stage.texts == [("first", "in_progress"), ("second", "completed")]


def test_a_repeated_message_is_one_item() -> None:
    """The same message again, streamed or whole, changes nothing."""
    twice = [w for w in recordings.PLAIN for _ in range(2) if w["type"] != "stream_event"]
    translator, stage = play(twice)
    assert len(stage.texts) == 1
    assert translator.usage == HarnessUsage(input_tokens=10, output_tokens=5)
    assert len(translator.results) == 1
    assert stage.sessions == [wire.SESSION]


def test_the_binarys_own_words_are_no_message() -> None:
    """Notes in the user's name, summaries and failures; only the model speaks."""
    for name in ("COMPACTION", "WRONG_KEY", "INTERRUPTED", "OUTPUT_LIMIT", "CUT_OFF"):
        _, stage = play(RECORDINGS[name])
        for text, _ in stage.texts:
            assert not text.startswith(("[Request", "Failed", "API Error", "Output token", "Your"))


def test_a_text_that_fits_exactly_goes_before_one_that_only_begins_like_it() -> None:
    """Two open texts, one of them the beginning of the other."""
    _, stage = after(
        wire.start("m"),
        wire.piece(0, "a"),
        wire.piece(1, "ab"),
        wire.said("m", wire.text("ab")),
    )
    assert stage.texts == [("a", "in_progress"), ("ab", "completed")]


def test_a_repeated_start_cuts_nothing_off() -> None:
    """The message that streams goes on."""
    _, stage = after(wire.start("m"), wire.piece(0, "a"), wire.start("m"), wire.piece(0, "b"))
    assert stage.texts == [("ab", "in_progress")]


def test_a_sub_agents_last_words_are_not_the_runs() -> None:
    """The final message is the main thread's."""
    inside = wire.said("n", wire.text("inside"), parent="call")
    translator, stage = after(wire.said("m", wire.text("main")), inside)
    assert translator.final_message == "main"
    assert stage.said == ["main", "inside"]
