"""``benchmark capacity --over``: what it takes and refuses, and a surface of an engine behind HTTP."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from inference_benchmarker import cli
from inference_benchmarker.cli.capacity.over_flags import parse_over
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.exit_codes import worst_exit_code
from server_capacity.models.surface.lengths import Over, Range

if TYPE_CHECKING:
    from tests.bench import Bench

GIVEN = "input-tokens=100:1600,output-tokens=20:80"


def test_ranges_are_read_in_any_order() -> None:
    expected = Over(Range(100, 1600, 5), Range(20, 80, 6))
    assert parse_over("--over", "output-tokens=20:80:6, input-tokens=100:1600") == expected


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("input-tokens=100:1600", "expected input-tokens=LOW:HIGH,output-tokens=LOW:HIGH such as"),
        ("input-tokens=100:1600,output-tokens=20", "--over output-tokens='20': expected"),
        ("input-tokens=100:1600,tokens=20:80", "expected input-tokens=LOW:HIGH"),
        ("input-tokens=100:200,output-tokens=20:80", "HIGH must be at least 4 times LOW"),
        ("input-tokens=100:1600,output-tokens=1:80", "output-tokens must be at least 4, not 1"),
        ("input-tokens=100:1600:9,output-tokens=20:80", "there may be 2 to 8 levels, not 9"),
        ("input-tokens=0:1600,output-tokens=20:80", "HIGH must be at least 4 times LOW"),
        ("input-tokens=1:9,input-tokens=1:9", "expected input-tokens=LOW:HIGH"),
    ],
)
def test_ranges_that_are_none_are_refused_in_a_line(text: str, said: str) -> None:
    with pytest.raises(BenchmarkError) as raised:
        parse_over("--over", text)
    assert said in str(raised.value)


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--tier", "gold:p99<1s"], "--over searches at several lengths, and --tier has several capacities"),
        (["--vary", "payload.size=1,2"], "and --vary compares endpoints: leave one of them out"),
        (["--turns", "3"], "and --turns sends conversations"),
        (["--input-tokens", "3"], "--over has the lengths: leave --input-tokens 3 out"),
        (["--in", "users"], "--over searches for requests/s: leave --in users out"),
        (["--slo", "itl.p95<20ms"], "--slo itl.p95<20ms: --over simulates response_time, latency, ttft and tpot"),
        (["--cache", "warm"], "--over simulates prompts that are all new: leave --cache warm out"),
    ],
)
def test_what_speaks_against_a_surface_is_said(capsys: pytest.CaptureFixture[str], flags: list[str], said: str) -> None:
    address = ["http://127.0.0.1:9/v1", "--model", "m"]
    slo = [] if "--tier" in flags else ["--slo", "ttft.p95<1s"]
    assert cli.main(["capacity", *address, "--over", GIVEN, *slo, *flags]) == 2
    assert said in " ".join(capsys.readouterr().err.split())


def test_a_surface_needs_the_url_of_an_llm(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["capacity", "http://127.0.0.1:9/score", "--over", GIVEN, "--slo", "p95<1s"]) == 2
    assert "give the URL of an LLM" in " ".join(capsys.readouterr().err.split())


@pytest.mark.slow
@pytest.mark.process
@pytest.mark.timeout(600)
def test_the_engine_behind_an_address_is_found_and_what_was_held_out_is_shown(
    bench: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    """Six short searches: whether they agree is up to the machine, but constants, rows and files are there."""
    folder = bench.folder()
    with bench.endpoint(llm="8b-h100", prefill_ms=(0.0, 0.4, 20.0), step_ms=(0.0, 0.0, 15.0, 0.1)) as endpoint:
        ranges = "input-tokens=50:400:2,output-tokens=8:32:2"
        flags = ["--slo", "ttft.p95<800ms", "--time", "20", "--workers", "1", "--output-dir", "runs", "--json"]
        line = ["capacity", f"{endpoint.url}/v1", "--over", ranges, *flags]
        done = bench.start(*line, factories=None, folder=folder).finish(500)

    found = json.loads(done.out)
    assert "6 searches (3 for the fit, 3 held out), about 2 min 40 s of load in all; then 4 points" in done.err
    assert done.code == found["exit_code"] == worst_exit_code(*(row["exit_code"] for row in found["searches"]))
    assert found["stage"] in ("given", "refused")
    assert [row["use"] for row in found["searches"]] == ["fit"] * 3 + ["held_out"] * 3
    if found["engine"] is not None:
        of_prompts = {row["name"]: row["value"] for row in found["engine"]["constants"]}
        assert of_prompts["prefill B"] == pytest.approx(0.4, rel=0.15)
        assert of_prompts["step C"] == pytest.approx(15, rel=0.15)
        assert all(row["predicted"] for row in found["searches"][3:])

    (made,) = (folder / "runs").glob("*_surface")
    assert {row["capacity"] for row in found["searches"]} <= {each.name for each in made.iterdir()}
    assert (made / "surface.csv").read_text().count("\n") == 1 + 6 + len(found["grid"])
    assert (made / "surface.html").is_file()
    assert cli.main(["report", str(made)]) == done.code
    assert capsys.readouterr().out.startswith(found["headline"][:40])
