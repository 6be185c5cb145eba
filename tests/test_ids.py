"""Fresh ids: never the same twice, in any thread and in any process."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from flowstate.ids import random_id


def test_threads_never_make_the_same_id() -> None:
    """They share the random bits that were fetched, and each takes its own of them."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as threads:
            made = list(threads.map(lambda _: [random_id("item") for _ in range(500)], range(16)))
    finally:
        sys.setswitchinterval(before)

    ids = [one for some in made for one in some]
    assert len(set(ids)) == 16 * 500
    assert all(one.startswith("item_") and len(one) == 37 for one in ids)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_fork_makes_ids_of_its_own() -> None:
    """Bits that were fetched before are the parent's."""
    program = """
import os
from flowstate.ids import random_id
random_id("id")
child = os.fork()
made = " ".join(random_id("id") for _ in range(5))
os.write(1, (made + "\\n").encode())  # in one piece
if child:
    os.waitpid(child, 0)
"""
    made = subprocess.check_output([sys.executable, "-c", program], text=True).split()

    assert len(made) == len(set(made)) == 10
