"""
Which variables a Claude Code run has: those it is given, and a closed list of control names.

With ``env`` given, the run's process and every command it starts see exactly these variables and
the control names below, nothing of the server's. Without it they see the server's whole
environment, as a command in a terminal would, and the control names on top.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from flowstate.harness.process import MARKER

CLAUDE_CODE_PASS: Final = (
    "PATH",
    "HOME",
    "USER",
    "SHELL",
    "TMPDIR",
    "ANTHROPIC_API_KEY",
    "CLAUDE_CODE_OAUTH_TOKEN",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "ALL_PROXY",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "all_proxy",
    "ssl_cert_file",
    "ssl_cert_dir",
    "node_extra_ca_certs",
)
"""
What a run needs to work, for ``harness_env(pass_=CLAUDE_CODE_PASS)``: where things are, the two
credential variables, and what a proxied network needs (some programs read only lower-case names).
"""

SESSION_STATE: Final = "CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS"
MAX_RETRIES: Final = "CLAUDE_CODE_MAX_RETRIES"

CONTROL_NAMES: Final = (
    # Set by this block.
    SESSION_STATE,
    MAX_RETRIES,
    MARKER,
    # Set by the SDK for its own process.
    "CLAUDE_CODE_ENTRYPOINT",
    "CLAUDE_AGENT_SDK_VERSION",
    "CLAUDE_CODE_SDK_READS_SESSION_STATE",
    "PWD",
    "TRACEPARENT",
    "TRACESTATE",
)
"""
The variables that a run has besides those it is given:

- ``CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS``: Claude Code says when it is idle, which ends a run.
- ``CLAUDE_CODE_MAX_RETRIES``: with ``api_retries``, how often a failed API call is tried again.
- ``FLOWSTATE_RUN``: marks the run's processes, to find any that were left behind.
- ``CLAUDE_CODE_ENTRYPOINT``, ``CLAUDE_AGENT_SDK_VERSION``: the SDK says who started Claude Code.
- ``CLAUDE_CODE_SDK_READS_SESSION_STATE``: the SDK listens for the idle state, too.
- ``PWD``: the working directory, with ``cwd``.
- ``TRACEPARENT``, ``TRACESTATE``: the active OpenTelemetry span, if there is one.

Claude Code adds variables of its own to the commands that it starts.
"""

OPTION_NAMES: Final[Mapping[str, str]] = {
    "client_app": "CLAUDE_AGENT_SDK_CLIENT_APP",
    "enable_file_checkpointing": "CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING",
    "session_store": "CLAUDE_CONFIG_DIR",
}
"""Options of the SDK that work through a variable, which is kept only when they are given."""

RESERVED: Final = frozenset({SESSION_STATE, MARKER, "CLAUDE_CODE_SDK_READS_SESSION_STATE"})
"""What ``env`` may not hold, since the end of a run and its clean-up depend on it."""


def control_environment(*, run_id: str, api_retries: int | None) -> dict[str, str]:
    """The control variables that this block sets for one run."""
    variables = {SESSION_STATE: "1", MARKER: run_id}
    if api_retries is not None:
        variables[MAX_RETRIES] = str(api_retries)
    return variables
