"""
The tool calls and sub-agents of one run, as items and as what is at work.

Everything is known by the id of its call, so a result or a task finds its call whatever came in
between. A tool is one item. A sub-agent is a container: one in the foreground ends with its call's
result; one in the background ends with its task, and its call's result only says that it was
launched. Tasks of other kinds (a long command) are no sub-agents.

The id of a call is its item's key as well, unless it is a stranger one than Claude Code's. Keys
that are made here and in ``speech`` have a slash in them, and so never meet one.

Pure and total: calls, results and tasks may be lost, repeated or out of order. A result whose call
was never heard is an item of its own; a thread whose sub-agent was never heard gets a container all
the same. What is open at the end is incomplete.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, final

from flowstate.blocks.claude_code import wording
from flowstate.blocks.claude_code.heard import (
    Answered,
    Called,
    TaskEnded,
    TaskProgressed,
    TaskStarted,
)
from flowstate.blocks.claude_code.json_value import JsonValue, items_of, mapping_of, text_of
from flowstate.blocks.claude_code.status_line import RunStatusLine
from flowstate.harness.effect import ChangeItem, Effect, OpenItem, SettleItem, ToolActivity
from flowstate.item.content import Container, ErrorReport, ToolOutput, unchecked
from flowstate.item.item import SettledStatus

SUB_AGENT: Final = "sub_agent"
"""The kind of a sub-agent's container."""

SUB_AGENT_FAILED: Final = "sub_agent_failed"
"""The code of the error item in a container whose sub-agent failed; the run goes on."""

UNKNOWN: Final = "unknown"
"""The name of a tool whose result was heard and whose call was not."""

_ORDINARY_ID: Final = re.compile(r"[\w-]+", re.ASCII)
_AGENT_TOOLS: Final = frozenset({"Agent", "Task"})
_AGENT: Final = "Agent"
"""The name of a sub-agent whose call was not heard."""

_AGENT_TASK: Final = "local_agent"

_json = json.JSONEncoder(ensure_ascii=False).encode

_REJECTED: Final = "User rejected tool use"
"""The record of a call that didn't run because the turn was stopped, at another call perhaps."""


@final
@dataclass(slots=True)
class _Call:
    """A tool call, or the sub-agent that it started."""

    key: str
    """The key of its item."""
    call_id: str
    name: str = UNKNOWN
    arguments: JsonValue = None
    group: str | None = None
    """The key of the container that it lies in."""
    heard: bool = False
    """Whether the call itself was heard, not only something that belongs to it."""
    is_agent: bool = False
    in_background: bool = False
    description: str | None = None
    last_tool: str | None = None
    at_work: bool = True
    settled: bool = False

    @property
    def label(self) -> str:
        kind = text_of(mapping_of(self.arguments).get("subagent_type"))
        return self.description or kind or self.name


@final
class Calls:
    """
    The calls of one run. What is at work is told to the line.

    Attributes:
        tools: the distinct names of the tools that were called, in the order of first use.
    """

    def __init__(self, line: RunStatusLine, *, activity: bool) -> None:
        self.tools: dict[str, None] = {}
        self._line = line
        self._activity = activity
        self._calls: list[_Call] = []
        self._by_id: dict[str, _Call] = {}
        self._inside: dict[str, _Call] = {}
        """Containers of threads that run in a tool which is no sub-agent, by the tool's call id."""
        self._tasks: dict[str, _Call] = {}
        self._on_server: list[_Call] = []
        self._held: set[str] = set()

    def hold(self, call_id: str) -> None:
        """A person is to decide this call later; see ``Translator.hold``."""
        self._held.add(call_id)

    def group(self, parent: str | None, effects: list[Effect]) -> str | None:
        """
        The key of the container for what is said in a thread; opened, into ``effects``, if need be.

        Args:
            parent: the call that the thread belongs to; None for the main thread, which has none.
        """
        if parent is None:
            return None
        call = self._by_id.get(parent)
        if call is not None and not call.is_agent:
            # Not a sub-agent by name, yet a thread runs in it: a skill can be one.
            if parent not in self._inside:
                inside = _Call(f"{call.key}/inside", parent, call.name, group=call.group)
                self._inside[parent] = inside
                self._calls.append(inside)
                effects += self._open_agent(inside)
            return self._inside[parent].key
        if call is None:
            call = self._new(parent, _AGENT)
            effects += self._open_agent(call)
        return call.key

    def called(self, heard: Called, group: str | None) -> list[Effect]:
        """The model calls a tool, or starts a sub-agent."""
        self.tools[heard.name] = None
        call = self._by_id.get(heard.call_id)
        if call is not None and call.heard:
            return []
        effects: list[Effect] = []
        if call is None:
            call = self._new(heard.call_id, heard.name, heard.arguments, group)
            is_agent = heard.name in _AGENT_TOOLS
            effects += self._open_agent(call) if is_agent else self._open_tool(call)
        call.heard = True
        call.name, call.arguments = heard.name, heard.arguments
        if call.is_agent:
            arguments = mapping_of(heard.arguments)
            call.in_background |= arguments.get("run_in_background") is True
            effects += self._describe(call, text_of(arguments.get("description")))
        elif not call.settled:
            self._line.begin(call.key, wording.using(heard.name, heard.arguments))
            if heard.on_server:
                self._on_server.append(call)
        if self._activity:
            effects.append(ToolActivity(heard.name, _json(heard.arguments)))
        return effects

    def answered(self, heard: Answered) -> list[Effect]:
        """A tool's result, or that of the call which started a sub-agent."""
        effects: list[Effect] = []
        group = self.group(heard.parent, effects)
        call = self._by_id.get(heard.call_id)
        if call is None:
            call = self._new(heard.call_id, UNKNOWN, None, group)
            effects += self._open_tool(call)
        if call.is_agent:
            return effects + self._agent_answered(call, heard)
        self._line.finish(call.key)
        if call.settled:
            return effects
        if self._held and (call.call_id in self._held or heard.detail == _REJECTED):
            return effects + self._settle(call, "incomplete")
        content = unchecked(
            ToolOutput,
            call_id=call.call_id,
            name=call.name,
            arguments=call.arguments,
            output=heard.output,
            is_error=heard.is_error,
        )
        call.settled = True
        effects.append(SettleItem(call.key, content, "failed" if heard.is_error else "completed"))
        inside = self._inside.get(call.call_id)
        return effects + (self._end_agent(inside, "completed") if inside is not None else [])

    def finish_on_server(self, group: str | None) -> list[Effect]:
        """A message is over: so are the calls that the API ran within it, told of or not."""
        effects: list[Effect] = []
        if not self._on_server:
            return effects
        for call in self._on_server:
            if call.group == group:
                self._line.finish(call.key)
                effects += self._settle(call, "completed")
        self._on_server = [call for call in self._on_server if not call.settled]
        return effects

    def task_started(self, heard: TaskStarted) -> list[Effect]:
        """A task began; only sub-agents matter here."""
        call = self._by_id.get(heard.call_id or "")
        effects: list[Effect] = []
        if call is None and heard.call_id is not None and heard.kind == _AGENT_TASK:
            call = self._new(heard.call_id, _AGENT)
            effects += self._open_agent(call)
        if call is None or not call.is_agent or heard.kind not in (_AGENT_TASK, None):
            return effects
        self._tasks[heard.task_id] = call
        call.in_background |= heard.in_background
        call.at_work = True
        return effects + self._describe(call, heard.description)

    def task_progressed(self, heard: TaskProgressed) -> None:
        """A sub-agent goes on: what it is at shows on the line."""
        call = self._agent(heard.task_id, heard.call_id)
        if call is None or not call.at_work:
            return
        call.last_tool = heard.last_tool or call.last_tool
        self._show(call, heard.summary)

    def task_ended(self, heard: TaskEnded) -> list[Effect]:
        """A sub-agent is over, by its task."""
        call = self._agent(heard.task_id, heard.call_id)
        if call is None:
            return []
        status: SettledStatus = "incomplete" if heard.status == "stopped" else heard.status
        return self._end_agent(call, status, heard.reason)

    def end(self) -> list[Effect]:
        """The run is over: what is open is incomplete, what lies in a container before it."""
        return [e for call in reversed(self._calls) for e in self._settle(call, "incomplete")]

    def __len__(self) -> int:
        return len(self._calls)

    def _new(
        self, call_id: str, name: str, arguments: JsonValue = None, group: str | None = None
    ) -> _Call:
        ordinary = _ORDINARY_ID.fullmatch(call_id) is not None
        key = call_id if ordinary else f"odd/{len(self._calls)}"
        call = _Call(key, call_id, name, arguments, group)
        self._calls.append(call)
        if call_id:
            self._by_id[call_id] = call
        return call

    def _open_tool(self, call: _Call) -> list[Effect]:
        content = unchecked(
            ToolOutput, call_id=call.call_id, name=call.name, arguments=call.arguments
        )
        return [OpenItem(call.key, content, call.group)]

    def _open_agent(self, call: _Call) -> list[Effect]:
        call.is_agent = True
        call.description = text_of(mapping_of(call.arguments).get("description"))
        return [OpenItem(call.key, Container(label=call.label, kind=SUB_AGENT), call.group)]

    def _describe(self, call: _Call, description: str | None) -> list[Effect]:
        """What the sub-agent is for; its label if it had a lesser one."""
        before = call.label
        call.description = call.description or description
        if call.at_work:
            self._show(call, None)
        if call.settled or call.label == before:
            return []
        return [ChangeItem(call.key, Container(label=call.label, kind=SUB_AGENT))]

    def _show(self, call: _Call, summary: str | None) -> None:
        text = wording.sub_agent(summary, call.description, call.last_tool)
        if text is not None:
            self._line.begin(call.key, text)

    def _agent(self, task_id: str, call_id: str | None) -> _Call | None:
        call = self._by_id.get(call_id) if call_id is not None else self._tasks.get(task_id)
        return call if call is not None and call.is_agent else None

    def _agent_answered(self, call: _Call, heard: Answered) -> list[Effect]:
        detail = mapping_of(heard.detail)
        launched = detail.get("isAsync") is True or detail.get("status") == "async_launched"
        call.in_background |= launched
        if call.in_background and not heard.is_error:
            return []
        if heard.is_error and self._held:
            # It was stopped with the turn, for a call that waits: maybe one of its own.
            return self._end_agent(call, "incomplete")
        if heard.is_error:
            return self._end_agent(call, "failed", _words(heard.output))
        return self._end_agent(call, "completed")

    def _end_agent(
        self, call: _Call, status: SettledStatus, reason: str | None = None
    ) -> list[Effect]:
        call.at_work = False
        self._line.finish(call.key)
        for inner in self._lying_in(call.key):
            # A stopped sub-agent's last results may yet come, and settle their items.
            self._line.finish(inner.key)
        if call.settled:
            return []
        effects: list[Effect] = []
        if status == "failed" and reason:
            key = f"{call.key}/failure"
            content = ErrorReport(code=SUB_AGENT_FAILED, message=reason)
            effects += [OpenItem(key, content, call.key), SettleItem(key)]
        return effects + self._settle(call, status)

    def _lying_in(self, key: str) -> Iterator[_Call]:
        return (call for call in self._calls if call.group == key)

    def _settle(self, call: _Call, status: SettledStatus) -> list[Effect]:
        if call.settled:
            return []
        call.settled = True
        return [SettleItem(call.key, status=status)]


def _words(output: JsonValue) -> str:
    """The text of a result, its images and other blocks left out."""
    if isinstance(output, str):
        return output
    texts = (text_of(mapping_of(block).get("text")) for block in items_of(output))
    return "\n".join(text for text in texts if text is not None)
