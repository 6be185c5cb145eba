"""
What a run would show on the status line, and when that changes.

Two layers. A *notice* (start, retry, compaction) lies on top until the agent puts out anything, or
until something is newly at work. Below it is what is at work: open tool calls and sub-agents, the
latest first. When the one that shows ends, the one before it shows again; the line is cleared only
when none is left.

Pure. It says what to show, never what is shown: other steps of the request use the same line, and
``ClearStatus`` empties it only if it still holds a text of ours.
"""

from __future__ import annotations

from typing import final

from flowstate.harness.effect import ClearStatus, Effect, ShowStatus


@final
class RunStatusLine:
    """
    The status line of one run.

    Attributes:
        changed: whether ``effects`` may have something to say.
    """

    __slots__ = ("_at_work", "_fresh", "_notice", "_said", "changed")

    def __init__(self) -> None:
        self.changed = False
        self._notice: str | None = None
        self._at_work: dict[str, str] = {}
        self._said: str | None = None
        """The text of ours that was shown last; None once cleared."""
        self._fresh = False
        """Whether the wanted text is news, to be shown even if it was shown before."""

    def notice(self, text: str) -> None:
        """Show this until the agent puts out anything."""
        self._notice = text
        self._fresh = self.changed = True

    def output(self) -> None:
        """The agent put something out."""
        if self._notice is not None:
            self._notice = None
            self.changed = True

    def begin(self, key: str, text: str) -> None:
        """Something is at work, or has come to a new point of its work."""
        if self._at_work.pop(key, None) != text:
            self._fresh = True
        self._at_work[key] = text
        self._notice = None
        self.changed = True

    def finish(self, key: str) -> None:
        """It is at work no more."""
        if self._at_work.pop(key, None) is not None:
            self.changed = True

    def reset(self) -> None:
        """Nothing is going on any more."""
        self._notice = None
        self._at_work.clear()
        self.changed = True

    def effects(self) -> list[Effect]:
        """What brings the line from what it was to what it should be: one effect, or none."""
        wanted = self._notice
        if wanted is None and self._at_work:
            wanted = next(reversed(self._at_work.values()))
        news = self._fresh or wanted != self._said
        self._fresh = self.changed = False
        self._said, said = wanted, self._said
        if wanted is not None:
            return [ShowStatus(wanted)] if news else []
        return [ClearStatus()] if said is not None else []

    def __repr__(self) -> str:
        return f"RunStatusLine({self._said!r}, {len(self._at_work)} at work)"
