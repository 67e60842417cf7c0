"""``benchmark ab``: how its arguments are understood, and two real endpoints that are distinguished."""

from __future__ import annotations

import json
import re
import signal
from contextlib import ExitStack
from dataclasses import fields
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

from inference_benchmarker import cli
from inference_benchmarker.cli.compare.ab_flags import NOT_HERE, asked_for
from inference_benchmarker.cli.wave.wave_flags import PARTS_OF_A_PLAN, WAVE_FLAGS
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.export.destination import PageAt
from inference_benchmarker.words.redact import HEADERS
from tests.bench import SENDER
from tests.exported import read_page

if TYPE_CHECKING:
    from tests.bench import Bench

FILE = """
MODEL = "none"

def invoke_factory(endpoint_name=None):
    return print

def payload_factory():
    return {"pre_computed": True, "input": [1]}
"""
RATE = ("--client-rps", "5")
HEEDED = {"--body", "--header", "--method", "--content-type", "--model", "--prompt", "--input-tokens"}
HEEDED |= {"--output-tokens", "--api-key", "--no-abort", "--export", "--export-wait", "--json", "--quiet", "--config"}
HEEDED |= {"--hosts", "--hosts-file", "--join-timeout", "--listen", "--max-clock-error", "--pass-env", "--with-file"}
HEEDED |= {"--requirements", "--host-keys"}  # with the others above, parts of the plan's hosts
HEEDED |= {"--turns", "--shared-prefix", "--history", "--session-header", "--cache", "--image", "--audio"}


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("old.py", "new.py"):
        Path(name).write_text(FILE)


@pytest.mark.usefixtures("files")
class TestArguments:
    def test_both_sides_come_from_the_same_hosts(self) -> None:
        asked = asked_for(["old.py", *RATE, "new.py", "--hosts", "localhost*2,load1*3", "--pass-env", "HOME"])
        assert asked.plans["A"].hosts == asked.plans["B"].hosts
        assert [(each.name, each.workers) for each in asked.plans["A"].hosts.hosts] == [("localhost", 2), ("load1", 3)]

    def test_both_sides_have_the_same_load(self) -> None:
        asked = asked_for(["old.py", *RATE, "new.py", "--seed", "7", "--repeats", "3"])
        before, after = asked.plans["A"], asked.plans["B"]
        assert (str(before.factories_file), str(after.factories_file)) == ("old.py", "new.py")
        assert before.load == after.load
        assert (before.bounds.duration_s, before.warmup_s, asked.repeats, asked.seed) == (Decimal(10), Decimal(2), 3, 7)

    def test_what_is_given_is_not_chosen(self) -> None:
        plan = asked_for(["old.py", "new.py", *RATE, "--num-requests=9", "--warmup", "0"]).plans["B"]
        assert (plan.bounds.num_requests, plan.bounds.duration_s, plan.warmup_s) == (9, None, Decimal(0))

    def test_a_flag_may_be_of_one_side(self) -> None:
        own = ["--endpoint-name-a", "blue", "--endpoint-name-b=green", "--set-b", "MODEL=large"]
        asked = asked_for(["old.py", "old.py", *RATE, *own])
        assert [plan.endpoint_name for plan in asked.plans.values()] == ["blue", "green"]
        assert [plan.factory_settings for plan in asked.plans.values()] == [{}, {"MODEL": "large"}]
        assert asked.what == {"A": "old.py (blue)", "B": "old.py (green, MODEL=large)"}

    def test_addresses_keep_their_own_headers(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv(HEADERS, "")
        sides = ["http://127.0.0.1:9/a", "http://127.0.0.1:9/b"]
        asked = asked_for([*sides, *RATE, "--header-b", "X-Own: something", "--quiet"])
        assert asked.headers["A"] is None
        assert json.loads(asked.headers["B"] or "") == {"X-Own": "something"}
        assert asked.what == {"A": sides[0], "B": f"{sides[1]} (X-Own)"}

    def test_both_sides_have_the_headers_of_the_environment(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv(HEADERS, '{"X-Team": "a"}')
        asked = asked_for(["old.py", "http://127.0.0.1:9/b", *RATE, "--header-b", "X-Own: something", "--quiet"])
        members = {side: json.loads(headers or "") for side, headers in asked.headers.items()}
        assert members == {"A": {"X-Team": "a"}, "B": {"X-Team": "a", "X-Own": "something"}}

    @pytest.mark.parametrize(
        ("arguments", "expected"),
        [
            (["old.py"], ["ab takes A and B, each a factories file or a URL, not 1 of them."]),
            (["old.py", "new.py", "third.py"], ["not 3 of them."]),
            (["old.py", "new.py", "--demo", "--ui"], ["--demo is not for ab: name two", "--ui is not for ab: "]),
            (
                ["old.py", "new.py", *RATE, "--slo", "server.CPUUtilization<70%"],
                ["--slo server.CPUUtilization<70% is not for ab: collect a run's server metrics afterwards"],
            ),
            (
                ["old.py", "new.py", "--repeats", "0", "--max-regression", "p99", "--compare"],
                ["--repeats must be a whole number from 1 to", "No load: ", "'p99' is not a limit.", "'--compare'"],
            ),
            (
                ["old.py", "old.py", *RATE, "--endpoint-name-a", "blue", "--endpoint-name-b", "green"],
                ["invoke_factory of old.py does not use its endpoint_name, so both sides are the same endpoint."],
            ),
            (["old.py", "new.py", *RATE, "--export", "csv"], ["--export must be prometheus, "]),
            (["old.py", "none.py", *RATE], ["B: --factories-file none.py: there is no such file"]),
            (["old.py", "new.py", "--repeats", "0"], ["--repeats must be ", "No load: give "]),
            (["old.py", "new.py", *RATE, "--clinet-rps", "3"], ["Unknown argument '--clinet-rps'. Did you mean"]),
        ],
    )
    def test_all_that_is_wrong_is_said(self, arguments: list[str], expected: list[str]) -> None:
        with pytest.raises(BenchmarkError) as raised:
            asked_for(arguments)
        assert [sentence for sentence in expected if sentence not in str(raised.value)] == []
        assert len(str(raised.value).splitlines()) == len(expected)

    def test_a_configuration_file_says_the_same_as_flags(self) -> None:
        Path("both.toml").write_text("client-rps = 5\nnum-requests = 9\njson = true\nexport = ['prometheus:0']")
        asked = asked_for(["old.py", "new.py", "--config", "both.toml", "--num-requests", "7"])
        assert [plan.bounds.num_requests for plan in asked.plans.values()] == [7, 7]
        assert [plan.warmup_s for plan in asked.plans.values()] == [2, 2]
        assert (asked.options.json, asked.exports.pages) == (True, (PageAt(port=0),))
        Path("demo.toml").write_text("demo = true")
        with pytest.raises(BenchmarkError, match="--demo is not for ab"):
            asked_for(["old.py", "new.py", "--config", "demo.toml"])

    def test_a_recording_has_no_warm_up(self) -> None:
        Path("r.csv").write_text("timestamp\n0\n1\n")
        assert asked_for(["old.py", "new.py", "--replay", "r.csv"]).plans["A"].warmup_s == 0

    def test_a_round_has_conversations_of_its_own_and_both_sides_the_same(self) -> None:
        """Else a round finds the prompts of the one before it in the server's cache, and B has other turns than A."""
        urls = ["http://127.0.0.1:9/v1", "http://127.0.0.1:8/v1", "--model", "m", "--turns", "uniform:2..4", *RATE]
        for more in ([], ["--seed", "7"]):
            asked = asked_for([*urls, *more])
            rounds = [{asked.plan(side, number).factory_settings["SEED"] for side in "AB"} for number in range(3)]
            assert rounds == [{str((asked.seed + number) % 2**32)} for number in range(3)]
            assert "SALT" not in asked.plan("A", 0).factory_settings
        own = asked_for([*urls, "--set", "SEED=mine", "--cache", "fresh"])
        waves = [own.plan(side, number) for side in "AB" for number in range(2)]
        assert {plan.factory_settings["SEED"] for plan in waves} == {"mine"}
        assert len({plan.factory_settings["SALT"] for plan in waves}) == 4

    def test_every_flag_of_a_wave_is_in_its_plan_or_heeded_or_refused(self) -> None:
        """So that a new one is not ignored in silence."""
        names = {each.name for kind in PARTS_OF_A_PLAN for each in fields(kind)}
        beside = {flag.flag for flags in WAVE_FLAGS.values() for flag in flags if flag.field not in names}
        assert beside - set(NOT_HERE) == HEEDED

    def test_without_arguments_it_helps(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert cli.main(["ab"]) == 0
        assert "benchmark ab A B" in capsys.readouterr().out


@pytest.mark.process
@pytest.mark.slow
def test_no_wave_of_conversations_finds_its_prompts_in_the_cache_from_another(bench: Bench) -> None:
    talks = ("--turns", "uniform:1..3", "--input-tokens", 40, "--output-tokens", 4, "--model", "demo")
    load = ("--client-rps", 20, "--obs-time", 1, "--warmup", 0, "--repeats", 2, "--output-dir", "runs")
    with bench.endpoint(prefix_cache=10**6) as a, bench.endpoint(prefix_cache=10**6) as b:
        command = bench.start("ab", f"{a.url}/v1", f"{b.url}/v1", *talks, *load, factories=None)
        command.finish()
    sent: dict[str, dict[int, list[dict[str, Any]]]] = {"A": {}, "B": {}}
    for run in sorted(command.folder.glob("runs/*_ab/[AB]/*")):
        seed = json.loads((run / "plan.json").read_text())["seed"]
        sent[run.parent.name].setdefault(seed, pq.read_table(run / "requests.parquet").to_pylist())  # but no repeat
    both = sent["A"].keys() & sent["B"].keys()
    assert len(both) == 2
    turns = [
        {tuple((row["index"], row["turn"], row["tokens_in"]) for row in sent[side][seed]) for side in "AB"}
        for seed in both
    ]
    assert [len(each) for each in turns] == [1, 1]
    assert turns[0] != turns[1]
    firsts = [row for of in sent.values() for seed in both for row in of[seed] if row["turn"] == 1]
    assert {row["metric.cached_tokens"] for row in firsts} == {0}


LOAD = ("--client-rps", 20, "--obs-time", 1, "--warmup", 0, "--body", "{}", "--output-dir", "runs")


@pytest.mark.process
def test_two_endpoints_get_the_same_and_the_slower_one_is_reported(bench: Bench) -> None:
    with bench.endpoint(service_s=0.1) as a, bench.endpoint(service_s=0.2) as b:
        sides = [f"{endpoint.url}/invocations" for endpoint in (a, b)]
        command = bench.start("ab", *sides, *LOAD, "--repeats", 2, "--max-regression", "p50=5%", factories=None)
        reported = command.finish()
        arrived = [len(endpoint.arrivals()["sequence"]) for endpoint in (a, b)]
    (file,) = command.folder.glob("runs/*_ab/ab.json")
    data = json.loads(file.read_text())
    sent = [sum(each["side"] == side for each in data["waves"]) for side in "AB"]
    assert arrived == [20 * waves + 1 for waves in sent]  # and one request of each first of all
    if not data["given_up"]:  # a busy machine may make every wave INVALID
        assert reported.code == data["exit_code"] in (0, 1)  # of two waves a side hardly anything is sure
        assert [len(data["comparison"][side]["runs"]) for side in ("base", "new")] == [2, 2]
        row = next(row for row in data["comparison"]["metrics"] if row["metric"] == "latency.p50")
        assert row["change"] > 0.5


FAILS_ONCE = """
from pathlib import Path

from inference_benchmarker import Turn
from sender import post

TRIES = Path(__file__).with_suffix(".tries")


def invoke_factory():
    return post


def session_factory():
    with TRIES.open("a") as tries:
        tries.write("x")
    is_wave = TRIES.stat().st_size == 2  # the first one, after the request that is sent before

    def session(number):
        for turn in range(2):
            yield Turn(f"{number}.{turn}")
            if is_wave:
                raise ValueError

    return session
"""


@pytest.mark.process
@pytest.mark.slow
def test_a_wave_that_is_sent_again_has_the_arrivals_and_payloads_of_its_pair(bench: Bench) -> None:
    folder = bench.folder()
    (folder / "sender.py").write_text(SENDER)
    (folder / "old.py").write_text(FAILS_ONCE)
    (folder / "new.py").write_text(FAILS_ONCE.replace("if is_wave", "if False"))
    load = ("--client-rps", 20, "--obs-time", 1, "--warmup", 0, "--workers", 1, "--repeats", 1, "--output-dir", "runs")
    with bench.endpoint(service="none") as endpoint:
        command = bench.start("ab", "old.py", "new.py", *load, factories=None, target=endpoint, folder=folder)
        command.finish()
    waves = {
        side: [json.loads((run / "plan.json").read_text()) for run in sorted(folder.glob(f"runs/*_ab/{side}/*"))]
        for side in "AB"
    }
    assert len(waves["A"]) >= 2, "the first one has sessions that raise"
    assert len({each["seed"] for side in waves.values() for each in side}) == 1


@pytest.mark.process
def test_what_was_measured_outlives_an_interrupt(bench: Bench) -> None:
    with ExitStack() as running:
        a, b = (running.enter_context(bench.endpoint(service_s=0.1)) for _ in range(2))
        sides = [f"{endpoint.url}/invocations" for endpoint in (a, b)]
        command = bench.start("ab", *sides, *LOAD, "--repeats", 50, factories=None)
        command.wait_for(lambda: command.err.count("Round ") >= 1, "a wave")
        command.signal(signal.SIGINT)
        reported = command.finish()
    assert reported.code == 130
    assert "Interrupted: " in reported.err
    (file,) = command.folder.glob("runs/*_ab/ab.json")
    data = json.loads(file.read_text())
    assert (data["interrupted"], data["exit_code"]) == (True, 130)
    assert data["waves"]


@pytest.mark.process
def test_an_endpoint_that_does_not_answer_is_reported_before_anything_is_sent(bench: Bench) -> None:
    with bench.endpoint() as a:
        reported = bench.run("ab", f"{a.url}/invocations", "http://127.0.0.1:9/", *LOAD, factories=None)
    assert reported.code == 2
    assert "the first request to it failed: " in reported.err


@pytest.mark.process
@pytest.mark.slow
def test_an_endpoint_that_dies_ends_all_and_figures_are_of_both_sides(bench: Bench) -> None:
    """No wave follows the one whose endpoint was dead. Answers take so long that a busy machine's lag is little."""
    load = ("--client-rps", 20, "--obs-time", 5, "--warmup", 0, "--body", "{}", "--repeats", 9)
    with bench.endpoint(service_s=2, servers=100) as a, ExitStack() as b_runs:
        b = b_runs.enter_context(bench.endpoint(service_s=2, servers=100))
        sides = [f"{endpoint.url}/invocations" for endpoint in (a, b)]
        command = bench.start("ab", *sides, *load, "--export", "prometheus:0", "--export-wait", 60, factories=None)
        command.wait_for(lambda: "Round " in command.err, "a wave")
        b_runs.close()
        command.wait_for(lambda: "Waiting up to 60 s" in command.err, "its end")
        (url,) = re.findall(r"Figures for Prometheus: (\S+)\.\n", command.err)
        page = read_page(url)
        reported = command.finish()
    assert reported.code in (1, 3)  # 3: this machine was too busy, too
    assert "Aborted (B after " in reported.err
    found = re.findall(r'benchmark_exit_code\{.*endpoint="(.*?)"', page)
    assert sorted(found) == [f"A: {sides[0]}", f"B: {sides[1]}"]
