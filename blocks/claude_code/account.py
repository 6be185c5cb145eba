"""
Asks Claude Code about itself, without a run: its credential, its models, its plan.

Each function starts the binary, takes what it says of itself when it is connected, and ends it:
no prompt is sent, so it costs no model turn. None of them raises; a cancel goes on as always.
Pass the same ``env`` as to the runs, so that what is asked about is what they will see. Of
settings files only the user's are read, since the working directory here is the server's.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, Union

import anyio
from pydantic import BaseModel, Field

from flowstate.blocks.claude_code.client import ClientOwner
from flowstate.blocks.claude_code.errors import ClaudeAgentSdkNotInstalledError
from flowstate.blocks.claude_code.json_value import items_of, mapping_of, text_of
from flowstate.blocks.claude_code.launch import launch_arguments
from flowstate.blocks.claude_code.refusal import StderrTail, run_error
from flowstate.blocks.claude_code.sdk import load_sdk
from flowstate.errors import HarnessError
from flowstate.harness.environment import Redactor
from flowstate.harness.launcher import PrivateFiles
from flowstate.harness.usage import (
    HarnessUsageReading,
    UsageApiKey,
    UsageSignedOut,
    UsageUnavailable,
    UsageWindows,
)
from flowstate.item.content import WIRE

if TYPE_CHECKING:
    from claude_agent_sdk import ClaudeAgentOptions

TIMEOUT_SECONDS = 10.0


class ClaudeAccount(BaseModel):
    """Claude Code named a credential; whether it is accepted shows with the first run."""

    model_config = WIRE
    status: Literal["account"] = "account"
    api_key_source: str | None = None
    """Where an API key comes from, for example ``ANTHROPIC_API_KEY``."""
    token_source: str | None = None
    """Where a token comes from, for example ``CLAUDE_CODE_OAUTH_TOKEN``."""
    email: str | None = None
    subscription_type: str | None = None


class NoClaudeAccount(BaseModel):
    """No credential, or Claude Code could not be asked."""

    model_config = WIRE
    status: Literal["none"] = "none"
    reason: str
    """A sentence that can be shown to the user."""
    unanswered: bool = False
    """True when Claude Code gave no answer."""


class ClaudeSdkMissing(BaseModel):
    """The SDK could not be loaded."""

    model_config = WIRE
    status: Literal["sdk-missing"] = "sdk-missing"
    reason: str


ClaudeAccountProbe: TypeAlias = Annotated[
    Union[ClaudeAccount, NoClaudeAccount, ClaudeSdkMissing],  # noqa: UP007  (runtime)
    Field(discriminator="status"),
]


class ClaudeModel(BaseModel):
    """A model that Claude Code offers."""

    model_config = WIRE
    id: str
    """The concrete id, also for what Claude Code lists under an alias."""
    display_name: str | None = None
    description: str | None = None
    is_default: bool = False
    """Whether Claude Code runs it where none is chosen."""


class ClaudeModels(BaseModel):
    """The models, in Claude Code's order, each once."""

    model_config = WIRE
    status: Literal["models"] = "models"
    models: tuple[ClaudeModel, ...]


class ClaudeModelsFailed(BaseModel):
    """The models could not be asked for."""

    model_config = WIRE
    status: Literal["failed"] = "failed"
    reason: str


ClaudeModelList: TypeAlias = Annotated[
    Union[ClaudeModels, ClaudeModelsFailed],  # noqa: UP007  (runtime)
    Field(discriminator="status"),
]


async def probe_claude_account(
    *,
    env: Mapping[str, str] | None = None,
    timeout: float = TIMEOUT_SECONDS,  # noqa: ASYNC109 - it answers, and doesn't raise
) -> ClaudeAccountProbe:
    """
    Whether Claude Code has a credential to run on, and where from.

    Args:
        env: the runs' variables; None: the server's whole environment.
        timeout: seconds within which it has to answer. Loading the SDK doesn't count.
    """
    try:
        info = await _info(env, timeout)
    except ClaudeAgentSdkNotInstalledError as error:
        return ClaudeSdkMissing(reason=str(error))
    except _Unanswered as error:
        return NoClaudeAccount(reason=str(error), unanswered=True)
    except Exception as error:
        return NoClaudeAccount(reason=_reason(error))
    return account_of(info) or NoClaudeAccount(
        reason="Claude Code has no API key and nobody is signed in."
    )


async def list_claude_models(
    *,
    env: Mapping[str, str] | None = None,
    timeout: float = TIMEOUT_SECONDS,  # noqa: ASYNC109
) -> ClaudeModelList:
    """
    The models that Claude Code offers on its credential; see ``probe_claude_account``.
    """
    try:
        info = await _info(env, timeout)
    except Exception as error:
        return ClaudeModelsFailed(reason=_reason(error))
    models = models_of(info)
    if not models:
        return ClaudeModelsFailed(reason="Claude Code named no models.")
    return ClaudeModels(models=models)


async def read_claude_usage(
    *,
    env: Mapping[str, str] | None = None,
    timeout: float = TIMEOUT_SECONDS,  # noqa: ASYNC109
) -> HarnessUsageReading:
    """
    Who is signed in and on which plan, as a usage reader; the windows themselves come from runs.

    See ``probe_claude_account`` for the arguments, and ``on_usage`` for the windows.
    """
    try:
        info = await _info(env, timeout)
    except Exception as error:
        return UsageUnavailable(reason=_reason(error))
    account = account_of(info)
    if account is None:
        return UsageSignedOut(reason="Nobody is signed in to Claude Code.")
    if account.api_key_source is not None:
        return UsageApiKey(
            reason="Claude Code runs on an API key, which has no subscription limit."
        )
    return UsageWindows(plan=account.subscription_type, account_id=account.email)


def account_of(info: Mapping[str, Any]) -> ClaudeAccount | None:
    """
    The credential that Claude Code's answer names; None if it names none.

    >>> account_of({"account": {"tokenSource": "none", "apiProvider": "firstParty"}}) is None
    True
    """
    said = mapping_of(info.get("account"))

    def named(key: str) -> str | None:
        value = text_of(said.get(key))
        return None if value in (None, "", "none") else value

    account = ClaudeAccount(
        api_key_source=named("apiKeySource"),
        token_source=named("tokenSource"),
        email=named("email"),
        subscription_type=named("subscriptionType"),
    )
    return None if account == ClaudeAccount() else account


def models_of(info: Mapping[str, Any]) -> tuple[ClaudeModel, ...]:
    """
    The models of Claude Code's answer: several of its rows may stand for one of them.

    A row that names a model itself tells more of it than the row of the default.

    >>> rows = [{"value": "default", "resolvedModel": "m"}, {"value": "x", "resolvedModel": "m"}]
    >>> models_of({"models": rows})
    (ClaudeModel(id='m', display_name=None, description=None, is_default=True),)
    """
    found: dict[str, ClaudeModel] = {}
    default: str | None = None
    for row in map(mapping_of, items_of(info.get("models"))):
        value = text_of(row.get("value"))
        model = text_of(row.get("resolvedModel")) or value
        if model is None:
            continue
        if value == "default":
            default = model
            if model in found:
                continue
        elif model in found and model != default:
            continue
        found[model] = ClaudeModel(
            id=model,
            display_name=text_of(row.get("displayName")),
            description=text_of(row.get("description")),
        )
    return tuple(
        model.model_copy(update={"is_default": model.id == default}) for model in found.values()
    )


class _Unanswered(Exception):
    def __init__(self, seconds: float) -> None:
        super().__init__(f"Claude Code did not answer within {seconds:g} seconds.")


def _reason(error: Exception) -> str:
    known = isinstance(error, HarnessError | _Unanswered)
    return str(error) if known else f"Claude Code can't be asked ({type(error).__name__}: {error})."


async def _info(env: Mapping[str, str] | None, seconds: float) -> Mapping[str, Any]:
    """
    What Claude Code says of itself when it is connected.

    Raises:
        ClaudeAgentSdkNotInstalledError: there is no SDK.
        ClaudeAgentRunError: it ended instead.
        _Unanswered: it took too long.
    """
    sdk = await load_sdk()
    run_id = uuid.uuid4().hex
    redact = Redactor(os.environ if env is None else env)
    stderr = StderrTail(redact)

    def build(files: PrivateFiles) -> ClaudeAgentOptions:
        options: ClaudeAgentOptions = sdk.ClaudeAgentOptions(
            **launch_arguments(sdk, files, env=env, run_id=run_id),
            setting_sources=["user"],
            strict_mcp_config=True,
            stderr=stderr.add,
        )
        return options

    answered = False
    owner = ClientOwner(sdk=sdk, build=build, prompt=None, run_id=run_id)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(owner.run)
        try:
            with anyio.move_on_after(seconds):
                answered = await owner.connected()
                owner.finish()
                await owner.done.wait()
        finally:
            owner.stop()
    if answered:
        return owner.info
    if owner.failure is not None:
        if isinstance(owner.failure, HarnessError):
            raise owner.failure
        raise run_error(owner.failure, stderr.lines, redact) from owner.failure
    raise _Unanswered(seconds)
