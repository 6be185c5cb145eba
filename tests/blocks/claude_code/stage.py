"""
A stage on which a translator's effects are performed, strictly: what a reader would see of them.

Unlike the joiner, which forgives, it fails on an effect that makes no sense: an item opened twice,
text for an item that isn't open, a container that isn't there.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from flowstate.blocks.claude_code.heard import Heard
from flowstate.blocks.claude_code.hearing import hear
from flowstate.blocks.claude_code.translator import Translator
from flowstate.harness.effect import (
    AppendText,
    ChangeItem,
    ClearStatus,
    Effect,
    KeepStatus,
    MessageActivity,
    OpenItem,
    SessionNamed,
    SettleItem,
    ShowStatus,
    ToolActivity,
)
from flowstate.item.content import Container, Content, ErrorReport, Message, Reasoning, ToolOutput
from tests.blocks.claude_code.wire import Wire, messages, turn_begins


@dataclass
class Shown:
    """An item as a reader sees it."""

    content: Content
    parent: str | None
    status: str = "in_progress"

    @property
    def text(self) -> str:
        assert isinstance(self.content, Message | Reasoning)
        return self.content.text


@dataclass
class Stage:
    """What the effects so far have made."""

    items: dict[str, Shown] = field(default_factory=dict)
    line: str | None = None
    lines: list[str | None] = field(default_factory=list)
    """Every state of the status line, in order; None where it was cleared."""
    kept: list[str] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    """The texts of the message activity."""
    used: list[tuple[str, str]] = field(default_factory=list)
    """Names and arguments of the tool activity."""
    sessions: list[str] = field(default_factory=list)

    def perform(self, effects: Iterable[Effect]) -> None:
        for effect in effects:
            match effect:
                case OpenItem(key, content, parent):
                    assert key not in self.items, f"{key} opened twice"
                    if parent is not None:
                        assert isinstance(self.items[parent].content, Container)
                    self.items[key] = Shown(content, parent)
                case AppendText(key, text):
                    item = self._open(key)
                    assert isinstance(item.content, Message | Reasoning)
                    whole = item.content.text + text
                    item.content = item.content.model_copy(update={"text": whole})
                case ChangeItem(key, content):
                    self._open(key).content = content
                case SettleItem(key, content, status):
                    item = self._open(key)
                    item.content = content or item.content
                    item.status = status
                case ShowStatus(text):
                    self.line = text
                    self.lines.append(text)
                case KeepStatus(text):
                    self.line = None
                    self.kept.append(text)
                case ClearStatus():
                    assert self.line is not None, "cleared an empty line"
                    self.line = None
                    self.lines.append(None)
                case MessageActivity(text):
                    self.said.append(text)
                case ToolActivity(name, arguments):
                    self.used.append((name, arguments))
                case SessionNamed(session_id):
                    self.sessions.append(session_id)

    def _open(self, key: str) -> Shown:
        item = self.items[key]
        assert item.status == "in_progress", f"{key} was settled before"
        return item

    @property
    def open(self) -> list[str]:
        return [key for key, item in self.items.items() if item.status == "in_progress"]

    @property
    def texts(self) -> list[tuple[str, str]]:
        """Messages and thoughts: their text and their status."""
        return [
            (item.text, item.status)
            for item in self.items.values()
            if isinstance(item.content, Message | Reasoning)
        ]

    @property
    def tools(self) -> list[ToolOutput]:
        return [i.content for i in self.items.values() if isinstance(i.content, ToolOutput)]

    @property
    def errors(self) -> list[ErrorReport]:
        return [i.content for i in self.items.values() if isinstance(i.content, ErrorReport)]

    def inside(self, parent: str | None) -> list[str]:
        """Keys of the items in a container; None for those in none."""
        return [key for key, item in self.items.items() if item.parent == parent]


class Clock:
    """Seconds that pass when a test says so."""

    def __init__(self) -> None:
        self.seconds = 100.0

    def __call__(self) -> float:
        return self.seconds


def heard_of(recording: Iterable[Wire]) -> list[Heard]:
    """All that is heard of a recording."""
    return [heard for message in messages(recording) for heard in hear(message)]


def play(
    recording: Iterable[Wire], *, forward: bool = True, end: bool = True, seconds: float = 5.0
) -> tuple[Translator, Stage]:
    """A recording, translated from start to end and performed."""
    clock = Clock()
    translator = Translator(now=clock, forward_partial_messages=forward)
    stage = Stage()
    stage.perform(translator.started())
    for heard in heard_of(recording):
        stage.perform(translator.feed(heard))
    clock.seconds += seconds
    if end:
        stage.perform(translator.end())
    return translator, stage


def after(*written: Wire | Iterable[Wire]) -> tuple[Translator, Stage]:
    """A run that began and then said this; not ended yet."""
    flat = [w for some in written for w in ([some] if isinstance(some, dict) else some)]
    return play([*turn_begins(), *flat], end=False)
