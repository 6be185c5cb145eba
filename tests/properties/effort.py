"""How many examples a law is shown: a few at the gate, twenty times as many in a soak."""

from __future__ import annotations

import os

from hypothesis import settings


def examples(count: int) -> settings:
    """Settings for a law: ``count`` examples, more under ``FLOWSTATE_SOAK``, and no deadline."""
    times = 20 if os.environ.get("FLOWSTATE_SOAK") else 1
    return settings(max_examples=count * times, deadline=None)
