"""The type of a value that nobody annotated: such an edge is checked when it runs."""

from __future__ import annotations

from typing import Final, final


@final
class Unknown:
    """The one value of this class, ``UNKNOWN_TYPE``, stands for a missing annotation."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "?"


UNKNOWN_TYPE: Final = Unknown()
