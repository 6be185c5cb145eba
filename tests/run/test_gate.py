"""The gate: closed for everything below it, at once."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from flowstate.run.gate import Gate


def test_closing_closes_all_below_and_nothing_else() -> None:
    """Siblings and those above stay open."""
    root = Gate()
    left, right = Gate(root), Gate(root)
    below = Gate(Gate(left))
    left.close()
    assert left.closed
    assert below.closed
    assert not right.closed
    assert not root.closed


def test_a_gate_made_below_a_closed_one_is_closed() -> None:
    """Nothing begins beneath what has been stopped."""
    root = Gate()
    root.close()
    assert Gate(root).closed


def test_who_leaves_hands_on_what_goes_on_below() -> None:
    """Its children stand below its parent then, or below the heir."""
    root, heir = Gate(), Gate()
    middle = Gate(root)
    below = Gate(middle)
    middle.leave()
    root.close()
    assert below.closed
    middle = Gate(heir)
    other = Gate(middle)
    middle.leave(heir)
    assert not other.closed
    heir.close()
    assert other.closed


def test_it_tells_once() -> None:
    """``on_close`` is called when it closes, not again."""
    told: list[int] = []
    root = Gate()
    below = Gate(root)
    below.on_close = lambda: told.append(1)
    root.close()
    root.close()
    below.close()
    assert told == [1]


@given(st.lists(st.tuples(st.integers(0, 9), st.sampled_from(["make", "close", "leave"]))))
def test_a_gate_is_closed_exactly_if_it_or_something_above_it_was(
    moves: list[tuple[int, str]],
) -> None:
    """Whatever the order in which gates are made, closed and left."""
    gates: list[Gate] = [Gate()]
    parents: dict[int, int | None] = {0: None}
    closed: set[int] = set()
    gone: set[int] = set()
    for number, move in moves:
        at = number % len(gates)
        if at in gone:
            continue
        if move == "make":
            parents[len(gates)] = at
            if at in closed:
                closed.add(len(gates))
            gates.append(Gate(gates[at]))
        elif move == "close":
            gates[at].close()
            below = {at}
            for child, parent in sorted(parents.items()):
                if parent in below and child not in gone:
                    below.add(child)
            closed |= below
        elif at != 0 and at not in closed:
            gates[at].leave()
            gone.add(at)
            for child, parent in parents.items():
                if parent == at:
                    parents[child] = parents[at]
    assert [gate.closed for i, gate in enumerate(gates) if i not in gone] == [
        i in closed for i in range(len(gates)) if i not in gone
    ]
