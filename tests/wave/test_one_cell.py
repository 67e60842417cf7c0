"""One cell of requests.parquet changed, with no digest to tell: the run is refused, or its report is the same."""

from __future__ import annotations

import random
import shutil
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from inference_benchmarker import Wave
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.wave.run_dir import RunDir
from tests.waves import facts_of, make_run, without_digest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

MADE: dict[str, Callable[[Path], object]] = {
    "open": lambda path: make_run(path, 120, failed=4),
    "stream": lambda path: make_run(path, 120, failed=4, stream=True),
    "closed": lambda path: make_run(path, 120, closed=True),
    "dropped": lambda path: make_run(path, 120, dropped=6),
}
CHANGES = 60


def changed(value: Any, draw: random.Random) -> Any:
    """Another value of the same type."""
    if isinstance(value, str):
        return draw.choice(["ok", "failed", "abandoned", "another"])
    if isinstance(value, list):
        return [*value[:-1], value[-1] + 10_000_000] if value else [5]
    if isinstance(value, (int, float)):
        return value + draw.choice([-1, 1]) * draw.choice([1_000_000, 1_000_000_000])
    return None if value is not None else 5


def change_a_cell(run: RunDir, draw: random.Random) -> str:
    """Change one, add a row or take one away; what was done."""
    table = pq.read_table(run.requests)
    rows = table.to_pylist()
    place, column = draw.randrange(len(rows)), draw.choice(table.schema.names)
    kind = draw.random()
    if kind < 0.1:
        del rows[place]
        done = f"row {place} taken away"
    elif kind < 0.2:
        rows.insert(place, rows[place])
        done = f"row {place} twice"
    else:
        before = rows[place][column]
        rows[place][column] = changed(before, draw)
        done = f"{column} of row {place}: {before!r} to {rows[place][column]!r}"
    pq.write_table(pa.Table.from_pylist(rows, table.schema), run.requests)
    return done


def believed(original: dict[str, Any], run: RunDir) -> dict[str, Any]:
    """What a run that is not refused reports otherwise than before."""
    try:
        reported = Wave.load(run.path).to_json()
    except BenchmarkError:
        return {}
    return {name: (original[name], value) for name, value in reported.items() if value != original[name]}


@pytest.mark.parametrize("kind", MADE)
def test_no_changed_cell_changes_a_report(kind: str, tmp_path: Path) -> None:
    MADE[kind](tmp_path / "honest")
    without_digest(RunDir(tmp_path / "honest"))
    original = facts_of(RunDir(tmp_path / "honest"))
    wrong = {}
    for seed in range(CHANGES):
        run = RunDir(tmp_path / str(seed))
        shutil.copytree(tmp_path / "honest", run.path)
        try:
            done = change_a_cell(run, random.Random(f"{kind} {seed}"))
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
            continue  # no such value fits the column
        if differs := believed(original, run):
            wrong[done] = differs
    assert wrong == {}
