"""``benchmark capacity --tier``: what it refuses, and two tiers of a real endpoint, judged by what that saw."""

from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING

import pytest

from inference_benchmarker import cli
from inference_benchmarker.cli.capacity.capacity import capacity_parser, search_of, search_options
from inference_benchmarker.cli.capacity.tier_flags import tiers_of
from inference_benchmarker.cli.capacity.tiers import questions_of
from inference_benchmarker.cli.core.address_flags import take_endpoint
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
        (["--in", "users"], "--tier with --in users is for sessions: give --turns N, --conversations FILE or a"),
        (["--in", "sessions"], "--in sessions: give --turns N or --conversations FILE with a URL"),
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


@pytest.mark.parametrize("unit", ["sessions", "users"])
def test_tiers_of_sessions_are_asked_for_in_sessions_or_in_users(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unit: str
) -> None:
    line = f"http://127.0.0.1:9/v1 --model m --turns 3 --in {unit} --time 60 --output-dir {tmp_path}"
    tiers = ["--tier", "gold:turn1.ttft.p95<1s,session.p95<9s", "--tier", "silver:turn2+.ttft.p95<400ms"]
    options, addresses, problems = search_options(capacity_parser(), [*line.split(), *tiers])
    monkeypatch.setattr("os.environ", {})
    take_endpoint(options, problems, addresses, {})
    asked = questions_of(tiers_of(options, problems), options, problems)
    assert [each.kind for each in asked.values()] == [unit] * 2
    assert [limit.expression for limit in asked["silver"].limits] == ["turn2+.ttft.p95<400ms", "success>=0.95"]


@pytest.mark.process
@pytest.mark.slow
def test_tiers_of_open_sessions_share_their_first_sessions_and_all_that_was_met(bench: Bench) -> None:
    """Both are met by the most users allowed. The second tier has no first sessions, and nothing that is not shared."""
    folder = bench.folder()
    with bench.endpoint(llm="8b-h100") as endpoint:
        flags = "--turns 2 --input-tokens 60 --output-tokens 10 --in users --max-users 2 --workers 1 --time 20"
        tiers = ["--tier", "gold:ttft.p95<3s", "--tier", "silver:session.p95<20s"]
        line = ["capacity", f"{endpoint.url}/v1", *flags.split(), *tiers, "--output-dir", "runs", "--json"]
        done = bench.run(*line, factories=None, folder=folder)

    found = json.loads(done.out)
    gold, silver = found["rows"]
    assert (found["in"], gold["outcome"], silver["outcome"]) == ("users", "at_least", "at_least")
    assert silver["rate"] == gold["rate"] == 2
    assert silver["shared_s"] == silver["load_s"] > gold["load_s"]
    (made,) = (folder / "runs").glob("*_tiers")
    first, second = (json.loads((made / tier / "capacity.json").read_text()) for tier in ("gold", "silver"))
    assert (len(first["waves"]["warming"]), second["waves"]["warming"]) == (1, [])
    assert second["sessions"]["alone_s"] == first["sessions"]["alone_s"]
    assert cli.main(["report", str(made)]) == done.code


@pytest.mark.process
def test_what_is_sent_for_one_tier_serves_the_next(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    """Both are met at the most that may be tried: the second one has nothing to send but what confirms it."""
    folder = bench.folder()
    (folder / "sender.py").write_text(SENDER)
    (folder / "f.py").write_text(FACTORIES)
    with bench.endpoint(servers=4, service_s=0.02) as endpoint:
        flags = "--max-rps 40 --start-rps 20 --time 5 --workers 1 --output-dir runs --json --quiet"
        tiers = ["--tier", "gold:p95<5s", "--tier", "silver:p50<10s,p90<15s"]
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
