"""Engines that are compared by their answers: fixed questions, asked of real ones before each search."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from inference_benchmarker import cli
from inference_benchmarker.cli.capacity.searching import asked_canaries
from inference_benchmarker.embedded.running import EndpointConfig, start
from inference_benchmarker.engine.endpoint.source import has_canaries
from server_capacity.results.equal_answers import Given, with_answers
from server_capacity.results.ranking_order import ranking
from server_capacity.results.ranking_row import Aim
from server_capacity.results.types.capacity import CanaryAnswer
from tests.rankings import row
from tests.waves import open_plan

if TYPE_CHECKING:
    from pathlib import Path

ENGINE = """
import re
import subprocess
import sys

from inference_benchmarker.clients import OpenAIClient


def endpoint_factory(tokens: int):
    flags = ["--port", "0", "--servers", "100", "--service-time", "0.01", "--tokens", str(tokens)]
    command = [sys.executable, "-m", "inference_benchmarker.cli", "endpoint", *flags]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        yield re.search(r"http://\\S+", process.stdout.readline())[0]
        process.terminate()


def invoke_factory(endpoint_name):
    return OpenAIClient(f"{endpoint_name}/v1").stream_chat


def payload_factory():
    return {"pre_computed": True, "input": [asking(f"question {number}") for number in range(100)]}


def canary_factory(seed):
    return [asking(f"fixed question {number}") for number in range(3)]


def asking(text):
    return {"messages": [{"role": "user", "content": text}]}
"""
MOVES = """
    answers = iter(range(100))

    def invoke(payload):
        if payload == "fails":
            raise ValueError("no")
        if payload == "empty":
            return ""
        return f"answer {next(answers)}" if payload == "moves" else b"the same"

    return invoke


def payload_factory():
    return {"pre_computed": True, "input": ["x"]}


def canary_factory(seed):
    return ["steady", "moves", "fails"]
"""


def asked(path: Path, url: str | None, said: list[str]) -> tuple[CanaryAnswer, ...] | None:
    return asked_canaries(open_plan(factories_file=path, endpoint_name=url), said.append)


@pytest.mark.process
def test_an_engine_that_truncates_its_answers_has_no_rank_however_fast_it_is(tmp_path: Path) -> None:
    """One that answers with 20 tokens, and a faster one that stops after 4."""
    (path := tmp_path / "engine.py").write_text(ENGINE)
    said: list[str] = []
    with start(EndpointConfig(tokens=20)) as whole, start(EndpointConfig(tokens=4)) as cut:
        given = [Given(asked(path, each.url, said) or ()) for each in (cut, whole)]
    assert said == []
    found = ranking(with_answers([row("cut", 200), row("whole", 100)], given), Aim())
    assert [(each.label, each.rank) for each in found.rows] == [("whole", 1), ("cut", None)]
    assert found.headline == (
        "whole has the highest capacity: 103/s. cut has no rank: answers differ from those of whole: shorter to 3 of 3 "
        "fixed questions; output tokens were not reported."
    )


@pytest.mark.process
def test_a_question_that_gets_two_answers_or_fails_tells_nothing(tmp_path: Path) -> None:
    (path := tmp_path / "moves.py").write_text(f"def invoke_factory(endpoint_name):{MOVES}")
    said: list[str] = []
    steady, *others = asked(path, None, said) or ()
    assert (steady.text, steady.characters) == ("the same", 8)
    assert [(each.text, each.characters) for each in others] == [(None, None)] * 2
    assert said == ["A canary failed before the search: ValueError: no"]


@pytest.mark.process
def test_an_empty_answer_is_an_answer_of_no_characters(tmp_path: Path) -> None:
    text = f"def invoke_factory(endpoint_name):{MOVES}".replace('["steady", "moves", "fails"]', '["empty"]')
    (path := tmp_path / "empty.py").write_text(text)
    assert asked(path, None, []) == (CanaryAnswer("", 0),)


@pytest.mark.process
def test_canaries_that_cannot_be_made_do_not_end_a_search(tmp_path: Path) -> None:
    text = f"def invoke_factory(endpoint_name):{MOVES}".replace('return ["steady", "moves", "fails"]', "return []")
    (path := tmp_path / "none.py").write_text(text)
    said: list[str] = []
    assert asked(path, None, said) is None
    assert said[0].startswith("The answers of the variants are not compared by text: ")


@pytest.mark.parametrize(
    ("source", "has"),
    [("def canary_factory(seed): ...", True), ("from x import canary_factory", True), ("x = 1", False), ("(", False)],
)
def test_a_file_has_canaries_where_it_names_them(tmp_path: Path, source: str, *, has: bool) -> None:
    (path := tmp_path / "f.py").write_text(source)
    assert has_canaries(path) is has
    if not has:
        assert asked(path, None, []) is None


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.process
def test_a_ranking_of_engines_puts_the_cheapest_that_answers_the_same_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both hold the highest rate that is tried, and one stops after 4 of 20 tokens."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "engine.py").write_text(ENGINE)
    flags = ("--max-rps", "20", "--time", "15", "--price", "gpu=2.5", "--yes", "--output-dir", "out")

    cli.main(["capacity", "--factories-file", "engine.py", "--slo", "p99<1s", "--vary", "tokens=4,20", *flags])

    (folder,) = (tmp_path / "out").glob("*_ranking")
    data = json.loads((folder / "ranking.json").read_text())
    whole, cut = data["rows"]
    assert (data["ranked_by"], data["exit_code"]) == ("cost_per_million_output", 1)
    assert (whole["label"], whole["rank"], cut["label"], cut["rank"]) == ("tokens=20", 1, "tokens=4", None)
    assert whole["token_costs"]["output"] == pytest.approx(2.5 / (3600 * whole["rate"] * 20) * 1e6)
    assert cut["answers"]["differing"] == cut["answers"]["comparable"] == 3
    assert cut["answers"]["length"]["high"] < 0.3
    assert "tokens=4 has no rank: answers differ from those of tokens=20: " in data["headline"]
    assert capsys.readouterr().out.startswith(data["headline"])
    assert "tokens=4,,cost_per_million_output" in (folder / "ranking.csv").read_text()
