"""
Connects a client, and hears how its process ends if it dies of that.

The SDK's client stops reading its process's standard error the moment it gives up connecting.
Often that is too early: a write to a process that is on its way out fails before the process has
said why, and then neither its words nor its exit code are heard. So the letting go is put off
until the process has ended, bounded in time. And a process that ends without an error while it is
connected to is not noticed by the SDK, which would wait for its answer for a minute: that is
looked for here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

import anyio

if TYPE_CHECKING:
    from claude_agent_sdk import ClaudeSDKClient, Message

END_SECONDS = 2.0
"""How long a process to which no connection could be made may take to end by itself."""

LAST_WORDS_SECONDS = 0.1
"""How long to go on reading the standard error of a process that has died."""

LOOK_SECONDS = 5.0
"""When it is looked for the end of a process that hasn't answered; most have in one second."""


class EndedSilently(Exception):
    """The process ended, without an error, before it had answered."""

    def __init__(self) -> None:
        super().__init__("its process ended before it had answered")


async def connect(
    client: ClaudeSDKClient, *, starting: Callable[[], bool], failed: Callable[[Exception], None]
) -> list[Message]:
    """
    Connect a client, which disconnects by itself if that fails: then its process is heard out.

    Args:
        starting: whether the client is still wanted; false once its process is to be stopped.
        failed: told how the process ended, which says more than what connecting raises then.

    Returns:
        What was heard already, when it took long; almost always nothing.

    Raises:
        EndedSilently: the process is gone.
        Exception: whatever the SDK raised.
    """
    _put_off(client, starting, failed)
    early: list[Message] = []
    raised: Exception | None = None
    connecting = anyio.CancelScope()

    async def look() -> None:
        await anyio.sleep(LOOK_SECONDS)
        while not await _ended(client, early):  # noqa: ASYNC110
            await anyio.sleep(LAST_WORDS_SECONDS)
        # What the SDK itself raises comes first.
        await anyio.sleep(LAST_WORDS_SECONDS)
        connecting.cancel()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(look)
        with connecting:
            try:
                await client.connect()
            except Exception as error:
                # Raised after the group: in it, it would come out as a group of one.
                raised = error
        tasks.cancel_scope.cancel()
    if raised is not None:
        raise raised
    if connecting.cancelled_caught:
        raise EndedSilently
    return early


def _put_off(
    client: ClaudeSDKClient, starting: Callable[[], bool], failed: Callable[[Exception], None]
) -> None:
    """Have a client that can't connect listen for a while before it disconnects."""
    let_go = client.disconnect

    async def disconnect() -> None:
        try:
            if starting():
                with anyio.move_on_after(END_SECONDS):
                    ending = await _ending(client)
                    if ending is not None:
                        failed(ending)
                await anyio.sleep(LAST_WORDS_SECONDS)
        finally:
            await let_go()

    cast("Any", client).disconnect = disconnect


async def _ending(client: ClaudeSDKClient) -> Exception | None:
    """Wait for the end of what a client hears; the error with the exit code, if there is one."""
    try:
        async for _ in client.receive_messages():
            pass
    except Exception as error:
        return error if getattr(error, "exit_code", None) is not None else None
    return None


async def _ended(client: ClaudeSDKClient, early: list[Message]) -> bool:
    """Listen until a process ends; False if it can't be listened to, or not yet."""
    try:
        async for message in client.receive_messages():
            early.append(message)
    except Exception:
        return False
    return True
