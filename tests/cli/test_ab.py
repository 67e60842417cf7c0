"""``benchmark ab``: how its arguments are understood, and two real endpoints that are told apart."""

from __future__ import annotations

import json
import signal
from contextlib import ExitStack
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from inference_benchmarker import cli
from inference_benchmarker.cli.ab_flags import asked_for
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.redact import HEADERS

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


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("old.py", "new.py"):
        Path(name).write_text(FILE)


@pytest.mark.usefixtures("files")
class TestArguments:
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

    def test_addresses_keep_their_own_headers(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv(HEADERS, "")
        sides = ["http://127.0.0.1:9/a", "http://127.0.0.1:9/b"]
        asked = asked_for([*sides, *RATE, "--header-b", "X-Own: something", "--quiet"])
        assert asked.headers["A"] is None
        assert json.loads(asked.headers["B"] or "") == {"X-Own": "something"}
        assert asked.what == dict(zip("AB", sides, strict=True))

    def test_both_sides_have_the_headers_of_the_environment(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv(HEADERS, '{"X-Team": "a"}')
        asked = asked_for(["old.py", "http://127.0.0.1:9/b", *RATE, "--header-b", "X-Own: something", "--quiet"])
        told = {side: json.loads(headers or "") for side, headers in asked.headers.items()}
        assert told == {"A": {"X-Team": "a"}, "B": {"X-Team": "a", "X-Own": "something"}}

    @pytest.mark.parametrize(
        ("arguments", "told"),
        [
            (["old.py"], ["ab takes A and B, each a factories file or an address, not 1 of them."]),
            (["old.py", "new.py", "third.py"], ["not 3 of them."]),
            (["old.py", "new.py", "--demo", "--aiperf"], ["--demo is not for ab.", "--aiperf is not for ab."]),
            (["old.py", "new.py", "--repeats", "0", *RATE], ["--repeats must be a whole number from 1 to 1,000"]),
            (["old.py", "new.py", "--max-regression", "p99", *RATE], ["--max-regression 'p99' is not a limit."]),
            (["old.py", "none.py", *RATE], ["B: --factories-file none.py: there is no such file"]),
            (["old.py", "new.py", "--repeats", "0"], ["--repeats must be ", "No load: give "]),
            (["old.py", "new.py", *RATE, "--clinet-rps", "3"], ["Unknown argument '--clinet-rps'. Did you mean"]),
        ],
    )
    def test_all_that_is_wrong_is_said(self, arguments: list[str], told: list[str]) -> None:
        with pytest.raises(BenchmarkError) as raised:
            asked_for(arguments)
        assert [sentence for sentence in told if sentence not in str(raised.value)] == []
        assert len(str(raised.value).splitlines()) == len(told)

    def test_without_arguments_it_helps(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert cli.main(["ab"]) == 0
        assert "benchmark ab A B" in capsys.readouterr().out


LOAD = ("--client-rps", 20, "--obs-time", 1, "--warmup", 0, "--body", "{}", "--output-dir", "runs")


@pytest.mark.process
def test_two_endpoints_get_the_same_and_the_slower_one_is_told(bench: Bench) -> None:
    with bench.endpoint(service_s=0.1) as a, bench.endpoint(service_s=0.2) as b:
        sides = [f"{endpoint.url}/invocations" for endpoint in (a, b)]
        command = bench.start("ab", *sides, *LOAD, "--repeats", 2, "--max-regression", "p50=5%", factories=None)
        told = command.finish()
        arrived = [len(endpoint.arrivals()["sequence"]) for endpoint in (a, b)]
    (file,) = command.folder.glob("runs/*_ab/ab.json")
    data = json.loads(file.read_text())
    sent = [sum(each["side"] == side for each in data["waves"]) for side in "AB"]
    assert arrived == [20 * waves + 1 for waves in sent]  # and one request of each first of all
    if not data["given_up"]:  # a busy machine may make every wave INVALID
        assert told.code == data["exit_code"] in (0, 1)  # of two waves a side hardly anything is sure
        assert [len(data["comparison"][side]["runs"]) for side in ("base", "new")] == [2, 2]
        row = next(row for row in data["comparison"]["metrics"] if row["metric"] == "latency.p50")
        assert row["change"] > 0.5


@pytest.mark.process
def test_what_was_measured_outlives_an_interrupt(bench: Bench) -> None:
    with ExitStack() as running:
        a, b = (running.enter_context(bench.endpoint(service_s=0.1)) for _ in range(2))
        sides = [f"{endpoint.url}/invocations" for endpoint in (a, b)]
        command = bench.start("ab", *sides, *LOAD, "--repeats", 50, factories=None)
        command.wait_for(lambda: command.err.count("Round ") >= 1, "a wave")
        command.signal(signal.SIGINT)
        told = command.finish()
    assert told.code == 130
    assert "Interrupted: " in told.err
    (file,) = command.folder.glob("runs/*_ab/ab.json")
    data = json.loads(file.read_text())
    assert (data["interrupted"], data["exit_code"]) == (True, 130)
    assert data["waves"]


@pytest.mark.process
def test_an_endpoint_that_does_not_answer_is_told_before_anything_is_sent(bench: Bench) -> None:
    with bench.endpoint() as a:
        told = bench.run("ab", f"{a.url}/invocations", "http://127.0.0.1:9/", *LOAD, factories=None)
    assert told.code == 2
    assert "the first request to it failed: " in told.err
