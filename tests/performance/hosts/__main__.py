"""``python -m tests.performance.hosts ends [WORD ...]``; as root, since it makes hosts."""

from __future__ import annotations

import sys

from tests.performance.figures import machine
from tests.performance.hosts import ends

PROGRAMS = {"ends": ends.play}


def main() -> None:
    """Run the program that is named; the exit code is 1 where something is not as promised."""
    name, *rest = sys.argv[1:] or [""]
    if name not in PROGRAMS:
        raise SystemExit(__doc__)
    print(machine(), end="\n\n", flush=True)
    raise SystemExit(0 if PROGRAMS[name](rest) else 1)


if __name__ == "__main__":
    main()
