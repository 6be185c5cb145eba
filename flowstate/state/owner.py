"""
Whose a scope's state and resources are: the id of the request, session, user or organisation that
a run is for.
"""

from __future__ import annotations

from typing import assert_never

from flowstate.define.resource import ResourceScope
from flowstate.ids import Identity


def owner_of(scope: ResourceScope, identity: Identity, request_id: str) -> str | None:
    """The id of whoever this scope is of; None if the run is for none."""
    match scope:
        case "request":
            return request_id
        case "session":
            return identity.session_id
        case "user":
            return identity.user_id
        case "org":
            return identity.org_id
        case _:
            assert_never(scope)
