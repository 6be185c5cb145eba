"""Ids that callers choose, and the directories that come of them: every recorded case."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flowstate import Identity, checkout_for
from flowstate.ids import SessionId, segment

CASES: list[dict[str, Any]] = json.loads(
    (Path(__file__).parent / "id_cases.json").read_text("utf-8")
)["cases"]
VALUES = [case for case in CASES if case["kind"] == "value"]
PROPERTIES = {case["relation"]: case for case in CASES if case["kind"] == "property"}
DISTINCT = [case for case in CASES if case.get("relation") == "all-distinct"]


def value_of(case: dict[str, Any]) -> str | None:
    """The case's value, spelled out or generated."""
    if not case.get("present", True):
        return None
    if "value_gen" in case:
        made = case["value_gen"]
        return str(made["repeat"] * made["times"] + made["suffix"])
    return str(case["value"])


def named(case: dict[str, Any]) -> str:
    """How a case is called in reports."""
    return f"{case['id']}-{case['label']}"


def test_all_cases_are_there() -> None:
    """A case of a kind that nothing here looks at would be a case that nobody checks."""
    assert {case["kind"] for case in CASES} == {"value", "property"}
    assert set(PROPERTIES) == {
        "all-distinct",
        "shape",
        "stable-across-processes",
        "equal",
        "raises",
        "uses-identity",
        "mkdir-twice-ok",
    }
    assert len(VALUES) > 20


@pytest.mark.parametrize("case", VALUES, ids=named)
def test_a_value_has_its_segment(case: dict[str, Any]) -> None:
    """Exactly the recorded one, of the recorded length, and none that a mistake would give."""
    value = value_of(case)
    if value is not None and "utf16le_hex" in case:
        assert value.encode("utf-16-le", "surrogatepass").hex() == case["utf16le_hex"]
    made = segment(value)
    assert made == case["expect_segment"]
    assert len(made) == case["expect_length"]
    assert made not in case.get("must_not_be", [])


@pytest.mark.parametrize("case", VALUES, ids=named)
def test_a_value_has_its_directory(case: dict[str, Any], tmp_path: Path) -> None:
    """As a tenant and as a session: two levels under the root, never above it."""
    value = value_of(case)
    for tenant, session in ((value, "s"), ("t", value), (value, value), (None, value)):
        directory = checkout_for(tmp_path, tenant, session)
        assert directory == tmp_path / segment(tenant) / segment(session)
        assert len(directory.relative_to(tmp_path).parts) == 2


@pytest.mark.parametrize("case", DISTINCT, ids=named)
def test_values_that_look_alike_are_told_apart(case: dict[str, Any]) -> None:
    """None of them shares a segment with another, nor with absence."""
    values = case["values"]
    assert len({segment(value) for value in values}) == len(values)


@pytest.mark.parametrize("case", VALUES, ids=named)
def test_every_segment_has_the_same_shape(case: dict[str, Any]) -> None:
    """``1`` and 64 hexadecimal digits for what is present; ``0`` for what isn't."""
    value = value_of(case)
    assert re.fullmatch("0" if value is None else "1[0-9a-f]{64}", segment(value))


def test_another_process_gives_the_same() -> None:
    """Whatever its hash seed and its locale."""
    values = PROPERTIES["stable-across-processes"]["values"]
    script = (
        "import json, sys; from flowstate.ids import segment;"
        "print(json.dumps([segment(v) for v in json.loads(sys.argv[1])]))"
    )
    for seed, locale in (("0", "C"), ("4242", "C.UTF-8")):
        done = subprocess.run(
            [sys.executable, "-c", script, json.dumps(values)],
            env={**os.environ, "PYTHONHASHSEED": seed, "LC_ALL": locale},
            capture_output=True,
            text=True,
            check=True,
        )
        assert json.loads(done.stdout) == [segment(value) for value in values]


def test_the_halves_of_an_emoji_are_the_emoji() -> None:
    """The same code units are the same value: the one way two different texts share a segment."""
    one, two = ("".join(map(chr, points)) for points in PROPERTIES["equal"]["values_codepoints"])
    assert one != two
    assert segment(one) == segment(two)


@given(st.text(st.characters()), st.text(st.characters()))
def test_two_values_share_a_segment_only_if_they_are_the_same_code_units(a: str, b: str) -> None:
    """Any characters, lone surrogates included."""
    units = [text.encode("utf-16-le", "surrogatepass") for text in (a, b)]
    assert (segment(a) == segment(b)) == (units[0] == units[1])
    assert segment(a) != segment(None)


@pytest.mark.parametrize("text", PROPERTIES["raises"]["values_repr"])
def test_an_id_that_is_no_text_is_an_error(text: str, tmp_path: Path) -> None:
    """It isn't turned into one: 5 and "5" would be the same checkout."""
    value: Any = ast.literal_eval(text)
    with pytest.raises((TypeError, AttributeError)):
        segment(value)
    with pytest.raises((TypeError, AttributeError)):
        checkout_for(tmp_path, None, value)


def test_the_tenant_is_the_identitys(tmp_path: Path) -> None:
    """A session id that spells out another tenant changes nothing."""
    identity = Identity(session_id=SessionId("t2:s"), tenant_id="t1")
    directory = checkout_for(tmp_path, identity.tenant_id, identity.session_id)
    assert directory == checkout_for(tmp_path, "t1", "t2:s")
    assert directory != checkout_for(tmp_path, "t2", "s")


def test_a_second_run_finds_the_first_ones_directory(tmp_path: Path) -> None:
    """Deriving makes nothing, and making it twice is no error."""
    for tenant, session in PROPERTIES["mkdir-twice-ok"]["pairs"]:
        directory = checkout_for(tmp_path, tenant, session)
        assert not directory.exists()
        directory.mkdir(parents=True, exist_ok=True)
        (directory / "kept.txt").write_text("kept")
        again = checkout_for(tmp_path, tenant, session)
        again.mkdir(parents=True, exist_ok=True)
        assert (again / "kept.txt").read_text() == "kept"


def test_sessions_that_try_to_leave_have_directories_of_their_own(tmp_path: Path) -> None:
    """Dots, separators and what becomes of them when characters are replaced: all distinct."""
    sessions = ["../../outside/x", ".._.._outside_x", "..-..-outside-x", "..", ".", "", "/", "a/b"]
    pairs = [(tenant, session) for tenant in (None, "t", "", "..") for session in sessions]
    directories = {checkout_for(tmp_path, *pair).resolve() for pair in pairs}
    assert len(directories) == len(pairs)
    assert all(directory.parents[1] == tmp_path.resolve() for directory in directories)


@pytest.mark.parametrize(
    "value", ["user@example.org|2031-01-01T00:00:00Z", "會話-7", "a,b;c", "x" * 10_000]
)
def test_ids_that_real_systems_issue_are_taken(value: str, tmp_path: Path) -> None:
    """Encoded, not validated: each can be a directory."""
    directory = checkout_for(tmp_path, value, value)
    directory.mkdir(parents=True)
    assert directory.is_dir()
