"""Tells an exception where it was raised, once: the note a user reads in the traceback."""

from __future__ import annotations

from collections.abc import Sized

from flowstate.plan.program import Place
from flowstate.run.frame import Frame

_MARK = "__flowstate_path__"
_MEASURED: tuple[type[Sized], ...] = (str, bytes, list, tuple, dict, set, frozenset)
"""Whose size is cheap to tell and says something; any other `__len__` is code of the author's."""


def note_path(
    error: Exception, frame: Frame, place: Place, turns: tuple[int, ...], value: object
) -> None:
    """
    Add the execution path and the kind of the input to an exception that has none yet.

    The input is summed up by type and size: inputs are large, and may hold secrets.
    """
    if getattr(error, _MARK, None) is not None:
        return
    path = frame.path(place, turns)
    try:
        setattr(error, _MARK, path)
    except (AttributeError, TypeError):
        # An exception class with slots of its own: the notes are the only place to look.
        if any(note.startswith("in step ") for note in getattr(error, "__notes__", ())):
            return
    error.add_note(f"in step {path}, input: {_summary(value)}")


def path_of(error: BaseException) -> str | None:
    """The execution path that an exception was raised at, if it came out of a run."""
    path = getattr(error, _MARK, None)
    return path if isinstance(path, str) else None


def _summary(value: object) -> str:
    name = type(value).__name__
    if isinstance(value, _MEASURED):
        return f"{name} of {len(value)}"
    return name
