"""
Answers to a run's questions, read from the standard input: a line of JSON each, oldest question
first. For a person at a terminal a text needs no quotes, and yes and no are truth values.
"""

from __future__ import annotations

import json
import os
from typing import Any, TextIO, final

import anyio
import anyio.lowlevel
from pydantic import ValidationError

from flowstate.cli.action_input import BadInput, adapter_of, example_for, faults_text, validated
from flowstate.cli.show import Show
from flowstate.cli.terminal_text import one_line
from flowstate.errors import FlowError
from flowstate.plan.typename import type_name
from flowstate.plan.validator import checks_nothing
from flowstate.request.run import Run
from flowstate.run.questions import Question

_WORDS = {"y": True, "yes": True, "n": False, "no": False}
_CHUNK = 65_536


async def answer_questions(run: Run[object], show: Show, lines: Lines) -> None:
    """
    Answer every question of a run with the next line; at the end of the input, cancel it, for it
    would wait for ever.
    """
    while questions := await run.asked():
        question = questions[0]
        show.say(_prompt(question))
        line = await lines.next()
        if line is None:
            show.say(f"Nobody answers {question.name!r}: the standard input has ended.")
            run.cancel(f"nobody answered {question.name!r}")
            return
        try:
            await run.answer(question.id, parse_answer(line, question.answer_type))
        except (BadInput, FlowError) as error:
            show.say(str(error))


def parse_answer(line: str, annotation: object) -> Any:
    """
    The answer of this type that a line stands for.

    Raises:
        BadInput: it fits neither as JSON nor as a person may write it.

    >>> parse_answer("yes", bool), parse_answer("go on", str), parse_answer("[1, 2]", list[int])
    (True, 'go on', [1, 2])
    """
    text = line.strip()
    if annotation is bool and text.lower() in _WORDS:
        return _WORDS[text.lower()]
    if annotation is str and not text.startswith('"'):
        return line
    way_out = f"For example: {json.dumps(example_for(annotation), ensure_ascii=False)}"
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        raise BadInput(f"The answer is not JSON. {way_out}") from None
    adapter = None if checks_nothing(annotation) else adapter_of(annotation)
    if adapter is None:
        return value
    try:
        return validated(adapter, text, value)
    except ValidationError as error:
        raise BadInput(
            f"The answer doesn't fit {type_name(annotation)}:\n{faults_text(error)}\n{way_out}"
        ) from None


def _prompt(question: Question) -> str:
    shown = "" if question.text is None else f" {one_line(_as_text(question.text), 400)}"
    wanted = one_line(type_name(question.answer_type), 60)
    return f"? {one_line(question.name, 60)}:{shown} (answer with {wanted}, as JSON)"


def _as_text(text: Any) -> str:
    return text if isinstance(text, str) else json.dumps(text, ensure_ascii=False)


@final
class Lines:
    """The lines of a stream, waited for so that a cancellation leaves no thread behind."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._buffer = b""
        self._ended = False

    async def next(self) -> str | None:
        """The next line without its end; None when there are no more."""
        while b"\n" not in self._buffer and not self._ended:
            chunk = await self._chunk()
            self._ended = not chunk
            self._buffer += chunk
        if not self._buffer:
            return None
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line.decode(errors="replace").rstrip("\r")

    async def _chunk(self) -> bytes:
        try:
            descriptor = self._stream.fileno()
        except (OSError, ValueError):
            return b""  # It is closed, or no file at all.
        try:
            await anyio.wait_readable(descriptor)
        except PermissionError:
            # A regular file: it never makes anybody wait, and can't be waited for.
            await anyio.lowlevel.checkpoint()
        try:
            return os.read(descriptor, _CHUNK)
        except OSError:
            return b""
