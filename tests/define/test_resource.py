"""A resource as a declaration: its pattern, its ids, and the keys that they make."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from pydantic import BaseModel

from flowstate import Resource, resource
from flowstate.errors import DefinitionError, InvalidValue
from flowstate.ids import escaped, escaped_start, unescaped
from flowstate.testing.store_samples import ODD_TEXTS

TEXTS = st.text(st.characters(codec=None, categories=None)) | st.sampled_from(ODD_TEXTS)
# Texts that are much like one another, so that prefixes and clashes are met at all.
CLOSE = st.text("ab/.~%~2Fé\ud800\0", max_size=5) | TEXTS


class Note(BaseModel):
    text: str = ""


class Other(BaseModel):
    text: str = ""


class FileId(NamedTuple):
    repo: str
    path: str


class TreeId(NamedTuple):
    repo: str
    user: str
    path: str


NOTES = resource("notes/{id}", Note)
FILES = resource("repos/{repo}/files/{path}", Note, ids=FileId)
UNTYPED: Any = FILES
TREE = resource("trees/{repo}/{user}/at/{path*}", Note, ids=TreeId)


# --- what is declared ----------------------------------------------------------------------------


def test_a_resource_says_what_it_is() -> None:
    """Session scope, no clients, not live, and a name made of its literals."""
    assert (NOTES.name, NOTES.scope, NOTES.client, NOTES.live) == (
        "notes",
        "session",
        "none",
        False,
    )
    assert FILES.name == "repos-files"
    assert resource("a/b/{x}", Note, name="own.name").name == "own.name"
    assert repr(FILES) == "<session resource 'repos/{repo}/files/{path}' of Note>"


def test_equal_declarations_are_one_collection() -> None:
    """Made twice of the same, they are the same; any difference makes another."""
    assert resource("notes/{id}", Note) == NOTES
    assert hash(resource("notes/{id}", Note)) == hash(NOTES)
    others: list[Any] = [
        resource("notes/{key}", Note),
        resource("notes/{id}", Other),
        resource("notes/{id}", Note, scope="user"),
        resource("notes/{id}", Note, client="read"),
        resource("notes/{id}", Note, live=True),
        resource("notes/{id}", Note, name="others"),
    ]
    assert NOTES not in others


@pytest.mark.parametrize(
    ("pattern", "problem"),
    [
        ("", "the segment ''"),
        ("/notes/{id}", "the segment ''"),
        ("notes//{id}", "the segment ''"),
        ("notes/{id}/", "the segment ''"),
        ("notes/{}", "the segment '{}'"),
        ("notes/{1d}", "the segment '{1d}'"),
        ("notes/{id", "the segment '{id'"),
        ("notes/x{id}", "the segment 'x{id}'"),
        ("notes/{a}{b}", "the segment '{a}{b}'"),
        ("notes/**", r"the segment '\*\*'"),
        ("no tes/{id}", "the segment 'no tes'"),
        ("nötes/{id}", "the segment 'nötes'"),
        ("notes~/{id}", "the segment 'notes~'"),
        ("no%74es/{id}", "the segment 'no%74es'"),
        ("./{id}", "the segment '.'"),
        ("../{id}", r"the segment '\.\.'"),
        ("notes/{é}", "the segment '{é}'"),
        ("{id}", "begins with a parameter"),
        ("{kind}/notes/{id}", "begins with a parameter"),
        ("notes", "no parameter"),
        ("notes/{id}/{id}", "two parameters have one name"),
        ("notes/{path*}/{id}", "takes the rest"),
        ("notes/{path*}/end", "takes the rest"),
        (5, "a pattern is a text"),
        (None, "a pattern is a text"),
    ],
)
def test_a_pattern_that_can_not_work_is_refused(pattern: Any, problem: str) -> None:
    """The error names the pattern, the segment and the way out."""
    with pytest.raises(DefinitionError, match=problem) as caught:
        resource(pattern, Note)
    assert repr(pattern) in str(caught.value)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"model": dict}, "is no pydantic model"),
        ({"model": Note()}, "is no pydantic model"),
        ({"scope": "block"}, "scope='block'"),
        ({"client": True}, "client=True"),
        ({"live": "yes"}, "live='yes'"),
        ({"name": ""}, "name=''"),
        ({"name": "a/b"}, "name='a/b'"),
        ({"name": ".."}, r"name='\.\.'"),
        ({"ids": tuple}, "is no NamedTuple"),
        ({"ids": FileId}, "FileId has the fields repo, path"),
        ({"pattern": "notes/{a}/{b}"}, r"2 parts.*NamedTuple\): a: str; b: str"),
        ({"pattern": "notes/{path}/{repo}", "ids": FileId}, "FileId has the fields repo, path"),
    ],
)
def test_an_option_that_can_not_work_is_refused(options: dict[str, Any], problem: str) -> None:
    """Each error says which option, and what to write instead."""
    arguments: dict[str, Any] = {"pattern": "notes/{id}", "model": Note, **options}
    with pytest.raises(DefinitionError, match=problem):
        resource(**arguments)


# --- ids and keys --------------------------------------------------------------------------------


def test_an_id_is_filled_into_the_pattern() -> None:
    """One segment a value; the slashes of the last one stay only where the pattern says so."""
    assert NOTES.key("a/b") == "notes/a%2Fb"
    assert FILES.key(FileId("a/b", "src/c.py")) == "repos/a%2Fb/files/src%2Fc.py"
    assert TREE.key(TreeId("r", "", "src//.git/é")) == "trees/r/~/at/src/~/.git/%C3%A9"
    assert TREE.id("trees/r/~/at/src/~/.git/%C3%A9") == TreeId("r", "", "src//.git/é")
    assert type(FILES.id("repos/a/files/b")) is FileId
    assert NOTES.topic("notes/a%2Fb") == "a%2Fb"
    assert TREE.topic("trees/r/~/at/x") == "r/~/at/x"


@given(TEXTS)
@example("")
@example("..")
@example("~")
@example("%2F")
@example("\ud83d\ude00")
def test_any_text_is_one_segment_and_reads_back(text: str) -> None:
    """It needs no escape in a URL, is no name that file systems treat specially, and is exact."""
    form = escaped(text)
    assert form.isascii()
    assert form.isprintable()
    assert form not in {"", ".", ".."}
    assert not set(form) & set('/\\?#&=+:"<>| {}')
    assert unescaped(form) == text


@given(TEXTS, TEXTS)
@example("\ud83d\ude00", "\U0001f600")
@example("", "~")
@example(".", ".~")
@example("%2F", "/")
def test_different_texts_are_different_segments(one: str, other: str) -> None:
    """No two ids meet."""
    assert (escaped(one) == escaped(other)) == (one == other)


@given(CLOSE, CLOSE)
@example("", "")
@example(".", "..")
@example("é", "é/")
def test_the_start_of_a_text_is_the_start_of_its_segment(start: str, text: str) -> None:
    """A prefix finds what begins so, and nothing else."""
    assert escaped(text).startswith(escaped_start(start)) == text.startswith(start)


@given(CLOSE)
@example("%2f")
@example("a%")
@example("a~")
@example("%FF")
@example("%41")
@example("...")
def test_only_segments_are_read(form: str) -> None:
    """Each text has one spelling; any other is refused."""
    try:
        text = unescaped(form)
    except ValueError:
        return
    assert escaped(text) == form


@pytest.mark.parametrize(
    "form", ["", ".", "a~", "%", "%2f", "%41", "%FF", "%ED", "a b", "é", "\ud800"]
)
def test_what_is_no_segment_is_refused(form: str) -> None:
    """It would be a second name for something, or none for anything."""
    with pytest.raises(ValueError, match=r"."):
        unescaped(form)


@given(st.builds(TreeId, CLOSE, CLOSE, CLOSE), st.builds(TreeId, CLOSE, CLOSE, CLOSE))
@example(TreeId("a", "b", "c/d"), TreeId("a", "b/c", "d"))
@example(TreeId("a", "at", "c"), TreeId("a", "", "at/c"))
@example(TreeId("", "", ""), TreeId("", "", "/"))
def test_ids_of_several_parts_never_meet(one: TreeId, other: TreeId) -> None:
    """A key reads back as the id it was made of, and different ids have different keys."""
    assert TREE.id(TREE.key(one)) == one
    assert FILES.id(FILES.key(FileId(*one[:2]))) == FileId(*one[:2])
    assert (TREE.key(one) == TREE.key(other)) == (one == other)


@given(st.builds(TreeId, CLOSE, CLOSE, CLOSE), st.lists(CLOSE, max_size=2), CLOSE)
@example(TreeId("r1", "u", "p"), [], "r")
@example(TreeId("r10", "u", "p"), ["r1"], "")
@example(TreeId("r", "u", "src/a"), ["r", "u"], "src/")
@example(TreeId("r", "u", "src//a"), ["r", "u"], "src/.")
@example(TreeId("r", "u", "./a"), ["r", "u"], ".")
@example(TreeId("", "..", "a"), ["", ".."], "")
def test_a_prefix_is_exact(id: TreeId, within: list[str], prefix: str) -> None:
    """Whole values and then the start of the next: the keys that begin so are of these ids only."""
    begins = TREE.key_prefix(tuple(within), prefix)
    expected = [*id[: len(within)]] == within and id[len(within)].startswith(prefix)
    assert TREE.key(id).startswith(begins) == expected
    assert begins.startswith("trees/")


@given(CLOSE, CLOSE)
def test_a_prefix_never_reaches_a_neighbour(prefix: str, id: str) -> None:
    """Whatever is given as a prefix, the keys of another collection don't begin so."""
    neighbour = resource("notes2/{id}", Note)
    assert not neighbour.key(id).startswith(NOTES.key_prefix(prefix=prefix))


@pytest.mark.parametrize(
    ("declared", "id", "problem"),
    [
        (NOTES, None, "expected a text as the id, got NoneType"),
        (NOTES, 5, "got int"),
        (NOTES, ("a",), "got tuple"),
        (FILES, "a", r"got str: write FileId\(repo, path\)"),
        (FILES, ("a",), "got tuple"),
        (FILES, ("a", "b", "c"), "got tuple"),
        (FILES, ("a", 5), "got tuple"),
        (FILES, ["a", "b"], "got list"),
    ],
)
def test_what_is_no_id_is_refused(declared: Resource[Any, Any], id: Any, problem: str) -> None:
    """The error names the pattern and what an id is."""
    with pytest.raises(InvalidValue, match=problem) as caught:
        declared.key(id)
    assert declared.pattern in str(caught.value)


@pytest.mark.parametrize(
    ("declared", "key"),
    [
        (NOTES, ""),
        (NOTES, "notes"),
        (NOTES, "notes/"),
        (NOTES, "notes/a/b"),
        (NOTES, "notes2/a"),
        (NOTES, "notes/%2f"),
        (NOTES, "notes/é"),
        (FILES, "repos/a/b/files"),
        (FILES, "repos/a/files"),
        (TREE, "trees/a/b/at"),
    ],
)
def test_what_is_no_key_is_refused(declared: Resource[Any, Any], key: str) -> None:
    """A key of another collection, or with a second spelling, is no entry's."""
    with pytest.raises(InvalidValue, match="one of its keys"):
        declared.id(key)


@pytest.mark.parametrize(
    ("ask", "problem"),
    [
        (lambda: NOTES.key_prefix(("a",)), "it has one parameter: use prefix"),
        (lambda: FILES.key_prefix(("a", "b")), "so many make an id: use get"),
        (lambda: UNTYPED.key_prefix("a"), r"write within=\(value,\)"),
        (lambda: UNTYPED.key_prefix((5,)), r"write within=\(value,\)"),
        (lambda: UNTYPED.key_prefix(("a",), None), "a prefix is the beginning of a value"),
        (lambda: NOTES.wire_prefix("notes2/"), "begins with 'notes/'"),
        (lambda: NOTES.wire_prefix("notes"), "begins with 'notes/'"),
        (lambda: NOTES.wire_prefix("notes/é"), "begins with 'notes/'"),
    ],
)
def test_what_is_no_prefix_is_refused(ask: Callable[[], object], problem: str) -> None:
    """It would list nothing, or something else."""
    with pytest.raises(InvalidValue, match=problem):
        ask()


def test_a_clients_prefix_is_the_beginning_of_a_key() -> None:
    """With the collection's own prefix in front; none at all is the whole collection."""
    assert NOTES.wire_prefix("") == "notes/"
    assert TREE.wire_prefix("trees/r%20/") == "trees/r%20/"
    assert NOTES.wire_prefix("notes/a") == NOTES.key_prefix(prefix="a")


@given(st.text("abzAZ019_.!*'()-", min_size=1), st.text("abzAZ019_.!*'()-", min_size=1))
def test_plain_ids_come_in_their_own_order(one: str, other: str) -> None:
    """The order of keys is that of the escaped forms, which plain ids are themselves."""
    assume(one.strip(".") and other.strip("."))
    assert (NOTES.key(one) < NOTES.key(other)) == (one < other)
