"""One value or file of a run directory changed: every command refuses the run in a line, or tells the same as before.

With its digests whatever is changed is noticed. Without them, as an earlier version stored it, what follows from the
requests is.
"""

from __future__ import annotations

import csv
import io
import json
import random
import shutil
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from inference_benchmarker.cli import main
from inference_benchmarker.data.decoded import encoded
from inference_benchmarker.facts.instances import Followed
from inference_benchmarker.facts.server_metric import ServerMetric
from inference_benchmarker.records.columns import SCHEMA, Records
from inference_benchmarker.wave import writer
from inference_benchmarker.wave.plan_file import save_plan
from inference_benchmarker.wave.run_dir import RunDir
from inference_benchmarker.wave.wave import Wave
from tests.counted import counted
from tests.hostile import leaves
from tests.waves import make_run, observe, on_time, open_plan, without_digest
from visualization.figures.reading import read_runs

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from visualization.figures.runs import Run

SEED = 7
OF_REQUESTS = ("ledger", "success_rate", "latency", "response_time", "lag", "rates", "labels", "errors")


def with_leaf(path: Path, where: tuple[Any, ...]) -> None:
    """Add to a number of a JSON file."""
    data = json.loads(path.read_text())
    *above, last = where
    at = data
    for key in above:
        at = at[key]
    at[last] = at[last] + 1
    path.write_text(json.dumps(data))


def with_cell(path: Path, draw: random.Random) -> str:
    """Change a cell of a table of text; the column."""
    rows = [*csv.reader(io.StringIO(path.read_text()))]
    row = draw.choice(rows[1:])
    place = draw.choice([place for place, cell in enumerate(row) if cell and rows[0][place] != "stage"])
    row[place] = str(float(row[place]) + 1) if row[place].replace(".", "").isdigit() else "another"
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    path.write_text(text.getvalue())
    return str(rows[0][place])


def with_count(path: Path, draw: random.Random) -> None:
    """One more of a count of counts.parquet."""
    table = pq.read_table(path)
    rows = table.to_pylist()
    draw.choice(rows)["count"] += 1
    pq.write_table(pa.Table.from_pylist(rows, table.schema), path)


def shown(run: RunDir) -> Run:
    """All that a plot shows of a run."""
    (found,) = read_runs([run.path], {}, Wave.load, lambda _: None)
    return found


def counted_run(path: Path) -> RunDir:
    """A run of which the requests were counted alone."""
    path.mkdir()
    plan = open_plan("10", "4", records="none")
    rows = [row._replace(label="ab"[row.index % 2]) for row in on_time(plan)]
    facts = observe(plan, rows)
    nothing = Records(SCHEMA.empty_table())
    wave = Wave(plan, facts.window, nothing, nothing, facts.ledgers, counts=counted(rows))
    save_plan(RunDir(path), plan, {})
    writer.save(wave, RunDir(path))
    return RunDir(path)


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> dict[str, RunDir]:
    """Runs with all that a run has, by what is kept of their requests."""
    folder = tmp_path_factory.mktemp("honest")
    made = make_run(folder / "all", 120, failed=4, stream=True)
    assert made.run_dir is not None
    made.run_dir.client_csv.write_text("unix_s,process,cpu_percent\n1700000001,host,5\n")
    row = ServerMetric("cloudwatch", "CPUUtilization", {"Average": 5.0}, series_of="Average", series=((1.7e9, 5.0),))
    writer.save_server_metrics(made.with_server_metrics([row]).with_instances([Followed("e/v", "DescribeEndpoint")]))
    return {"all": made.run_dir, "none": counted_run(folder / "none")}


@pytest.fixture
def copied(honest: dict[str, RunDir], tmp_path: Path) -> Callable[[str], RunDir]:
    """A copy of one of them; the one before is gone."""

    def copy(name: str) -> RunDir:
        shutil.rmtree(tmp_path / "run", ignore_errors=True)
        shutil.copytree(honest[name].path, tmp_path / "run")
        return RunDir(tmp_path / "run")

    return copy


def refused(run: RunDir) -> bool:
    """Tells whether a plot believes no part of it that was changed."""
    return shown(run).is_damaged


def test_every_command_refuses_in_one_line(copied: Callable[[str], RunDir], capsys: pytest.CaptureFixture[str]) -> None:
    run = copied("all")
    with_leaf(run.summary, ("latency", "p99"))
    path = str(run.path)
    for command in (
        ["report", path],
        ["report", path, "--json"],
        ["compare", path, path],
        ["plot", path],
        ["plan", path],
    ):
        assert main(command) == 2, command
        stored = capsys.readouterr()
        assert stored.out == ""
        assert len(stored.err.splitlines()) == (2 if command[0] == "compare" else 1), stored.err


@pytest.mark.parametrize("name", ["all", "none"])
def test_no_number_of_a_summary_changes_unnoticed(name: str, copied: Callable[[str], RunDir]) -> None:
    run = copied(name)
    found = list(leaves(json.loads(run.summary.read_text())))
    believed = []
    for path in random.Random(SEED).sample(found, 20):
        run = copied(name)
        with_leaf(run.summary, path)
        believed += [path] * (not refused(run))
    assert believed == []


@pytest.mark.parametrize("name", ["all", "none"])
def test_no_number_that_follows_from_the_requests_changes_without_a_digest(
    name: str, copied: Callable[[str], RunDir]
) -> None:
    run = copied(name)
    without_digest(run)
    found = [path for path in leaves(json.loads(run.summary.read_text())) if path[0] in OF_REQUESTS]
    believed = []
    for path in [*random.Random(SEED).sample(found, 15), ("exit_code",)]:
        run = copied(name)
        without_digest(run)
        with_leaf(run.summary, path)
        believed += [path] * (not refused(run))
    assert believed == []


@pytest.mark.parametrize("name", ["all", "none"])
@pytest.mark.parametrize("digests", [True, False])
def test_no_cell_of_a_timeline_changes_unnoticed(name: str, *, digests: bool, copied: Callable[[str], RunDir]) -> None:
    draw, believed = random.Random(SEED), []
    for _ in range(6):
        run = copied(name)
        if not digests:
            without_digest(run)
            assert not refused(run)
        column = with_cell(run.timeline, draw)
        believed += [column] * (not refused(run))
    assert believed == []


def numbers_of(run: Run) -> Any:
    """The summary of a run, to the precision to which a stored one is compared with what follows from the requests."""
    return json.loads(json.dumps(encoded(run.summary)), parse_float=lambda text: round(float(text), 8))


@pytest.mark.parametrize("digests", [True, False])
def test_no_count_changes_unnoticed(*, digests: bool, copied: Callable[[str], RunDir]) -> None:
    draw, believed = random.Random(SEED), []
    for number in range(8):
        run = copied("none")
        if not digests:
            without_digest(run)
        before = numbers_of(shown(run))
        with_count(run.counts, draw)
        now = shown(run)
        believed += [number] * (not now.is_damaged and numbers_of(now) != before)
    assert believed == []


@pytest.mark.parametrize("file", ["plan.json", "requests.parquet", "timeline.csv", "client.csv", "server_metrics.json"])
@pytest.mark.parametrize("how", ["deleted", "cut", "longer", "another's"])
def test_no_file_changes_unnoticed(file: str, how: str, copied: Callable[[str], RunDir], tmp_path: Path) -> None:
    run = copied("all")
    path, data = run.path / file, (run.path / file).read_bytes()
    if how == "deleted":
        path.unlink()
    elif how == "another's":
        make_run(tmp_path / "other", 120, failed=4, stream=True, middle_ms=25, name="other")
        other = tmp_path / "other" / file
        path.write_bytes(other.read_bytes() if other.exists() else data.replace(b"5", b"6"))
    else:
        path.write_bytes(data[: len(data) // 2] if how == "cut" else data + b"\n")
    assert refused(run)


def test_instances_that_were_taken_away_are_missed(copied: Callable[[str], RunDir]) -> None:
    run = copied("all")
    run.instances.unlink()
    assert refused(run)


@pytest.mark.parametrize("verdict", ["VALID", "INVALID"])
def test_a_verdict_that_its_requests_do_not_have_is_refused_without_a_digest(verdict: str, tmp_path: Path) -> None:
    make_run(tmp_path / "run", 120, dropped=0 if verdict == "INVALID" else 6)
    run = RunDir(tmp_path / "run")
    without_digest(run)
    fields = json.loads(run.summary.read_text())
    run.summary.write_text(json.dumps({**fields, "verdict": verdict, "exit_code": 3 if verdict == "INVALID" else 0}))
    assert refused(run)


def test_a_limit_that_is_said_to_be_kept_is_judged_anew(tmp_path: Path) -> None:
    make_run(tmp_path / "run", 120, failed=40)
    run = RunDir(tmp_path / "run")
    without_digest(run)
    fields = json.loads(run.summary.read_text())
    kept = [each for each in fields["findings"] if each["severity"] != "missed"]
    assert kept != fields["findings"]
    run.summary.write_text(json.dumps({**fields, "findings": kept}))
    assert "the limit" in shown(run).problems[0]
