"""``benchmark capacity``: flags, exit codes and files; one search of a real endpoint, judged by what it saw."""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING, Any

import pytest

from inference_benchmarker import cli
from inference_benchmarker.cli.capacity.capacity import capacity_parser
from inference_benchmarker.cli.capacity.capacity_flags import make_question, sends_payloads, without_others
from inference_benchmarker.cli.core.address_flags import take_endpoint
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.plan.think import Think
from server_capacity.results.capacity_folder import save
from tests.bench import FACTORIES, SENDER, factories
from tests.capacities import searched
from tests.fake_cloudwatch import cloudwatch_block

if TYPE_CHECKING:
    from pathlib import Path

    from server_capacity.experiments.measurements.question import Question
    from tests.bench import Bench


@pytest.fixture(autouse=True)
def _empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "f.py").write_text(factories("return None"))


def question(arguments: str) -> Question:
    rest, problems = without_others(["--factories-file", "f.py", *shlex.split(arguments)])
    options, more = capacity_parser().parsed(rest)
    return make_question({**options, "config": None}, [*problems, *more])


def problems(arguments: str) -> list[str]:
    with pytest.raises(BenchmarkError) as raised:
        question(arguments)
    return str(raised.value).splitlines()


def test_flags_become_the_question() -> None:
    asked = question(
        "--slo p99<200ms --slo ttft.p90<1s --goodput latency<1s --time 2m --precision 5% --max-rps 500 --start-rps 2 "
        "--soak 30m --cache warm --workers 3 --seed 7 --arrivals constant --name x"
    )

    settings = asked.settings
    assert (settings.time_s, settings.precision, settings.max_rps, settings.start_rps) == (120, 0.05, 500, 2)
    assert settings.arrivals == "constant"
    assert [limit.expression for limit in asked.limits] == ["p99<200ms", "ttft.p90<1s", "success>=0.95"]
    assert (asked.soak_s, asked.warm, asked.plan.workers, asked.most_workers) == (1800, True, 3, 3)
    assert (asked.plan.seed, asked.plan.name) == (7, "x")
    assert len(asked.plan.goodput) == 1


def test_what_is_not_given_has_its_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(6)), raising=False)

    asked = question("")

    assert (asked.settings.arrivals, asked.settings.time_s, asked.settings.precision) == ("poisson", None, None)
    assert (asked.plan.workers, asked.most_workers) == (1, 6)
    assert (asked.soak_s, asked.warm) == (None, False)


def test_a_search_in_users_has_think_times_and_limits_latency() -> None:
    asked = question("--in users --think-time exponential:2s --max-users 300 --start-users 5 --slo p99<200ms")
    assert (asked.in_users, asked.think, asked.think_s) == (True, Think.parse("exponential:2s"), 2)
    assert (asked.settings.max_rps, asked.settings.start_rps) == (300, 5)
    assert [limit.metric for limit in asked.limits] == ["latency", "success"]
    assert not question("--in rps").in_users


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("--think-time 5s --max-users 3", ["--think-time is for a search in users: add --in", "--max-users is"]),
        (
            "--in users --max-rps 5 --arrivals poisson",
            ["--arrivals is not for a search in", "--max-rps is not for a search in users: use"],
        ),
        (
            "--in users --max-users 0 --think-time x",
            ["--think-time 'x' is not a think time", "--max-users must be from 1"],
        ),
        ("--in users --slo response_time.p99<1s", ["--slo response_time.p99<1s: a closed loop has"]),
        ("--in users --slo server.CPUUtilization<70%", ["--slo server.CPUUtilization<70%: a search in users"]),
        ("--in bytes", ["--in must be rps, requests, sessions or users"]),
        ("--client-rps 5", ["--client-rps is not for a search"]),
        ("--stages 5:3s --obs-time 3", ["--stages is not for a search", "--obs-time is not for a search"]),
        ("--concurrency=4", ["--concurrency is not for a search"]),
        (
            "--replay x.csv --records none --interactive",
            ["--replay is not", "--records is not", "--interactive is not"],
        ),
        ("--aiperf-args {} --api-key x --replay-column t", ["--aiperf-args is", "--api-key is", "--replay-column is"]),
        ("--slo mean<1s", ["--slo 'mean<1s' is not a limit"]),
        ("--slo 5", ["--slo '5' is not a limit"]),
        ("--time 1s", ["--time must be from 5 to"]),
        ("--precision 500%", ["--precision must be from 0.1% to 100%"]),
        ("--precision x", ["--precision must be a number"]),
        ("--start-rps 20 --max-rps 10", ["--start-rps must not be above --max-rps"]),
        ("--max-rps 0", ["--max-rps must be from"]),
        ("--cache hot", ["--cache must be as-is, warm or fresh"]),
        ("--cache fresh", ["--cache fresh puts a new word before each conversation"]),
        ("--workers 0", ["--workers must be from 1"]),
        ("--workers many", ["--workers must be a whole number or auto"]),
        ("--arrivals even", ["--arrivals must be constant or poisson"]),
        ("--slo goodput>=0.9", ["--slo goodput>=0.9: say what a good request is"]),
    ],
)
def test_everything_wrong_is_said_at_once(arguments: str, said: list[str]) -> None:
    lines = problems(arguments)

    assert all(any(line.startswith(start) for line in lines) for start in said), lines


def test_bad_input_is_exit_code_2_and_makes_no_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["capacity", "--factories-file", "none.py", "--output-dir", "out"]) == 2
    assert "none.py" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def stored(folder: Path, **more: Any) -> Path:
    folder.mkdir()
    save(folder, searched(**more))
    return folder


@pytest.mark.parametrize("code", [0, 1, 3, 130])
def test_report_prints_a_search_again(tmp_path: Path, capsys: pytest.CaptureFixture[str], code: int) -> None:
    outcome = "interrupted" if code == 130 else "found"
    folder = stored(tmp_path / "x_capacity", exit_code=code, outcome=outcome)

    assert cli.main(["report", str(folder)]) == code
    assert capsys.readouterr().out == (folder / "capacity.txt").read_text()
    assert cli.main(["report", str(folder), "--json"]) == code
    assert json.loads(capsys.readouterr().out)["rate"] == 174.13


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", '{"schema_version": 99}', '{"schema_version": 1}', '{"schema_version": 1, "outcome": "won"}'],
)
def test_a_forged_file_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str) -> None:
    folder = stored(tmp_path / "x_capacity")
    (folder / "capacity.json").write_text(text)

    assert cli.main(["report", str(folder)]) == 2
    error = capsys.readouterr().err
    assert "capacity.json" in error
    assert "Traceback" not in error


@pytest.mark.process
def test_a_search_ends_where_it_may_go_no_higher(bench: Bench) -> None:
    folder = bench.folder()
    (folder / "sender.py").write_text(SENDER)
    (folder / "f.py").write_text(FACTORIES)
    config = [cloudwatch_block("AWS/SageMaker", {"Invocations": ["Sum"]}, period=1, lag=1)]
    (folder / "config.json").write_text(json.dumps(config))
    with bench.endpoint(servers=4, service_s=0.02, publish_interval_s=1) as endpoint:
        flags = "--max-rps 40 --start-rps 20 --time 5 --workers 1 --slo p95<5s --output-dir runs --json --quiet"
        limit = ["--endpoint-config", "config.json", "--slo", "server.CPUUtilization<50%"]
        line = ["capacity", "--factories-file", "f.py", *flags.split(), *limit]
        environment = endpoint.aws_environment
        done = bench.run(*line, factories=None, target=endpoint, folder=folder, environment=environment)
        seen = endpoint.arrivals()["id"]

    fields = json.loads(done.out)
    code = 0 if fields["confirmed"] == "holds" else 1  # too few requests tell of 1 in 20
    assert (done.code, fields["outcome"], fields["exit_code"]) == (code, "at_least", code)
    assert fields["at_least"]["rate"] == pytest.approx(40, rel=0.002), "a stretch that is tried again is a nudge away"
    (confirmed,) = fields["confirmation"]
    assert confirmed["rate"] == fields["at_least"]["rate"]
    sent = [json.loads(path.read_text())["ledger"]["sent"] for path in folder.glob("runs/*/*/summary.json")]
    assert sum(row["sent"] for row in fields["stretches"]) in sent
    assert sum(sent) == len(seen) == len(set(seen))
    (made,) = (folder / "runs").glob("*_capacity")
    assert (made / fields["waves"]["exploration"][0] / "requests.parquet").is_file()
    limit_row = fields["limits"][-1]
    assert limit_row["expression"] == "server.CPUUtilization<50%"
    assert limit_row["rate"] == pytest.approx(100, rel=0.25), "4 servers of 20 ms are half busy then, far above 40/s"
    cpu = next(row for row in fields["resources"]["all"] if row["metric"] == "CPUUtilization")
    assert cpu["at_low"] == pytest.approx(0.2, rel=0.25), "at 40/s"


@pytest.mark.slow
@pytest.mark.process
def test_a_limit_on_the_servers_cpu_is_found_and_confirmed(bench: Bench) -> None:
    """4 servers of 100 ms are busy for 60% of the time at 24/s, and keep p99 far above that."""
    folder = bench.folder()
    (folder / "sender.py").write_text(SENDER)
    (folder / "f.py").write_text(FACTORIES)
    config = [cloudwatch_block("AWS/SageMaker", {"Invocations": ["Sum"]}, period=1, lag=1)]
    (folder / "config.json").write_text(json.dumps(config))
    with bench.endpoint(servers=4, service_s=0.1, publish_interval_s=1, publication_delay_s=2) as endpoint:
        flags = "--time 30 --workers 1 --slo p99<1s --output-dir runs --endpoint-config config.json"
        line = ["capacity", "--factories-file", "f.py", *flags.split(), "--slo", "server.CPUUtilization<60%"]
        environment = endpoint.aws_environment
        search = bench.start(*line, factories=None, target=endpoint, folder=folder, environment=environment)
        done = search.finish(timeout=200)
    (made,) = (folder / "runs").glob("*_capacity")
    fields = json.loads((made / "capacity.json").read_text())
    assert (fields["outcome"], fields["limit"]) == ("found", "server.CPUUtilization<60%")
    assert fields["rate"] == pytest.approx(24, rel=0.03)
    assert fields["interval"]["low"] <= 24 * 1.01
    confirmed = fields["confirmation"][-1]["limits"][-1]
    share = fields["confirmation"][-1]["rate"] * 0.1 / 4
    assert confirmed["value"] == pytest.approx(share, rel=0.2), "as far as the arrivals of 10 s are the rate's"
    lines = done.out.splitlines()
    assert lines[0].startswith("PENDING: ")
    assert lines[-2] == fields["headline"]


SESSIONS = "def session_factory():\n    return None\n"


def test_a_file_with_sessions_is_searched_in_sessions_or_in_users(tmp_path: Path) -> None:
    (tmp_path / "f.py").write_text(factories("return None") + SESSIONS)
    asked = question("--in sessions --think-time 2s --slo session.p95<60s --slo turn1.ttft.p95<1s --max-rps 5")
    assert (asked.kind, asked.unit, asked.in_users) == ("sessions", " sessions/s", False)
    assert asked.load(2.0).think == Think.parse("2s")
    assert [limit.metric for limit in asked.limits] == ["session", "ttft", "success"]
    asked = question("--in users --max-users 30 --slo p99<2s")
    assert (asked.kind, asked.sessions is not None, asked.limits[0].metric) == ("users", True, "latency")
    assert question("--in sessions --slo p99<2s").limits[0].metric == "response_time"
    assert problems("") == [
        "The endpoint takes sessions of several turns: search with --in sessions, or with --in users."
    ]
    assert "--arrivals is not for a search in users" in problems("--in users --arrivals poisson")[0]


def test_single_requests_are_not_searched_in_sessions() -> None:
    assert question("--in requests").kind == "rps"
    assert "--in sessions: give --turns N" in problems("--in sessions")[0]
    assert "Search with --in sessions" in problems("--slo session.p95<60s")[0]
    assert "--conversations needs" in problems("--conversations x.json")[-1]


def test_conversations_at_an_address_are_sessions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.environ", {})
    arguments = "http://127.0.0.1:9/v1 --model m --turns 3 --in sessions --time 60"
    rest, wrong = without_others(shlex.split(arguments)[1:])
    options, more = capacity_parser().parsed(rest)
    options = {**options, "config": None}
    take_endpoint(options, wrong, ["http://127.0.0.1:9/v1"], {})
    assert make_question(options, [*wrong, *more]).kind == "sessions"


def test_a_warm_cache_of_payloads_needs_no_constant_of_the_file(tmp_path: Path) -> None:
    options = {"turns": None, "conversations": None, "factories_file": str(tmp_path / "f.py")}
    assert sends_payloads(options, [])
    assert not sends_payloads({**options, "turns": "3"}, ["http://127.0.0.1:9/v1"])
    (tmp_path / "f.py").write_text(factories("return None") + SESSIONS)
    assert not sends_payloads(options, [])
