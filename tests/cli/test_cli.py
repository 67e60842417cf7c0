"""The command line: whatever is typed, all that is wrong is said at once, with exit code 2 and nothing started."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from contextlib import nullcontext, suppress
from dataclasses import fields, replace
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Self

import pytest

import inference_benchmarker
from client_capacity import rps_saturation, worker_saturation
from client_capacity.conditions import Conditions
from inference_benchmarker import cli
from inference_benchmarker.cli.core import demo
from inference_benchmarker.cli.core.embedded import DEMO_URL
from inference_benchmarker.cli.core.terminal import progress
from inference_benchmarker.cli.endpoint.endpoint_flags import ENDPOINT_FLAGS
from inference_benchmarker.cli.wave import wave as wave_command
from inference_benchmarker.cli.wave.wave import wave_of, wave_options, wave_parser
from inference_benchmarker.data.json_file import FOREIGN
from inference_benchmarker.embedded.aws.boto3_settings import boto3_settings
from inference_benchmarker.embedded.config import EndpointConfig
from inference_benchmarker.engine import launch
from inference_benchmarker.errors import LostProcessError
from inference_benchmarker.plan.load import Bounds, ClosedLoop, OpenLoop
from inference_benchmarker.plan.plan import WavePlan
from inference_benchmarker.plan.retries import Backoff, Retries
from inference_benchmarker.plan.stage import Stage
from server_capacity.metrics.config import load_config
from tests.case import case
from tests.conftest import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable

FACTORIES = """
def invoke_factory():
    return lambda payload: None
def payload_factory():
    return {"pre_computed": True, "input": [1]}
"""
HEAVY = "numpy pyarrow locust gevent boto3 botocore pandas matplotlib rich asyncio flask psutil scipy"


@pytest.fixture(autouse=True)
def _empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("f.py").write_text(FACTORIES)


@pytest.fixture
def plans(monkeypatch: pytest.MonkeyPatch) -> list[WavePlan]:
    """The plans that would have been run; the wave itself ends before it begins."""
    made: list[WavePlan] = []

    def run(plan: WavePlan, *_: Any, **__: Any) -> None:
        made.append(plan)
        raise KeyboardInterrupt

    monkeypatch.setattr(launch, "run_wave", run)
    return made


STAGED = ["--factories-file", "f.py", "--stages"]
GOOD = ["--factories-file", "f.py", "--client-rps", "10", "--obs-time", "1"]


def problems(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    """What a call that must fail says; nothing may have been started or left."""
    before = set(Path().iterdir())
    assert cli.main(list(arguments)) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert set(Path().iterdir()) == before
    lines = err.splitlines()
    assert all(line.startswith("benchmark: ") for line in lines)
    return [line.removeprefix("benchmark: ") for line in lines]


NONSENSE = ["", " ", "x", "nan", "NaN", "sNaN", "inf", "-inf", "1,000", "1_000", "0x10", "1e", "½", "9" * 3000 + "x"]
NUMBERS = ["--client-rps", "--obs-time", "--warmup", "--drain-timeout", "--request-timeout", "--client-timeout"]
NUMBERS += ["--success-threshold"]
INTEGERS = ["--num-requests", "--client-retries", "--workers", "--port", "--max-in-flight", "--seed"]


@pytest.mark.parametrize("flag", NUMBERS + INTEGERS)
def test_nonsense_is_one_sentence(capsys: pytest.CaptureFixture[str], flag: str) -> None:
    kind = "a whole number" if flag in INTEGERS else "a number"
    for value in NONSENSE:
        with case(value):
            (problem,) = problems(capsys, *GOOD, f"{flag}={value}")
            assert problem.startswith(f"{flag} must be {kind}, not ")
            assert len(problem) < 300


@pytest.mark.parametrize(
    ("flag", "values"),
    [
        ("--client-rps", ("0", "-1", "-0.5", "1e300", "1000001", "1e-7")),
        ("--obs-time", ("0", "-1", "1e300", "0.0001", "2592001")),
        ("--num-requests", ("0", "-1", "1000000001", "9" * 50)),
        ("--warmup", ("-1", "1e300")),
        ("--drain-timeout", ("-1", "1e300")),
        ("--request-timeout", ("0", "-1", "1e300")),
        ("--client-timeout", ("0", "-1", "1e300")),
        ("--client-retries", ("-1", "101", "9" * 50)),
        ("--max-in-flight", ("0", "-1")),
        ("--workers", ("0", "-1", "1001", "9" * 50)),
        ("--port", ("0", "-1", "65536")),
        ("--seed", ("-1", str(2**63))),
        ("--success-threshold", ("-0.1", "1.1", "95", "1e300", "1e999999999")),
    ],
)
def test_zero_negative_and_huge_are_one_sentence(
    capsys: pytest.CaptureFixture[str], flag: str, values: tuple[str, ...]
) -> None:
    for value in values:
        (problem,) = problems(capsys, *GOOD, f"{flag}={value}")
        assert problem.startswith(f"{flag} must be ")
        assert (
            not problem.startswith((f"{flag} must be a number", f"{flag} must be a whole number, not"))
            or flag == "--seed"
        )


@pytest.mark.parametrize("flag", ["--factories-file", "--locust-file", "--output-dir", "--config"])
def test_an_empty_path_is_one_sentence(capsys: pytest.CaptureFixture[str], flag: str) -> None:
    (problem,) = problems(capsys, *GOOD, flag, "")
    assert problem.startswith(flag)


@pytest.mark.parametrize(
    ("arguments", "starts"),
    [
        ([*GOOD, "--concurrency", "2"], ["Give either --concurrency or --client-rps, not both."]),
        (
            [*GOOD, "--concurrency", "2", "--arrivals", "poisson"],
            ["Give either --concurrency or --client-rps", "Give either --concurrency or --arrivals"],
        ),
        (
            [*GOOD, "--stages", "5:3s"],
            ["Give either --stages or --client-rps, not both.", "Give either --stages or --obs-time, not both."],
        ),
        ([*STAGED, "5:3s,x:4s"], ["--stages: 'x:4s' is not a stage. Write RATE:DURATION"]),
        (
            [*STAGED, "5:3s, 0..2000000:0s"],
            ["--stages: stage 2 (0..2000000:0s): a rate", "--stages: stage 2 (0..2000000"],
        ),
        ([*GOOD, "--think-time", "5s"], ["--think-time is for --concurrency"]),
        ([*STAGED, "5:3s", "--concurrency", "2"], ["Give either --concurrency or --stages, not both."]),
        ([*STAGED, "a=5:3s", "--slo", "b:p99<1s"], ["--slo b:p99<1s: there is no stage b; the stages are a."]),
        ([*GOOD, "--slo", "b:p99<1s"], ["--slo b:p99<1s: there is no stage b; there are no --stages."]),
        ([*STAGED, "0..5:3s", "--warmup", "1"], ["--warmup runs at the first stage's first rate, which is 0:"]),
        ([*GOOD, "--locust-file", "f.py"], ["Give either --factories-file or --locust-file, not both."]),
        ([*GOOD, "--arrivals", "regular"], ["--arrivals must be constant or poisson, not 'regular'."]),
        ([*GOOD, "--slo", "fast"], ["--slo 'fast' is not a limit."]),
        ([*GOOD, "--slo", "p99<1", "--slo", "p99<1s", "--slo", ""], ["--slo 'p99<1' is not", "--slo '' is not"]),
        ([*GOOD, "--goodput", "ttft<1s,fast,"], ["--goodput 'fast' is not a limit", "--goodput '' is not a limit"]),
        ([*GOOD, "--url", "http://x"], ["--url is the host of a --locust-file;"]),
        ([*GOOD, "--endpoint-name", ""], ["--endpoint-name must not be empty."]),
        ([*GOOD, "--nonsense"], ["Unknown argument '--nonsense'."]),
        ([*GOOD, "--client"], ["Unknown argument '--client'."]),
        ([*GOOD, "stray"], ["Unknown argument 'stray'."]),
        ([*GOOD, "--obs-time"], ["Argument --obs-time: expected one argument."]),
        ([*GOOD, "--output-dir", "f.py"], ["f.py: cannot be written ("]),
        ([*GOOD, "--output-dir", "~nobody-of-this-name/x"], ["--output-dir ~nobody-of-this-name/x: there is no such"]),
        (["--quiet"], ["No load: give", "A wave needs an end", "No endpoint: give"]),
        (["--factories-file", "none.py", "--client-rps", "1", "--obs-time", "1"], ["--factories-file none.py: there"]),
        (["--factories-file", "n" * 5000, "--client-rps", "1", "--obs-time", "1"], ["--factories-file nnn"]),
        (["--init"], ["--init is for the launcher"]),
        (["--self-test"], ["--self-test is for the launcher"]),
        (["check"], ["No endpoint: give its URL, or --factories-file FILE."]),
        (["check", "--factories-file", "none.py", "--json=1"], ["Argument --json: ignored explicit argument '1'."]),
        (
            ["check", "--factories-file", "none.py", "--request-timeout", "x", "--endpoint-name", "", "--what"],
            [
                "Unknown argument '--what'",
                "--request-timeout must",
                "--factories-file none.py: there",
                "--endpoint-name",
            ],
        ),
        (["factory", "a", "b"], ["Unrecognized arguments: b."]),
        (
            ["chekc"],
            [
                "There is no command 'chekc'. Did you mean check? "
                "Commands are factory, check, capacity, plan, replay, report, metrics, compare, ab, pareto, client, "
                "endpoint, endpoints, hosts, manifests, kubernetes, completion, plot; a wave is given by flags."
            ],
        ),
        (["plan", "a", "--kubernetes"], ["--kubernetes is for a wave, `capacity` and `ab`, not for `benchmark plan`."]),
        (["ab", "a", "b", "--kubernetes", "--bar"], ["Unknown argument '--bar'", "How many pods? Give --pods N."]),
        (
            ["capacity", "http://a/", "--kubernetes", "--pods=1", "--vary=a=1", "--suspend-scaling"],
            ["--vary is not for pods", "--suspend-scaling is not for pods"],
        ),
        (["capacity", "http://a/", "--kubernetes", "--pods=1", "--stages=1x1s"], ["--stages is not for a search"]),
        (["capacity", "http://a/", "--kubernetes", "--pods=1", "--slo=p99<1s"], ["How long this takes is not known"]),
        (["facory", "x"], ["There is no command 'facory'. Did you mean factory? Commands"]),
        (["plots", "x"], ["There is no command 'plots'. Did you mean plot? Commands"]),
        (["example.org/infer"], ["There is no command 'example.org/infer'. Did you mean http://example.org/infer? "]),
        (["."], ["There is no command '.'. A run is printed again by `benchmark report .`, and drawn by "]),
        (
            ["--demo", "-c", "5", "-n", "7"],
            [
                "Unknown argument '-c'. Did you mean --concurrency?",
                "Unknown argument '-n'. Did you mean --num-requests?",
            ],
        ),
        (["nothing-like-it"], ["There is no command 'nothing-like-it'. Commands"]),
        (["f.py"], ["There is no command 'f.py'. Give it as --factories-file f.py. Commands"]),
        (["check", "f.py"], ["Unknown argument 'f.py'. Give it as --factories-file f.py."]),
        (
            ["check", "none.py"],
            ["Unknown argument 'none.py'. Give it as --factories-file none.py.", "--factories-file none.py: there is"],
        ),
        (["check", "--factories=f.py"], ["Unknown argument '--factories=f.py'. Did you mean --factories-file?"]),
        (["check", "--zzzzz=f.py"], ["Unknown argument '--zzzzz=f.py'. See `benchmark check --help`.", "No endpoint"]),
        (["check", "--factories-file", "f.py", "g.py"], ["Unknown argument 'g.py'. See `benchmark check --help`."]),
        (["--quiet", "f.py", *GOOD[2:]], ["Unknown argument 'f.py'. Give it as --factories-file f.py."]),
        (["--locust-file", "f.py", "g.py", *GOOD[2:]], ["Unknown argument 'g.py'. See `benchmark --help`."]),
        (["client", "limit"], ["There is no command 'limit' of benchmark client. Did you mean limits? Commands are"]),
        (["report", "a", "b"], ["Unrecognized arguments: b."]),
    ],
)
def test_conflicts_and_strays_are_said(
    capsys: pytest.CaptureFixture[str], arguments: list[str], starts: list[str]
) -> None:
    found = problems(capsys, *arguments)
    assert len(found) == len(starts), found
    assert all(problem.startswith(start) for problem, start in zip(found, starts, strict=True)), found


@pytest.mark.parametrize(
    ("arguments", "starts"),
    [
        (
            "--factory-file f.py --client-rps 1 --obs-time 1",
            ["Unknown argument '--factory-file'. Did you mean --factories-file?"],
        ),
        ("--factories-file f.py --rps 5 --obs-time 1", ["Unknown argument '--rps'. Did you mean --client-rps?"]),
        ("--factories-file f.py --rps=5 --obs-time 1", ["Unknown argument '--rps=5'. Did you mean --client-rps?"]),
        ("--factories-file f.py --client_rps 5 --obs-time 1", ["Unknown argument '--client_rps'. Did you mean --cl"]),
        ("--demmo", ["Unknown argument '--demmo'. Did you mean --demo?"]),
        (
            "--factories-file f.py --client-rps 1 --obs-time 1 --timeout 3 stray",
            [
                "Unknown argument '--timeout'. Did you mean --drain-timeout or --request-timeout or --client-timeout",
                "Unknown argument 'stray'. See `benchmark --help`.",
            ],
        ),
        (
            "--rps x --zzz 3",
            [
                "Unknown argument '--rps'. Did you mean --client-rps?",
                "Unknown argument '--zzz'. See `benchmark --help`.",
                "--client-rps must be a number, not 'x'.",
                "A wave needs an end",
                "No endpoint",
            ],
        ),
        ("--factories-file f.py --client-rps 1 --obs-tim", ["Unknown argument '--obs-tim'. Did", "A wave needs"]),
    ],
)
def test_a_flag_that_does_not_exist_is_asked_for(
    capsys: pytest.CaptureFixture[str], arguments: str, starts: list[str]
) -> None:
    found = problems(capsys, *arguments.split())
    assert len(found) == len(starts), found
    assert all(problem.startswith(start) for problem, start in zip(found, starts, strict=True)), found


def test_all_problems_come_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [
        "--factories-file",
        "none.py",
        "--client-rps",
        "x",
        "--obs-time",
        "0",
        "--workers",
        "0",
        "--slo",
        "fast",
        "--port",
        "0",
        "--wrong",
    ]
    found = problems(capsys, *arguments)
    starts = ("Unknown", "--client-rps", "--slo", "--obs-time", "--workers", "--port", "--factories-file")
    assert [problem.startswith(start) for problem, start in zip(found, starts, strict=True)] == [True] * 7


@pytest.mark.parametrize(
    "arguments", [["--demo", "--workers", "0"], ["--demo", "--wrong"], ["--demo", "--obs-time", "x"]]
)
def test_a_wrong_demo_starts_no_endpoint(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, arguments: list[str]
) -> None:
    monkeypatch.setattr("inference_benchmarker.embedded.running.start", None)
    assert len(problems(capsys, *arguments)) == 1


def test_a_wrong_factories_file_leaves_no_run_directory(capsys: pytest.CaptureFixture[str]) -> None:
    Path("f.py").write_text("def broken(:\n")
    (problem,) = problems(capsys, *GOOD)
    assert problem.startswith("f.py, line 1: not valid Python (")


def test_flags_become_the_plan(plans: list[WavePlan]) -> None:
    more = (
        "--arrivals poisson --num-requests 70 --warmup 0.5 --drain-timeout 0 --request-timeout 2.5 --max-in-flight 50 "
        "--workers 3 --success-threshold 0.9 --slo p99<1s --slo success>=99% --port 6000 "
        "--goodput ttft<1s,itl<50ms --goodput e2e<9s --seed 9223372036854775807 --ui "
        "--sample-client-hw --output-dir runs --name night --endpoint-name e --debug --max-answer-size 1.5GiB"
    )
    assert cli.main(["--factories-file", "f.py", "--client-rps", "7.30", "--obs-time", "1e1", *more.split()]) == 130
    (plan,) = plans
    assert plan.load == OpenLoop(Decimal("7.3"), "poisson")
    assert (plan.bounds.duration_s, plan.bounds.num_requests, plan.warmup_s) == (Decimal(10), 70, Decimal("0.5"))
    assert (plan.drain_timeout_s, plan.request_timeout_s, plan.max_in_flight) == (Decimal(0), Decimal("2.5"), 50)
    assert (plan.workers, plan.success_threshold, plan.port, plan.seed) == (3, 0.9, 6000, 2**63 - 1)
    assert [slo.expression for slo in plan.slos] == ["p99<1s", "success>=99%"]
    assert [limit.expression for limit in plan.goodput] == ["ttft<1s", "itl<50ms", "e2e<9s"]
    assert (plan.ui, plan.sample_client_hw, plan.debug) == (True, True, True)
    assert plan.max_answer_size == 3 << 29
    assert (plan.output_dir, plan.name, plan.endpoint_name) == (Path("runs"), "night", "e")


def test_defaults_are_the_promised_ones(plans: list[WavePlan]) -> None:
    cli.main(GOOD)
    (plan,) = plans
    assert plan == WavePlan(OpenLoop(Decimal(10)), plan.bounds, factories_file=Path("f.py"))
    assert (plan.workers, plan.drain_timeout_s, plan.success_threshold, plan.port) == (1, Decimal(60), 0.95, None)
    assert plan.output_dir == Path(".tmp")


@pytest.mark.parametrize(
    ("more", "starts"),
    [
        (
            ["--stages", "5:3s"],
            ["Give either --interactive or --stages, not", "Give either --stages or --client"],
        ),
        (
            ["--concurrency", "3"],
            ["Give either --interactive or --concurrency", "Give either --concurrency or"],
        ),
        (["--quiet"], ["Give either --interactive or --quiet, not both."]),
        (["--aiperf", "--demo"], ["aiperf has one constant rate: leave --interactive or --aiperf out."]),
        (["--num-requests", "5"], ["--interactive: a rate that changes has no fixed number of requests: leave"]),
        (["--client-rps", "-3"], ["--client-rps must be above 0"]),
    ],
)
def test_what_a_person_at_the_keys_cannot_steer_is_refused(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, more: list[str], starts: list[str]
) -> None:
    given = ["--factories-file", "f.py", "--client-rps", "10", "--interactive", *more]
    found = problems(capsys, *given)
    assert "--interactive needs a terminal, to show the wave and to read keys; there is none." in found
    monkeypatch.setattr(wave_command, "has_keys", lambda: True)
    found = problems(capsys, *given)
    found = [each for each in found if "not installed" not in each]
    assert len(found) == len(starts), found
    assert all(any(each.startswith(start) for each in found) for start in starts), found


def test_an_interactive_wave_needs_no_end_in_a_configuration_file_neither(
    plans: list[WavePlan], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(wave_command, "has_keys", lambda: True)
    monkeypatch.setattr(wave_command, "at_the_keys", lambda *_: nullcontext())
    config = tmp_path / "config.toml"
    config.write_text("interactive = true\nclient-rps = 5\n")
    file = ["--factories-file", "f.py"]
    cli.main([*file, "--config", str(config)])
    cli.main([*file, "--interactive", "--client-rps", "5", "--obs-time", "9"])
    cli.main(["--demo", "--interactive", "--arrivals", "poisson"])
    cli.main([*file, "--config", str(config), "--stages", "5:1s"])
    loads = [OpenLoop(Decimal(5), steered=True)] * 2 + [OpenLoop(Decimal(100), "poisson", steered=True)]
    assert [plan.load for plan in plans[:3]] == loads
    assert [plan.bounds for plan in plans[:3]] == [Bounds(), Bounds(Decimal(9)), Bounds()]
    assert plans[3].load == OpenLoop(stages=(Stage.parse("5:1s"),)), "the command line wins"


def test_aiperf_cannot_follow_stages(capsys: pytest.CaptureFixture[str]) -> None:
    found = problems(capsys, *STAGED, "5:3s", "--aiperf", "--url", "http://127.0.0.1:1")
    assert found[0].startswith("aiperf has one rate: give --client-rps instead of --stages")


def test_aiperf_tries_nothing_again(capsys: pytest.CaptureFixture[str]) -> None:
    flags = ("--client-timeout", "1", "--client-retries", "2", "--aiperf", "--url", "http://127.0.0.1:1")
    found = problems(capsys, *GOOD, *flags)
    assert found[0].startswith("aiperf sends each request once: leave --client-timeout and --client-retries out")


def test_how_clients_try_again_is_part_of_the_plan(plans: list[WavePlan]) -> None:
    Path("c.toml").write_text("client-timeout = '500ms'\nclient-retries = 3\nbackoff = 'exponential:1s..4s'")
    cli.main([*GOOD, "--config", "c.toml"])
    cli.main([*GOOD, "--client-timeout", "0.5", "--client-retries", "3", "--backoff", "exponential:1..4"])
    assert [plan.retries for plan in plans] == [Retries(Decimal("0.5"), 3, Backoff.parse("exponential:1s..4s"))] * 2


class TestConfig:
    @staticmethod
    def config(text: str) -> list[str]:
        Path("c.toml").write_text(text)
        return ["--config", "c.toml"]

    def test_its_keys_are_flags_and_the_command_line_wins(self, plans: list[WavePlan]) -> None:
        text = """
        factories-file = "f.py"
        client_rps = 0.1
        obs-time = 5
        workers = 2
        slo = ["p99<1s", "success>=0.9"]
        goodput = "ttft<1s,itl<50ms"
        ui = true
        debug = false
        """
        cli.main([*self.config(text), "--workers", "3", "--obs-time", "7"])
        (plan,) = plans
        assert plan.load == OpenLoop(Decimal("0.1"))
        assert (plan.workers, plan.bounds.duration_s, plan.ui, plan.debug) == (3, Decimal(7), True, False)
        assert [slo.expression for slo in plan.slos] == ["p99<1s", "success>=0.9"]
        assert [limit.expression for limit in plan.goodput] == ["ttft<1s", "itl<50ms"]

    def test_durations_may_have_their_units_in_it_and_on_the_command_line(self, plans: list[WavePlan]) -> None:
        text = "factories-file = 'f.py'\nclient-rps = 3\nobs-time = '2m'\nwarmup = 5"
        cli.main([*self.config(text), "--drain-timeout", "500ms"])
        (plan,) = plans
        assert (plan.bounds.duration_s, plan.warmup_s, plan.drain_timeout_s) == (
            Decimal(120),
            Decimal(5),
            Decimal("0.5"),
        )

    @pytest.mark.parametrize("stages", ['["10:2s", "a=10..50:1m"]', '"10:2s, a=10..50:1m"'])
    def test_stages_are_a_list_or_a_text_and_stand_for_rate_and_time(self, plans: list[WavePlan], stages: str) -> None:
        cli.main(self.config(f"factories-file = 'f.py'\nstages = {stages}"))
        rate = self.config("factories-file = 'f.py'\nclient-rps = 3\nobs-time = 4")
        cli.main([*rate, "--stages", "10:2s,a=10..50:1m"])
        ramp = Stage(Decimal(10), Decimal(50), Decimal(60), "a")
        assert [plan.load for plan in plans] == [OpenLoop(stages=(Stage.parse("10:2s"), ramp))] * 2
        assert [plan.bounds.duration_s for plan in plans] == [Decimal(62)] * 2

    @pytest.mark.parametrize(
        ("text", "problem"),
        [
            ("wrkers = 3", "--config c.toml: unknown key 'wrkers'. Did you mean workers?"),
            ("slos = ['p99<1s']", "--config c.toml: unknown key 'slos'. Did you mean slo?"),
            ("obs_tme = 3", "--config c.toml: unknown key 'obs_tme'. Did you mean obs-time?"),
            ("qqqq = 3", "--config c.toml: unknown key 'qqqq'. See `benchmark --help`."),
            ("config = 'd.toml'", "--config c.toml: unknown key 'config'."),
            ("help = true", "--config c.toml: unknown key 'help'."),
            ("ui = 'yes'", "--config c.toml: ui must be true or false, not 'yes'."),
            ("ui = 1", "--config c.toml: ui must be true or false, not 1."),
            ("workers = true", "--config c.toml: workers must be a value, not True."),
            ("workers = [1]", "--config c.toml: workers must be a value, not [1]."),
            ("name = {a = 1}", "--config c.toml: name must be a value, not {'a': 1}."),
            ("name = ['a']", "--config c.toml: name must be a value, not ['a']."),
            ("name = 2026-01-01", "--config c.toml: name must be a value, not datetime.date(2026, 1, 1)."),
            ("slo = [1]", "--config c.toml: slo must be a value, not [1]."),
            ("slo = 'fast'", "--slo 'fast' is not a limit."),
            ("warmup = nan", "--warmup must be a number, not 'nan'."),
            ("workers = 1.5", "--workers must be a whole number, not '1.5'."),
            ("workers =", "--config c.toml: cannot be read ("),
            ('output-dir = "a\\u0000b"', "--output-dir must be a path, not 'a\\x00b'."),
        ],
    )
    def test_what_is_wrong_in_it_is_said(self, capsys: pytest.CaptureFixture[str], text: str, problem: str) -> None:
        (found,) = problems(capsys, *GOOD, *self.config(text))
        assert found.startswith(problem)

    def test_a_file_that_is_missing_is_one_line(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert problems(capsys, "--config", "nope.toml", "--workers", "0") == [
            "--config nope.toml: cannot be read (No such file or directory).",
            "--workers must be from 1 to 1,000, not 0.",
        ]

    @pytest.mark.parametrize("path", ["none.toml", ".", "f.py"])
    def test_a_file_that_is_none_is_said(self, capsys: pytest.CaptureFixture[str], path: str) -> None:
        (found,) = problems(capsys, *GOOD, "--config", path)
        assert found.startswith(f"--config {path}: cannot be read (")


class TestDemo:
    @pytest.fixture(autouse=True)
    def _no_endpoint(self, monkeypatch: pytest.MonkeyPatch) -> None:
        class Started:
            url = "http://127.0.0.1:1"

            def __enter__(self) -> Self:
                return self

            def __exit__(self, *_: object) -> None:
                pass

        monkeypatch.setattr("inference_benchmarker.embedded.running.start", lambda _: Started())

    @pytest.fixture
    def environments(self, plans: list[WavePlan], monkeypatch: pytest.MonkeyPatch) -> list[dict[str, str]]:
        """The environment of each plan that would have been run."""
        monkeypatch.setenv("ARROW_DEFAULT_MEMORY_POOL", "system")  # as the first command of a process leaves it
        seen: list[dict[str, str]] = []

        def run(plan: WavePlan, *_: Any, **__: Any) -> None:
            plans.append(plan)
            seen.append(dict(os.environ))
            raise KeyboardInterrupt

        monkeypatch.setattr(launch, "run_wave", run)
        return seen

    def test_it_stands_in_for_what_is_not_given(
        self, plans: list[WavePlan], environments: list[dict[str, str]]
    ) -> None:
        cli.main(["--demo"])
        cli.main(["--demo", "--concurrency", "1", "--num-requests", "5"])
        cli.main(["--demo", "--factories-file", "f.py", "--client-rps", "3", "--workers", "1"])
        first, second, third = plans
        assert first.load == OpenLoop(Decimal(100))
        assert (first.bounds.duration_s, first.workers) == (Decimal(10), 2)
        assert first.factories_file is not None
        assert first.factories_file.name == "factories_demo.py"
        assert second.load == ClosedLoop(1)
        assert (second.bounds.duration_s, second.bounds.num_requests, second.workers) == (None, 5, 1)
        assert (third.factories_file, third.load, third.workers) == (Path("f.py"), OpenLoop(Decimal(3)), 1)
        assert [environment[DEMO_URL] for environment in environments] == ["http://127.0.0.1:1"] * 3

    @pytest.mark.parametrize(
        ("given", "name"),
        [
            ({}, "demo.json"),
            ({"endpoint_config": "mine.json"}, "mine.json"),
            ({"factories_file": "f.py"}, None),
            ({"locust_file": "f.py"}, None),
            ({"factories_file": "f.py", "endpoint_config": "mine.json"}, "mine.json"),
        ],
    )
    def test_its_metrics_are_those_of_its_own_factories(self, given: dict[str, str], name: str | None) -> None:
        options = {**wave_options(wave_parser(), ["--demo"])[0], **given}
        demo.fill_in_demo(options)
        config = options["endpoint_config"]
        assert (config and Path(config).name) == name
        assert name != "demo.json" or load_config(config)

    @pytest.mark.parametrize("of_user", [[], ["--factories-file", "f.py"]], ids=["demo", "user"])
    def test_to_boto3_it_is_aws_while_it_runs(
        self, environments: list[dict[str, str]], monkeypatch: pytest.MonkeyPatch, of_user: list[str]
    ) -> None:
        monkeypatch.setenv("AWS_SESSION_TOKEN", "of the user")
        monkeypatch.setenv("AWS_PROFILE", "no-such-profile")
        before = dict(os.environ)
        assert cli.main(["--demo", *of_user]) == 130
        assert os.environ == before
        (during,) = environments
        assert during["AWS_ENDPOINT_URL_CLOUDWATCH"] == "http://127.0.0.1:1"
        assert {"AWS_SESSION_TOKEN", "AWS_PROFILE"} & set(during) == set()

    def test_without_it_the_environment_is_the_users(
        self, environments: list[dict[str, str]], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("AWS_PROFILE", "mine")
        before = dict(os.environ)
        cli.main(GOOD)
        assert environments == [before]

    def test_a_wrong_endpoint_configuration_sends_nothing(
        self, capsys: pytest.CaptureFixture[str], environments: list[dict[str, str]]
    ) -> None:
        Path("mine.json").write_text("{}")
        (problem,) = problems(capsys, "--demo", "--endpoint-config", "mine.json")
        assert problem.startswith("mine.json: must be a JSON list of blocks, not an object.")
        assert environments == []

    def test_a_locust_file_without_a_host_is_sent_to_it(self, plans: list[WavePlan]) -> None:
        cli.main(["--demo", "--locust-file", "f.py"])
        cli.main(["--demo", "--locust-file", "f.py", "--url", "http://mine"])
        assert [plan.url for plan in plans] == ["http://127.0.0.1:1", "http://mine"]


class TestEndpoint:
    @pytest.fixture
    def served(self, monkeypatch: pytest.MonkeyPatch) -> list[EndpointConfig]:
        """What would have been served."""
        configs: list[EndpointConfig] = []
        monkeypatch.setattr("inference_benchmarker.embedded.serving.serve", lambda config, _: configs.append(config))
        return configs

    @pytest.mark.parametrize(
        ("arguments", "config"),
        [
            ("", {}),
            (
                "--servers 8 --service lognormal --service-time 0.5 --cv 2 --queue-limit 0 --cold-start 1 --tokens 5",
                {
                    "servers": 8,
                    "service": "lognormal",
                    "service_s": 0.5,
                    "cv": 2,
                    "queue_limit": 0,
                    "cold_start_s": 1,
                    "tokens": 5,
                },
            ),
            (
                "--service bimodal --slow-share 0.2 --slow-factor 5 --discipline lifo --batch-size 8 --batch-delay 1",
                {
                    "service": "bimodal",
                    "slow_share": 0.2,
                    "slow_factor": 5,
                    "discipline": "lifo",
                    "batch_size": 8,
                    "batch_delay_s": 1,
                },
            ),
            (
                "--slow-start 2 --slow-start-requests 9 --slow-start-factor 4 --pause-every 5 --pause 0.2",
                {
                    "slow_start_s": 2,
                    "slow_start_requests": 9,
                    "slow_start_factor": 4,
                    "pause_every_s": 5,
                    "pause_s": 0.2,
                },
            ),
            (
                "--error-share 0.1 --error-status 503 --close-share 0.2 --hang-share 0.3 --break-share 0.4 --seed -4",
                {
                    "error_share": 0.1,
                    "error_status": 503,
                    "close_share": 0.2,
                    "hang_share": 0.3,
                    "break_share": 0.4,
                    "seed": -4,
                },
            ),
            ("--finish-reason abort --gzip", {"finish_reason": "abort", "gzip": True}),
            (
                "--endpoint-name mine --instances 2 --instance-type ml.g5.2xlarge --publish-interval 60",
                {
                    "endpoint_name": "mine",
                    "instances": 2,
                    "instance_type": "ml.g5.2xlarge",
                    "publish_interval_s": 60,
                },
            ),
            ("--instance-start 60 --time-factor 30", {"instance_start_s": 60, "time_factor": 30}),
            (
                "--publication-delay 0.5 --models-in-memory 3 --model-load 0 --throttle-every 2 --access-denied",
                {
                    "publication_delay_s": 0.5,
                    "models_in_memory": 3,
                    "model_load_s": 0,
                    "throttle_every": 2,
                    "access_denied": True,
                },
            ),
            (
                "--metric-fault ModelLatency=Forbidden --metric-fault Invocations=PartialData"
                " --logs-fault ThrottlingException",
                {
                    "metric_faults": {"ModelLatency": "Forbidden", "Invocations": "PartialData"},
                    "logs_fault": "ThrottlingException",
                },
            ),
        ],
    )
    def test_its_flags_become_its_configuration(
        self, served: list[EndpointConfig], arguments: str, config: dict[str, Any]
    ) -> None:
        assert cli.main(["endpoint", "--port", "0", *arguments.split()]) == 0
        assert served == [EndpointConfig(**config)]

    def test_every_field_has_a_flag(self) -> None:
        described = {flag.field for flags in ENDPOINT_FLAGS.values() for flag in flags}
        assert described - {"port"} == {field.name for field in fields(EndpointConfig)}

    @pytest.mark.usefixtures("served")
    def test_it_says_how_boto3_finds_it(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert cli.main(["endpoint", "--port", "0"]) == 0
        listening, *lines = capsys.readouterr().out.splitlines()
        url = listening.removeprefix("Listening on ").removesuffix(" (press Ctrl-C to stop)")
        assert url.startswith("http://127.0.0.1:")
        exports = "; ".join(line for line in lines if "export " in line)
        shell = subprocess.run(["sh", "-c", f"{exports}; env"], capture_output=True, text=True, check=True)
        members = {"AWS_ENDPOINT_URL": url}
        members |= {name: value for name, value in boto3_settings(url).items() if "URL" not in name}
        assert {f"{name}={value}" for name, value in members.items()} <= set(shell.stdout.splitlines())
        once, chat = (shlex.split(line)[1:] for line in lines if line.startswith("  benchmark "))
        for words in (once, [*chat, "--model", "demo"]):
            assert wave_of(words).endpoint is not None
        assert max(map(len, lines)) < 80

    def test_its_help_tells_what_it_answers_and_the_defaults(self, capsys: pytest.CaptureFixture[str]) -> None:
        with pytest.raises(SystemExit):
            cli.main(["endpoint", "--help"])
        shown = " ".join(capsys.readouterr().out.split())
        for text in ("(default 8080)", "(default 0.02)", "(default demo)", "GetMetricData", "DescribeEndpoint"):
            assert text in shown

    @pytest.mark.parametrize(
        ("arguments", "starts"),
        [
            (["--port", "x", "--servers", "0.5"], ["--port must be a whole", "--servers must be a whole"]),
            (["--servers", "0", "--tokens", "-1"], ["--servers is 0: it must be", "--tokens is -1: it must be"]),
            (["--error-status", "x"], ["--error-status must be a whole number, not 'x'."]),
            (["--error-status", "200"], ["--error-status is 200: it must be an HTTP status from 400 to 599."]),
            (["--service-time", "0"], ["--service-time is 0: "]),
            (["--service-time", "1e999"], ["--service-time must be "]),
            (
                ["--error-share", "0.8", "--hang-share", "0.7"],
                ["--error-share and the shares that close, hang, break and swap"],
            ),
            (["--service", "slow"], ["--service is 'slow': it must be one of none, fixed"]),
            (["--discipline", "lcfs"], ["--discipline is 'lcfs': it must be one of fifo, lifo, ps."]),
            (["--pause", "1"], ["--pause is 1: it must be less than the 0 s from one pause to the next."]),
            (["--endpoint-name", "a_b"], ["--endpoint-name is 'a_b': it must be up to 63 letters"]),
            (["--endpoint-name", ""], ["--endpoint-name is '': it must be up to 63 letters"]),
            (["--instance-type", "g5"], ["--instance-type is 'g5': it must be one of SageMaker's, as ml.g5.xlarge."]),
            (["--instances", "0"], ["--instances is 0: it must be an integer of at least 1."]),
            (["--instance-start=-1"], ["--instance-start is -1.0: it must be from 0"]),
            (["--time-factor", "0.5"], ["--time-factor is 0.5: it must be from 1 to 600."]),
            (["--publish-interval", "7"], ["--publish-interval is 7: it must be one of 1, 10, 30"]),
            (["--publish-interval", "1.5"], ["--publish-interval must be a whole number, not '1.5'."]),
            (["--publication-delay=-1"], ["--publication-delay is -1.0: it must be from 0"]),
            (["--models-in-memory", "0"], ["--models-in-memory is 0: it must be an integer of at least 1."]),
            (["--model-load", "long"], ["--model-load must be a number, not 'long'."]),
            (["--throttle-every", "0"], ["--throttle-every is 0: it must be an integer of at least 1."]),
            (["--metric-fault", "x", "--metric-fault", "=y"], ["--metric-fault must be NAME=STATUS, as in"] * 2),
            (["--logs-fault", "No"], ["--logs-fault is 'No': it must be one of AccessDeniedException,"]),
            (
                ["--metric-fault", "x=No"],
                ["--metric-fault x=No: the status of x must be one of PartialData,"],
            ),
            (
                ["--metric-fault", "x=Forbidden", "--metric-fault", "x=PartialData"],
                ["--metric-fault gives x both Forbidden and PartialData; give it one."],
            ),
            (["--server", "0", "--instances", "y"], ["Unknown argument '--server'.", "--inst", "--servers is 0"]),
            (["--port", "80000"], ["--port is 80000: it must be from 0 to 65535."]),
            (["--port=-1"], ["--port is -1: it must be from 0 to 65535."]),
            (["--llm", "x"], ["--llm is 'x': it must be one of 8b-h100,"]),
            (
                ["--kv-tokens", "9", "--block-size", "2"],
                ["--kv-tokens is 9: it belongs", "--block-size is 2: it belongs"],
            ),
            (["--llm", "8b-h100", "--step-ms", "1:2"], ["--step-ms must be 4 numbers, as in -25.74:"]),
            (["--llm", "8b-h100", "--max-num-seqs", "9000"], ["--max-num-batched-tokens is 8192: each of up to 9000"]),
            (["--llm", "8b-h100", "--servers", "2"], ["--servers is 2: an LLM engine (llm) does not heed it;"]),
        ],
    )
    def test_everything_wrong_is_said_at_once(
        self, capsys: pytest.CaptureFixture[str], served: list[EndpointConfig], arguments: list[str], starts: list[str]
    ) -> None:
        found = problems(capsys, "endpoint", "--port", "0", *arguments)
        assert len(found) == len(starts), found
        assert all(problem.startswith(start) for problem, start in zip(found, starts, strict=True)), found
        assert served == []


class TestReport:
    @pytest.mark.parametrize(
        ("make", "message"),
        [
            (Path.exists, "run: does not exist. Give a run directory: a wave names its own in its last line."),
            (lambda run: run.mkdir(), "run: is not a run directory (it has no plan.json). Give"),
            (lambda run: run.write_text("x"), "run: is not a directory."),
            (lambda run: plan_json(run, "{"), f"run/plan.json: {FOREIGN} ("),
            (lambda run: plan_json(run, "[]"), f"run/plan.json: {FOREIGN} ("),
            (lambda run: plan_json(run, '{"schema_version": "x"}'), "run/plan.json: cannot be read as a file"),
            (lambda run: plan_json(run, '{"schema_version": 99}'), "run/plan.json: has schema version 99; this tool"),
            (lambda run: plan_json(run, '{"schema_version": 1}'), "run/plan.json: cannot be read as a file"),
            (lambda run: plan_json(run, '{"schema_version": 1, "load": 3}'), "run/plan.json: cannot be read as a file"),
        ],
    )
    def test_what_is_no_run_directory_is_said(
        self, capsys: pytest.CaptureFixture[str], make: Callable[[Path], None], message: str
    ) -> None:
        make(Path("run"))
        (found,) = problems(capsys, "report", "run")
        assert (
            found.startswith(message) or found == "run: no request was recorded in it. The wave ended before it began."
        )

    def test_a_name_too_long_is_said(self, capsys: pytest.CaptureFixture[str]) -> None:
        (found,) = problems(capsys, "report", "n" * 5000)
        assert "cannot be read (" in found


def plan_json(run: Path, text: str) -> None:
    run.mkdir()
    (run / "plan.json").write_text(text)
    (run / "spool.bin").write_bytes(b"")


SEARCHES = ["worker-saturation", "rps-saturation"]
SEARCH_FLAGS = ["--lag-limit", "--step-time", "--max-rps"]


class TestClient:
    @pytest.fixture
    def searches(self, monkeypatch: pytest.MonkeyPatch) -> list[Conditions]:
        """The conditions of the searches that would have been made."""
        made: list[Conditions] = []

        def measure(conditions: Conditions, say: Callable[[str], None]) -> None:
            made.append(conditions)
            raise KeyboardInterrupt

        monkeypatch.setattr(worker_saturation, "measure_worker", measure)
        monkeypatch.setattr(rps_saturation, "measure_client", measure)
        return made

    @pytest.mark.parametrize("arguments", [[], ["--help"], ["-h"]])
    def test_bare_it_prints_help(self, capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
        assert cli.main(["client", *arguments]) == 0
        out = capsys.readouterr().out
        assert all(command in out for command in (*SEARCHES, "limits"))

    def test_an_unknown_command_is_one_sentence(self, capsys: pytest.CaptureFixture[str]) -> None:
        (problem,) = problems(capsys, "client", "nope")
        assert problem == (
            "There is no command 'nope' of benchmark client. Commands are worker-saturation, rps-saturation, limits."
        )

    @pytest.mark.parametrize("command", [f"client {name}" for name in SEARCHES])
    @pytest.mark.parametrize("address", ["http://127.0.0.1:9/v1", "http://127.0.0.1:9/x"])
    def test_conversations_are_refused_by_their_flags_which_its_help_has_not(
        self, capsys: pytest.CaptureFixture[str], command: str, address: str
    ) -> None:
        flags = ["--turns", "3", "--history", "recorded"]
        (problem,) = problems(capsys, *command.split(), address, *flags)
        assert problem == (
            "--turns, --history: a search sends single requests: leave them out, or try rates of conversations in "
            "waves: `benchmark URL --turns N --client-rps R`."
        )
        with suppress(SystemExit):
            cli.main([*command.split(), "--help"])
        shown = capsys.readouterr().out
        assert "--output-tokens" in shown
        assert not re.search(r"--(turns|shared-prefix|history|session-header)", shown)

    @pytest.mark.parametrize("command", SEARCHES)
    def test_without_an_endpoint_there_is_nothing_to_send_to(
        self, capsys: pytest.CaptureFixture[str], command: str
    ) -> None:
        (problem,) = problems(capsys, "client", command)
        assert problem == "No endpoint: give its URL, or --factories-file FILE (or --demo to try the tool)."

    @pytest.mark.parametrize("flag", SEARCH_FLAGS)
    @pytest.mark.parametrize("command", SEARCHES)
    def test_nonsense_is_one_sentence(self, capsys: pytest.CaptureFixture[str], command: str, flag: str) -> None:
        for value in (*NONSENSE, "0", "-1", "1e300", "1e999999999"):
            with case(value):
                (problem,) = problems(capsys, "client", command, "--factories-file", "f.py", f"{flag}={value}")
                assert problem.startswith(f"{flag} must be ")

    def test_everything_that_is_wrong_is_said_at_once(self, capsys: pytest.CaptureFixture[str]) -> None:
        Path("bad.py").write_text("def invoke_factory(: pass")
        wrong = "--worker-rps x --client-rps 0 --max-workers 1.5 --step-time 1e9 --repeats 4 --factories-file bad.py"
        found = problems(capsys, "client", "rps-saturation", *wrong.split())
        starts = ["Unknown argument '--repeats'", "--worker-rps must", "--max-workers must"]
        starts += ["--step-time must", "--client-rps must", "bad.py"]
        assert len(found) == len(starts)
        assert all(problem.startswith(start) for problem, start in zip(found, starts, strict=True))

    def test_an_interrupt_before_anything_was_found_is_said_as_it_is(
        self, searches: list[Conditions], capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert cli.main(["client", "rps-saturation", "--factories-file", "f.py"]) == 130
        said = "Interrupted before the first step ended: no rate was measured.\n"
        assert (len(searches), capsys.readouterr()) == (1, ("", said))

    @pytest.mark.parametrize(
        ("limited_by", "rate", "code"), [("client", 9.0, 0), ("errors", 0.0, 1), ("interrupted", 9.0, 130)]
    )
    def test_a_result_is_printed_whatever_ended_the_search(
        self,
        capsys: pytest.CaptureFixture[str],
        monkeypatch: pytest.MonkeyPatch,
        limited_by: str,
        rate: float,
        code: int,
    ) -> None:
        found = SimpleNamespace(limited_by=limited_by, rate=rate, to_json=lambda: {"rate": rate})
        monkeypatch.setattr(worker_saturation, "measure_worker", lambda *_: found)
        assert cli.main(["client", "worker-saturation", "--factories-file", "f.py", "--json"]) == code
        assert json.loads(capsys.readouterr().out) == {"rate": rate}

    def test_on_a_terminal_the_next_line_overwrites_what_is_being_tried(
        self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
        monkeypatch.setattr(sys.stderr, "fileno", lambda: 2)
        monkeypatch.setattr(os, "get_terminal_size", lambda _: os.terminal_size((20, 5)))
        with progress(None) as say:
            for message in ("trying 128/s (growing)...", "growing 128/s held, and a long line", "trying 256/s"):
                say(message)
        assert capsys.readouterr().err.split("\r\x1b[K") == [
            "",
            "trying 128/s (growi",
            "growing 128/s held, and a long line\n",
            "trying 256/s",
            "",
        ]

    def test_elsewhere_there_are_plain_lines(self, capsys: pytest.CaptureFixture[str]) -> None:
        with progress(None) as say:
            say("trying 128/s (growing)...")
        with progress(quiet=True) as say:
            say("trying 256/s (growing)...")
        assert capsys.readouterr().err == "trying 128/s (growing)...\n"

    def test_the_least_number_of_repeats_is_in_the_help(self, capsys: pytest.CaptureFixture[str]) -> None:
        with pytest.raises(SystemExit):
            cli.main(["client", "worker-saturation", "--help"])
        assert "again: 0, or at least 4 (default 8)" in " ".join(capsys.readouterr().out.split())

    def test_its_flags_become_conditions(self, searches: list[Conditions]) -> None:
        of_both = "--factories-file f.py --endpoint-name e --lag-limit 0.01 --step-time 2 --max-rps 500 --output-dir o"
        assert cli.main(["client", "worker-saturation", *of_both.split(), "--repeats", "0"]) == 130
        assert cli.main(["client", "rps-saturation", *of_both.split(), "--worker-rps=9", "--client-rps=40"]) == 130
        worker = Conditions(Path("f.py"), "e", 0.01, 2, 0, 500, output_dir=Path("o"))
        assert searches == [worker, replace(worker, repeats=8, worker_rps=9, wanted_rps=40)]

    def test_defaults_are_the_documented_ones(self, searches: list[Conditions]) -> None:
        cli.main(["client", "worker-saturation", "--factories-file", "f.py"])
        assert searches == [Conditions(Path("f.py"))]
        assert (searches[0].lag_limit_s, searches[0].step_time_s, searches[0].output_dir) == (0.005, 3, Path(".tmp"))

    def test_the_demo_endpoint_answers_at_once(
        self, searches: list[Conditions], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        started = []

        def start(config: EndpointConfig) -> nullcontext[SimpleNamespace]:
            started.append(config.service)
            return nullcontext(SimpleNamespace(url="http://127.0.0.1:1"))

        monkeypatch.setattr("inference_benchmarker.embedded.running.start", start)
        cli.main(["client", "rps-saturation", "--demo"])
        cli.main(["client", "rps-saturation", "--demo", "--factories-file", "f.py"])
        assert started == ["none", "none"]
        assert [str(conditions.factories_file).split("/")[-1] for conditions in searches] == [
            "factories_demo.py",
            "f.py",
        ]


def test_it_says_its_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as raised:
        cli.main(["--version"])
    assert raised.value.code == 0
    assert capsys.readouterr().out == f"benchmark {inference_benchmarker.__version__}\n"


def test_a_fault_of_ours_keeps_its_traceback_and_is_no_missed_threshold(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise RuntimeError("the primary process ended")

    monkeypatch.setattr(launch, "run_wave", broken)
    assert cli.main(GOOD) == 3
    assert "Traceback" in (err := capsys.readouterr().err)
    assert "RuntimeError: the primary process ended" in err


def test_a_process_that_was_killed_is_no_fault_of_ours(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: Any, **__: Any) -> None:
        raise LostProcessError("the primary process ended before the wave began", "Locust 2.47")

    monkeypatch.setattr(launch, "run_wave", killed)
    assert cli.main(GOOD) == 3
    err = capsys.readouterr().err
    assert err == "benchmark: the primary process ended before the wave began; its log ends with:\nLocust 2.47\n"


@pytest.mark.parametrize(
    "program",
    [
        "from inference_benchmarker import cli\ntry: cli.main(['--help'])\nexcept SystemExit: pass",
        "from inference_benchmarker import cli\ncli.main(['--client-rps', 'x'])",
        "from inference_benchmarker import cli\ncli.main(['client'])",
        "from inference_benchmarker import cli\ncli.main(['factory'])",
        "from inference_benchmarker import cli\ncli.main(['check', '--request-timeout', 'x'])",
        "from inference_benchmarker import cli\ntry: cli.main(['--compare', '--help'])\nexcept SystemExit: pass",
        "from inference_benchmarker import cli\ncli.main(['client', 'worker-saturation', '--repeats', 'x'])",
        "from inference_benchmarker import cli\ncli.main(['--demo', '--obs-time', 'x'])",
        "import inference_benchmarker, client_capacity, server_capacity, visualization, factories",
    ],
    ids=[
        "help",
        "bad input",
        "client",
        "factory",
        "check",
        "comparison",
        "bad input of client",
        "bad input of the demo",
        "import",
    ],
)
def test_nothing_heavy_is_imported_before_it_is_needed(program: str) -> None:
    assert imported(program) == []


def test_a_notebook_is_not_patched() -> None:
    program = "from inference_benchmarker import run_wave, Wave, WavePlan, Response"
    assert {"gevent", "locust", "flask", "boto3"} & set(imported(program)) == set()


@pytest.mark.parametrize("program", ["worker", "primary"])
def test_who_sends_does_not_ask_aws(program: str) -> None:
    assert "boto3" not in imported(f"import inference_benchmarker.engine.{program}.__main__")


def test_a_wave_is_finalised_stored_and_reported_without_pandas(tmp_path: Path) -> None:
    run = str(shutil.copytree(ROOT / "tests/wave/recorded_runs/cut_off", tmp_path / "run"))
    program = f"from inference_benchmarker import cli\nfor _ in range(2): cli.main(['report', {run!r}])"
    assert "pandas" not in imported(program)
    assert (tmp_path / "run" / "requests.parquet").exists()


def imported(program: str) -> list[str]:
    """Which of the heavy modules are loaded when a program has run."""
    tail = f"\nimport sys, json\nprint(json.dumps([m for m in {HEAVY.split()!r} if m in sys.modules]))"
    done = subprocess.run([sys.executable, "-c", program + tail], cwd=ROOT, capture_output=True, text=True, check=True)
    found: list[str] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_a_load_model_of_the_command_line_replaces_the_files(tmp_path: Path) -> None:
    (tmp_path / "wave.toml").write_text('client-rps = 50\narrivals = "poisson"\nfactories-file = "a.py"\n')
    parser = wave_parser()
    options, problems = wave_options(parser, ["--config", str(tmp_path / "wave.toml"), "--concurrency", "2"])
    assert problems == []
    assert (options["client_rps"], options["arrivals"], options["concurrency"]) == (None, None, "2")
    assert options["factories_file"] == "a.py"


class InterruptedWhenItGoes:
    def __del__(self) -> None:
        raise KeyboardInterrupt


def test_an_interrupt_that_comes_while_an_object_is_finalised_is_not_swallowed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def finalise(_: list[str]) -> int:
        InterruptedWhenItGoes()
        time.sleep(30)
        return 0

    monkeypatch.setattr(cli.dispatch, "_dispatch", finalise)
    assert cli.main([]) == 130
    assert capsys.readouterr().err == "Interrupted.\n"


# An import of dataclasses runs exec() on text many times; Python notes a KeyboardInterrupt that passed through one.
PRESSED = """
import sys
from types import ModuleType
from inference_benchmarker.cli import dispatch
command = ModuleType("command")
command.run = lambda _: exec("import os, signal, time; os.kill(os.getpid(), signal.SIGINT); time.sleep(9)")
sys.modules[dispatch.home_of("endpoints")] = command
sys.argv = ["benchmark", "endpoints"]
sys.exit(dispatch.main())
"""


def test_an_interrupt_amid_an_import_ends_with_its_exit_code() -> None:
    Path("pressed.py").write_text(PRESSED)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    ended = subprocess.run(
        [sys.executable, "-m", "pressed"], env=environment, capture_output=True, text=True, check=False
    )
    assert (ended.returncode, ended.stderr) == (130, "Interrupted.\n")


@pytest.mark.parametrize("arguments", [("hosts", "check", "--hosts", "u:{}@h1"), ("report", "--format", "{}")])
def test_what_is_refused_at_once_shows_no_secret(arguments: tuple[str, ...]) -> None:
    key = "q7Rt2mWx9KpL4vNs8ZbY3cHd6FgJ1aQe"
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "LONG_API_KEY": key}
    command = [sys.executable, "-m", "inference_benchmarker.cli", *(each.format(key) for each in arguments)]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    assert "[hidden]" in ended.stderr
    assert key not in ended.stderr
