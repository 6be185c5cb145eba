"""
Tools for tests of flows, shipped as part of the product.

Property tests: ``assert_laws``, ``simulate``, ``outcomes`` (the oracle), and the strategies of
``flowstate.testing.compositions`` and ``flowstate.testing.strategies``. Scripted blocks:
``scripted_block``. What a run told: ``RecordingSink``. Real agents without a key or a network:
``ScriptedMessagesApi`` and ``clean_home``. Contracts for implementers:
``flowstate.testing.store_contract``, ``flowstate.testing.resource_contract``.

Importing this module needs no extra; what does says so when it is used.
"""

from flowstate.testing.agent_home import CleanHome as CleanHome
from flowstate.testing.agent_home import clean_environment as clean_environment
from flowstate.testing.agent_home import clean_home as clean_home
from flowstate.testing.agent_home import require_clean_environment as require_clean_environment
from flowstate.testing.laws import LawBroken as LawBroken
from flowstate.testing.laws import assert_laws as assert_laws
from flowstate.testing.messages_api import ScriptedMessagesApi as ScriptedMessagesApi
from flowstate.testing.oracle import outcome_of as outcome_of
from flowstate.testing.oracle import outcomes as outcomes
from flowstate.testing.received_request import ReceivedRequest as ReceivedRequest
from flowstate.testing.received_request import ToolResult as ToolResult
from flowstate.testing.recording_sink import RecordingSink as RecordingSink
from flowstate.testing.scripted_block import scripted_block as scripted_block
from flowstate.testing.scripted_block import scripted_rescue as scripted_rescue
from flowstate.testing.scripted_turns import ApiError as ApiError
from flowstate.testing.scripted_turns import Turn as Turn
from flowstate.testing.scripted_turns import Usage as Usage
from flowstate.testing.scripted_turns import rate_limit_headers as rate_limit_headers
from flowstate.testing.scripted_turns import redacted_thinking as redacted_thinking
from flowstate.testing.scripted_turns import text as text
from flowstate.testing.scripted_turns import thinking as thinking
from flowstate.testing.scripted_turns import tool_call as tool_call
from flowstate.testing.simulation import CANCELLED as CANCELLED
from flowstate.testing.simulation import Simulation as Simulation
from flowstate.testing.simulation import simulate as simulate

__all__ = [
    "CANCELLED",
    "ApiError",
    "CleanHome",
    "LawBroken",
    "ReceivedRequest",
    "RecordingSink",
    "ScriptedMessagesApi",
    "Simulation",
    "ToolResult",
    "Turn",
    "Usage",
    "assert_laws",
    "clean_environment",
    "clean_home",
    "outcome_of",
    "outcomes",
    "rate_limit_headers",
    "redacted_thinking",
    "require_clean_environment",
    "scripted_block",
    "scripted_rescue",
    "simulate",
    "text",
    "thinking",
    "tool_call",
]
