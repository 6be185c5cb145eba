"""Answers read from the standard input of ``flowstate run``."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from flowstate.cli.action_input import BadInput
from flowstate.cli.answering import parse_answer

FLOW = textwrap.dedent(
    """
    from pydantic import BaseModel
    from flowstate import action, define_flow, handler, sequencer

    class Verdict(BaseModel):
        approved: bool
        why: str = ""

    chain = (
        sequencer("turn", int)
        .ask("sure", bool, question=lambda value: f"Keep {value}?")
        .ask("verdict", Verdict)
        .ask("words", str)
    )
    flow = define_flow("f", actions=[action("go", chain)])
    """
)


class Verdict(BaseModel):
    approved: bool
    why: str = ""


def run(tmp_path: Path, answers: str, *options: str) -> subprocess.CompletedProcess[str]:
    (tmp_path / "asks.py").write_text(FLOW)
    return subprocess.run(
        [
            *(sys.executable, "-m", "flowstate", "run", "asks.py:flow", "go"),
            *("--session", "s", "--input", "4", *options),
        ],
        cwd=tmp_path,
        input=answers,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_each_question_takes_a_line(tmp_path: Path) -> None:
    """In the order they are asked; a line that doesn't fit says so, and is asked for again."""
    done = run(tmp_path, 'perhaps\nyes\n{"approved": 3}\n{"approved": false}\nas you like\n')
    assert done.returncode == 0, done.stderr
    assert "? sure: Keep 4? (answer with bool, as JSON)" in done.stdout
    assert done.stdout.count("? sure:") == 2
    assert "The answer is not JSON. For example: true" in done.stdout
    assert "The answer doesn't fit Verdict:" in done.stdout
    assert done.stdout.endswith("\nas you like\n")


def test_programs_are_told_in_json_and_answer_in_json(tmp_path: Path) -> None:
    """The question is an item with its schema; the last line is the output."""
    done = run(tmp_path, 'true\n{"approved": true}\n"go on"\n', "--json")
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    asked = [
        line["item"]["content"]
        for line in lines
        if line["type"] == "event"
        and line["kind"] == "added"
        and line["item"]["content"]["type"] == "suspension"
    ]
    assert [content["name"] for content in asked] == ["sure", "verdict", "words"]
    assert asked[1]["answerSchema"]["required"] == ["approved"]
    assert lines[-1]["output"] == "go on"


def test_without_answers_it_does_not_wait_for_ever(tmp_path: Path) -> None:
    """An input that has ended cancels the run, and says which question nobody answered."""
    done = run(tmp_path, "yes\n")
    assert done.returncode == 1
    assert "Nobody answers 'verdict'" in done.stdout
    assert "was cancelled: nobody answered 'verdict'" in done.stdout


def test_a_file_may_hold_the_answers(tmp_path: Path) -> None:
    """A regular file can't be waited for; it is read all the same."""
    (tmp_path / "asks.py").write_text(FLOW)
    (tmp_path / "answers").write_text('yes\n{"approved": true}\nfine')
    with (tmp_path / "answers").open() as answers:
        done = subprocess.run(
            [
                *(sys.executable, "-m", "flowstate", "run", "asks.py:flow", "go"),
                *("--session", "s", "--input", "4"),
            ],
            cwd=tmp_path,
            stdin=answers,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("\nfine\n")


def test_a_signal_ends_the_wait_for_an_answer(tmp_path: Path) -> None:
    """Nothing goes on reading the terminal."""
    (tmp_path / "asks.py").write_text(FLOW)
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "flowstate", "run", "asks.py:flow", "go"),
            *("--session", "s", "--input", "4"),
        ],
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    seen = ""
    while "? sure" not in seen:
        line = process.stdout.readline()
        assert line, seen
        seen += line
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == 130
    for stream in (process.stdin, process.stdout, process.stderr):
        assert stream is not None
        stream.close()


@pytest.mark.parametrize(
    ("line", "annotation", "value"),
    [
        ("Yes", bool, True),
        ("n", bool, False),
        ("true", bool, True),
        ("go on", str, "go on"),
        ('"go \\u00e9"', str, "go é"),
        ("3", int, 3),
        ("[1, 2]", tuple[int, int], (1, 2)),
        ('{"approved": true}', Verdict, Verdict(approved=True)),
        ('{"any": 1}', Any, {"any": 1}),
    ],
)
def test_what_a_line_stands_for(line: str, annotation: object, value: object) -> None:
    """JSON, and for a person yes, no and bare texts."""
    assert parse_answer(line, annotation) == value


@pytest.mark.parametrize(
    ("line", "annotation", "words"),
    [
        ("", int, "not JSON. For example: 1"),
        ("maybe", bool, "not JSON. For example: true"),
        ('{"why": "x"}', Verdict, "doesn't fit Verdict:\n  approved: Field required"),
        ('"a"', int, "doesn't fit int"),
    ],
)
def test_what_does_not_fit_says_how_to_write_it(line: str, annotation: object, words: str) -> None:
    """What is wrong, where, and an example."""
    with pytest.raises(BadInput) as caught:
        parse_answer(line, annotation)
    assert words in str(caught.value)
    assert "For example: " in str(caught.value)
