"""What a run directory holds is one wave: rows, ledger, plan and digests agree, or a sentence says which does not."""

from __future__ import annotations

import errno
import os
from typing import IO, TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from inference_benchmarker import Wave
from inference_benchmarker.cli import main
from inference_benchmarker.data.json_file import read_json, write_json
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.system import files
from inference_benchmarker.wave.files import identity
from inference_benchmarker.wave.reader import read_server_metrics
from inference_benchmarker.wave.run_dir import RunDir
from inference_benchmarker.wave.writer import save_server_metrics
from inference_benchmarker.words.units import NS
from server_capacity.aiperf.export import AiperfResult
from tests.waves import facts_of, make_run, without_digest

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from pathlib import Path


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    make_run(tmp_path / "run", 180, failed=3, stream=True)
    return RunDir(tmp_path / "run")


def changed(run: RunDir, change: Callable[[pa.Table], pa.Table]) -> None:
    pq.write_table(change(pq.read_table(run.requests)), run.requests)


def replaced(table: pa.Table, name: str, values: pa.Array) -> pa.Table:
    return table.set_column(table.schema.get_field_index(name), table.schema.field(name), values)


def moved(name: str, by_ns: int) -> Callable[[pa.Table], pa.Table]:
    return lambda table: replaced(table, name, pc.add(table[name], by_ns))


UNTRUE: dict[str, tuple[Callable[[pa.Table], pa.Table], str]] = {
    "half": (lambda table: table.slice(0, 90), "the ledger has 177 ok requests of worker 0, but 90 are stored"),
    "none": (lambda table: table.slice(0, 0), "the ledger has 177 ok requests of worker 0, but 0 are stored"),
    "done": (moved("done", -NS), "lies before its"),
    "first": (moved("first_token", -NS), "first_token of arrival 0 lies before its sent"),
    "last": (moved("last_token", -NS), "last_token of arrival 0 lies before its first_token"),
}


@pytest.mark.parametrize("forged", UNTRUE)
def test_rows_that_no_such_wave_had_are_refused_without_a_digest(run: RunDir, forged: str) -> None:
    change, expected = UNTRUE[forged]
    changed(run, change)
    without_digest(run)
    with pytest.raises(BenchmarkError, match=expected):
        Wave.load(run.path)


def test_failures_that_became_answers_are_refused(run: RunDir) -> None:
    changed(run, lambda table: replaced(table, "outcome", pa.array(["ok"] * len(table)).dictionary_encode()))
    without_digest(run)
    with pytest.raises(BenchmarkError, match="the ledger has 177 ok requests of worker 0, but 180 are stored"):
        Wave.load(run.path)


def test_a_limit_that_is_kept_after_a_change_of_the_rows_is_refused(run: RunDir) -> None:
    changed(run, moved("due", 1))
    with pytest.raises(BenchmarkError, match=r"requests\.parquet: was changed after the wave was stored"):
        Wave.load(run.path)


@pytest.mark.parametrize("command", ["report", "compare", "plot"])
def test_no_command_believes_a_summary_that_was_changed(
    run: RunDir, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    facts = read_json(run.summary)
    write_json(run.summary, {**facts, "success_rate": 1.0})
    assert main([command, *[str(run.path)] * (1 + (command == "compare"))]) == 2
    assert "it was changed after it was stored" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["plan.json", "requests.parquet"])
def test_a_file_that_is_not_the_one_that_was_stored_is_refused(run: RunDir, name: str) -> None:
    (run.path / name).write_bytes((run.path / name).read_bytes() + b"\n")
    with pytest.raises(BenchmarkError, match=name):
        Wave.load(run.path)


def test_the_servers_metrics_are_those_that_were_stored(run: RunDir) -> None:
    save_server_metrics(Wave.load(run.path))
    assert read_server_metrics(run.server_metrics) == []
    whole = read_json(run.server_metrics)
    Wave.load(run.path)
    write_json(run.server_metrics, {**whole, "metrics": [{"name": "CPUUtilization", "statistics": {"Average": 1.0}}]})
    with pytest.raises(BenchmarkError, match=r"server_metrics\.json: was changed after the wave was stored"):
        Wave.load(run.path)
    with pytest.raises(ValueError, match="it was changed after it was stored"):
        read_server_metrics(run.server_metrics)
    run.server_metrics.unlink()
    with pytest.raises(BenchmarkError, match=r"server_metrics\.json: was taken away"):
        Wave.load(run.path)


def test_the_servers_metrics_of_an_earlier_version_have_no_digest(run: RunDir) -> None:
    save_server_metrics(Wave.load(run.path))
    write_json(run.server_metrics, {"schema_version": 1, "metrics": [], "logs": []})
    without_digest(run)
    Wave.load(run.path)
    assert read_server_metrics(run.server_metrics) == []


def test_numbers_that_do_not_follow_from_the_rows_are_refused_without_a_digest(run: RunDir) -> None:
    changed(run, moved("done", 7 * NS))
    without_digest(run)
    with pytest.raises(BenchmarkError, match=r"latency.* follows from the requests"):
        Wave.load(run.path)


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("verdict", None, "missing required field .verdict."),
        ("verdict", "BANANA", "the verdict 'BANANA' is none of VALID"),
        ("exit_code", -5, "exit_code -5 is not an exit code"),
        ("success_rate", 1.0, "success_rate is 1.0, and 0.98"),
        ("latency", {"p99": 0.001}, "latency.p99 is 0.001, and"),
    ],
)
def test_a_summary_of_an_earlier_version_says_what_follows_from_the_rows(
    run: RunDir, key: str, value: object, expected: str
) -> None:
    facts = {name: reported for name, reported in facts_of(run).items() if name != key}
    write_json(run.summary, facts if value is None else {**facts, key: value})
    with pytest.raises(BenchmarkError, match=expected):
        Wave.load(run.path)


def test_digests_without_one_of_their_own_are_refused(run: RunDir) -> None:
    facts = read_json(run.summary)
    del facts["digest"]
    write_json(run.summary, facts)
    with pytest.raises(BenchmarkError, match="digests of the other files but none of its own"):
        Wave.load(run.path)


@pytest.mark.parametrize("command", ["report", "compare", "plot"])
@pytest.mark.parametrize("name", ["requests.parquet", "summary.json"])
def test_a_file_that_is_gone_is_named(run: RunDir, name: str, command: str, capsys: pytest.CaptureFixture[str]) -> None:
    (run.path / name).unlink()
    given = [str(run.path)] * (1 + (command == "compare"))
    assert main([command, *given]) == 2
    assert f"{name}: is missing." in capsys.readouterr().err
    (run.path / name).mkdir()
    assert main([command, *given]) == 2
    assert f"{name}: is not a regular file." in capsys.readouterr().err


def test_beside_aiperf_a_wave_whose_requests_are_gone_is_no_run_of_aiperf_alone(
    run: RunDir, capsys: pytest.CaptureFixture[str]
) -> None:
    run.aiperf.mkdir()
    AiperfResult("0.3", 0.0, 9.0, 10, 10, {}, None, None, None, {}, 0.95, str(run.aiperf)).save()
    run.requests.unlink()
    assert main(["report", str(run.path)]) == 2
    assert "requests.parquet: is missing." in capsys.readouterr().err
    run.summary.unlink()
    assert main(["report", str(run.path)]) == 2


@pytest.mark.parametrize("name", ["timeline.csv", "summary.txt", "client.csv"])
def test_a_file_from_which_nothing_is_computed_is_named_and_refuses_no_run(
    run: RunDir, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    run.client_csv.write_text("unix_s,process,cpu_percent\n")
    save_server_metrics(Wave.load(run.path))
    code = main(["report", str(run.path)])
    assert name not in capsys.readouterr().err
    (run.path / name).write_text("")
    assert main(["report", str(run.path)]) == code
    assert f"{name}: was changed after the wave was stored. No number is computed from it." in capsys.readouterr().err
    (run.path / name).unlink()
    main(["compare", str(run.path), str(run.path)])
    assert f"{name}: was taken away after the wave was stored." in capsys.readouterr().err


def test_without_a_digest_a_timeline_of_other_rows_is_named(run: RunDir, capsys: pytest.CaptureFixture[str]) -> None:
    without_digest(run)
    code = main(["report", str(run.path)])
    assert "timeline.csv" not in capsys.readouterr().err
    lines = run.timeline.read_text().splitlines()
    run.timeline.write_text("\n".join([lines[0], lines[2], lines[1], *lines[3:]]) + "\n")
    assert main(["report", str(run.path)]) == code
    assert f"{run.timeline}: does not fit its wave (" in capsys.readouterr().err


def test_a_plot_says_that_a_timeline_was_changed(run: RunDir, capsys: pytest.CaptureFixture[str]) -> None:
    lines = run.timeline.read_text().splitlines()
    run.timeline.write_text("\n".join(lines[:1]) + "\n")
    assert main(["plot", str(run.path), "--plot-format", "html"]) == 2
    assert "timeline.csv: was changed after the wave was stored" in capsys.readouterr().err


def test_a_run_of_an_earlier_version_says_that_it_has_no_digest(
    run: RunDir, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main(["report", str(run.path)])
    assert "without a digest" not in capsys.readouterr().err
    without_digest(run)
    assert main(["report", str(run.path)]) == code
    assert capsys.readouterr().err.count("was stored without a digest") == 1
    main(["compare", "--base", str(run.path), "--new", str(run.path)])
    assert capsys.readouterr().err.count("was stored without a digest") == 2


def test_a_secret_that_is_taken_out_does_not_break_the_digest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(os.environ, "MY_TOKEN", "hunter2-hunter2")
    make_run(tmp_path / "run", 20, name="with hunter2-hunter2 in it")
    assert "hunter2-hunter2" not in (tmp_path / "run" / "summary.json").read_text()
    assert Wave.load(tmp_path / "run").ledger.ok == 20


@pytest.mark.parametrize("command", ["report", "compare", "plot"])
def test_instances_that_were_put_beside_a_wave_are_not_its_own(
    run: RunDir, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A wave without any was said to have gone from 22 instances to 2."""
    run.instances.write_text("")
    assert main([command, *[str(run.path)] * (1 + (command == "compare"))]) == 2
    assert "instances.jsonl: was added after the wave was stored" in capsys.readouterr().err


def test_samples_of_a_client_that_were_put_beside_a_wave_are_drawn_nowhere(
    run: RunDir, capsys: pytest.CaptureFixture[str]
) -> None:
    run.client_csv.write_text("unix_s,process,cpu_percent\n1700000001,host,5.0\n")
    assert main(["report", str(run.path)]) == Wave.load(run.path).verdict.exit_code
    assert "client.csv: was added after the wave was stored. No number is computed" in capsys.readouterr().err
    assert main(["plot", str(run.path), "--plot-format", "html"]) == 2


@pytest.mark.parametrize("name", ["timeline.csv", "summary.txt", "client.csv", "server_metrics.json"])
@pytest.mark.parametrize("command", ["report", "compare"])
def test_a_file_that_this_user_may_not_read_is_named(
    run: RunDir, name: str, command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run.client_csv.write_text("unix_s,process,cpu_percent\n")
    save_server_metrics(Wave.load(run.path))
    code, real = Wave.load(run.path).verdict.exit_code, files.opened

    def opened(path: Path, inside: Path | None = None) -> AbstractContextManager[IO[bytes]]:
        if path.name == name:
            raise PermissionError(errno.EACCES, "Permission denied", path.name)
        return real(path, inside)

    monkeypatch.setattr(identity, "opened", opened)
    refused = name == "server_metrics.json"  # whose numbers are in the report
    assert main([command, *[str(run.path)] * (1 + (command == "compare"))]) == (2 if refused else code)
    assert f"{run.path / name}: cannot be read (Permission denied)." in capsys.readouterr().err
