"""Reads run directories that were made hostile, for as long as it is asked to, and prints what ended as it should not.

``python -m tests.performance.fuzz_run_dirs SECONDS [SEED]``
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections import Counter
from itertools import count
from pathlib import Path

from tests.hostile import Fuzz


def main(seconds: float, seed: int) -> int:
    """Whether any was wrong."""
    outcomes: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        fuzz = Fuzz(Path(folder))
        ended = time.monotonic() + seconds
        for number in count(seed):
            if time.monotonic() > ended:
                break
            reported, wrong = fuzz.attempt(number)
            outcomes["right" if wrong is None else "wrong"] += 1
            if wrong is not None:
                print(f"--- {number}: {reported}\n{wrong[-1500:]}", flush=True)
    print(f"{dict(outcomes)}, exit codes {dict(fuzz.codes)}")
    return int(outcomes["wrong"] > 0)


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0))
