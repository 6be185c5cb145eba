"""Runs on a terminal, and through a pipe."""

from __future__ import annotations

import io
import re

import anyio
import anyio.lowlevel
import pytest
from rich.console import Console

from flowstate import Context, Runtime, action, define_flow, handler, sequencer
from flowstate.cli.live_view import LiveView, open_console
from flowstate.cli.show import OutputClosed
from flowstate.item.content import Message, Reasoning, ToolOutput

pytestmark = pytest.mark.anyio

EVIL = "\x1b]0;owned\x07\x1b[2Jhello [bold red]not markup[/bold red] :smile: https://x.example"


@handler
async def note(text: str, ctx: Context) -> None:
    ctx.status.keep(f"Noted {text}.")


@handler
async def agent(text: str, ctx: Context) -> str:
    ctx.status.show("Thinking…")
    ctx.items.add(Reasoning(text="Let me see."))
    message = ctx.items.open(Message())
    for piece in EVIL.split(" "):
        message.append(piece + " ")
        await anyio.lowlevel.checkpoint()
    message.settle()
    tool = ctx.items.open(ToolOutput(call_id="1", name="Bash", arguments={"command": EVIL}))
    await anyio.sleep(0.15)
    tool.settle(
        ToolOutput(call_id="1", name="Bash", arguments={"command": EVIL}, output=f"{EVIL}\n{text}")
    )
    return text


@handler
async def breaks(text: str) -> str:
    raise ValueError(f"no {text}")


WORK = action("work", sequencer("turn", str).tap(note).step(agent))
FAIL = action("fail", sequencer("turn", str).step(breaks))
FLOW = define_flow("shown", actions=[WORK, FAIL])


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


class Gone(io.StringIO):
    """A stream whose reader has gone after some lines."""

    def __init__(self, after: int) -> None:
        super().__init__()
        self._left = after

    def write(self, text: str, /) -> int:
        self._left -= 1
        if self._left < 0:
            raise BrokenPipeError
        return super().write(text)


async def shown(console: Console, *sent: tuple[str, str]) -> str:
    """What is written while these texts are run at once, each under its label."""
    view = LiveView(console)
    async with Runtime(FLOW, trace=True) as runtime:
        runs = [
            (await runtime.dispatch(WORK, text, session=f"s-{text}"), label) for text, label in sent
        ]
        async with anyio.create_task_group() as tasks:
            for run, label in runs:
                tasks.start_soon(view.follow, run, label)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


async def test_a_pipe_gets_lines_and_no_control_code() -> None:
    """Readable as it is: steps, what was said, calls, results, the status lines."""
    text = await shown(open_console(io.StringIO()), ("one", ""))
    assert "\x1b" not in text
    assert "\r" not in text
    lines = [line[8:].rstrip() for line in text.splitlines()]
    assert lines == [
        "▸ note",
        "  · Noted one.",
        lines[2],
        "▸ agent",
        "  … Thinking…",
        "  ∴ Let me see.",
        "  ● hello [bold red]not markup[/bold red] :smile: https://x.example",
        "  → Bash  hello [bold red]not markup[/bold red] :smile: https://x.example",
        "    └ hello [bold red]not markup[/bold red] :smile: https://x.example",
        "      one",
        lines[-1],
    ]
    assert re.fullmatch(r"✓ note  \d+ ms", lines[2])
    assert re.fullmatch(r"✓ agent  .*s", lines[-1])


async def test_colours_that_are_forced_do_not_reach_a_pipe(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A file with control codes in it helps nobody."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    assert "\x1b" not in await shown(open_console(io.StringIO()), ("one", ""))


async def test_a_terminal_shows_a_status_that_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is drawn and wiped below the lines that stay; the cursor comes back in the end."""
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "60")
    text = await shown(open_console(Terminal()), ("one", ""))
    assert "\x1b[2K" in text
    assert "Thinking…" in text
    assert text.count("\x1b[?25l") == text.count("\x1b[?25h") == 1
    assert "… Thinking…" not in text


@pytest.mark.parametrize("make", [io.StringIO, Terminal])
async def test_nothing_an_agent_says_reaches_the_terminal_raw(
    make: type[io.StringIO], monkeypatch: pytest.MonkeyPatch
) -> None:
    """No title is set, no screen cleared, no markup or emoji code taken."""
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "120")
    text = await shown(open_console(make()), ("one", ""))
    assert "owned" not in text
    assert "\x07" not in text
    assert "\x1b[2J" not in text
    assert "[bold red]not markup[/bold red] :smile:" in text


async def test_a_dumb_terminal_gets_plain_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    """It has no cursor to move."""
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.delenv("COLORTERM", raising=False)
    assert "\x1b" not in await shown(open_console(Terminal()), ("one", ""))


async def test_two_runs_at_once_are_told_apart() -> None:
    """Every line begins with the label of its run, continuation lines too."""
    text = await shown(open_console(io.StringIO()), ("one", "A"), ("two", "B"))
    lines = text.splitlines()
    assert {line[:4] for line in lines} == {"A │ ", "B │ "}
    assert next(line for line in lines if "Noted one." in line).startswith("A")
    assert next(line for line in lines if line.endswith(" two")).startswith("B")


async def test_long_texts_wrap_under_their_beginning(monkeypatch: pytest.MonkeyPatch) -> None:
    """And stay within the terminal."""
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("NO_COLOR", "1")
    view = LiveView(open_console(Terminal()))
    view.say("word " * 20, label="1", heading="  files  ")
    assert isinstance(view.console.file, Terminal)
    lines = re.sub(r"\x1b\[[0-9;]*m", "", view.console.file.getvalue()).splitlines()
    assert len(lines) > 2
    assert all(len(line) <= 40 for line in lines)
    assert lines[0].startswith("1 │   files  word")
    assert all(line.startswith("1 │          word") for line in lines[1:])


async def test_an_error_is_told_and_ends_the_telling() -> None:
    """A failed step and its error item."""
    console = open_console(io.StringIO())
    async with Runtime(FLOW, trace=True) as runtime:
        run = await runtime.dispatch(FAIL, "go", session="s")
        await LiveView(console).follow(run)
    assert isinstance(console.file, io.StringIO)
    text = console.file.getvalue()
    assert "✗ breaks  ValueError" in text
    assert "✗ ValueError: no go" in text


async def test_a_reader_that_has_gone_ends_the_telling() -> None:
    """By an error of its own, whatever was being written; the run goes on."""
    console = Console(file=Gone(after=3), force_terminal=False, color_system=None)
    async with Runtime(FLOW, trace=True) as runtime:
        run = await runtime.dispatch(WORK, "one", session="s")
        closed = False
        try:
            await LiveView(console).follow(run)
        except OutputClosed:
            closed = True
        assert closed
        assert await run.output() == "one"


async def test_a_long_silence_tells_the_step_that_runs() -> None:
    """A step that tells nothing for a while is shown to have begun."""

    @handler
    async def slow(text: str) -> str:
        await anyio.sleep(1.0)
        return text

    quiet = action("quiet", sequencer("turn", str).step(slow))
    console = open_console(io.StringIO())
    async with Runtime(define_flow("q", actions=[quiet]), trace=True) as runtime:
        run = await runtime.dispatch(quiet, "x", session="s")
        await LiveView(console).follow(run)
    assert isinstance(console.file, io.StringIO)
    marks = [line[8:].split()[0] for line in console.file.getvalue().splitlines()]
    assert marks == ["▸", "✓"]
