"""
A sink of item events that remembers: what a run told, for a test to look at.

Hand it to ``run_block`` as ``emit=``, or let it ``read`` what ``Run.events`` gives. It folds the
events the way any reader does, so what it holds is what a client would.
"""

from __future__ import annotations

from collections.abc import AsyncIterable
from typing import Self, TypeVar, final

from pydantic import BaseModel

from flowstate.item.content import Message, Reasoning
from flowstate.item.event import ItemEvent
from flowstate.item.fold import fold
from flowstate.item.item import Item
from flowstate.item.selection import Role, contents, messages, of_type

C = TypeVar("C", bound=BaseModel)

_WIDTH = 60
"""Characters of a content in a line of the story."""


@final
class RecordingSink:
    """
    Collects item events, and keeps the items as of the last one.

    >>> RecordingSink()
    <RecordingSink: nothing>
    """

    def __init__(self) -> None:
        self.events: list[ItemEvent] = []
        """Every event, in order."""
        self._items: dict[str, Item] = {}

    def __call__(self, event: ItemEvent) -> None:
        """Take an event; an ``emit`` for ``run_block``. Callable from any thread, in order."""
        self.events.append(event)
        fold(self._items, event)

    async def read(self, events: AsyncIterable[ItemEvent]) -> Self:
        """Take events until they end, for example those of ``run.events()``."""
        async for event in events:
            self(event)
        return self

    @property
    def items(self) -> list[Item]:
        """The items as they are now, in the order in which they were first told of."""
        return list(self._items.values())

    @property
    def open(self) -> list[Item]:
        """Those in progress. Once the run has ended there should be none."""
        return [item for item in self.items if not item.settled]

    def of_type(self, *types: type[BaseModel]) -> list[Item]:
        """The items whose content is of one of these types."""
        return of_type(self.items, *types)

    def contents(self, kind: type[C]) -> list[C]:
        """What the items of this type hold."""
        return contents(self.items, kind)

    def texts(self, *, role: Role | None = None) -> list[str]:
        """What the messages say; those of one role if given."""
        return [message.text for message in contents(messages(self.items, role=role), Message)]

    def at(self, path: str) -> list[Item]:
        """The items of the step with this execution path, and of the steps inside it."""
        return [
            item
            for item in self.items
            if item.provenance.path == path or item.provenance.path.startswith(f"{path}/")
        ]

    def streamed(self, item: Item) -> list[str]:
        """The pieces of text by which a message or reasoning grew."""
        return [event.text for event in self.events if event.item_id == item.id and event.text]

    def story(self) -> list[str]:
        """A line an item: what it is, how it ended, what it holds and where it came from."""
        return [_line(item) for item in self.items]

    def __repr__(self) -> str:
        if not self.events:
            return "<RecordingSink: nothing>"
        lines = "".join(f"\n  {line}" for line in self.story())
        return f"<RecordingSink: {len(self._items)} items, {len(self.events)} events{lines}>"


def _line(item: Item) -> str:
    content = item.content
    if isinstance(content, Message | Reasoning):
        shown = repr(content.text)
    else:
        fields = content.model_dump(exclude={"type"}, exclude_defaults=True)
        shown = ", ".join(f"{name}={value!r}" for name, value in fields.items())
    if len(shown) > _WIDTH:
        shown = f"{shown[: _WIDTH - 1]}…"
    kind = f"{content.role} message" if isinstance(content, Message) else content.type
    status = item.status.replace("_", " ")
    return f"{kind}, {status}: {shown} at {item.provenance.path}"
