"""The command on a run's page: it makes the plan that the run had, or is not there."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path

import pytest

from inference_benchmarker.cli.wave.wave import wave_options, wave_parser
from inference_benchmarker.cli.wave.wave_plan import make_plan
from inference_benchmarker.plan.plan import WavePlan
from tests.waves import wave
from visualization.run_page import run_page
from visualization.run_page.rerun_command import command

LINES = (
    "--client-rps 12.5 --obs-time 10 --workers 2 --seed 7",
    "--client-rps 100 --num-requests 50 --arrivals poisson --warmup 2.5 --name 'a name; rm -rf'",
    "--concurrency 8 --obs-time 1 --num-requests 9 --endpoint-name e --records none",
    "--stages 'steady=80:15s, 80..260:10s, 80:15s' --slo 'p99<150ms' --slo 'steady:p50<30ms' --success-threshold 0.9",
    "--client-rps 5 --obs-time 3 --goodput 'ttft<1s,itl<50ms' --request-timeout 2 --drain-timeout 5 --max-in-flight 7",
    "--client-rps 5 --obs-time 3 --sample-client-hw --load-timeout 9",
    "--client-rps 5 --obs-time 3 --no-abort --abort-on 'success<50%' --abort-on 'p99 > 2s @ 3s'",
    "--client-rps 5 --obs-time 3 --set 'MODEL=a model' --set SIZE=3",
    "--concurrency 5 --obs-time 3 --think-time lognormal:1s:0.5",
)


def plan_of(line: str) -> WavePlan:
    return make_plan(*wave_options(wave_parser(), shlex.split(line)))


@pytest.fixture(autouse=True)
def _factories(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("f.py").write_text("MODEL = 'x'\nSIZE = 1\n\ndef invoke_factory(): ...\ndef payload_factory(): ...\n")


@pytest.mark.parametrize("line", LINES)
def test_it_makes_the_same_plan(line: str) -> None:
    plan = plan_of(f"--factories-file f.py {line}")
    reported = command(plan)
    assert reported is not None
    assert plan_of(reported.removeprefix("benchmark ")) == plan


def test_a_plan_that_it_cannot_tell_has_none() -> None:
    assert command(plan_of("--factories-file f.py --obs-time 3 --client-rps 5 --client-retries 2")) is None


def test_no_secret_is_in_it() -> None:
    plan = replace(plan_of("--factories-file f.py --client-rps 5 --obs-time 3"), url="http://me:secret@host/v1")
    assert command(plan) is None


def test_a_wave_that_sent_what_is_not_stored_has_none() -> None:
    plan = plan_of("--factories-file f.py --client-rps 5 --obs-time 3 --set MODEL=/a?key=sk-aaaaaaaaaaaaaaaaaaaaaa")
    assert command(WavePlan.from_json(plan.public_json())) is None
    sent = wave([[0.02] * 10] * 3)
    assert "--obs-time 3" not in run_page(replace(sent, environment={"headers": ["X-Own"]}))


def test_it_stands_on_the_page() -> None:
    assert "--client-rps 10 --obs-time 3" in run_page(wave([[0.02] * 10] * 3))
