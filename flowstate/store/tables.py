"""
The tables that ``SqlStore`` keeps, the statements over them, and how records become rows.

Tables carry a prefix, because a store may share a file with its user's own tables. ``VERSION``
counts their layouts; a file says which it has. Nothing here opens a connection or a transaction.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple, final, get_args
from urllib.parse import quote_from_bytes, unquote_to_bytes

from sqlalchemy import (
    BigInteger,
    Column,
    Dialect,
    Index,
    Integer,
    MetaData,
    Row,
    Select,
    Table,
    Text,
    Update,
    bindparam,
    select,
    update,
)
from sqlalchemy.dialects.sqlite import Insert, insert
from sqlalchemy.types import TypeDecorator

from flowstate.errors import CorruptRow, InvalidValue
from flowstate.ids import Identity, SessionId
from flowstate.store.record import (
    CellKey,
    CollectionKey,
    ItemRecord,
    RequestRecord,
    RequestStatus,
    ResourceKey,
)

VERSION: Final = 2
"""
The layout that this file describes. The second has a table more than the first, and is else the
same: making what is missing brings a file from one to the other.
"""

_STATUSES: Final[frozenset[str]] = frozenset(get_args(RequestStatus))

_PLAIN: Final = "".join(chr(code) for code in range(0x20, 0x7F) if chr(code) != "%")


def encode(text: str) -> str:
    r"""
    A caller's text as printable ASCII.

    >>> encode("user@example.com"), encode("50%"), encode("\0\ud800")
    ('user@example.com', '50%25', '%00%ED%A0%80')
    """
    if text.isascii() and text.isprintable() and "%" not in text:
        return text
    return quote_from_bytes(text.encode("utf-8", "surrogatepass"), safe=_PLAIN)


def decode(form: str) -> str:
    r"""
    The text that ``encode`` was given.

    >>> decode(encode("\ud83d\ude00")) == "\ud83d\ude00" != decode(encode("\U0001f600"))
    True
    """
    if "%" not in form:
        return form
    return unquote_to_bytes(form).decode("utf-8", "surrogatepass")


@final
class Words(TypeDecorator[str]):
    """A caller's text, encoded; None is NULL."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        """The form that is stored."""
        return None if value is None else encode(value)

    def process_result_value(self, value: str | None, dialect: Dialect) -> str | None:
        """The text that was given."""
        return None if value is None else decode(value)


@final
class Owner(TypeDecorator[str]):
    """
    A caller's text that may be missing and yet be part of a key: NULL equals nothing in SQL, so
    missing is the empty form and every text, the empty one too, has an equals sign in front.
    """

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str:
        """The form that is stored."""
        return "" if value is None else "=" + encode(value)

    def process_result_value(self, value: str | None, dialect: Dialect) -> str | None:
        """The text that was given, or None."""
        return decode(value[1:]) if value else None


metadata: Final = MetaData()

schema: Final = Table("flowstate_schema", metadata, Column("version", Integer, nullable=False))

requests: Final = Table(
    "flowstate_requests",
    metadata,
    # The order of insertion. `Integer`, since only that is SQLite's own row number.
    Column("number", Integer, primary_key=True, autoincrement=True),
    Column("id", Words, nullable=False, unique=True),
    Column("tenant", Owner, nullable=False),
    Column("session", Words, nullable=False),
    Column("user", Words),
    Column("org", Words),
    Column("flow", Words, nullable=False),
    Column("action", Words, nullable=False),
    Column("status", Text, nullable=False),
    Column("input", Text, nullable=False),
    Column("output", Text),
    Column("error", Words),
    Column("created_at", BigInteger, nullable=False),
    Column("updated_at", BigInteger, nullable=False),
    Index("flowstate_requests_by_session", "tenant", "session", "created_at", "number"),
    Index("flowstate_requests_by_status", "tenant", "status", "created_at", "number"),
)

cells: Final = Table(
    "flowstate_cells",
    metadata,
    Column("tenant", Owner, primary_key=True),
    Column("scope", Words, primary_key=True),
    Column("owner", Owner, primary_key=True),
    Column("name", Words, primary_key=True),
    Column("version", BigInteger, nullable=False),
    Column("data", Text, nullable=False),
)

resources: Final = Table(
    "flowstate_resources",
    metadata,
    Column("tenant", Owner, primary_key=True),
    Column("scope", Words, primary_key=True),
    Column("owner", Owner, primary_key=True),
    Column("collection", Words, primary_key=True),
    # Printable ASCII, and in the order of its bytes: SQLite compares so unless told otherwise.
    Column("key", Text, primary_key=True),
    Column("version", BigInteger, nullable=False),
    Column("data", Text),
)
# In key order, without what was deleted: however much that is, a page costs what is on it.
Index(
    "flowstate_resources_in_order",
    *(resources.c[name] for name in ("tenant", "scope", "owner", "collection", "key")),
    sqlite_where=resources.c.data.is_not(None),
)

items: Final = Table(
    "flowstate_items",
    metadata,
    Column("request_id", Words, primary_key=True),
    Column("item_id", Words, primary_key=True),
    Column("first_sequence", BigInteger, nullable=False),
    Column("last_sequence", BigInteger, nullable=False),
    Column("visibility", Words, nullable=False),
    Column("data", Text, nullable=False),
    Index("flowstate_items_by_change", "request_id", "last_sequence", "first_sequence"),
)

fences: Final = Table(
    "flowstate_fences",
    metadata,
    Column("key", Words, primary_key=True),
    Column("token", BigInteger, nullable=False),
)

# --- statements, each built once ----------------------------------------------------------------


class VersionedWrites(NamedTuple):
    """The writes of a table whose rows have versions, over a row's key columns."""

    version: Select[Any]
    """What it is now."""
    first: Insert
    """Version 1, unless there is a row."""
    following: Update
    """The version after a given one, if it is still that."""


_this_cell = (
    (cells.c.tenant == bindparam("its_tenant"))
    & (cells.c.scope == bindparam("its_scope"))
    & (cells.c.owner == bindparam("its_owner"))
    & (cells.c.name == bindparam("its_name"))
)
read_cell: Final = select(cells.c.version, cells.c.data).where(_this_cell)
cell_writes: Final = VersionedWrites(
    version=select(cells.c.version).where(_this_cell),
    first=insert(cells).on_conflict_do_nothing(),
    following=update(cells)
    .where(_this_cell, cells.c.version == bindparam("its_version"))
    .values(version=bindparam("next_version"), data=bindparam("next_data")),
)

_in_collection = (
    (resources.c.tenant == bindparam("its_tenant"))
    & (resources.c.scope == bindparam("its_scope"))
    & (resources.c.owner == bindparam("its_owner"))
    & (resources.c.collection == bindparam("its_collection"))
)
_this_resource = _in_collection & (resources.c.key == bindparam("its_key"))
read_resource: Final = select(resources.c.version, resources.c.data).where(_this_resource)
resource_writes: Final = VersionedWrites(
    version=select(resources.c.version).where(_this_resource),
    first=insert(resources).on_conflict_do_nothing(),
    following=update(resources)
    .where(_this_resource, resources.c.version == bindparam("its_version"))
    .values(version=bindparam("next_version"), data=bindparam("next_data")),
)
read_resources: Final = (
    select(resources.c.key, resources.c.version, resources.c.data)
    .where(_in_collection, resources.c.data.is_not(None))
    .where(resources.c.key >= bindparam("first"), resources.c.key < bindparam("beyond"))
    .order_by(resources.c.key)
    .limit(bindparam("most"))
)

_this_request = requests.c.id == bindparam("its_id")
read_request: Final = select(requests).where(_this_request)
read_status: Final = select(requests.c.status).where(_this_request)
read_requests: Final = (
    select(requests)
    # Bound by name: compared with a plain None, a column would be tested for NULL.
    .where(requests.c.tenant == bindparam("its_tenant"))
    .order_by(requests.c.created_at, requests.c.number)
)
of_session: Final = requests.c.session == bindparam("its_session")
in_statuses: Final = requests.c.status.in_(bindparam("statuses", expanding=True))

read_items: Final = (
    select(items)
    .where(items.c.request_id == bindparam("its_request"))
    .where(items.c.last_sequence > bindparam("after"))
    .order_by(items.c.last_sequence, items.c.first_sequence)
    .limit(bindparam("most"))
)

read_token: Final = select(fences.c.token).where(fences.c.key == bindparam("its_key"))


def _put(table: Table, *key: str, keep: str = "") -> Insert:
    """Insert a row, or replace the one of the same key but for the column ``keep``."""
    new = insert(table)
    rest = [name for name in table.columns.keys() if name not in (*key, keep)]  # noqa: SIM118
    return new.on_conflict_do_update(
        index_elements=key, set_={name: new.excluded[name] for name in rest}
    )


put_request: Final = _put(requests, "id", keep="number")
put_item: Final = _put(items, "request_id", "item_id")
put_token: Final = _put(fences, "key")


# --- records and rows ----------------------------------------------------------------------------


def its(columns: dict[str, object]) -> dict[str, object]:
    """The same columns for the conditions above."""
    return {f"its_{name}": value for name, value in columns.items()}


def cell_row(key: CellKey) -> dict[str, object]:
    """The key columns of a cell."""
    return {"tenant": key.tenant, "scope": key.scope, "owner": key.owner, "name": key.name}


def collection_row(key: CollectionKey) -> dict[str, object]:
    """The key columns of a collection."""
    return {
        "tenant": key.tenant,
        "scope": key.scope,
        "owner": key.owner,
        "collection": key.name,
    }


def resource_row(key: ResourceKey) -> dict[str, object]:
    """The key columns of an entry."""
    return {**collection_row(key.collection), "key": key.key}


def listed_key(collection: CollectionKey, key: str) -> ResourceKey:
    """
    The key of an entry, as a row of the collection has it.

    Raises:
        CorruptRow: it is none that an entry can have.
    """
    try:
        return ResourceKey(collection=collection, key=key)
    except InvalidValue as error:
        raise CorruptRow(f"{collection}, entry {key!a}", "ResourceKey", str(error)) from None


def item_row(record: ItemRecord) -> dict[str, object]:
    """An item as a row."""
    return {
        "request_id": record.request_id,
        "item_id": record.item_id,
        "first_sequence": record.first_sequence,
        "last_sequence": record.last_sequence,
        "visibility": record.visibility,
        "data": record.data,
    }


def item(row: Row[Any]) -> ItemRecord:
    """A row as an item."""
    return ItemRecord(
        request_id=row.request_id,
        item_id=row.item_id,
        first_sequence=row.first_sequence,
        last_sequence=row.last_sequence,
        visibility=row.visibility,
        data=row.data,
    )


def request_row(record: RequestRecord) -> dict[str, object]:
    """A request as a row."""
    return {
        "id": record.id,
        "tenant": record.identity.tenant_id,
        "session": record.identity.session_id,
        "user": record.identity.user_id,
        "org": record.identity.org_id,
        "flow": record.flow,
        "action": record.action,
        "status": record.status,
        "input": record.input,
        "output": record.output,
        "error": record.error,
        "created_at": record.created_at,
        "updated_at": record.updated_at,
    }


def request(row: Row[Any]) -> RequestRecord:
    """
    A row as a request.

    Raises:
        CorruptRow: its status is none that flowstate knows.
    """
    if row.status not in _STATUSES:
        raise CorruptRow(f"request {row.id!r}", "RequestRecord", f"no such status: {row.status!r}")
    return RequestRecord(
        id=row.id,
        identity=Identity(
            session_id=SessionId(row.session),
            tenant_id=row.tenant,
            user_id=row.user,
            org_id=row.org,
        ),
        flow=row.flow,
        action=row.action,
        status=row.status,
        input=row.input,
        output=row.output,
        error=row.error,
        created_at=row.created_at,
        updated_at=row.updated_at,
    )
