"""How a block that failed is tried again. A value; the scheduler carries it out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from flowstate.errors import DefinitionError


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """
    Exponential back-off with full jitter: before attempt n + 1 it waits a random time between
    half of and the whole of ``min(max_delay, delay * factor ** (n - 1))`` seconds.
    """

    attempts: int
    """How often it is tried in all, the first time included."""
    retry_on: tuple[type[Exception], ...] = ()
    """Which errors are tried again; by default none."""
    delay: float = 0.5
    factor: float = 2.0
    max_delay: float = 30.0

    def __post_init__(self) -> None:
        if self.attempts < 1:
            raise DefinitionError("retry", f"attempts={self.attempts!r}", "Use 1 or more.")
        for error in self.retry_on:
            # A cancellation is a BaseException outside Exception on both backends.
            if not (isinstance(error, type) and issubclass(error, Exception)):
                raise DefinitionError(
                    "retry", f"retry_on holds {error!r}", "Name subclasses of Exception."
                )

    def delay_before(self, attempt: int, jitter: float) -> float:
        """
        Seconds to wait before this attempt (2, 3, …); ``jitter`` is a random number in [0, 1).

        >>> Retry(attempts=3, delay=1.0).delay_before(3, jitter=0.0)
        1.0
        """
        whole = min(self.max_delay, self.delay * self.factor ** (attempt - 2))
        return whole * (0.5 + jitter / 2)
