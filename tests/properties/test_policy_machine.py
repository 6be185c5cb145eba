"""
The lease and the policies as a machine: requests that arrive, wait, start, end, are cancelled or
lose their place, in any order.

Time is the machine's own and nothing is shared between two examples, so every run of an example
is the same.
"""

from __future__ import annotations

import re
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    multiple,
    rule,
    run_state_machine_as_test,
)

from flowstate import allow, queue, reject
from flowstate.admission.decide import (
    Expire,
    Lost,
    Start,
    StartNow,
    TakePlace,
    Wait,
    on_arrival,
    on_turn,
)
from flowstate.define.policy import Policy
from flowstate.lease.memory import MemoryLease
from flowstate.lease.protocol import Busy, LeaseBackend, Place, Yes

T = TypeVar("T")

POLICIES = [allow(), queue(wait=5), queue(wait=60), reject()]


def at_once(coroutine: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine that doesn't wait."""
    try:
        coroutine.send(None)
    except StopIteration as done:
        result: T = done.value
        return result
    raise AssertionError("it waited")


@dataclass
class Request:
    """A request as the machine sees it."""

    id: str
    key: str
    policy: Policy
    place: Place | None
    arrived: float
    state: Literal["waiting", "running", "ended"]


class PolicyMachine(RuleBasedStateMachine):
    """Everything that may happen to requests on two keys."""

    live = Bundle("live")

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.lease = self.make_lease()
        self.requests: list[Request] = []

    def make_lease(self) -> LeaseBackend:
        """The backend; a test of the machine itself makes a faulty one."""
        return MemoryLease(clock=lambda: int(self.now * 1_000_000))

    @initialize()
    def begin(self) -> None:
        self.now = 1.0

    @rule(target=live, key=st.sampled_from(["k1", "k2"]), policy=st.sampled_from(POLICIES))
    def arrive(self, key: str, policy: Policy) -> Any:
        """A request arrives and is started, given a place, or refused."""
        request_id = f"r{len(self.requests)}"
        place: Place | None = None
        match on_arrival(policy, key):
            case StartNow():
                pass
            case TakePlace(only_if_empty=only_if_empty):
                held = at_once(self.lease.places(key))
                answer = at_once(self.lease.take(key, request_id, only_if_empty=only_if_empty))
                if isinstance(answer, Busy):
                    assert policy.name == "reject", "only reject refuses"
                    assert held, "refused though nobody held the key"
                    assert answer.request_id == held[0].request_id
                    return multiple()
                assert not (only_if_empty and held), "let in though somebody held the key"
                place = answer
        request = Request(
            id=request_id,
            key=key,
            policy=policy,
            place=place,
            arrived=self.now,
            state="running" if place is None else "waiting",
        )
        self.requests.append(request)
        self.look()
        if policy.name == "reject":
            assert request.state == "running", "reject lets in only what starts at once"
        return request

    @rule(request=consumes(live))
    def end(self, request: Request) -> None:
        """A request ends: it has run, failed, or is cancelled, waiting or running."""
        self.leave(request)
        self.look()

    @rule(request=live)
    def lose(self, request: Request) -> None:
        """Somebody takes a request's place away."""
        if request.place is not None and request.state != "ended":
            at_once(self.lease.give_back(request.place))
            self.look()
            ended = [other for other in self.requests if other.state == "ended"]
            assert request in ended, "it went on without its place"

    @rule(seconds=st.sampled_from([0.5, 3.0, 5.0, 30.0, 60.0]))
    def pass_time(self, seconds: float) -> None:
        """Time passes for those who wait."""
        self.now += seconds
        self.look()

    def look(self) -> None:
        """Every request looks whether its turn has come, as a wake-up makes it do."""
        again = True
        while again:
            again = False
            for request in self.requests:
                if request.place is None or request.state == "ended":
                    continue
                if request.state == "running":
                    if not at_once(self.lease.renew(request.place)):
                        request.state = "ended"
                        again = True
                    continue
                turn = at_once(self.lease.is_my_turn(request.place))
                match on_turn(request.policy, turn, self.now - request.arrived):
                    case Start():
                        self.start(request)
                        again = True
                    case Expire() | Lost():
                        self.leave(request)
                        again = True
                    case Wait(seconds=seconds):
                        assert seconds is None or seconds > 0

    def start(self, request: Request) -> None:
        """A request's turn has come: all that came before it on its key are gone."""
        earlier = [
            other
            for other in self.requests[: self.requests.index(request)]
            if other.key == request.key and other.place is not None and other.state != "ended"
        ]
        assert not earlier, f"{request.id} overtook {earlier[0].id}"
        request.state = "running"

    def leave(self, request: Request) -> None:
        """A request is over, however it came to it."""
        request.state = "ended"
        if request.place is not None:
            at_once(self.lease.give_back(request.place))

    def on(self, key: str, state: str) -> list[Request]:
        """The requests with a place on this key in this state."""
        return [
            request
            for request in self.requests
            if request.key == key and request.place is not None and request.state == state
        ]

    @invariant()
    def one_runs_at_a_time(self) -> None:
        """A key is exclusive among those that take a place on it."""
        for key in ("k1", "k2"):
            assert len(self.on(key, "running")) <= 1, f"two run on {key}"

    @invariant()
    def nobody_waits_for_nobody(self) -> None:
        """Where requests wait, one runs."""
        for key in ("k1", "k2"):
            assert not self.on(key, "waiting") or self.on(key, "running"), f"{key} is stuck"

    @invariant()
    def nobody_waits_longer_than_it_wants(self) -> None:
        """Patience is kept to."""
        for request in self.requests:
            if request.state == "waiting":
                assert request.policy.wait is not None
                assert self.now - request.arrived < request.policy.wait, f"{request.id} waits on"

    @invariant()
    def the_backend_holds_what_is_under_way(self) -> None:
        """No place without a request, and none of a request twice."""
        for key in ("k1", "k2"):
            held = [place.request_id for place in at_once(self.lease.places(key))]
            under_way = [*self.on(key, "waiting"), *self.on(key, "running")]
            assert sorted(held) == sorted(request.id for request in under_way)


THOROUGH = settings(
    derandomize=True,
    max_examples=15,
    stateful_step_count=300,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)
BRIEF = settings(THOROUGH, max_examples=2)


def test_the_laws_of_admission_hold() -> None:
    """Exclusive, in order, patient, never stuck; three hundred steps an example."""
    run_state_machine_as_test(PolicyMachine, settings=THOROUGH)


def test_the_machine_is_the_same_every_time() -> None:
    """Twenty repeats: no name, clock or earlier example leaks into the next."""
    for _ in range(20):
        run_state_machine_as_test(PolicyMachine, settings=BRIEF)


class LastComeFirstServed(PolicyMachine):
    """The newest place has the turn next."""

    def make_lease(self) -> LeaseBackend:
        lease = MemoryLease(clock=lambda: int(self.now * 1_000_000))
        give_back = lease.give_back

        async def faulty(place: Place) -> None:
            await give_back(place)
            held = lease._places.get(place.key)
            if held:
                held.insert(0, held.pop())

        lease.give_back = faulty  # type: ignore[method-assign]
        return lease


class AlwaysLetIn(PolicyMachine):
    """``only_if_empty`` is not looked at."""

    def make_lease(self) -> LeaseBackend:
        lease = MemoryLease(clock=lambda: int(self.now * 1_000_000))
        take = lease.take

        async def faulty(key: str, request_id: str, *, only_if_empty: bool) -> Place | Busy:
            return await take(key, request_id, only_if_empty=False)

        lease.take = faulty  # type: ignore[method-assign]
        return lease


class NeverGivenBack(PolicyMachine):
    """A place whose request waited is not given back."""

    def make_lease(self) -> LeaseBackend:
        lease = MemoryLease(clock=lambda: int(self.now * 1_000_000))
        give_back = lease.give_back

        async def faulty(place: Place) -> None:
            if await lease.is_my_turn(place) == Yes():
                await give_back(place)

        lease.give_back = faulty  # type: ignore[method-assign]
        return lease


FINDING = settings(
    derandomize=True,
    max_examples=200,
    stateful_step_count=50,
    deadline=None,
    database=None,
    phases=[Phase.generate, Phase.shrink],
    report_multiple_bugs=False,
)


@pytest.mark.parametrize("machine", [LastComeFirstServed, AlwaysLetIn, NeverGivenBack])
def test_a_planted_fault_is_found_and_shrunk(machine: type[PolicyMachine]) -> None:
    """Each of three faults of a backend shows in fewer than ten steps."""
    with pytest.raises(AssertionError) as caught:
        run_state_machine_as_test(machine, settings=FINDING)
    notes = "\n".join(caught.value.__notes__)
    steps = re.findall(r"state\.(?:arrive|end|lose|pass_time)\(", notes)
    assert 0 < len(steps) < 10, notes
