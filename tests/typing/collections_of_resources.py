"""
What both type checkers infer of resource collections: ids, entries and outcomes. Checked by
``make check``; nothing here runs.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, NamedTuple, assert_type

from pydantic import BaseModel

from flowstate import (
    Collection,
    Context,
    Deleted,
    Entry,
    Page,
    Resource,
    Unchanged,
    Written,
    define_capability,
    handler,
    resource,
)
from flowstate.state.collection import ResourceCollection


class Note(BaseModel):
    text: str = ""


class FileId(NamedTuple):
    repo: str
    path: str


notes = resource("notes/{id}", Note)
files = resource("repos/{repo}/files/{path*}", Note, ids=FileId, scope="user", live=True)
assert_type(notes, Resource[Note, str])
assert_type(notes, Resource[Note])
assert_type(files, Resource[Note, FileId])


class Notebook:
    def __init__(self, ctx: Context) -> None:
        self.notes: Collection[Note] = ctx.resources[notes]


notebook = define_capability("notebook", Notebook, uses=[notes, files])


@handler(uses=[notes, files, notebook])
async def uses_them(text: str, ctx: Context) -> str:
    mine = ctx.resources[notes]
    assert_type(mine, Collection[Note, str])
    assert_type(await mine.get("n1"), Entry[Note, str] | None)
    assert_type(await mine.create("n1", Note()), Written[Note])
    assert_type(await mine.upsert("n1", Note(), expected=1), Written[Note] | Unchanged[Note])
    assert_type(await mine.update("n1", lambda note: note), Written[Note] | Unchanged[Note])
    assert_type(await mine.delete("n1"), Deleted[Note] | None)
    assert_type(await mine.list(prefix="n", limit=5), Page[Note, str])
    assert_type(mine.scan(), AsyncIterator[Entry[Note, str]])
    async for entry in ctx.resources[files].scan(within=("r",)):
        assert_type(entry, Entry[Note, FileId])
        assert_type(entry.id.path, str)
        assert_type(entry.value.text, str)
    await ctx.resources[files].get("n1")  # type: ignore[arg-type]  # pyright: ignore
    await ctx.resources[files].get(("r", "p"))  # type: ignore[arg-type]  # pyright: ignore
    await mine.get(FileId("r", "p"))  # type: ignore[arg-type]  # pyright: ignore
    await mine.create("n1", text)  # type: ignore[arg-type]  # pyright: ignore
    return text


def implements(collection: ResourceCollection[Note, FileId]) -> Collection[Note, FileId]:
    return collection


resource("notes/{id}", int)  # type: ignore[type-var]  # pyright: ignore
several: Resource[Any, Any] = files
