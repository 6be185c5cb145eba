"""
Claude Code as a block: ``claude_code_agent(...)``.

The prompt is the input; everything else is configuration. The block returns a handle that says
how the run ended, and raises where the run could not be started or its outcome not be heard.
"""

from __future__ import annotations

from typing_extensions import Unpack

from flowstate.blocks.claude_code.conversation import agent_runs_state
from flowstate.blocks.claude_code.handle import ClaudeCodeHandle
from flowstate.blocks.claude_code.options import ClaudeCodeOptions, split_options
from flowstate.blocks.claude_code.run import AgentRun
from flowstate.context import Context
from flowstate.define.handler import Handler, make_handler
from flowstate.harness.handle import HarnessRunInput


def claude_code_agent(
    **options: Unpack[ClaudeCodeOptions],
) -> Handler[HarnessRunInput, ClaudeCodeHandle]:
    """
    A block that runs a Claude Code agent: ``seq.step(claude_code_agent(...))``.

    In session (the default) it declares ``SdkAgentRuns`` as session state, continues the last
    conversation that an agent of this name had there, and writes down the one it is in.
    ``detached=True`` declares and continues nothing; see ``resume`` and ``on_session``.

    A tool call that ``on_tool_approval`` holds for a person ends the run without an error; the
    handle's ``waiting`` names it, and the next run in the conversation decides it. A person's lines
    reach a turn that is running through ``on_steerable``.

    Args:
        options: see ``ClaudeCodeOptions``; all may be left out.

    Raises:
        DefinitionError: when it is built: an option is unknown or can't work. When it runs: a
            resolver's answer, or a name in ``options``, can't be used.
        EmptyPromptError: the prompt is empty.
        MissingHomeError: ``env`` has no ``HOME``.
        MissingDirectoryError: the directory that ``cwd`` returned isn't there.
        LauncherUnusable: ``env`` is given, and no launcher can be run from the temporary directory.
        ClaudeAgentSdkNotInstalledError: the SDK isn't installed, or is too old.
        UnknownConversationError: Claude Code doesn't know the conversation to continue; in session
            it is forgotten, so that the next run starts afresh.
        SandboxUnavailableError: a sandbox was asked for and there is none.
        ClaudeAgentRunError: the process died, or what it sent broke off, before there was a result.
    """
    settings, block = split_options(options)
    uses = tuple(block.get("uses", ()))
    if not settings.detached and agent_runs_state() not in uses:
        block["uses"] = (*uses, agent_runs_state())

    async def claude_code(value: HarnessRunInput, ctx: Context) -> ClaudeCodeHandle:
        return await AgentRun(settings, value, ctx).run()

    return make_handler(
        claude_code, input_type=HarnessRunInput, output_type=ClaudeCodeHandle, **block
    )
