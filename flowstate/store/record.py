"""
What is stored, and what is written, as values.

A transaction here is a value too: the list of its writes, handed to ``Store.commit`` whole. So
nothing holds a database transaction open across an await, and every backend has one entry for
"all of this or nothing".

What refuses a write is decided here as well (the ``check`` methods), purely, so that every backend
refuses the same things with the same words. Nothing here knows how or where anything is kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, final

from flowstate.errors import InvalidValue, StaleFence, StatusConflict, VersionConflict
from flowstate.ids import Identity
from flowstate.value import named_value

RequestStatus: TypeAlias = Literal[
    "accepted",
    "waiting",
    "running",
    "suspended",
    "completed",
    "failed",
    "cancelled",
    "interrupted",
]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CellKey:
    """Where a state cell lives. Each part is data: two keys are the same only if all parts are."""

    scope: str
    """request, session, user or org."""
    tenant: str | None
    owner: str | None
    """
    The id of the request, session, user or organisation. None: the run is for none (no user was
    authenticated, say), which is an owner of its own and no caller can name it.
    """
    name: str

    def __str__(self) -> str:
        """The key for people, every part as a literal, so that odd characters stay readable."""
        tenant = "" if self.tenant is None else f" of tenant {self.tenant!r}"
        owner = f"no {self.scope}" if self.owner is None else repr(self.owner)
        return f"{self.scope} state {self.name!r} of {owner}{tenant}"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CellRecord:
    """A stored cell: JSON text that is plain ASCII, and its version, from 1."""

    key: CellKey
    version: int
    data: str


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CollectionKey:
    """Where the entries of a resource live. Each part is data, as in a ``CellKey``."""

    scope: str
    """request, session, user or org."""
    tenant: str | None
    owner: str | None
    """The id of the request, session, user or organisation; None: there is none."""
    name: str

    def __str__(self) -> str:
        """The key for people, every part as a literal."""
        return f"{self.scope} resource {self.name!r}{self.whose}"

    @property
    def whose(self) -> str:
        """Owner and tenant, for people."""
        tenant = "" if self.tenant is None else f" of tenant {self.tenant!r}"
        owner = f"no {self.scope}" if self.owner is None else repr(self.owner)
        return f" of {owner}{tenant}"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceKey:
    """
    Where an entry of a collection lives.

    Raises:
        InvalidValue: the key is no printable ASCII, or empty. Every key made by a ``Resource`` is
            fine, and the order of such texts is the same everywhere.
    """

    collection: CollectionKey
    key: str

    def __post_init__(self) -> None:
        _check_key(self.key or "\0", self.collection)

    def __str__(self) -> str:
        """The key for people."""
        of = self.collection
        return f"{of.scope} resource {of.name!r}, entry {self.key!r}{of.whose}"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceRecord:
    """
    A stored entry, or what is left of a deleted one: its version goes on from there if it is made
    again, so that an old version never fits a new entry.
    """

    key: ResourceKey
    version: int
    """From 1; a delete counts."""
    data: str | None
    """JSON, plain ASCII; None: it was deleted."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RequestRecord:
    """A request as of now."""

    id: str
    identity: Identity
    flow: str
    action: str
    status: RequestStatus
    input: str
    """JSON, plain ASCII."""
    output: str | None = None
    """JSON, plain ASCII; set when it completed."""
    error: str | None = None
    """What went wrong, for people; set when it failed, was cancelled or interrupted."""
    created_at: int
    """Epoch milliseconds; the order of acceptance within a session."""
    updated_at: int
    """Epoch milliseconds."""


@final
@named_value
class ItemRecord:
    """
    An item in its latest state. ``last_sequence`` is that of the last event that changed it, so
    that a reader with a cursor finds all that changed since.
    """

    request_id: str
    item_id: str
    first_sequence: int
    last_sequence: int
    visibility: str
    data: str
    """The item's JSON, plain ASCII."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Fence:
    """Proof that a run still owns its key: the token its grant was given."""

    key: str
    token: int
    """A 64-bit number; a later grant of the same key has a greater one."""

    def check(self, newest: int) -> None:
        """
        Refuse to go on if ``newest``, the greatest token seen for the key, is another's.

        Raises:
            StaleFence: the token is older than ``newest``.
        """
        if self.token < newest:
            raise StaleFence(f"fence {self.key!r}", self.token, newest)


def key_range(collection: CollectionKey, prefix: str, after: str | None) -> tuple[str, str]:
    """
    Where keys begin that start with ``prefix`` and come after ``after``, and where they end.

    >>> here = CollectionKey(scope="session", tenant=None, owner="s1", name="notes")
    >>> key_range(here, "notes/", None), key_range(here, "notes/", "notes/n1")
    (('notes/', 'notes0'), ('notes/n1 ', 'notes0'))

    Returns:
        The first text that such a key may be, and the first one beyond them.

    Raises:
        InvalidValue: one of them is no printable ASCII.
    """
    _check_key(prefix, collection)
    first = prefix
    if after is not None:
        _check_key(after, collection)
        # The next text of printable ASCII: a space is the first of its characters.
        first = max(prefix, after + " ")
    return first, prefix[:-1] + chr(ord(prefix[-1]) + 1) if prefix else "\x7f"


def _check_key(text: str, collection: CollectionKey) -> None:
    if not (text.isascii() and text.isprintable()):
        where, details = str(collection), "make it with Resource.key"
        raise InvalidValue(where, "a key of printable ASCII", ascii(text), details)


# --- writes -------------------------------------------------------------------------------------


def _check_version(key: CellKey | ResourceKey, expected: int, found: int) -> None:
    if found != expected:
        raise VersionConflict(str(key), expected, found)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PutRequest:
    """Insert the request, or replace it; its place in the order of insertion stays."""

    record: RequestRecord
    expected: tuple[RequestStatus, ...] | None = None
    """
    The statuses it may have now. None: any, or none yet. Empty: it must not exist yet, so that a
    second request of the same id is refused instead of replacing the first.
    """

    def check(self, found: RequestStatus | None) -> None:
        """
        Refuse to go on unless ``found``, the request's status now, is an expected one.

        Raises:
            StatusConflict: it is another, or there is none, or there should be none.
        """
        if self.expected is None or (found in self.expected if found else not self.expected):
            return
        wanted = " or ".join(self.expected) or "new"
        raise StatusConflict(self.record.id, wanted, found or "unknown")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PutCell:
    """
    Write a cell if its version is still ``expected`` (0: it doesn't exist); its version is
    ``expected + 1`` afterwards.
    """

    key: CellKey
    expected: int
    data: str
    """JSON, plain ASCII."""

    def check(self, found: int) -> None:
        """
        Refuse to go on unless ``found``, the cell's version now (0: none), is the expected one.

        Raises:
            VersionConflict: it is another.
        """
        _check_version(self.key, self.expected, found)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PutResource:
    """
    Write an entry if its version is still ``expected`` (0: it was never written, not even to be
    deleted); its version is ``expected + 1`` afterwards.
    """

    key: ResourceKey
    expected: int
    data: str
    """JSON, plain ASCII."""

    def check(self, found: int) -> None:
        """
        Refuse to go on unless ``found``, the entry's version now (0: none), is the expected one.

        Raises:
            VersionConflict: it is another.
        """
        _check_version(self.key, self.expected, found)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteResource:
    """
    Delete an entry if its version is still ``expected``; its version is ``expected + 1``
    afterwards, and stays so until it is written again.

    Raises:
        InvalidValue: ``expected`` is no version that an entry can have.
    """

    key: ResourceKey
    expected: int

    def __post_init__(self) -> None:
        if self.expected < 1:
            details = "what was never written can't be deleted"
            raise InvalidValue(str(self.key), "a version from 1", str(self.expected), details)

    @property
    def data(self) -> None:
        """What is left of it."""
        return None

    def check(self, found: int) -> None:
        """
        Refuse to go on unless ``found``, the entry's version now (0: none), is the expected one.

        Raises:
            VersionConflict: it is another.
        """
        _check_version(self.key, self.expected, found)


@final
@named_value
class PutItems:
    """Insert or replace items."""

    records: tuple[ItemRecord, ...]


Write: TypeAlias = PutRequest | PutCell | PutResource | DeleteResource | PutItems
