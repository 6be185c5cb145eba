"""What a run is given of the server's environment, and what of it is never shown."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flowstate.errors import DefinitionError
from flowstate.harness.environment import Redactor, harness_env


def test_only_named_variables_are_passed(monkeypatch: pytest.MonkeyPatch) -> None:
    """What isn't named isn't passed, and PATH has to be named like any other."""
    monkeypatch.setenv("FS_ONE", "1")
    monkeypatch.setenv("FS_SECRET", "s3cr3t")

    assert harness_env(pass_=["FS_ONE"]) == {"FS_ONE": "1"}


def test_unset_is_left_out_and_empty_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """An unset name is missing from the result; one set to an empty text is in it."""
    monkeypatch.delenv("FS_UNSET", raising=False)
    monkeypatch.setenv("FS_EMPTY", "")

    assert harness_env(pass_=["FS_UNSET", "FS_EMPTY"]) == {"FS_EMPTY": ""}


def test_values_are_read_at_the_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """A later change of the server's environment doesn't reach what was read."""
    monkeypatch.setenv("FS_ONE", "before")
    env = harness_env(pass_=["FS_ONE"])
    monkeypatch.setenv("FS_ONE", "after")

    assert env == {"FS_ONE": "before"}


@pytest.mark.parametrize("names", ["PATH", ["A=B"], [""], [7], ["A\0"]])
def test_what_cannot_be_names_is_refused(names: list[str]) -> None:
    """A single text, and entries that no variable can be called, are the author's mistake."""
    with pytest.raises(DefinitionError, match="harness_env"):
        harness_env(pass_=names)


@pytest.mark.parametrize(
    "name",
    ["ANTHROPIC_API_KEY", "GH_TOKEN", "MY_SECRET", "db_password", "AWS_SECRET_ACCESS_KEY", "X_PAT"],
)
def test_secret_looking_values_are_redacted(name: str) -> None:
    """The value of a variable whose name looks secret is taken out of a text."""
    assert Redactor({name: "hunter22"})("it said hunter22!") == "it said [redacted]!"


def test_other_values_stay() -> None:
    """Values of ordinary variables, and secrets too short to tell from prose, stay readable."""
    redact = Redactor({"LANG": "C.UTF-8", "PIN_TOKEN": "abc"})

    assert redact("C.UTF-8 abc") == "C.UTF-8 abc"


def test_passwords_in_urls_and_known_shapes_are_redacted() -> None:
    """A proxy's user info, an Anthropic key and a bearer token go wherever they stand."""
    redact = Redactor({"HTTPS_PROXY": "http://ada:p4ssw0rd@proxy:3128"})

    assert redact("via ada:p4ssw0rd@proxy with p4ssw0rd") == "via [redacted]@proxy with [redacted]"
    assert redact("key sk-ant-api03-Ab_9, Bearer abc.def") == "key [redacted], Bearer [redacted]"


@given(
    st.dictionaries(
        st.sampled_from(["A_KEY", "B_TOKEN", "C_SECRET", "D_PASSWORD"]),
        st.text(min_size=4),
        min_size=1,
    ),
    st.lists(st.text(max_size=5)),
)
def test_no_secret_survives(env: dict[str, str], between: list[str]) -> None:
    """Whatever the secrets and whatever stands between them, none is left, also nested ones."""
    text = "".join(a + b for a, b in zip([*between, ""], [*env.values()] * 3, strict=False))
    shown = Redactor(env)(text)

    assert all(secret not in shown.replace("[redacted]", "\0") for secret in env.values())
