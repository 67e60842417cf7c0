"""Expected answers in real waves: which requests fail of them, by what the server sent."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from inference_benchmarker.cli.wave.wave import wave_of
from inference_benchmarker.errors import BenchmarkError
from tests.bench import factories

if TYPE_CHECKING:
    from pathlib import Path

    from tests.bench import Bench

pytestmark = pytest.mark.process
LOAD = ("--client-rps", "40", "--num-requests", "12", "--output-dir", "runs")


def chats(folder: Path) -> Path:
    """Requests for answers of one token to four, in turn."""
    file = folder / "chats.jsonl"
    bodies = [{"messages": [{"role": "user", "content": "a b"}], "max_tokens": 1 + number % 4} for number in range(4)]
    file.write_text("\n".join(map(json.dumps, bodies)))
    return file


@pytest.mark.parametrize("stream", ["true", "false"])
def test_a_chat_that_says_something_else_has_failed_and_keeps_its_times(bench: Bench, stream: str) -> None:
    folder = bench.folder()
    flags = ("--body", f"@{chats(folder)}", "--set", f"STREAM={stream}", "--expect", "text:2$|^0$", "--expect", "json")
    with bench.endpoint(service_s=0.01) as endpoint:
        finished = bench.run(f"{endpoint.url}/v1", *flags, *LOAD, factories=None, folder=folder)
        assert len(endpoint.arrivals()["sequence"]) == 12
    texts = {1: None, 2: "UnexpectedAnswerError text", 3: "UnexpectedAnswerError json", 4: "UnexpectedAnswerError text"}
    for row in finished.rows:
        tokens = 1 + row["index"] % 4
        assert (row["error"], row["tokens_out"]) == (texts[tokens], tokens)
        assert (row["first_token"] is not None) == (stream == "true")
    assert "success_below_threshold" in {finding["code"] for finding in finished.summary["findings"]}
    assert "expected JSON" in finished.out


def test_what_is_expected_of_an_address_a_file_and_embeddings(bench: Bench) -> None:
    folder = bench.folder()
    schema = {"properties": {"predictions": {"items": {"maximum": 0.4}}}, "required": ["predictions"]}
    (folder / "s.json").write_text(json.dumps(schema))
    with bench.endpoint(service_s=0.001) as endpoint:
        plain, vectors = [f"{endpoint.url}/invocations", "--body", "{}"], [f"{endpoint.url}/v1/embeddings"]
        for target, expected, error in (
            (plain, "schema:s.json", "UnexpectedAnswerError schema"),
            (vectors, "text:a", "UnexpectedAnswerError text"),
        ):
            folder = bench.folder()
            (folder / "s.json").write_text(json.dumps(schema))
            finished = bench.run(*target, "--expect", expected, *LOAD, factories=None, folder=folder)
            assert {row["error"] for row in finished.rows} == {error}
        file = factories("""if payload % 3 == 0: return b'{"predictions": 1'""")
        finished = bench.run("--expect", "json", *LOAD, factories=file, target=endpoint)
    assert all((row["outcome"] == "failed") == (row["index"] % 3 == 0) for row in finished.rows)
    reported = json.loads((finished.folder / "plan.json").read_text())["expect"]
    assert reported == [{"kind": "json", "text": "json", "schema": None, "share": 0.0}]


def test_a_turn_that_says_something_else_ends_its_session(bench: Bench) -> None:
    with bench.endpoint(service_s=0.001) as endpoint:
        flags = ("--turns", "3", "--output-tokens", "2", "--client-rps", "10", "--num-requests", "4", "--workers", "2")
        asked = (f"{endpoint.url}/v1", *flags, "--expect", "text:^0 2", "--output-dir", "runs")
        finished = bench.run(*asked, factories=None)
        assert len(endpoint.arrivals()["sequence"]) == 4
    assert [(row["turn"], row["ended"]) for row in finished.rows] == [(1, "failed")] * 4


def test_what_is_not_expected_is_not_tried_again(bench: Bench) -> None:
    with bench.endpoint(service_s=0.001) as endpoint:
        flags = ("--body", "{}", "--client-retries", "3", "--expect", "text:never", *LOAD)
        finished = bench.run(f"{endpoint.url}/invocations", *flags, factories=None)
        assert len(endpoint.arrivals()["sequence"]) == 12
    assert {row["error"] for row in finished.rows} == {"UnexpectedAnswerError text"}


def test_one_request_is_held_against_what_is_expected(bench: Bench) -> None:
    with bench.endpoint(service_s=0.001) as endpoint:
        asked = ("check", f"{endpoint.url}/invocations", "--body", "{}", "--expect", "json", "--expect", "text:never")
        failed = bench.run(*asked, factories=None)
    assert failed.code == 1
    assert "UnexpectedAnswerError text" in failed.out
    assert "predictions" in failed.out


def test_tasks_of_a_locust_file_cannot_be_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "l.py").write_text("")
    flags = ["--locust-file", "l.py", "--expect", "json", "--client-rps", "1", "--num-requests", "1"]
    with pytest.raises(BenchmarkError, match=r"--expect needs a factories file or a URL: .*--locust-file"):
        wave_of(flags)


def test_workers_on_other_hosts_hold_answers_against_the_same(bench: Bench) -> None:
    """Those that come over SSH, or here as its local agent, have the schema and the expression from the plan."""
    folder = bench.folder()
    (folder / "s.json").write_text('{"type": "integer", "maximum": 1}')
    flags = ("--body", f"@{chats(folder)}", "--expect", "schema:s.json", "--expect", "text:^0", "--expect", "json")
    with bench.endpoint(service_s=0.001) as endpoint:
        asked = (f"{endpoint.url}/v1", *flags, *LOAD, "--hosts", "localhost*2")
        finished = bench.run(*asked, factories=None, folder=folder)
        assert len(endpoint.arrivals()["sequence"]) == 12
    assert {row["worker"] for row in finished.rows} == {0, 1}
    errors = [row["error"] for row in finished.rows]
    assert errors == [None if row["index"] % 4 == 0 else "UnexpectedAnswerError schema" for row in finished.rows]
