"""
Which segments of a fork may start, what each outcome means for the others, and how it all ends.

Two rules hold here. Everything that decides about a fork lives in this file; and this file knows
no task, clock or value: it counts indices and keeps outcomes. The scheduler asks ``take`` for the
next segment, reports each outcome, and does what the answer says.

A composition is always series-parallel, so the ready set of a whole plan falls apart into one
such machine a fork: a join waits for exactly the segments that its fork started, and nothing is
ready anywhere else. A plan of one segment has no machine at all.

The modes, in one table:

    mode    starts          a success                a failure           ends with
    all     all, bounded    kept                     stops the others    results, or the first error
    any     one by one      stops: the winner        the next starts     the winner, or a group
    race    all             stops: the winner        kept                the winner, or a group

"First" is the order in which failures came. A group holds the errors in declared order.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias, final

Mode: TypeAlias = Literal["all", "any", "race"]


@final
class Ready:
    """The machine of one fork. Not started: ``take`` it. Started: report it exactly once."""

    __slots__ = (
        "_errors",
        "_limit",
        "_mode",
        "_next",
        "_running",
        "_winner",
        "count",
        "results",
        "stopped",
    )

    def __init__(self, count: int, mode: Mode, limit: int | None = None) -> None:
        self.count = count
        self.results: list[Any] = [None] * count
        self.stopped = False
        """True once no segment may start any more and those running are to be cancelled."""
        self._mode = mode
        self._limit = 1 if mode == "any" else (count if limit is None else limit)
        self._next = 0
        self._running = 0
        self._errors: list[tuple[int, Exception]] = []
        self._winner: int | None = None

    def __repr__(self) -> str:
        return (
            f"<{self._mode}: {self._next} of {self.count} started, {self._running} running, "
            f"{len(self._errors)} failed{', stopped' if self.stopped else ''}>"
        )

    @property
    def more(self) -> bool:
        """Whether another segment may start now."""
        return not self.stopped and self._next < self.count and self._running < self._limit

    @property
    def complete(self) -> bool:
        """Whether ``outcome`` has results to give, and nothing to raise."""
        return not self._errors if self._mode == "all" else self._winner is not None

    def take(self) -> int | None:
        """The next segment that may start, in declared order; None if none may now."""
        if self.stopped or self._next >= self.count or self._running >= self._limit:
            return None
        index = self._next
        self._next = index + 1
        self._running += 1
        return index

    def succeeded(self, index: int, result: Any) -> bool:
        """Record a result; True if the others must stop."""
        self._running -= 1
        if self._mode == "all":
            self.results[index] = result
            return False
        if self._winner is None and not self.stopped:
            self._winner = index
            self.results[index] = result
            self.stopped = True
            return True
        return False

    def failed(self, index: int, error: Exception) -> bool:
        """Record a failure; True if the others must stop."""
        self._running -= 1
        self._errors.append((index, error))
        if self._mode == "all" and not self.stopped:
            self.stopped = True
            return True
        return False

    def cancelled(self) -> None:
        """Record that a running segment was cancelled."""
        self._running -= 1

    def outcome(self, where: str) -> list[Any]:
        """
        The results, in declared order; a race or step_any gives a list of the winner's alone.

        Raises:
            Exception: the first failure of mode all, bare; later ones are notes on it.
            ExceptionGroup: mode any or race, and every segment failed.
        """
        if self._mode == "all":
            if self._errors:
                _, first = self._errors[0]
                for index, late in self._errors[1:]:
                    first.add_note(f"branch {index} of {where} failed too: {late!r}"[:500])
                raise first
            return self.results
        if self._winner is not None:
            return [self.results[self._winner]]
        raise ExceptionGroup(
            f"{where}: all {self.count} blocks failed",
            [error for _, error in sorted(self._errors, key=lambda entry: entry[0])],
        )
