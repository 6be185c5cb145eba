"""What a run did with one node, as a drawing shows it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRecord:
    """The sums over all executions of a node."""

    runs: int
    seconds: float
    failures: int = 0
    error: str | None = None
    """The class of the last error."""

    def __str__(self) -> str:
        times = "" if self.runs == 1 else f"{self.runs} × · "
        failed = f" · {self.error}" if self.error else ""
        return f"{times}{duration(self.seconds)}{failed}"


def duration(seconds: float) -> str:
    """
    A duration in its own unit.

    >>> duration(0.00042), duration(0.25), duration(3.14159), duration(150)
    ('420 µs', '250 ms', '3.1 s', '2.5 min')
    """
    if seconds < 0.001:
        return f"{seconds * 1e6:.0f} µs"
    if seconds < 1:
        return f"{seconds * 1e3:.0f} ms"
    if seconds < 120:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.1f} min"
