"""``benchmark capacity --demo --llm``: its flags, its engine, and one search against the truth."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

from inference_benchmarker import cli
from inference_benchmarker.cli.capacity import capacity
from inference_benchmarker.cli.capacity.llm_demo import fill_in
from inference_benchmarker.cli.core.embedded import DEMO_URL
from server_capacity.metrics.config import load_config
from server_capacity.metrics.prometheus.block import PageBlock

SERVED = (36, 42)
"""Open sessions at which 0.4% and 17% of the turns miss the limit on TPOT: virtual time, 2,000 s each."""


def options_of(*arguments: str) -> dict[str, Any]:
    return capacity.search_options(capacity.capacity_parser(), ["--demo", "--llm", *arguments])[0]


def test_what_is_not_given_is_filled_in_and_said() -> None:
    options = options_of("--turns", "3", "--slo", "p99<2s")
    said = fill_in(options)

    assert (options["in"], options["turns"], options["slo"]) == ("users", "3", ["p99<2s"])
    assert said.startswith("--in users --think-time exponential:0.5s --time 75 --turns 3 ")
    assert said.endswith("--start-users 10 --slo 'p99<2s'")


def test_tiers_have_limits_of_their_own() -> None:
    options = options_of("--tier", "gold:tpot.p95<15ms", "--tier", "silver:tpot.p95<25ms")
    said = fill_in(options)

    assert (options["in"], options["slo"]) == ("users", None)
    assert said.endswith("--start-users 10 --tier 'gold:tpot.p95<15ms' --tier 'silver:tpot.p95<25ms'")


@pytest.mark.parametrize(
    ("arguments", "left_open"),
    [
        (["--in", "sessions"], ["start_users"]),
        (["--conversations", "x.json"], ["turns", "input_tokens", "output_tokens"]),
        (["--precision", "10%"], ["time"]),
    ],
)
def test_what_another_flag_stands_for_is_left_open(arguments: list[str], left_open: list[str]) -> None:
    options = options_of(*arguments)
    fill_in(options)

    assert [
        name for name in ("time", "turns", "input_tokens", "output_tokens", "start_users") if not options[name]
    ] == (left_open)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--llm"], "--llm is for --demo"),
        (["--demo", "--llm", "--factories-file", "f.py"], "leave out --factories-file"),
        (["--demo", "--llm", "http://127.0.0.1:9/v1"], "leave out URL"),
        (["--demo", "--llm", "--turns", "0"], "--turns"),
        (["--demo", "--llm", "--in", "rps"], "--llm searches for users or sessions: leave out --in rps."),
    ],
)
def test_bad_input_is_one_sentence(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["capacity", *arguments]) == 2
    shown = capsys.readouterr()
    assert said in shown.err
    assert ("For your own server" in shown.out + shown.err) == ("--turns" in arguments), "read once there is an address"


def test_the_engine_runs_while_the_search_does(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def searched(options: dict[str, Any], addresses: list[str], problems: list[str]) -> int:
        (url,) = addresses
        with urlopen(f"{url.removesuffix('/v1')}/metrics") as answer:  # noqa: S310 - our own
            seen.append((options["demo"], problems, b"vllm:num_requests_running" in answer.read()))
        (block,) = load_config(Path(options["endpoint_config"]))
        assert isinstance(block, PageBlock)
        assert block.url == f"{url.removesuffix('/v1')}/metrics"
        assert {"kv_cache_use", "preemptions", "prefix_cache_hit_rate"} <= {*block.names}
        return 0

    monkeypatch.setattr(capacity, "_run", searched)
    before = os.environ.get(DEMO_URL)

    assert cli.main(["capacity", "--demo", "--llm", "--quiet"]) == 0
    assert seen == [(None, [], True)]
    assert os.environ.get(DEMO_URL) == before


@pytest.mark.slow
def test_the_demo_finds_the_number_of_users_that_the_engine_serves(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["capacity", "--demo", "--llm", "--quiet", "--json", "--output-dir", str(tmp_path)]) == 0

    found = json.loads(capsys.readouterr().out)
    assert found["limit"] == "tpot.p95<25ms"
    assert found["interval"]["low"] <= SERVED[1]
    assert found["interval"]["high"] >= SERVED[0]
    (folder,) = tmp_path.iterdir()
    assert (folder / "capacity.html").is_file()
