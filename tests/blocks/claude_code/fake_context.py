"""A context in memory: what a block says of itself ends up in plain lists."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

import structlog
import structlog.testing
from pydantic import BaseModel

from flowstate.context import Context, Unchanged, Written
from flowstate.ids import Identity, RequestId, SessionId
from flowstate.item.content import Content, Message, Reasoning
from flowstate.item.item import SettledStatus

M = TypeVar("M", bound=BaseModel)


@dataclass
class FakeItem:
    """An item as it was shown."""

    id: str
    content: Content
    parent: str | None = None
    status: str = "in_progress"
    deltas: list[str] = field(default_factory=list)

    @property
    def settled(self) -> bool:
        return self.status != "in_progress"

    def append(self, text: str) -> None:
        if not self.settled:
            assert isinstance(self.content, Message | Reasoning)
            self.deltas.append(text)
            self.content = self.content.model_copy(update={"text": self.content.text + text})

    def change(self, content: Content) -> None:
        if not self.settled:
            self.content = content

    def settle(
        self, content: Content | None = None, *, status: SettledStatus = "completed"
    ) -> None:
        if not self.settled:
            self.content = content or self.content
            self.status = status


class FakeItems:
    """``ctx.items`` that keeps everything."""

    def __init__(self) -> None:
        self.shown: list[FakeItem] = []

    def open(
        self, content: Content, *, parent: str | None = None, transient: bool = False
    ) -> FakeItem:
        item = FakeItem(f"item{len(self.shown)}", content, parent)
        self.shown.append(item)
        return item

    def add(
        self,
        content: Content,
        *,
        parent: str | None = None,
        transient: bool = False,
        status: SettledStatus = "completed",
    ) -> str:
        item = self.open(content, parent=parent)
        item.settle(status=status)
        return item.id


class FakeStatus:
    """``ctx.status`` that keeps everything; None in ``shown`` is a cleared line."""

    def __init__(self) -> None:
        self.shown: list[str | None] = []
        self.kept: list[str] = []

    def show(self, text: str) -> None:
        self.shown.append(text)

    def keep(self, text: str) -> None:
        self.kept.append(text)

    def clear(self) -> None:
        self.shown.append(None)


class FakeCell:
    """A state cell in memory that goes through JSON, like a real one."""

    def __init__(self, model: type[BaseModel]) -> None:
        self._model = model
        self._data: str | None = None
        self.version = 0

    async def get(self) -> Any:
        return self._model() if self._data is None else self._model.model_validate_json(self._data)

    async def set(self, value: BaseModel) -> Written[Any] | Unchanged[Any]:
        data = value.model_dump_json(by_alias=True)
        if data == self._data:
            return Unchanged(value, self.version)
        self._data = data
        self.version += 1
        return Written(value, self.version)

    async def update(self, change: Callable[[Any], Any]) -> Written[Any] | Unchanged[Any]:
        return await self.set(change(await self.get()))


class FakeScope:
    """One scope; ``declared`` are the models that may be asked for."""

    def __init__(self, scope_id: str, declared: tuple[type[BaseModel], ...] = ()) -> None:
        self.id = scope_id
        self.identity = Identity(session_id=SessionId(scope_id))
        self._declared = declared
        self._cells: dict[type[BaseModel], FakeCell] = {}

    def __getitem__(self, model: type[M]) -> Any:
        assert model in self._declared, f"{model} is not declared"
        return self._cells.setdefault(model, FakeCell(model))


class FakeRequest(FakeScope):
    """The request of a fake run."""

    def __init__(self, request_id: str) -> None:
        super().__init__(request_id)
        self.request_id = RequestId(request_id)
        self.action = "implement"
        self.flow = "coding"


class FakeContext:
    """
    A context whose session survives it: hand the same ``session`` to the next one.

    Use ``as_context()`` where a ``Context`` is wanted.
    """

    def __init__(self, session: FakeScope | None = None, request_id: str = "req_1") -> None:
        self.path = "turn/agent"
        self.attempt = 1
        self.request = FakeRequest(request_id)
        self.session = session or FakeScope("s1")
        self.user = FakeScope("u1")
        self.org = FakeScope("o1")
        self.items = FakeItems()
        self.status = FakeStatus()
        self.logger = structlog.testing.CapturingLogger()
        self.log = structlog.wrap_logger(self.logger, processors=[])
        self.cancelled: str | None = None

    def check_cancelled(self) -> None:
        """Nothing ever cancels it by itself."""

    def as_context(self) -> Context:
        """The same object, as the protocol that blocks know."""
        return cast("Context", self)

    def contents(self, kind: str) -> list[Any]:
        """The contents of all items of a type, in the order in which they were opened."""
        return [item.content for item in self.items.shown if item.content.type == kind]
