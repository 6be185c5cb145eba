"""The environment in which tests run the real binary: what is in it, and what is refused."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from flowstate.errors import DefinitionError
from flowstate.testing.agent_home import (
    DUMMY_KEY,
    DUMMY_OAUTH_TOKEN,
    SWITCHES,
    clean_environment,
    clean_home,
    require_clean_environment,
)

URL = "http://127.0.0.1:4711"


@dataclass(frozen=True, slots=True, kw_only=True)
class SomeEndpoint:
    """Whatever has a URL."""

    url: str = URL


def test_the_environment_is_whole_and_lies_in_the_home(tmp_path: Path) -> None:
    """Every directory that the binary writes to is made, private, within the home."""
    home = tmp_path / "new" / "home"
    env = clean_environment(home, base_url=URL)

    assert env["HOME"] == str(home)
    for name in ("HOME", "CLAUDE_CONFIG_DIR", "TMPDIR"):
        made = Path(env[name])
        assert made.is_relative_to(home)
        assert made.stat().st_mode & 0o077 == 0
    assert env["ANTHROPIC_BASE_URL"] == URL
    assert env["ANTHROPIC_API_KEY"] == DUMMY_KEY
    assert SWITCHES.items() <= env.items()
    assert "IS_SANDBOX" not in env
    require_clean_environment(env)


def test_it_takes_nothing_from_the_environment_of_the_test(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A real key, a proxy or a search path of the machine doesn't get in."""
    before = clean_environment(tmp_path, base_url=URL)
    for name in ("ANTHROPIC_API_KEY", "HTTPS_PROXY", "PATH", "LANG", "SOMETHING"):
        monkeypatch.setenv(name, "of-the-machine")

    assert clean_environment(tmp_path, base_url=URL) == before


def test_a_subscription_is_played_by_a_token_alone(tmp_path: Path) -> None:
    """A key beside it would win, so there is none."""
    env = clean_environment(tmp_path, base_url=URL, oauth=True)

    assert env["CLAUDE_CODE_OAUTH_TOKEN"] == DUMMY_OAUTH_TOKEN
    assert "ANTHROPIC_API_KEY" not in env


@pytest.mark.parametrize(
    "name",
    ["HOME", "CLAUDE_CONFIG_DIR", "ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY", *SWITCHES],
)
def test_a_variable_that_is_missing_is_named_with_the_way_out(tmp_path: Path, name: str) -> None:
    """Each of them alone makes the environment unfit; so does an empty value."""
    env = clean_environment(tmp_path, base_url=URL)
    with pytest.raises(DefinitionError, match=rf"{name}.*clean_environment\(\)"):
        require_clean_environment({k: v for k, v in env.items() if k != name})
    with pytest.raises(DefinitionError, match=name):
        require_clean_environment({**env, name: ""})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("HOME", "relative/home"),
        ("HOME", os.path.expanduser("~" + (os.environ.get("USER") or "root"))),
        ("ANTHROPIC_BASE_URL", "https://api.example.com"),
        ("ANTHROPIC_BASE_URL", "http://127.0.0.1.example.com:80"),
        ("ANTHROPIC_BASE_URL", "http://127.0.0.1@example.com"),
        ("ANTHROPIC_BASE_URL", "http://[broken"),
        ("ANTHROPIC_API_KEY", "sk-ant-real"),
        ("ANTHROPIC_AUTH_TOKEN", "real"),
        ("CLAUDE_CODE_OAUTH_TOKEN", "sk-ant-oat01-real"),
        ("CLAUDE_CODE_USE_BEDROCK", "1"),
        ("HTTPS_PROXY", "http://proxy:3128"),
        ("https_proxy", "http://proxy:3128"),
        ("IS_SANDBOX", "1"),
        ("DISABLE_TELEMETRY", "0"),
    ],
)
def test_a_value_that_leads_elsewhere_is_refused(tmp_path: Path, name: str, value: str) -> None:
    """The error names the variable."""
    env = clean_environment(tmp_path, base_url=URL)

    with pytest.raises(DefinitionError, match=name):
        require_clean_environment({**env, name: value})


def test_the_accounts_own_home_is_refused_whatever_home_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The account data base tells which one it is; a link to it is found out."""
    pwd = pytest.importorskip("pwd")
    own = tmp_path / "own"
    (own / ".claude").mkdir(parents=True)
    link = tmp_path / "link"
    link.symlink_to(own)
    entry = list(pwd.getpwuid(os.getuid()))
    entry[5] = str(own)

    def of_the_test(uid: int) -> object:
        return pwd.struct_passwd(entry)

    monkeypatch.setattr(pwd, "getpwuid", of_the_test)
    env = clean_environment(own / "below", base_url=URL)  # a directory below it is fine

    for change in (
        {"HOME": str(own)},
        {"HOME": str(link)},
        {"CLAUDE_CONFIG_DIR": str(own / ".claude")},
    ):
        with pytest.raises(DefinitionError, match="the account's own"):
            require_clean_environment({**env, **change})


def test_an_error_tells_no_secret(tmp_path: Path) -> None:
    """Neither a key's value nor a password in a URL."""
    env = clean_environment(tmp_path, base_url=URL)
    for change in (
        {"ANTHROPIC_API_KEY": "s3cret"},
        {"ANTHROPIC_AUTH_TOKEN": "s3cret"},
        {"ANTHROPIC_BASE_URL": "https://user:s3cret@example.com/s3cret"},
        {"HTTPS_PROXY": "http://user:s3cret@proxy"},
    ):
        with pytest.raises(DefinitionError) as caught:
            require_clean_environment({**env, **change})
        assert "s3cret" not in str(caught.value)


def test_what_would_not_be_clean_makes_no_directory(tmp_path: Path) -> None:
    """The check comes first."""
    with pytest.raises(DefinitionError, match="not loopback"):
        clean_environment(tmp_path / "home", base_url="https://api.example.com")

    assert not (tmp_path / "home").exists()


@pytest.mark.anyio
async def test_a_clean_home_lasts_as_long_as_its_context() -> None:
    """It exists inside, fit for a binary, and is gone after, however it was left."""
    async with clean_home(SomeEndpoint(), oauth=True) as home:
        await anyio.to_thread.run_sync(require_clean_environment, home.env)
        assert home.env["HOME"] == str(home.path)
        assert home.env["ANTHROPIC_BASE_URL"] == URL
        deep = anyio.Path(home.path, "config", "deep")
        await deep.mkdir()
        await (deep / "file").write_text("x")
    assert not await anyio.Path(home.path).exists()

    with anyio.move_on_after(0.05):
        async with clean_home(SomeEndpoint()) as home:
            await anyio.sleep_forever()
    assert not await anyio.Path(home.path).exists()


@pytest.mark.anyio
async def test_a_refused_home_is_not_left_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An endpoint that isn't on loopback is refused before anything stays on the disk."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    with pytest.raises(DefinitionError, match="not loopback"):
        async with clean_home(SomeEndpoint(url="https://api.example.com")):
            pass
    assert [left async for left in anyio.Path(tmp_path).iterdir()] == []


@pytest.mark.anyio
async def test_files_that_a_dying_process_still_writes_are_removed_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Removing goes on until nothing is left."""
    remove = shutil.rmtree
    removals: list[Path] = []

    def remove_while_something_writes(path: Path, ignore_errors: bool = False) -> None:
        remove(path, ignore_errors=ignore_errors)
        removals.append(path)
        if len(removals) < 3:
            path.mkdir()
            (path / "late").write_text("x")

    monkeypatch.setattr(shutil, "rmtree", remove_while_something_writes)
    async with clean_home(SomeEndpoint()) as home:
        pass

    assert removals == [home.path] * 3
    assert not await anyio.Path(home.path).exists()


@pytest.mark.anyio
async def test_a_file_that_stays_is_no_fault_of_the_test(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Leaving ends without an error, and in bounded time, though something can't be removed."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr("flowstate.testing.agent_home._REMOVAL_LIMIT", 0.1)

    def remove_nothing(path: Path, ignore_errors: bool = False) -> None:
        assert ignore_errors

    monkeypatch.setattr(shutil, "rmtree", remove_nothing)
    async with clean_home(SomeEndpoint()) as home:
        pass

    assert await anyio.Path(home.path).exists()
