"""The life of a request: a table, and nothing that leaves it."""

from __future__ import annotations

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flowstate.errors import FlowError
from flowstate.request.lifecycle import ENDED, TABLE, RequestEvent, after
from flowstate.store.record import RequestStatus

STATUSES: tuple[RequestStatus, ...] = get_args(RequestStatus)
EVENTS: tuple[RequestEvent, ...] = get_args(RequestEvent)


def test_every_status_has_a_row_and_every_move_a_known_end() -> None:
    """The table is complete and closed."""
    assert set(TABLE) == set(STATUSES)
    for moves in TABLE.values():
        assert set(moves) <= set(EVENTS)
        assert set(moves.values()) <= set(STATUSES)
    assert {event for moves in TABLE.values() for event in moves} == set(EVENTS)


@pytest.mark.parametrize("status", sorted(ENDED))
@pytest.mark.parametrize("event", EVENTS)
def test_nothing_leads_out_of_an_end_but_what_the_table_says(
    status: RequestStatus, event: RequestEvent
) -> None:
    """An interrupted request may be resumed; whatever else has ended has ended."""
    if (status, event) == ("interrupted", "resume"):
        assert after(status, event) == "accepted"
    else:
        with pytest.raises(FlowError, match=f"a request that is {status} can't {event}"):
            after(status, event)


def test_every_request_that_has_not_ended_can_be_cancelled() -> None:
    """Wherever it is."""
    for status in STATUSES:
        if status not in ENDED:
            assert after(status, "cancel") == "cancelled"


def test_nothing_runs_that_was_not_started_and_nothing_completes_that_didn_t_run() -> None:
    """``running`` is reached by ``start`` alone, ``completed`` from ``running`` alone."""
    for status, moves in TABLE.items():
        for event, then in moves.items():
            assert (then == "running") == (event == "start")
            assert then != "completed" or status == "running"


@given(st.lists(st.sampled_from(EVENTS), max_size=30))
def test_whatever_happens_a_request_is_where_the_table_leads(events: list[RequestEvent]) -> None:
    """Any row of events: each either moves it as the table says or is refused and moves nothing."""
    status: RequestStatus = "accepted"
    for event in events:
        if event in TABLE[status]:
            status = after(status, event)
            assert status in STATUSES
        else:
            with pytest.raises(FlowError):
                after(status, event)
