"""
The options of ``claude_code_agent``: what may be written, and what is refused when it is built.

A value or a resolver of the context decides each run; nothing is ever decided by the prompt. The
SDK isn't needed here: what it forwards to Claude Code is checked for shape only where a wrong
one would fail late or be ignored.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast, final, get_args

from flowstate.blocks.claude_code.approval import OnToolApproval
from flowstate.blocks.claude_code.conversation import OnSession, Resume, check_provider
from flowstate.blocks.claude_code.environment import RESERVED
from flowstate.blocks.claude_code.mcp_tools import (
    McpServers,
    McpToolsResolver,
    check_alone,
    checked_servers,
)
from flowstate.context import Context
from flowstate.define.block import BlockOptions
from flowstate.errors import DefinitionError
from flowstate.harness.binding import BindingProvider
from flowstate.harness.effect import MessageActivity, ToolActivity
from flowstate.harness.environment import check_variable
from flowstate.harness.steering import OnSteerable
from flowstate.harness.usage import HarnessUsageHook

if TYPE_CHECKING:
    from claude_agent_sdk import AgentDefinition, HookMatcher, SdkPluginConfig

PermissionMode: TypeAlias = Literal[
    "default", "acceptEdits", "plan", "bypassPermissions", "dontAsk", "auto"
]
SettingSource: TypeAlias = Literal["user", "project", "local"]

Cwd: TypeAlias = Callable[[Context], "str | PathLike[str] | Awaitable[str | PathLike[str]]"]
ModelResolver: TypeAlias = Callable[[Context], "str | None | Awaitable[str | None]"]
Sandbox: TypeAlias = Mapping[str, Any]
SandboxResolver: TypeAlias = Callable[[Context], "Sandbox | None | Awaitable[Sandbox | None]"]
OnErrored: TypeAlias = Callable[[BaseException, Context], "object | Awaitable[object]"]
HarnessActivity: TypeAlias = MessageActivity | ToolActivity
OnActivity: TypeAlias = Callable[[HarnessActivity, Context], None]

NAME = "claude_code"
"""The block's name where none is given."""

CLAUDE_CODE_HARNESS = "claude-code"
"""The name under which Claude Code's usage is kept."""

SOURCES: tuple[SettingSource, ...] = get_args(SettingSource)


class ClaudeCodeOptions(BlockOptions, total=False):
    """
    What ``claude_code_agent`` takes; everything has a default.

    The block's own settings are here too (``name``, ``uses``, ``deadline``, ``timeout``, …).
    """

    cwd: Cwd | None
    """The directory of a run, asked just before it starts; by default the server's own."""
    model: str | ModelResolver | None
    """A model id or alias; None leaves Claude Code on its default."""
    system_prompt: str | Mapping[str, Any] | None
    """None: Claude Code's own prompt. A text replaces it, ``""`` by nothing. Or an SDK shape."""
    env: Mapping[str, str] | None
    """The run's variables, and none besides but ``CONTROL_NAMES``; None: all of the server's."""
    permission_mode: PermissionMode | None
    allowed_tools: Sequence[str]
    """What runs without asking anybody. The to-do tools are added."""
    disallowed_tools: Sequence[str]
    """What a run doesn't have; wins over ``allowed_tools``."""
    setting_sources: Sequence[SettingSource] | None
    """Which settings files are loaded; None: all, which includes the working directory's."""
    settings: Mapping[str, Any] | None
    """A settings layer above all files, in the shape of Claude Code's ``settings.json``."""
    sandbox: Sandbox | SandboxResolver | None
    """Claude Code's sandbox settings. Enabled, a run without a working sandbox is refused."""
    mcp_tools: McpServers | McpToolsResolver | None
    """Tools of this process, by server; given, even ``{}``, they are all the MCP tools of a run."""
    max_turns: int | None
    max_budget_usd: float | None
    agents: Mapping[str, AgentDefinition] | None
    """Sub-agents, by name."""
    hooks: Mapping[Any, Sequence[HookMatcher]] | None
    """The SDK's hooks, by event."""
    plugins: Sequence[SdkPluginConfig]
    skills: Sequence[str] | Literal["all"] | None
    """Which skills the agent sees; None: all that are found, ``[]``: none."""
    forward_partial_messages: bool
    """Show messages as they are written; True by default."""
    api_retries: int | None
    """How often a failed API call is tried again; None: as often as Claude Code likes (10)."""
    detached: bool
    """Declare no session state and continue nothing by itself; False by default."""
    resume: Resume | None
    """Detached only: which conversation to continue, or None for a fresh one."""
    on_session: OnSession | None
    """Detached only: awaited once, as soon as the agent has named its conversation."""
    provider: BindingProvider[Any] | None
    """In session only: what ties runs to conversations; None: ``SdkAgentRuns`` in its state."""
    on_errored: OnErrored | None
    """After the run has raised or was cancelled; never for what the agent itself reports."""
    on_activity: OnActivity | None
    """Each message the agent completes and each tool call it starts; not awaited."""
    on_usage: HarnessUsageHook | None
    """Where a limit of the subscription stands, each time Claude Code tells; awaited."""
    on_tool_approval: OnToolApproval | None
    """Asked about each tool call that nothing else allows or denies; see also ``HeldAnswers``."""
    on_steerable: OnSteerable | None
    """Given an offer when the run can take a person's lines; may go on as long as the run does."""
    options: Mapping[str, Any]
    """Further fields of the SDK's ``ClaudeAgentOptions``; none that is decided here."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSettings:
    """The options, checked; sequences and mappings are copies."""

    name: str
    cwd: Cwd | None
    model: str | ModelResolver | None
    system_prompt: str | Mapping[str, Any] | None
    env: Mapping[str, str] | None
    permission_mode: PermissionMode | None
    allowed_tools: tuple[str, ...]
    disallowed_tools: tuple[str, ...]
    setting_sources: tuple[SettingSource, ...] | None
    settings: Mapping[str, Any] | None
    sandbox: Sandbox | SandboxResolver | None
    mcp_tools: McpServers | McpToolsResolver | None
    max_turns: int | None
    max_budget_usd: float | None
    agents: Mapping[str, AgentDefinition] | None
    hooks: Mapping[Any, Sequence[HookMatcher]] | None
    plugins: tuple[SdkPluginConfig, ...]
    skills: tuple[str, ...] | Literal["all"] | None
    forward_partial_messages: bool
    api_retries: int | None
    detached: bool
    resume: Resume | None
    on_session: OnSession | None
    provider: BindingProvider[Any] | None
    on_errored: OnErrored | None
    on_activity: OnActivity | None
    on_usage: HarnessUsageHook | None
    on_tool_approval: OnToolApproval | None
    on_steerable: OnSteerable | None
    options: Mapping[str, Any]


_OWN_CONVERSATION = "Which conversation a run is in is decided by the session, or by resume=."
_OWN_APPROVAL = "Use on_tool_approval=."
_OWN_RUN = "The block needs it for itself."
_OWNED: Mapping[str, str] = {
    **{
        name: f"Use the option {name}= of claude_code_agent."
        for name in (
            *("cwd", "model", "system_prompt", "env", "permission_mode", "allowed_tools"),
            *("disallowed_tools", "setting_sources", "settings", "sandbox", "max_turns"),
            *("max_budget_usd", "agents", "hooks", "plugins", "skills"),
        )
    },
    "resume": _OWN_CONVERSATION,
    "continue_conversation": _OWN_CONVERSATION,
    "session_id": _OWN_CONVERSATION,
    "fork_session": _OWN_CONVERSATION,
    "resume_session_at": _OWN_CONVERSATION,
    "resume_drops_turn": _OWN_CONVERSATION,
    "can_use_tool": _OWN_APPROVAL,
    "permission_prompt_tool_name": _OWN_APPROVAL,
    "include_partial_messages": "Use forward_partial_messages=.",
    "forward_subagent_text": "What sub-agents say is always heard.",
    "verbatim_prompts": "A prompt is always data: it is never searched for commands or files.",
    "stderr": _OWN_RUN,
    "debug_stderr": _OWN_RUN,
    "max_buffer_size": _OWN_RUN,
}
"""What ``options`` may not name, and what to do instead."""

_FUNCTIONS = (
    *("resume", "on_session", "on_errored", "on_activity", "on_usage", "on_tool_approval"),
    "on_steerable",
)

_OWNED_FLAGS = frozenset(
    {"resume", "continue", "session-id", "fork-session", "print", "output-format", "input-format"}
)


def split_options(options: ClaudeCodeOptions) -> tuple[AgentSettings, BlockOptions]:
    """
    The agent's settings and the block's, checked.

    Raises:
        DefinitionError: an option is unknown, has a value that can't work, or is given where it
            has no meaning.
    """
    given: dict[str, Any] = dict(options)
    block = cast(
        "BlockOptions",
        {key: given.pop(key) for key in BlockOptions.__annotations__ if key in given},
    )
    block.setdefault("name", NAME)
    name = block.get("name", NAME)
    unknown = sorted(set(given) - set(ClaudeCodeOptions.__annotations__))
    if unknown:
        raise DefinitionError(
            name,
            f"unknown option {', '.join(unknown)}",
            "Give a field of the SDK's ClaudeAgentOptions in options={...}.",
        )
    if block.get("pure"):
        raise DefinitionError(name, "an agent is never pure", "Drop pure=True.")
    _check_conversation(name, given)
    _check_functions(name, given)
    _check_numbers(name, given)
    env = given.get("env")
    settings = AgentSettings(
        name=name,
        cwd=given.get("cwd"),
        model=_model(name, given.get("model")),
        system_prompt=_system_prompt(name, given.get("system_prompt")),
        env=None if env is None else _environment(name, env),
        permission_mode=_permission_mode(name, given.get("permission_mode")),
        allowed_tools=_texts(name, "allowed_tools", given.get("allowed_tools", ())),
        disallowed_tools=_texts(name, "disallowed_tools", given.get("disallowed_tools", ())),
        setting_sources=_sources(name, given.get("setting_sources")),
        settings=_mapping(name, "settings", given.get("settings")),
        sandbox=_sandbox(name, given.get("sandbox")),
        mcp_tools=_mcp_tools(name, given),
        max_turns=given.get("max_turns"),
        max_budget_usd=given.get("max_budget_usd"),
        agents=_mapping(name, "agents", given.get("agents")),
        hooks=_hooks(name, given.get("hooks")),
        plugins=tuple(given.get("plugins") or ()),
        skills=_skills(name, given.get("skills")),
        forward_partial_messages=bool(given.get("forward_partial_messages", True)),
        api_retries=given.get("api_retries"),
        detached=bool(given.get("detached", False)),
        resume=given.get("resume"),
        on_session=given.get("on_session"),
        provider=given.get("provider"),
        on_errored=given.get("on_errored"),
        on_activity=given.get("on_activity"),
        on_usage=given.get("on_usage"),
        on_tool_approval=given.get("on_tool_approval"),
        on_steerable=given.get("on_steerable"),
        options=_rest(name, given.get("options", {})),
    )
    return settings, block


def _check_conversation(name: str, given: Mapping[str, Any]) -> None:
    provider = given.get("provider")
    if provider is not None:
        check_provider(name, provider, detached=bool(given.get("detached")))
    if given.get("detached"):
        return
    for option in ("resume", "on_session"):
        if given.get(option) is not None:
            raise DefinitionError(
                name,
                f"{option}= without detached=True: in session, the block itself continues the "
                "last run and records the new one",
                f"Say detached=True, or drop {option}=.",
            )


def _check_functions(name: str, given: Mapping[str, Any]) -> None:
    cwd = given.get("cwd")
    if cwd is not None and not callable(cwd):
        raise DefinitionError(
            name,
            f"cwd={cwd!r} is one directory for all runs, and one flow serves many at once",
            "Give a function of the context: cwd=lambda ctx: ....",
        )
    for option in _FUNCTIONS:
        if given.get(option) is not None and not callable(given[option]):
            raise DefinitionError(
                name, f"{option}={given[option]!r} is no function", f"Give {option} a function."
            )
    if inspect.iscoroutinefunction(given.get("on_activity")):
        raise DefinitionError(
            name, "on_activity is async, and it isn't awaited", "Make it a plain function."
        )


def _check_numbers(name: str, given: Mapping[str, Any]) -> None:
    def check(option: str, kinds: tuple[type, ...], least: float, way_out: str) -> None:
        value: Any = given.get(option)
        if value is None:
            return
        number = isinstance(value, kinds) and not isinstance(value, bool)
        if not number or given[option] < least:
            raise DefinitionError(name, f"{option}={value!r}", way_out)

    # The SDK drops a max_turns of 0 without a word, and the run would have no limit at all.
    check("max_turns", (int,), 1, "Give a whole number of turns, 1 or more.")
    check("max_budget_usd", (int, float), 0, "Give US dollars, 0 or more.")
    check("api_retries", (int,), 0, "Give a whole number, 0 or more.")


def _hooks(name: str, value: object) -> Any:
    hooks: dict[Any, Any] = _mapping(name, "hooks", value) or {}
    return {event: list(matchers) for event, matchers in hooks.items()} or None


def _model(name: str, value: object) -> Any:
    if value is None or callable(value) or (isinstance(value, str) and value):
        return value
    raise DefinitionError(
        name, f"model={value!r}", "Give a model id, a function of the context, or None."
    )


def _system_prompt(name: str, value: object) -> str | Mapping[str, Any] | None:
    if value is None or isinstance(value, str):
        return value
    prompt: Mapping[str, Any] = _mapping(name, "system_prompt", value)
    return prompt


def _environment(name: str, value: object) -> Mapping[str, str]:
    variables: dict[str, str] = _mapping(name, "env", value)
    for variable, text in variables.items():
        check_variable(name, variable, text)
    reserved = sorted(RESERVED & variables.keys())
    if reserved:
        raise DefinitionError(
            name, f"env sets {', '.join(reserved)}", "The block sets it itself; leave it out."
        )
    return variables


def _permission_mode(name: str, value: object) -> Any:
    if value is None or value in get_args(PermissionMode):
        return value
    modes = ", ".join(repr(mode) for mode in get_args(PermissionMode))
    raise DefinitionError(name, f"permission_mode={value!r}", f"Use one of {modes}.")


def _sources(name: str, value: object) -> tuple[SettingSource, ...] | None:
    if value is None:
        return None
    sources = _texts(name, "setting_sources", value)
    for source in sources:
        if source not in SOURCES:
            names = ", ".join(repr(known) for known in SOURCES)
            raise DefinitionError(
                name, f"setting_sources holds {source!r}", f"Use some of {names}, or []."
            )
    return cast("tuple[SettingSource, ...]", sources)


def _sandbox(name: str, value: object) -> Any:
    return value if callable(value) else _mapping(name, "sandbox", value)


def _mcp_tools(name: str, given: Mapping[str, Any]) -> McpServers | McpToolsResolver | None:
    tools = given.get("mcp_tools")
    if tools is None:
        return None
    check_alone(name, given.get("options") or {})
    return cast("McpToolsResolver", tools) if callable(tools) else checked_servers(name, tools)


def _skills(name: str, value: object) -> tuple[str, ...] | Literal["all"] | None:
    if value is None:
        return None
    if value == "all":
        return "all"
    return _texts(name, "skills", value)


def _texts(name: str, option: str, value: object) -> tuple[str, ...]:
    if not isinstance(value, str) and isinstance(value, Sequence):
        entries = tuple(cast("Sequence[object]", value))
        if all(isinstance(entry, str) and entry for entry in entries):
            return cast("tuple[str, ...]", entries)
    raise DefinitionError(name, f"{option}={value!r}", f"Give {option} a list of texts.")


def _mapping(name: str, option: str, value: object) -> Any:
    if value is None:
        return None
    if isinstance(value, Mapping):
        return dict(cast("Any", value))
    # The value isn't shown: it may hold secrets.
    raise DefinitionError(
        name, f"{option} is of type {type(value).__name__}", f"Give {option} a mapping."
    )


def _rest(name: str, value: object) -> Mapping[str, Any]:
    rest: dict[str, Any] = _mapping(name, "options", value)
    for option in rest:
        if option in _OWNED:
            raise DefinitionError(name, f"options names {option!r}", _OWNED[option])
    flags: dict[str, Any] = _mapping(name, "options['extra_args']", rest.get("extra_args")) or {}
    for flag in flags:
        if flag.lstrip("-") in _OWNED_FLAGS:
            raise DefinitionError(name, f"options names the flag {flag!r}", _OWN_RUN)
    return rest
