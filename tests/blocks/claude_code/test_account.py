"""Asking Claude Code about its credential, its models and its plan; nothing here ever raises."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flowstate.blocks.claude_code.account import (
    ClaudeAccount,
    ClaudeModels,
    ClaudeModelsFailed,
    ClaudeSdkMissing,
    NoClaudeAccount,
    account_of,
    list_claude_models,
    models_of,
    probe_claude_account,
    read_claude_usage,
)
from flowstate.harness.usage import UsageApiKey, UsageSignedOut, UsageUnavailable, UsageWindows
from tests.blocks.claude_code.fake_sdk import Client, ProcessError, fake_sdk

pytestmark = pytest.mark.anyio

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)
SIGNED_IN = {"email": "ada@example.com", "organization": "Org", "subscriptionType": "Claude Max"}
KEY = {"tokenSource": "none", "apiKeySource": "ANTHROPIC_API_KEY", "apiProvider": "firstParty"}
NOTHING = {"tokenSource": "none", "apiProvider": "firstParty"}
TOKEN = {"tokenSource": "CLAUDE_CODE_OAUTH_TOKEN"}


@pytest.mark.parametrize(
    ("account", "expected"),
    [
        (KEY, ClaudeAccount(api_key_source="ANTHROPIC_API_KEY")),
        (TOKEN, ClaudeAccount(token_source="CLAUDE_CODE_OAUTH_TOKEN")),
        (
            SIGNED_IN,
            ClaudeAccount(email="ada@example.com", subscription_type="Claude Max"),
        ),
        (
            {"tokenSource": "claude.ai", "apiKeySource": "ANTHROPIC_API_KEY"},
            ClaudeAccount(token_source="claude.ai", api_key_source="ANTHROPIC_API_KEY"),
        ),
        (NOTHING, None),
        ({}, None),
        (None, None),
    ],
)
def test_what_is_none_is_absent(account: object, expected: ClaudeAccount | None) -> None:
    """Claude Code says "none" where there is nothing; that isn't the name of a source."""
    assert account_of({"account": account}) == expected


def test_each_model_is_listed_once_under_the_id_that_it_runs_as() -> None:
    """Aliases are resolved; the default is marked, with its own name rather than "Default"."""
    rows = [
        {"value": "default", "resolvedModel": "m-1", "displayName": "Default (recommended)"},
        {"value": "opus", "resolvedModel": "m-1", "displayName": "Opus", "description": "Big"},
        {"value": "haiku", "resolvedModel": "m-2", "displayName": "Haiku"},
        {"value": "m-2", "displayName": "m-2"},
        {"displayName": "nameless"},
    ]

    assert [m.model_dump(by_alias=True) for m in models_of({"models": rows})] == [
        {"id": "m-1", "displayName": "Opus", "description": "Big", "isDefault": True},
        {"id": "m-2", "displayName": "Haiku", "description": None, "isDefault": False},
    ]


@given(JSON)
def test_any_answer_is_read_without_raising(answer: object) -> None:
    """The answer is another program's; whatever it is, something is made of it or nothing."""
    for info in ({"account": answer}, {"models": answer}, {"models": [answer]}):
        account_of(info)
        models_of(info)


def _answering(monkeypatch: pytest.MonkeyPatch, info: Mapping[str, Any]) -> Callable[[], Client]:
    sdk = fake_sdk(monkeypatch)
    monkeypatch.setattr(Client, "get_server_info", lambda _: _value(info))
    return lambda: sdk.client


async def _value(value: object) -> object:
    return value


async def test_a_probe_sends_no_prompt_and_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """It connects, takes the answer, and disconnects."""
    client = _answering(monkeypatch, {"account": KEY})

    assert await probe_claude_account() == ClaudeAccount(api_key_source="ANTHROPIC_API_KEY")
    assert client().calls == ["connect", "disconnect"]
    assert client().options.setting_sources == ["user"]


async def test_no_credential_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer that names none is an answer."""
    _answering(monkeypatch, {"account": NOTHING})
    probe = await probe_claude_account()

    assert isinstance(probe, NoClaudeAccount)
    assert not probe.unanswered
    assert "API key" in probe.reason


async def test_models_are_listed_or_the_reason_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer without models is a failure with a reason."""
    _answering(monkeypatch, {"models": [{"value": "m"}]})
    listed = await list_claude_models()
    assert isinstance(listed, ClaudeModels)
    assert [model.id for model in listed.models] == ["m"]

    _answering(monkeypatch, {"account": KEY})
    assert isinstance(await list_claude_models(), ClaudeModelsFailed)


@pytest.mark.parametrize(
    ("account", "expected"),
    [
        (SIGNED_IN, UsageWindows(plan="Claude Max", account_id="ada@example.com")),
        (TOKEN, UsageWindows()),
        (KEY, UsageApiKey),
        ({**SIGNED_IN, "apiKeySource": "ANTHROPIC_API_KEY"}, UsageApiKey),
        (NOTHING, UsageSignedOut),
    ],
)
async def test_usage_is_one_of_its_states(
    monkeypatch: pytest.MonkeyPatch, account: dict[str, str], expected: Any
) -> None:
    """A plan has windows, which runs tell; a key, which wins over a sign-in, has none."""
    _answering(monkeypatch, {"account": account})
    reading = await read_claude_usage()

    assert reading == expected if isinstance(expected, UsageWindows) else type(reading) is expected


async def _ask_all(seconds: float = 30.0) -> list[Any]:
    return [
        await probe_claude_account(timeout=seconds),
        await list_claude_models(timeout=seconds),
        await read_claude_usage(timeout=seconds),
    ]


async def test_no_answer_in_time_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """The wait is bounded, the process is ended, and the reason names the time."""
    sdk = fake_sdk(monkeypatch)

    async def hang(_: Client) -> None:
        await anyio.sleep_forever()

    sdk.on_connect = hang
    with anyio.fail_after(10):
        answers = await _ask_all(0.05)

    assert answers == [
        NoClaudeAccount(reason="Claude Code did not answer within 0.05 seconds.", unanswered=True),
        ClaudeModelsFailed(reason="Claude Code did not answer within 0.05 seconds."),
        UsageUnavailable(reason="Claude Code did not answer within 0.05 seconds."),
    ]
    assert [client.calls for client in sdk.clients] == [["connect", "disconnect"]] * 3


async def test_a_process_that_ends_instead_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its exit code and its last words, without secrets; it did answer, in its way."""
    sdk = fake_sdk(monkeypatch)
    monkeypatch.setenv("SOME_TOKEN", "hunter22")

    async def die(client: Client) -> None:
        client.options.stderr("bad token hunter22")
        raise ProcessError("died", 3)

    sdk.on_connect = die
    probe, models, usage = await _ask_all()

    assert isinstance(probe, NoClaudeAccount)
    assert not probe.unanswered
    for answer in (probe, models, usage):
        assert "exit code 3" in answer.reason
        assert "bad token [redacted]" in answer.reason


async def test_without_the_sdk_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """A probe tells it apart; the others say it in their reason."""
    monkeypatch.setitem(sys.modules, "claude_agent_sdk", None)
    probe, models, usage = await _ask_all()

    assert isinstance(probe, ClaudeSdkMissing)
    assert isinstance(models, ClaudeModelsFailed)
    assert isinstance(usage, UsageUnavailable)
    for answer in (probe, models, usage):
        assert "pip install" in answer.reason


async def test_a_cancel_goes_on_and_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Never raising is no reason to swallow a cancellation."""
    sdk = fake_sdk(monkeypatch)

    async def hang(_: Client) -> None:
        await anyio.sleep_forever()

    sdk.on_connect = hang
    with anyio.move_on_after(0.05) as scope:
        await probe_claude_account()

    assert scope.cancelled_caught
    assert sdk.client.calls == ["connect", "disconnect"]
