"""
Where a run's checkout lies: derived, never created here.

Deriving is pure and provisioning is the caller's. Each value has a segment of its own, absence
included, so that no two pairs of tenant and key share a directory and none leaves the root.
"""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from flowstate.errors import DefinitionError
from flowstate.ids import segment


def checkout_for(root: str | PathLike[str], tenant: str | None, key: str | None) -> Path:
    """
    The directory for this tenant and key: ``root / segment(tenant) / segment(key)``.

    Args:
        root: an absolute directory that holds all checkouts.
        tenant: the tenant the server authenticated, or None for a host without tenants.
        key: any text, for example the session's id; None stands for absence.

    Raises:
        DefinitionError: the root is not absolute, so that where it lies would depend on the
            directory the process happens to be in.
    """
    base = Path(root)
    if not base.is_absolute():
        raise DefinitionError(
            "checkout_for", f"root {str(root)!r} is not absolute", "Give an absolute directory."
        )
    directory = base / segment(tenant) / segment(key)
    # The encoding already makes an escape impossible; this fails loudly if it is ever weakened.
    relative = directory.relative_to(base)
    if len(relative.parts) != 2 or ".." in relative.parts:
        raise DefinitionError("checkout_for", f"{directory} leaves the root", "Fix segment().")
    return directory
