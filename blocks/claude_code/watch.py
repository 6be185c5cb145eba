"""
When a Claude Code run is over: pure, told all that is heard, asked after each.

A result ends a turn, not the run: a sub-agent in the background wakes the agent for another turn.
And a turn isn't always ours: a resumed conversation first tells, in a turn of its own that ends in
a result, what became of commands that were killed. So a run is over when there is a result for
its prompt and Claude Code says that it is idle; the two come in either order. A release that
never tells its state is over at such a result with no sub-agent at work.
"""

from __future__ import annotations

from typing import final

from flowstate.blocks.claude_code.heard import (
    Answered,
    AssistantHeard,
    Heard,
    ResultHeard,
    StateHeard,
    StreamCounted,
    Streamed,
    StreamStarted,
    TaskEnded,
    TaskStarted,
    Took,
)

OF_NO_NOTE = frozenset[type[Heard]]({Streamed, StreamCounted, Answered})
"""What comes often and tells nothing of the end: it need not be noted."""

_AGENT_KINDS = frozenset({"local_agent", "local_workflow"})


@final
class RunWatch:
    """
    What has been heard so far of one connection.

    Args:
        prompt_id: the id that the prompt was sent with.
    """

    def __init__(self, prompt_id: str) -> None:
        self.answers = 0
        """How many results came since the prompt was taken in."""
        self.state: str | None = None
        """The state that Claude Code told last: ``running``, ``idle``, …; None if it told none."""
        self._prompt_id = prompt_id
        self.taken = False
        """Whether Claude Code has said that it took the prompt in."""
        self._turn_open = False
        self._tasks: dict[str, str | None] = {}

    def note(self, heard: Heard) -> None:
        """Take one thing heard into account."""
        match heard:
            case AssistantHeard() | StreamStarted():
                self._turn_open = self._turn_open or heard.parent is None
            case ResultHeard(is_error=is_error):
                # Releases that don't tell what they took in: a turn in which nothing was said was
                # not the prompt's, unless it failed.
                if self.taken or self._turn_open or is_error:
                    self.answers += 1
                self._turn_open = False
            case Took(uuids=uuids):
                self.taken = self.taken or self._prompt_id in uuids
            case StateHeard(state=state):
                self.state = state
            case TaskStarted(task_id=task, kind=kind):
                self._tasks[task] = kind
            case TaskEnded(task_id=task):
                self._tasks.pop(task, None)
            case _:
                pass

    @property
    def idle(self) -> bool:
        """Whether nothing is going on and no further turn is owed, as far as was told."""
        return self.settled if self.state is None else self.state == "idle"

    @property
    def over(self) -> bool:
        """Whether the run has its outcome."""
        return self.answers > 0 and self.idle

    @property
    def settled(self) -> bool:
        """Whether the last result stands: no turn begun after it, no sub-agent at work."""
        agents = any(kind in _AGENT_KINDS for kind in self._tasks.values())
        return self.answers > 0 and not self._turn_open and not agents

    @property
    def live_tasks(self) -> tuple[str, ...]:
        """The ids of tasks, background commands among them, that were not heard to end."""
        return tuple(self._tasks)

    def __repr__(self) -> str:
        return f"RunWatch({self.answers} answers, state {self.state}, {len(self._tasks)} tasks)"
