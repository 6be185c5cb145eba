"""Keys: framed, so that no two tenants, kinds or values ever meet."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from flowstate.admission.key import admission_key
from flowstate.define.policy import Key
from flowstate.ids import Identity, SessionId

# Characters that framings and escapings stumble over, and any others.
TEXT = st.text(alphabet=st.one_of(st.sampled_from(list('":,[]{}\\|/\0\n null')), st.characters()))


def who(session: str, user: str | None = None, tenant: str | None = None) -> Identity:
    """An identity."""
    return Identity(session_id=SessionId(session), user_id=user, tenant_id=tenant)


def by_user_in_org(identity: Identity) -> str | None:
    """A host's own key."""
    return identity.org_id


def test_each_kind_takes_its_part_of_the_identity() -> None:
    """Session, user, a function's answer, or nothing."""
    identity = who("s1", "u1", "t1")
    assert admission_key("session", identity) == '["t1", "session", "s1"]'
    assert admission_key("user", identity) == '["t1", "user", "u1"]'
    assert admission_key(None, identity) is None
    assert admission_key(lambda i: i.session_id[::-1], identity) == '["t1", "custom", "1s"]'


def test_without_a_value_nothing_is_arbitrated() -> None:
    """No user, or a function that says so."""
    assert admission_key("user", who("s1")) is None
    assert admission_key(by_user_in_org, who("s1")) is None


KEYS: list[tuple[str, Key]] = [
    ("session", "session"),
    ("user", "user"),
    ("custom", lambda identity: str(identity.session_id)),
]


@given(
    first=st.tuples(st.sampled_from(KEYS), st.one_of(st.none(), TEXT), TEXT),
    second=st.tuples(st.sampled_from(KEYS), st.one_of(st.none(), TEXT), TEXT),
)
def test_two_keys_are_the_same_only_if_all_their_parts_are(first: Any, second: Any) -> None:
    """Tenant (or none), kind and value, whatever characters they hold, surrogates included."""
    keys = [
        admission_key(key, who(value, user=value, tenant=tenant))
        for (_, key), tenant, value in (first, second)
    ]
    parts = [(kind, tenant, value) for (kind, _), tenant, value in (first, second)]
    assert (keys[0] == keys[1]) == (parts[0] == parts[1])
    assert all(key is not None and key.isascii() for key in keys)
