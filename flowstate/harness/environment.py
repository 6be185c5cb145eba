"""
The environment of an agent's run: built out of a list of names, and kept out of what is shown.

Nothing is implicit: a name that isn't listed isn't passed. What an agent says on its way down can
hold values of its environment, so those that look secret are taken out of it here.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from typing import final
from urllib.parse import urlsplit

from flowstate.errors import DefinitionError

_SECRET_NAME = re.compile(
    r"KEY$|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL|_PASS$|_AUTH$|_PAT$", re.IGNORECASE
)
_SECRET_TEXT = re.compile(r"sk-ant-[A-Za-z0-9_-]+|(?<=Bearer )\S+")
_SHORTEST = 4
"""Shorter values would take ordinary letters out of every line."""

REDACTED = "[redacted]"


def harness_env(*, pass_: Iterable[str]) -> dict[str, str]:
    """
    The server's values of these variables, and of no others; read once, now.

    Args:
        pass_: the names. One that isn't set on the server is left out, one that is set to an empty
            text is kept. ``PATH`` and ``HOME`` have to be named like any other.

    Raises:
        DefinitionError: ``pass_`` is a single text, or holds something that can't be a name.

    >>> harness_env(pass_=["FLOWSTATE_NOT_SET"])
    {}
    """
    if isinstance(pass_, str):
        raise DefinitionError(
            "harness_env", f"pass_={pass_!r} is a text", "Give a list of names: pass_=[...]."
        )
    names = list(pass_)
    for name in names:
        check_variable("harness_env", name, "")
    return {name: os.environ[name] for name in names if name in os.environ}


def check_variable(where: str, name: object, value: object) -> None:
    """
    Refuse what no process can be given as a variable; the value is never named in the error.

    Raises:
        DefinitionError: the name is no text, is empty or holds ``=`` or NUL, or the value is no
            text or holds NUL.
    """
    if not isinstance(name, str) or not name or "=" in name or "\0" in name:
        raise DefinitionError(
            where, f"{name!r} can't name an environment variable", "Use a text without '=' and NUL."
        )
    if not isinstance(value, str) or "\0" in value:
        raise DefinitionError(
            where,
            f"the value of environment variable {name!r} can't be passed",
            "Use a text without NUL.",
        )


@final
class Redactor:
    """
    Takes an environment's secrets out of texts.

    A value is secret if its name looks it (``…_KEY``, ``…TOKEN…``, ``…SECRET…``, ``…PASSWORD…`` and
    their like) and it has 4 characters or more; so is the user info of a URL in any variable, for
    example a proxy's, and what looks like an Anthropic key or a bearer token wherever it stands.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        found: set[str] = set()
        for name, value in environment.items():
            if _SECRET_NAME.search(name):
                found.add(value)
            found.update(_user_info(value))
        # The longest first: a secret that holds another must not leave its rest behind.
        usable = sorted((s for s in found if len(s) >= _SHORTEST), key=len, reverse=True)
        self._secrets = re.compile("|".join(map(re.escape, usable))) if usable else None

    def __call__(self, text: str) -> str:
        """The text with every secret replaced by ``[redacted]``."""
        if self._secrets is not None:
            text = self._secrets.sub(REDACTED, text)
        return _SECRET_TEXT.sub(REDACTED, text)

    def __repr__(self) -> str:
        return "Redactor()"


def _user_info(value: str) -> list[str]:
    if "://" not in value or "@" not in value:
        return []
    try:
        parts = urlsplit(value)
    except ValueError:
        return []
    user_info = parts.netloc.rpartition("@")[0]
    return [text for text in (user_info, parts.password) if text]
