"""
What the model says and thinks, as items: streamed piece by piece, then said in full.

A message comes twice. Its pieces stream, told apart by the place of their block; then each block is
said in full, without its place, under the message's id. The two are matched here, so that a text is
one item. A block that streamed and was never said in full was cut off: its item ends incomplete,
and it counts neither as a message nor as the last one. (After a broken connection Claude Code
streams the whole message again under a new id.)

Pure and total: pieces and messages may be lost, repeated or out of order; at worst a text shows
twice. It knows no sub-agents: ``parent`` tells threads apart, ``group`` is the key of the container
that a thread's items go into.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, final

from flowstate.blocks.claude_code.heard import SpokenKind
from flowstate.harness.effect import AppendText, Effect, MessageActivity, OpenItem, SettleItem
from flowstate.item.content import Message, Reasoning, unchecked

_EMPTY: Final[Mapping[SpokenKind, Message | Reasoning]] = {
    "text": Message(),
    "thinking": Reasoning(),
}


@final
@dataclass(slots=True)
class _Block:
    """A block of a message that streams."""

    key: str
    kind: SpokenKind
    pieces: list[str]
    shown: bool = False
    """Whether its item was opened."""
    done: bool = False
    """Whether it was said in full, or cut off."""

    @property
    def text(self) -> str:
        return "".join(self.pieces)


@final
@dataclass(slots=True)
class _Stream:
    """The message that streams in one thread, or streamed last."""

    message_id: str | None
    blocks: dict[tuple[int, SpokenKind], _Block]
    ahead: dict[SpokenKind, int]
    """How many blocks of a kind were said in full before any piece of them came."""


@final
class Speech:
    """
    The texts and thoughts of one run.

    Attributes:
        final_message: the last text that the main thread said in full.
    """

    def __init__(self, *, forward: bool, activity: bool) -> None:
        self.final_message: str | None = None
        self._forward = forward
        self._activity = activity
        self._streams: dict[str | None, _Stream] = {}
        self._made = 0

    def begin(self, message_id: str | None, parent: str | None) -> list[Effect]:
        """A message begins to stream; what streamed before it in its thread is cut off."""
        before = self._streams.get(parent)
        if before is not None and before.message_id == message_id is not None:
            return []
        self._streams[parent] = _Stream(message_id, {}, {})
        return _cut(before) if before is not None else []

    def stream(
        self, index: int, kind: SpokenKind, text: str, parent: str | None, group: str | None
    ) -> list[Effect]:
        """A piece of a block streams."""
        stream = self._streams.get(parent)
        if stream is None:
            stream = self._streams[parent] = _Stream(None, {}, {})
        block = stream.blocks.get((index, kind))
        if block is None:
            block = stream.blocks[index, kind] = _Block(self._key(kind), kind, [])
            if stream.ahead.get(kind, 0) > 0:
                stream.ahead[kind] -= 1
                block.done = True
        if block.done:
            return []
        block.pieces.append(text)
        if not self._forward:
            return []
        piece = AppendText(block.key, text)
        if block.shown:
            return [piece]
        block.shown = True
        return [OpenItem(block.key, _EMPTY[kind], group), piece]

    def say(
        self,
        message_id: str | None,
        kind: SpokenKind,
        text: str,
        parent: str | None,
        group: str | None,
    ) -> list[Effect]:
        """A block is said in full. Withheld thinking, without text, is no item."""
        stream = self._streams.get(parent)
        if stream is not None and None not in (message_id, stream.message_id):
            stream = stream if stream.message_id == message_id else None
        block = _find(stream, kind, text) if stream is not None else None
        if block is not None:
            block.done = True
            text = text or block.text
        elif not text:
            return []
        elif stream is not None:
            stream.ahead[kind] = stream.ahead.get(kind, 0) + 1
        effects: list[Effect] = []
        if block is not None and block.shown:
            # What was appended stands, unless pieces of it were lost.
            whole = None if block.text == text else _content(kind, text)
            effects.append(SettleItem(block.key, whole))
        else:
            key = block.key if block is not None else self._key(kind)
            effects += [OpenItem(key, _content(kind, text), group), SettleItem(key)]
        if kind == "text":
            if self._activity:
                effects.append(MessageActivity(text))
            if parent is None:
                self.final_message = text
        return effects

    def end(self) -> list[Effect]:
        """Nothing more is said: what still streams is cut off."""
        return [effect for stream in self._streams.values() for effect in _cut(stream)]

    def _key(self, kind: SpokenKind) -> str:
        self._made += 1
        return f"{kind}/{self._made}"  # a slash: see ``calls``


def _cut(stream: _Stream) -> list[Effect]:
    effects: list[Effect] = []
    for block in stream.blocks.values():
        if block.shown and not block.done:
            effects.append(SettleItem(block.key, status="incomplete"))
        block.done = True
    return effects


def _find(stream: _Stream, kind: SpokenKind, text: str) -> _Block | None:
    """The block of the stream that this text is, in full: normally the only one that is open."""
    open_ = [b for b in stream.blocks.values() if b.kind == kind and not b.done]
    if len(open_) < 2:
        return open_[0] if open_ else None
    exact = next((block for block in open_ if block.text == text), None)
    return exact or next((block for block in open_ if text.startswith(block.text)), open_[0])


def _content(kind: SpokenKind, text: str) -> Message | Reasoning:
    return unchecked(Message, text=text) if kind == "text" else unchecked(Reasoning, text=text)
