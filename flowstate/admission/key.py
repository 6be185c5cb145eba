"""The key that requests are arbitrated on: framed, so that no two tenants or kinds ever meet."""

from __future__ import annotations

import json

from flowstate.define.policy import Key
from flowstate.ids import Identity


def admission_key(key: Key, identity: Identity) -> str | None:
    r"""
    The key for this identity, or None where nothing is arbitrated.

    A JSON array of tenant, kind and value in plain ASCII: whatever characters the parts hold,
    two keys are the same only if all parts are.

    >>> from flowstate.ids import Identity, SessionId
    >>> admission_key("session", Identity(session_id=SessionId('a"]')))
    '[null, "session", "a\\"]"]'
    """
    if key is None:
        return None
    if key == "session":
        kind, value = "session", str(identity.session_id)
    elif key == "user":
        kind = "user"
        if identity.user_id is None:
            return None
        value = identity.user_id
    else:
        kind = "custom"
        given = key(identity)
        if given is None:
            return None
        value = given
    return json.dumps([identity.tenant_id, kind, value])
