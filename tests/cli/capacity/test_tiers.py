"""``benchmark capacity --tier``: what it refuses, and two tiers of a real endpoint, judged by what that saw."""

from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING

import pytest

from inference_benchmarker import cli
from inference_benchmarker.cli.capacity.capacity import search_of
from inference_benchmarker.errors import BenchmarkError
from tests.bench import FACTORIES, SENDER, factories

if TYPE_CHECKING:
    from pathlib import Path

    from tests.bench import Bench

GOLD, SILVER = "gold:p99<50ms", "silver:p99<200ms,p50<50ms"


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--slo", "p99<1s"], "--tier has the limits of each tier, and --slo p99<1s is of none"),
        (["--vary", "payload.size=1,2"], "--tier has several capacities, and --vary ranks by one capacity"),
        (["--verify", "plan"], "--tier has several capacities, and --verify sends the limits of its plan"),
        (["--in", "users"], "--tier searches for requests/s: leave --in users out"),
        (["--in", "sessions"], "--tier searches for requests/s: leave --in sessions out"),
        (["--tier", "Gold:p99<1s"], "--tier gold: two tiers have this name."),
        (["--tier", "p99<1s"], "--tier 'p99<1s': expected NAME:LIMIT,LIMIT such as gold:"),
        (["--tier", "a/b:p99<1s"], "--tier 'a/b:p99<1s': expected NAME:LIMIT,LIMIT"),
        (["--tier", "bronze:p99<1s,"], "--tier 'bronze:p99<1s,': expected NAME:LIMIT,LIMIT"),
        (["--tier", "bronze:mean<1s"], "--slo 'mean<1s' is not a limit"),
        (["--tier", "bronze:server.GPUUtilization<70%"], "give an --endpoint-config that names the source"),
    ],
)
def test_what_speaks_against_tiers_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, flags: list[str], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "f.py").write_text(factories("return None"))
    (tmp_path / "plan").mkdir()
    assert cli.main(["capacity", "--factories-file", "f.py", "--tier", GOLD, "--output-dir", "out", *flags]) == 2
    error = capsys.readouterr().err
    assert said in error or ("--verify" in flags and "plan" in error)
    assert not (tmp_path / "out").exists()


def test_tiers_are_not_searched_from_pods(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "f.py").write_text(factories("return None"))
    with pytest.raises(BenchmarkError, match="--tier is not for pods"):
        search_of(["--factories-file", "f.py", "--tier", GOLD, "--tier", SILVER])


@pytest.mark.process
def test_what_is_sent_for_one_tier_serves_the_next(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    """Both are met at the most that may be tried: the second one has nothing to send but what confirms it."""
    folder = bench.folder()
    (folder / "sender.py").write_text(SENDER)
    (folder / "f.py").write_text(FACTORIES)
    with bench.endpoint(servers=4, service_s=0.02) as endpoint:
        flags = "--max-rps 40 --start-rps 20 --time 5 --workers 1 --output-dir runs --json --quiet"
        tiers = ["--tier", "gold:p99<5s", "--tier", "silver:p50<10s,p90<15s"]
        line = ["capacity", "--factories-file", "f.py", *flags.split(), *tiers]
        done = bench.run(*line, factories=None, target=endpoint, folder=folder)
        seen = endpoint.arrivals()["id"]

    found = json.loads(done.out)
    gold, silver = found["rows"]
    assert done.code == found["exit_code"] == max(gold["exit_code"], silver["exit_code"])
    assert [row["outcome"] for row in found["rows"]] == ["at_least", "at_least"]
    assert silver["limits"] == ["p50<10s", "p90<15s", "success>=0.95"]
    assert gold["shared_s"] is None
    assert silver["shared_s"] == silver["load_s"] > gold["load_s"], "with what confirmed gold"

    (made,) = (folder / "runs").glob("*_tiers")
    own = json.loads((made / "silver" / "capacity.json").read_text())
    assert own["waves"]["exploration"] == []
    assert len(own["waves"]["shared"]) == len(list((made / "gold").glob("*_benchmark")))
    assert {f"../gold/{name}" for name in own["waves"]["shared"]} <= set(own["built_on"])
    ledgers = [json.loads(path.read_text())["ledger"]["sent"] for path in made.glob("*/*/summary.json")]
    assert sum(ledgers) == len(seen) == len(set(seen)), "no payload is sent twice"
    assert (made / "tiers.html").is_file()

    cli.main(["report", str(made), "--format", "csv"])
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [row["name"].partition(",")[0] for row in rows] == ["gold"] * (len(rows) - 1) + ["silver"]
    assert cli.main(["report", str(made)]) == done.code
    assert "gold: At least 40" in capsys.readouterr().out
