"""What ``claude_code_agent`` takes, and what it refuses when it is built."""

from __future__ import annotations

from typing import Any

import pytest

from flowstate.blocks.claude_code.agent import claude_code_agent
from flowstate.blocks.claude_code.conversation import agent_runs_state
from flowstate.blocks.claude_code.environment import CLAUDE_CODE_PASS
from flowstate.blocks.claude_code.handle import ClaudeCodeHandle
from flowstate.blocks.claude_code.options import NAME, split_options
from flowstate.errors import DefinitionError
from flowstate.harness.environment import harness_env
from flowstate.harness.handle import HarnessRunInput


def test_it_is_a_typed_block() -> None:
    """Without options it is an async handler from a prompt to a handle."""
    agent = claude_code_agent()

    assert agent.name == NAME
    assert agent.is_async
    assert agent.input_type is HarnessRunInput
    assert agent.output_type is ClaudeCodeHandle


def test_in_session_it_declares_its_state_and_detached_it_declares_none() -> None:
    """Only an in-session agent declares session state; the author's own uses stay."""
    own = agent_runs_state()

    assert claude_code_agent().uses == (own,)
    assert claude_code_agent(uses=[own]).uses == (own,)
    assert claude_code_agent(detached=True).uses == ()
    assert own.name == "sdk_agent_runs"
    assert own.scope == "session"


def test_the_block_s_settings_are_taken() -> None:
    """A name, a deadline and the like are the block's, as for any other."""
    agent = claude_code_agent(name="coder", deadline=600, visibility="trace")

    assert (agent.name, agent.deadline, agent.visibility) == ("coder", 600, "trace")


@pytest.mark.parametrize("option", ["resume", "on_session"])
def test_conversation_options_need_detached(option: str) -> None:
    """In session the block owns the conversation, so a second owner is refused when built."""
    options: dict[str, Any] = {option: lambda *_: None}

    with pytest.raises(DefinitionError, match=f"{option}= without detached=True"):
        claude_code_agent(**options)
    claude_code_agent(detached=True, **options)


def test_a_fixed_directory_is_refused_with_the_reason() -> None:
    """One flow serves many runs, so cwd is a function; the error says why and what to write."""
    with pytest.raises(DefinitionError, match=r"one flow serves many at once.*lambda ctx"):
        claude_code_agent(cwd="/repo")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"resume": "6ef4", "detached": True}, "resume='6ef4' is no function"),
        ({"on_errored": 1}, "on_errored=1 is no function"),
        ({"model": 3}, "model=3"),
        ({"model": ""}, "model=''"),
        ({"permission_mode": "yolo"}, "permission_mode='yolo'. Use one of 'default'"),
        ({"allowed_tools": "Read"}, "allowed_tools='Read'"),
        ({"disallowed_tools": [""]}, r"disallowed_tools=\[''\]"),
        ({"setting_sources": ["projct"]}, "setting_sources holds 'projct'"),
        ({"settings": "{}"}, "settings is of type str"),
        ({"sandbox": True}, "sandbox is of type bool"),
        ({"system_prompt": 4}, "system_prompt is of type int"),
        ({"max_turns": 0}, "max_turns=0"),
        ({"max_turns": True}, "max_turns=True"),
        ({"max_budget_usd": -1}, "max_budget_usd=-1"),
        ({"api_retries": -1}, "api_retries=-1"),
        ({"skills": "some"}, "skills='some'"),
        ({"agents": []}, "agents is of type list"),
        ({"env": {"A=B": "c"}}, "'A=B' can't name an environment variable"),
        ({"env": {"HOME": 1}}, "value of environment variable 'HOME'"),
        ({"env": {"FLOWSTATE_RUN": "x"}}, "env sets FLOWSTATE_RUN"),
        ({"env": {"CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS": "0"}}, "env sets CLAUDE_CODE_EMIT"),
        ({"options": []}, "options is of type list"),
        ({"pure": True}, "never pure"),
        ({"modle": "x"}, "unknown option modle"),
    ],
)
def test_what_cannot_work_is_refused_when_built(options: dict[str, Any], problem: str) -> None:
    """Each mistake is a DefinitionError that names the block, the value and the way out."""
    with pytest.raises(DefinitionError, match=f"coder: .*{problem}"):
        claude_code_agent(name="coder", **options)


def test_a_secret_is_not_told_in_an_error() -> None:
    """A wrong environment's values stay out of the message."""
    with pytest.raises(DefinitionError) as caught:
        claude_code_agent(env={"API_KEY": b"hunter22"})  # type: ignore[dict-item]

    assert "hunter22" not in str(caught.value)


def test_an_async_activity_hook_is_refused() -> None:
    """The activity hook isn't awaited, so an async one would never run."""

    async def hook(activity: object, ctx: object) -> None: ...

    with pytest.raises(DefinitionError, match="on_activity is async"):
        claude_code_agent(on_activity=hook)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("option", "way_out"),
    [
        ("cwd", "Use the option cwd="),
        ("max_turns", "Use the option max_turns="),
        ("resume", "resume="),
        ("session_id", "resume="),
        ("fork_session", "resume="),
        ("can_use_tool", "on_tool_approval="),
        ("include_partial_messages", "forward_partial_messages="),
        ("verbatim_prompts", "A prompt is always data"),
        ("stderr", "needs it for itself"),
    ],
)
def test_options_may_not_name_what_is_decided_here(option: str, way_out: str) -> None:
    """The passage to the SDK refuses what the block owns, and says what to write instead."""
    with pytest.raises(DefinitionError, match=f"options names '{option}'.*{way_out}"):
        claude_code_agent(options={option: None})


def test_flags_may_not_name_it_either() -> None:
    """A command-line flag is no way around it."""
    with pytest.raises(DefinitionError, match="flag '--resume'"):
        claude_code_agent(options={"extra_args": {"--resume": "x"}})


def test_other_options_go_through_as_they_are() -> None:
    """What the SDK adds later can be given without waiting for this library."""
    settings, _ = split_options({"options": {"fallback_model": "claude-x", "effort": "low"}})

    assert settings.options == {"fallback_model": "claude-x", "effort": "low"}


def test_later_changes_of_what_was_given_have_no_effect() -> None:
    """Lists and mappings are copied when the block is built."""
    tools, env = ["Read"], {"HOME": "/h"}
    settings, _ = split_options({"allowed_tools": tools, "env": env})
    tools.append("Bash")
    env["SECRET"] = "s"

    assert settings.allowed_tools == ("Read",)
    assert settings.env == {"HOME": "/h"}


def test_the_ready_made_list_of_names_is_the_documented_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """CLAUDE_CODE_PASS holds what a run needs, proxy and CA names in both cases, nothing else."""
    monkeypatch.setenv("https_proxy", "http://proxy")
    monkeypatch.setenv("GH_TOKEN", "x")
    env = harness_env(pass_=CLAUDE_CODE_PASS)

    assert env["https_proxy"] == "http://proxy"
    assert "GH_TOKEN" not in env
    network = "HTTP_PROXY HTTPS_PROXY NO_PROXY ALL_PROXY SSL_CERT_FILE SSL_CERT_DIR"
    both_cases = f"{network} NODE_EXTRA_CA_CERTS".split()
    assert sorted(CLAUDE_CODE_PASS) == sorted(
        [
            *("PATH", "HOME", "USER", "SHELL", "TMPDIR"),
            *("ANTHROPIC_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN"),
            *both_cases,
            *(name.lower() for name in both_cases),
        ]
    )
