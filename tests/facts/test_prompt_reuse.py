"""The part that a prefix cache could have had, against a comparison of every prompt with everything before it."""

from __future__ import annotations

import json
import random
from base64 import b64decode, b64encode
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import pytest

from inference_benchmarker.engine.worker import sent_prompts
from inference_benchmarker.engine.worker.in_flight import OpenSession, Slot
from inference_benchmarker.engine.worker.sent_prompts import SentPrompts
from inference_benchmarker.facts import prompt_reuse
from inference_benchmarker.facts.prompt_reuse import PromptReuse, PromptsSent, TurnReuse
from inference_benchmarker.records.pieces import Answer, Reasoning
from inference_benchmarker.records.prompts import BLOCK_BYTES, MOST_REQUESTS, ROW, TOO_LONG
from inference_benchmarker.records.response import Response

if TYPE_CHECKING:
    from collections.abc import Iterator

WORDS = ["time", "year", "people", "way", "day", "man", "thing", "woman", "life", "child", "world", "school"]


@dataclass
class Sent:
    """A turn as it was sent: of which worker, when, its text as a server reads it, and that with its answer."""

    worker: int
    number: int
    turn: int
    sent: int
    done: int
    messages: list[dict[str, str]]
    answer: str

    @property
    def prompt(self) -> bytes:
        return "".join(f"\n{each['role']}\n{each['content']}" for each in self.messages).encode()

    @property
    def whole(self) -> bytes:
        return self.prompt + f"\nassistant\n{self.answer}".encode()


def conversations(seed: int, *, live: bool) -> list[Sent]:
    """Sessions of two workers with shared beginnings, which overlap; of some the history is cut short."""
    chosen = random.Random(seed)

    def text(words: int) -> str:
        return " ".join(chosen.choices(WORDS, k=words))

    shared, sent = [text(400), text(10)], []
    for number in range(40):
        messages = [{"role": "system", "content": chosen.choice(shared)}] if number % 3 else []
        at = 1000 * number
        for turn in range(1, 2 + number % 4):
            messages.append({"role": "user", "content": text(chosen.choice((3, 40)))})
            done, answer = at + chosen.randrange(1, 3000), text(20)
            sent.append(Sent(number % 2, number, turn, at, done, [*messages], answer))
            messages.append({"role": "assistant", "content": answer if live else text(20)})
            if number % 7 == 6:
                del messages[-2:]
            at = done + chosen.randrange(2000)
    return sent


def reported(sent: list[Sent], tokens: bool = False) -> PromptsSent:
    """All that the workers tell of them, in the order in which they are over, in several reports."""
    workers, sessions = [SentPrompts(), SentPrompts()], dict[int, OpenSession]()
    found = PromptsSent()
    for place, each in enumerate(sorted(sent, key=lambda each: each.done)):
        session = sessions.setdefault(each.number, OpenSession(each.number))
        session.turn = each.turn
        slot = Slot()
        slot.payload, slot.sent, slot.done = {"messages": each.messages}, each.sent, each.done
        slot.answer = Answer(each.answer, (each.answer,))
        if tokens:
            slot.usage = Response(len(each.prompt), 20, metrics={"cached_tokens": 10.0})
        workers[each.worker].add(slot, session)
        if place % 17 == 0 or place == len(sent) - 1:
            for number, worker in enumerate(workers):
                take(found, number, worker)
    return found


def take(found: PromptsSent, number: int, worker: SentPrompts) -> None:
    """What a worker tells, by way of a report."""
    fields = json.loads(json.dumps(worker.unreported()))
    worker.mark_reported()
    if fields:
        found.take(number, fields["prompt_rows"], fields["prompt_sums"], fields["stems"])


def reusable(each: Sent, sent: list[Sent], block: int = BLOCK_BYTES) -> int:
    """The bytes in whole blocks that some text before it begins with, too."""
    before = [other.prompt for other in sent if (other.sent, other.number) < (each.sent, each.number)]
    before += [other.whole for other in sent if other.done <= each.sent]
    prompt, most = each.prompt, 0
    for text in before:
        while text[: most + block] == prompt[: most + block] and most + block < len(prompt):
            most += block
    return most


@pytest.mark.parametrize("live", [True, False])
@pytest.mark.parametrize("seed", range(4))
def test_it_is_what_every_prompt_shares_with_what_came_before(seed: int, live: bool) -> None:
    sent = conversations(seed, live=live)
    found = reported(sent).reuse()
    assert found is not None
    assert (found.block_bytes, found.requests) == (BLOCK_BYTES, len(sent))
    for row in found.by_turn:
        own = [each for each in sent if each.turn == row.turn]
        assert (row.requests, row.prompt_bytes) == (len(own), sum(len(each.prompt) for each in own))
        assert row.reusable_bytes == sum(reusable(each, sent) for each in own)
    whole = sum(len(each.prompt) for each in sent)
    assert found.share == pytest.approx(sum(reusable(each, sent) for each in sent) / whole)


def test_tokens_are_in_proportion_to_the_bytes_of_each_prompt() -> None:
    sent = conversations(1, live=True)
    found = reported(sent, tokens=True).reuse()
    assert found is not None
    assert sum(row.reusable_tokens for row in found.by_turn) == sum(reusable(each, sent) for each in sent)
    assert sum(row.cached_tokens for row in found.by_turn) == 10 * len(sent)


def test_a_cache_that_is_full_has_longer_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prompt_reuse, "MOST_KNOWN", 500)
    sent = conversations(2, live=True)
    found, exact = reported(sent).reuse(), sum(reusable(each, sent) for each in sent)
    assert found is not None
    assert found.block_bytes > BLOCK_BYTES
    known = sum(row.reusable_bytes for row in found.by_turn)
    assert exact - found.block_bytes * len(sent) <= known < exact


def test_what_is_held_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    sent = conversations(3, live=True)
    monkeypatch.setattr(prompt_reuse, "MOST_REQUESTS", 20)
    found = reported(sent).reuse()
    assert found is not None
    assert found.requests == 20
    monkeypatch.setattr(prompt_reuse, "MOST_REQUESTS", 1000)
    monkeypatch.setattr(prompt_reuse, "MOST_BYTES", 16_000)
    found = reported(sent).reuse()
    assert found is not None
    assert 0 < found.requests < len(sent)


def test_the_answer_of_a_model_that_reasoned_is_not_there_to_be_used_again() -> None:
    """Its answer stands behind the reasoning in the server's cache, and no history repeats that."""
    for pieces, usage in (
        ((Reasoning("hm"), "words " * 40), None),
        (("words " * 40,), Response(50, 60, metrics={"reasoning_tokens": 9.0})),
    ):
        worker, session, found = SentPrompts(), OpenSession(0), PromptsSent()
        history = [{"role": "user", "content": "x" * 64}]
        for turn in (1, 2):
            session.turn, slot = turn, Slot()
            slot.payload, slot.sent, slot.done = {"messages": [*history]}, 10 * turn, 10 * turn + 1
            slot.answer, slot.usage = Answer("words " * 40, pieces), usage
            worker.add(slot, session)
            history += [{"role": "assistant", "content": "words " * 40}, {"role": "user", "content": "and"}]
        take(found, 0, worker)
        reuse = found.reuse()
        assert reuse is not None
        assert reuse.by_turn[1].reusable_bytes == 64


def test_what_is_no_prompt_is_not_reported() -> None:
    worker, slot = SentPrompts(), Slot()
    slot.payload = "3.1"
    worker.add(slot, OpenSession(3))
    assert worker.unreported() == {}
    assert PromptsSent().reuse() is None


class Loud:
    """Raises in every method that a look at it may call."""

    def __str__(self) -> str:
        raise SystemExit

    def __iter__(self) -> Iterator[Any]:
        raise SystemExit


class LoudDict(dict[str, Any]):
    """The same of a dictionary."""

    def items(self) -> Any:
        raise KeyboardInterrupt


def deep() -> list[Any]:
    """Lists in lists, deeper than any look goes."""
    found: list[Any] = []
    for _ in range(5000):
        found = [found]
    return found


LOOP: dict[str, Any] = {}
LOOP["self"] = LOOP


@pytest.mark.parametrize("content", [{(1, 2): 3}, Loud(), LoudDict(a=1), LOOP, deep(), [b"x"], "x" * 300_000])
def test_a_prompt_that_cannot_be_taken_apart_is_not_known_and_its_session_goes_on(content: Any) -> None:
    worker, session, found = SentPrompts(), OpenSession(0), PromptsSent()
    good: list[dict[str, Any]] = [{"role": "user", "content": "x" * 64}]
    bad = [*good, {"role": "user", "content": content}]
    for turn, messages in enumerate((good, bad, good), 1):
        session.turn, slot = turn, Slot()
        slot.payload, slot.sent, slot.done = {"messages": messages}, 10 * turn, 10 * turn + 1
        worker.add(slot, session)
    worker.note_before([{"messages": bad}])
    take(found, 0, worker)
    reuse = found.reuse()
    assert reuse is not None
    assert [(row.turn, row.requests, row.reusable_bytes) for row in reuse.by_turn] == [(1, 1, 0), (3, 1, 64)]


def test_claims_that_no_prompt_can_have_are_not_believed() -> None:
    """Of a server that tells of endless prompts nothing is counted in tokens, however many requests it answers so."""
    found = PromptsSent()
    huge = (1 << 53) - 1
    rows = [(number, 1, 0, 9, 64, huge, huge, -1, 0, 1, 0) for number in range(1100)]
    found.take(0, *packed(*rows, (9999, 1, 0, 9, 64, 30, 31, -1, 0, 1, 0)))
    reuse = found.reuse()
    assert reuse is not None
    (row,) = reuse.by_turn
    assert (row.requests, row.tokens, row.cached_tokens) == (1101, 0, 0)


def test_no_sum_of_what_is_believed_is_refused() -> None:
    """The most of every count, as often as requests are looked at."""
    found, most = PromptsSent(), TOO_LONG - 1
    found.take(0, *packed((0, 1, 0, 9, most, most, most, -1, 0, 1, 0)))
    reuse = found.reuse()
    assert reuse is not None
    (row,) = reuse.by_turn
    assert (row.prompt_bytes, row.tokens, row.cached_tokens) == (most, most, most)
    counts = {name: value * MOST_REQUESTS for name, value in asdict(row).items() if name != "turn"}
    assert PromptReuse(32, MOST_REQUESTS, (TurnReuse(1, **counts),)).share == 0.0


GOOD = (0, 1, 10, 20, 64, 10, 3, -1, 0, 1, 0)


def packed(*rows: tuple[int, ...]) -> tuple[str, str, list[str]]:
    """Rows as a worker tells them, each with one block, whose sum is 0."""
    lines = b"".join(ROW.pack(*row) for row in rows), bytes(4 * len(rows))
    return b64encode(lines[0]).decode(), b64encode(lines[1]).decode(), []


@pytest.mark.parametrize(
    ("rows", "sums", "stems"),
    [
        (["x"], "", []),
        ("x", "", []),
        ("AAAA", "", []),
        (packed(GOOD)[0], "AAAA", []),
        (packed(GOOD)[0], "!", []),
        (packed(GOOD)[0], None, []),
        (packed(GOOD)[0], "", []),
        packed((0, 0, *GOOD[2:])),
        packed((0, 70_000, *GOOD[2:])),
        packed((*GOOD[:4], -1, *GOOD[5:])),
        packed((*GOOD[:7], 0, *GOOD[8:])),
        packed((*GOOD[:7], -2, *GOOD[8:])),
        packed((*GOOD[:8], -1, 1, 0)),
        packed((*GOOD[:8], 0, 2, -1)),
        packed((*GOOD[:8], 0, -1, 2)),
        (*packed(GOOD)[:2], ["é"]),
    ],
)
def test_a_report_of_anybody_is_refused(rows: Any, sums: Any, stems: Any) -> None:
    with pytest.raises(ValueError, match=r".+"):
        PromptsSent().take(0, rows, sums, stems)


def test_a_worker_looks_at_no_more_than_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, most, known in (("MOST_REQUESTS", 3, 3), ("MOST_BYTES", 32, 1)):
        with monkeypatch.context() as patched:
            patched.setattr(sent_prompts, name, most)
            worker = SentPrompts()
            for number in range(5):
                slot = Slot()
                slot.payload = {"messages": [{"role": "user", "content": "x" * 40}]}
                worker.add(slot, OpenSession(number))
            assert len(b64decode(worker.unreported()["prompt_rows"])) == known * ROW.size


def test_counts_that_exceed_their_whole_are_refused() -> None:
    with pytest.raises(ValueError, match="turn 1"):
        PromptReuse(32, 1, (TurnReuse(1, 1, 10, 11, 0, 0, 0),))
