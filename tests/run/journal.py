"""A journal of what blocks do, and blocks that write into it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, final

import anyio
import anyio.lowlevel

from flowstate import Handler
from flowstate.define.handler import make_handler


@final
class Journal:
    """
    What happened, line by line: ``a starts``, ``a ends``, ``a is cancelled``, ``a is over``.

    Invariant: for every ``starts`` there is one ``is over`` once all has ended.
    """

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.running = 0
        self.peak = 0
        """How many blocks ran at once at most."""

    def block(
        self,
        name: str,
        act: Callable[[Any], Any] | None = None,
        *,
        until: anyio.Event | None = None,
        waits: int = 0,
        cleaning: int = 0,
        fails_cleaning: Exception | None = None,
        takes: object = int,
        gives: object = int,
        **options: Any,
    ) -> Handler[Any, Any]:
        """
        A block that gives ``act(value)``, by default the value.

        Args:
            name: the block's name, and how it is called in the lines.
            act: may raise.
            until: it waits for this first.
            waits: then it gives way so often.
            cleaning: when it is cancelled, it gives way so often before it lets go.
            fails_cleaning: raised instead of the cancellation.
            takes: its input type.
            gives: its output type.
            options: as of every block.
        """

        async def run(value: Any) -> Any:
            self.lines.append(f"{name} starts")
            self.running += 1
            self.peak = max(self.peak, self.running)
            try:
                if until is not None:
                    await until.wait()
                for _ in range(waits):
                    await anyio.lowlevel.checkpoint()
                result = value if act is None else act(value)
                self.lines.append(f"{name} ends")
                return result
            except anyio.get_cancelled_exc_class():
                self.lines.append(f"{name} is cancelled")
                with anyio.CancelScope(shield=True):
                    for _ in range(cleaning):
                        await anyio.lowlevel.checkpoint()
                if fails_cleaning is not None:
                    raise fails_cleaning from None
                raise
            finally:
                self.running -= 1
                self.lines.append(f"{name} is over")

        return make_handler(run, name=name, input_type=takes, output_type=gives, **options)

    def failing(self, name: str, error: Exception, **options: Any) -> Handler[Any, Any]:
        """A block that raises this error."""

        def act(value: Any) -> Any:
            raise error

        return self.block(name, act, **options)

    def count(self, line: str) -> int:
        """How often this happened."""
        return self.lines.count(line)

    def starts(self) -> list[str]:
        """The names of the blocks that started, in order."""
        return [line.removesuffix(" starts") for line in self.lines if line.endswith(" starts")]


def setting(event: anyio.Event) -> Callable[[Any], Any]:
    """What a block does that lets another go on: sets the event, and gives the value."""

    def act(value: Any) -> Any:
        event.set()
        return value

    return act


def stuck(journal: Journal, name: str, **options: Any) -> Handler[Any, Any]:
    """A block that ends only by being cancelled."""
    return journal.block(name, until=anyio.Event(), **options)
