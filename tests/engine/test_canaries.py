"""Canaries: what is asked alone, what differs under load, and a server that mixes requests up."""

from __future__ import annotations

from contextlib import ExitStack
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest

from inference_benchmarker import Response
from inference_benchmarker.engine.worker.canaries import Canaries, ask_alone
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.records.pieces import Answer

if TYPE_CHECKING:
    from inference_benchmarker.embedded.running import RunningEndpoint
    from tests.bench import Bench, Finished

SAME, DIFFERENT = {"canary_differs": 0.0, "canary_swapped": 0.0}, {"canary_differs": 1.0, "canary_swapped": 0.0}
SWAPPED = {"canary_differs": 1.0, "canary_swapped": 1.0}
REFERENCES = ["repeat bee-cow-1", "repeat ant-owl-2"]


def asked(references: list[str | None], share: float = 0.5) -> tuple[Canaries, int, int, int]:
    """Canaries, the numbers of an arrival that asks the first and of one that asks the second, and of another one."""
    canaries = Canaries(["first", "second"], references, share, seed=3)
    numbers = [number for number in range(100) if canaries.is_one(number)]
    first, second = (next(n for n in numbers if canaries._which(n) == which) for which in (0, 1))
    return canaries, first, second, next(number for number in range(100) if not canaries.is_one(number))


def test_an_answer_is_the_one_that_was_given_alone_another_or_anothers() -> None:
    canaries, first, second, other = asked([*REFERENCES])
    assert canaries.judge(first, Answer.of([" repeat", " bee-cow-1\n"], None)) == SAME
    assert canaries.judge(first, "repeat bee-cow") == DIFFERENT
    assert canaries.judge(first, REFERENCES[1]) == SWAPPED
    assert canaries.judge(second, f"well: {REFERENCES[0]}") == SWAPPED
    assert canaries.judge(first, "what a chat got") == DIFFERENT
    assert canaries.judge(other, "what a chat got") == {}
    assert canaries.judge(first, b"what a chat got") == SWAPPED
    assert canaries.judge(other, REFERENCES[0]) == {"canary_swapped": 1.0}
    assert canaries.judge(other, None) == {}


def test_an_excuse_that_many_get_is_nobodys_own_answer() -> None:
    canaries, first, _, other = asked([*REFERENCES])
    for number in range(other, other + 3):
        if not canaries.is_one(number):
            canaries.judge(number, "sorry, too busy")
    canaries.judge(other, "sorry, too busy")
    assert canaries.judge(first, "sorry, too busy") == DIFFERENT


def test_what_is_remembered_of_other_answers_is_bounded() -> None:
    canaries, first, _, other = asked([*REFERENCES])
    for number in range(10_000):
        canaries.judge(other, f"an answer {number}")
    assert len(canaries._recent) <= 4_096
    assert canaries.judge(first, "an answer 9999") == SWAPPED
    assert canaries.judge(first, "an answer 1") == DIFFERENT


def test_of_a_server_that_always_says_the_same_nothing_is_reported() -> None:
    canaries, first, _, other = asked(["always the same"] * 2)
    assert canaries.judge(other, "always the same") == {}
    assert canaries.judge(first, "always the same") == SAME


def test_a_question_without_a_steady_answer_tells_nothing() -> None:
    canaries, first, second, _ = asked([None, REFERENCES[1]])
    assert canaries.judge(first, "anything") == {}
    assert canaries.judge(second, "anything") == DIFFERENT


def test_the_share_is_that_of_the_arrivals_and_of_the_questions() -> None:
    canaries = Canaries("abcde", ["x"] * 5, 0.02, seed=9)
    chosen = [number for number in range(-1000, 50_000) if canaries.is_one(number)]
    assert len(chosen) == pytest.approx(1020, rel=0.15)
    counts = [sum(canaries._which(number) == which for number in chosen) for which in range(5)]
    assert min(counts) > 140
    assert sum(counts) == len(chosen)


def test_questions_are_asked_twice_and_one_at_a_time() -> None:
    heard: list[Any] = []

    def invoke(payload: Any) -> Any:
        heard.append(payload)
        return iter_of(payload) if payload == "stream" else f"{payload} {len(heard) if payload == 'moves' else ''}"

    def iter_of(payload: str) -> Any:
        yield from (payload, " it", Response(tokens_out=2))

    assert ask_alone(invoke, ["a", "moves", "stream"]) == ["a", None, "stream it"]
    assert heard == ["a", "a", "moves", "moves", "stream", "stream"]


NUMBERS = count()


def fails(_: Any) -> Any:
    raise ConnectionRefusedError("no")


@pytest.mark.parametrize(
    ("invoke", "said"),
    [
        (fails, "before the load, failed: ConnectionRefusedError: no"),
        (lambda _: Response(tokens_out=1), "got no text in answer"),
        (lambda _: " ", "got no text in answer"),
        (lambda _: f"answer {next(NUMBERS)}", "differ even when it is asked alone"),
    ],
)
def test_canaries_that_tell_nothing_are_refused(invoke: Any, said: str) -> None:
    with pytest.raises(BenchmarkError, match="--expect canary: ") as raised:
        ask_alone(invoke, ["a", "b"])
    assert said in str(raised.value)


FLAGS = ("--expect", "canary:20%", "--output-dir", "runs", "--seed", "7")
SINGLE = ("--client-rps", "50", "--num-requests", "100", "--input-tokens", "20")
SESSIONS = ("--turns", "2", "--client-rps", "20", "--num-requests", "20", "--session-header", "X-Session")


def check_log(wave: Finished, endpoint: RunningEndpoint) -> list[dict[str, Any]]:
    """Hold a wave against its server's log, in which each of six questions stands twice before it; its canaries."""
    assert len(endpoint.arrivals()["sequence"]) == 12 + len(wave.rows)
    return [row for row in wave.rows if row["label"] == "canary"]


@pytest.mark.process
def test_a_server_that_mixes_requests_up_is_reported_and_one_that_does_not_is_not(bench: Bench) -> None:
    """One that swaps 30% of the requests that are with it; and, meanwhile, requests and sessions to one that does not.

    Canaries among sessions are sessions of one turn. With --hosts they are asked alone once, for the workers of all.
    """
    with ExitStack() as stack:
        swapping, single, talking = (
            stack.enter_context(bench.endpoint(service_s=wait, servers=100, echo=True, swap_share=share, tokens=100))
            for wait, share in ((0.1, 0.3), (0.01, 0.0), (0.01, 0.0))
        )
        loads = (
            (swapping, *SINGLE, "--workers", "2"),
            (single, *SINGLE, "--hosts", "localhost*2"),
            (talking, *SESSIONS),
        )
        started = [bench.start(f"{each.url}/v1", *FLAGS, *flags, factories=None) for each, *flags in loads]
        waves = [running.finish() for running in started]
        canaries = [check_log(wave, each) for wave, (each, *_) in zip(waves, loads, strict=True)]
    swapped = [row for row in waves[0].rows if row["metric.canary_swapped"] == 1]
    (finding,) = [each for each in waves[0].summary["findings"] if each["code"] == "canary_swapped"]
    assert (finding["severity"], finding["measured"].split()[0]) == ("missed", str(len(swapped)))
    assert 10 <= len(canaries[0]) <= 30
    assert {row["label"] for row in swapped} == {"canary", "demo"}, "who lost an answer, and who got it"
    assert all(row["metric.canary_swapped"] is not None for row in canaries[0])
    logs = "".join(path.read_text() for path in waves[0].folder.glob("logs/worker_*.log"))
    assert "got another request's answer: " in logs
    for wave, own in zip(waves[1:], canaries[1:], strict=True):
        assert {row["metric.canary_differs"] for row in own} == {0.0}
        assert not {each["code"] for each in wave.summary["findings"]} & {"canary_swapped", "canary_differs"}
    talks = waves[2].rows
    assert {(row["turn"], row["ended"]) for row in canaries[2]} == {(1, "completed")}
    others = {row["session"] for row in talks} - {row["session"] for row in canaries[2]}
    assert len(talks) == len(canaries[2]) + 2 * len(others)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["http://127.0.0.1:9/", "--expect", "canary", "--records", "none"], "--expect canary is computed from"),
        (["check", "http://127.0.0.1:9/", "--expect", "canary"], "it is for a wave, not for one request"),
        (["capacity", "http://127.0.0.1:9/", "--expect", "canary"], "it is for a wave, not for a search"),
        (["http://127.0.0.1:9/", "--expect", "canary:200%"], "must be a share of the arrivals, 2% or 0.02"),
    ],
)
def test_canaries_where_they_cannot_be_are_refused(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    from inference_benchmarker import cli

    assert cli.main(arguments) == 2
    assert said in capsys.readouterr().err


@pytest.mark.process
def test_a_file_without_canaries_is_reported_how_to_have_some(bench: Bench) -> None:
    finished = bench.run("--expect", "canary", "--client-rps", "1", "--num-requests", "1")
    assert finished.code == 2
    assert "has no canary_factory, which --expect canary needs" in finished.err
