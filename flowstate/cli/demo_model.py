"""
Who plays the model in ``flowstate demo``: a script on loopback, or the real service.

Either gives the agent's environment. Only the script can hold the second request until the third
has come, and can tell what it was sent.
"""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Protocol, final

import anyio

from flowstate.cli.demo_script import HELD_TURN, PROMPTS, script
from flowstate.harness.environment import harness_env
from flowstate.request.lifecycle import ENDED
from flowstate.request.run import Run
from flowstate.testing.agent_home import clean_home
from flowstate.testing.messages_api import ScriptedMessagesApi
from flowstate.testing.received_request import ReceivedRequest


class DemoFailed(Exception):
    """The demo didn't do what it is there to show."""


class Model(Protocol):
    """What the demo needs of whoever plays the model."""

    @property
    def env(self) -> Mapping[str, str]:
        """The whole environment of the agent."""
        ...

    @property
    def introduction(self) -> Sequence[str]:
        """What to tell the user at the beginning."""
        ...

    async def until_at_work(self, run: Run[object]) -> None:
        """Wait until the second request is in the midst of its work, or over."""
        ...

    def go_on(self) -> None:
        """The third request has been sent: what was held for it may go on."""
        ...

    def history(self) -> str:
        """
        What shows that the second request continued the conversation.

        Raises:
            DemoFailed: it didn't.
        """
        ...


def demo_model(*, live: bool, third: bool) -> AbstractAsyncContextManager[Model]:
    """
    The model, for as long as the demo lasts.

    Args:
        live: the real service, with the user's own key or sign-in.
        third: whether the third request will be run.
    """
    return _real() if live else _scripted(third)


# --- the script -----------------------------------------------------------------------------------


@final
class _Scripted:
    def __init__(self, api: ScriptedMessagesApi, env: Mapping[str, str]) -> None:
        self._api = api
        self.env = env
        self.introduction = (
            "The agent is the real Claude Code: its tools run, its files are real.",
            f"The model is a script on {api.url}: no key, no network, nothing spent.",
        )

    async def until_at_work(self, run: Run[object]) -> None:
        while run.status not in ENDED:
            if len(self._of(PROMPTS[1])) >= HELD_TURN:
                return
            await anyio.sleep(0.02)

    def go_on(self) -> None:
        self._api.release()

    def history(self) -> str:
        requests = self._of(PROMPTS[1])
        if not requests:
            raise DemoFailed("The endpoint was never sent the second request.")
        first = requests[0]
        if not any(PROMPTS[0] in said for said in first.user_texts):
            raise DemoFailed("The second request came without the first one's conversation.")
        count = len(first.body.get("messages", ()))
        return (
            f"The endpoint was sent the history: the second request came as the last of {count} "
            f"messages, the first of which asks “{PROMPTS[0][:34]}…”."
        )

    def _of(self, prompt: str) -> list[ReceivedRequest]:
        """The conversation's requests while this prompt was the last one."""
        return [
            request
            for request in self._api.conversation()
            if (asked := [said for said in request.user_texts if _asks(said)])
            and prompt in asked[-1]
        ]


def _asks(said: str) -> bool:
    return any(prompt in said for prompt in PROMPTS)


@asynccontextmanager
async def _scripted(third: bool) -> AsyncGenerator[Model]:
    async with ScriptedMessagesApi(*script(third)) as api, clean_home(api) as home:
        # The agent's commands find the Python that runs this, whatever else is installed.
        path = os.pathsep.join((os.path.dirname(sys.executable), home.env["PATH"]))
        yield _Scripted(api, {**home.env, "PATH": path, "PYTHONDONTWRITEBYTECODE": "1"})


# --- the real service -----------------------------------------------------------------------------


@final
class _Real:
    def __init__(self, env: Mapping[str, str]) -> None:
        self.env = env
        self.introduction = (
            "The agent is the real Claude Code, and so is the model: this spends your tokens.",
        )

    async def until_at_work(self, run: Run[object]) -> None:
        await run.started()
        await anyio.sleep(2.0)

    def go_on(self) -> None:
        return None

    def history(self) -> str:
        return "Claude Code continued the conversation of the first request."


@asynccontextmanager
async def _real() -> AsyncGenerator[Model]:
    from flowstate.blocks.claude_code import CLAUDE_CODE_PASS

    names = (*CLAUDE_CODE_PASS, "CLAUDE_CONFIG_DIR", "ANTHROPIC_BASE_URL", "ANTHROPIC_AUTH_TOKEN")
    yield _Real(harness_env(pass_=names))
