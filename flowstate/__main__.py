"""``python -m flowstate``: the same as the command ``flowstate``."""

from __future__ import annotations

from flowstate.cli import main

if __name__ == "__main__":
    main()
