"""
flowstate: flows of typed blocks, some of them real coding agents.

The names below are the library's whole everyday surface. Coding agents are imported from
``flowstate.blocks``, tools for tests from ``flowstate.testing``.

What defines flows is loaded here; what plans and runs them when it is first asked for, since that
is more than half of what importing everything costs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from flowstate.collection import Collection as Collection
from flowstate.collection import Deleted as Deleted
from flowstate.collection import Entry as Entry
from flowstate.collection import Page as Page
from flowstate.collection import Resources as Resources
from flowstate.context import Cell as Cell
from flowstate.context import Context as Context
from flowstate.context import Scope as Scope
from flowstate.context import Unchanged as Unchanged
from flowstate.context import Watched as Watched
from flowstate.context import Written as Written
from flowstate.define.block import Block as Block
from flowstate.define.block import Failure as Failure
from flowstate.define.capability import Capability as Capability
from flowstate.define.capability import define_capability as define_capability
from flowstate.define.flow import Action as Action
from flowstate.define.flow import Flow as Flow
from flowstate.define.flow import action as action
from flowstate.define.flow import define_flow as define_flow
from flowstate.define.handler import Handler as Handler
from flowstate.define.handler import handler as handler
from flowstate.define.policy import Policy as Policy
from flowstate.define.policy import allow as allow
from flowstate.define.policy import queue as queue
from flowstate.define.policy import reject as reject
from flowstate.define.resource import Resource as Resource
from flowstate.define.resource import resource as resource
from flowstate.define.retry import Retry as Retry
from flowstate.define.router import Router as Router
from flowstate.define.router import route_by as route_by
from flowstate.define.router import router as router
from flowstate.define.sequencer import Sequencer as Sequencer
from flowstate.define.sequencer import sequencer as sequencer
from flowstate.define.tool import Tool as Tool
from flowstate.define.uses import block_state as block_state
from flowstate.define.uses import org_state as org_state
from flowstate.define.uses import request_state as request_state
from flowstate.define.uses import session_state as session_state
from flowstate.define.uses import user_state as user_state
from flowstate.ids import Identity as Identity

if TYPE_CHECKING:
    from flowstate.harness.checkout import checkout_for as checkout_for
    from flowstate.harness.environment import harness_env as harness_env
    from flowstate.harness.failure import harness_failure_kind as harness_failure_kind
    from flowstate.harness.handle import HarnessRunHandle as HarnessRunHandle
    from flowstate.harness.handle import HarnessRunInput as HarnessRunInput
    from flowstate.plan.build import Plan as Plan
    from flowstate.plan.build import build_plan as build_plan
    from flowstate.request.run import Run as Run
    from flowstate.request.runtime import Runtime as Runtime
    from flowstate.run.once import run_block as run_block
    from flowstate.run.questions import Question as Question

__all__ = [
    "Action",
    "Block",
    "Capability",
    "Cell",
    "Collection",
    "Context",
    "Deleted",
    "Entry",
    "Failure",
    "Flow",
    "Handler",
    "HarnessRunHandle",
    "HarnessRunInput",
    "Identity",
    "Page",
    "Plan",
    "Policy",
    "Question",
    "Resource",
    "Resources",
    "Retry",
    "Router",
    "Run",
    "Runtime",
    "Scope",
    "Sequencer",
    "Tool",
    "Unchanged",
    "Watched",
    "Written",
    "action",
    "allow",
    "block_state",
    "build_plan",
    "checkout_for",
    "define_capability",
    "define_flow",
    "handler",
    "harness_env",
    "harness_failure_kind",
    "org_state",
    "queue",
    "reject",
    "request_state",
    "resource",
    "route_by",
    "router",
    "run_block",
    "sequencer",
    "session_state",
    "user_state",
]

if not TYPE_CHECKING:
    # Hidden from checkers, to which it would make every name one that exists.
    _LATER = {
        "HarnessRunHandle": "flowstate.harness.handle",
        "HarnessRunInput": "flowstate.harness.handle",
        "Plan": "flowstate.plan.build",
        "Question": "flowstate.run.questions",
        "Run": "flowstate.request.run",
        "Runtime": "flowstate.request.runtime",
        "build_plan": "flowstate.plan.build",
        "checkout_for": "flowstate.harness.checkout",
        "harness_env": "flowstate.harness.environment",
        "harness_failure_kind": "flowstate.harness.failure",
        "run_block": "flowstate.run.once",
    }

    def __getattr__(name: str) -> object:
        if name not in _LATER:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        value = getattr(import_module(_LATER[name]), name)
        globals()[name] = value
        return value

    def __dir__() -> list[str]:
        return sorted({*globals(), *_LATER})
