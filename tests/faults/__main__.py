"""Every fault, one table: ``python -m tests.faults [NAME...]``; with ``--docs``, writes the page that tells of them."""

from __future__ import annotations

import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from _pytest.outcomes import Skipped

from tests.bench import Bench
from tests.faults.table import DOCS, FAULTS, docs

if TYPE_CHECKING:
    from tests.faults.fault import Fault

SIDE_BY_SIDE = 3


def held(bench: Bench, fault: Fault) -> bool:
    """Bring one about and print its row; whether every promise was kept."""
    begun, said = time.monotonic(), "held"
    try:
        fault.run(bench)
    except Skipped as skipped:
        said = f"skipped: {skipped}"
    except (AssertionError, OSError, ValueError, LookupError) as error:
        said = f"BROKEN: {type(error).__name__}: {error}"
    print(f"{fault.name:32} {fault.code:4} {time.monotonic() - begun:6.1f} s  {said}", flush=True)
    return not said.startswith("BROKEN")


def main(names: list[str]) -> int:
    """0 if everything held that was to."""
    if names == ["--docs"]:
        DOCS.write_text(docs())
        return 0
    chosen = [fault for fault in FAULTS if not names or fault.name in names]
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder))
        try:
            with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
                results = list(pool.map(partial(held, bench), chosen))
        finally:
            bench.close()
    print(f"{sum(results)} of {len(results)} held")
    return 0 if results and all(results) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
