"""What a turn of a session costs a worker above a request, and the memory of a session that is open."""

from __future__ import annotations

import gc
import heapq
import random
import tracemalloc
from statistics import median
from time import monotonic_ns, thread_time_ns
from typing import TYPE_CHECKING, Any

from inference_benchmarker.engine.endpoint.factories_file import Endpoint
from inference_benchmarker.engine.worker.conversations import Conversations
from inference_benchmarker.engine.worker.in_flight import OpenSession, Slot
from inference_benchmarker.engine.worker.sent_prompts import SentPrompts
from inference_benchmarker.engine.worker.sessions import Sessions, invoke_sessions
from inference_benchmarker.plan.pacing import Arrival
from inference_benchmarker.plan.turn import Turn
from inference_benchmarker.records.batch_writer import BatchWriter
from inference_benchmarker.records.pieces import Answer
from tests.performance.figures import Figure, Program, below

if TYPE_CHECKING:
    from collections.abc import Iterator

TURNS = 5
PAIRS = 41
OPEN = 1000
LOOKED_AT = 20  # sessions at a time


def invoke(_: Any) -> bytes:
    """An endpoint that answers at once."""
    return b"ok"


def session(_: int) -> Iterator[Turn]:
    """A session without anything of its own."""
    for _ in range(TURNS):
        yield Turn(1, think_s=0.0)


REQUESTS = Endpoint(invoke=invoke, payloads=[1, 2, 3])
SESSIONS = Endpoint(invoke=invoke, session=session)


def made(endpoint: Endpoint, arrivals: int) -> tuple[Sessions, Slot, BatchWriter]:
    """A worker's part without its processes: a slot that takes so many arrivals, and the turns that follow them."""
    writer = BatchWriter()
    sessions = invoke_sessions(endpoint, 1, lambda *_: None, writer)
    sessions.requests.t0 = monotonic_ns()
    dues: list[tuple[int, int]] = []
    if isinstance(sessions, Conversations):
        sessions.later = lambda due, number: heapq.heappush(dues, (due, number))
    slot, left = Slot(), iter(range(arrivals))

    def take() -> Arrival | None:
        index = next(left, None)
        if index is not None:
            return Arrival(index, 0)
        if dues and arrivals != OPEN:
            due, number = heapq.heappop(dues)
            return Arrival(number, due)
        return None

    slot.take = take
    return sessions, slot, writer


def cost_us(endpoint: Endpoint, requests: int) -> float:
    """CPU time for each request of this thread, with its packing."""
    sessions, slot, writer = made(endpoint, requests // (TURNS if endpoint.session else 1))
    gc.collect()
    gc.disable()
    begun = thread_time_ns()
    sessions.serve(slot)
    writer.take({})
    spent = thread_time_ns() - begun
    gc.enable()
    return spent / requests / 1000


def pairs_us(requests: int) -> list[tuple[float, float]]:
    """A request and a turn, one right after the other: what else the machine does meets both alike."""
    part = max(requests // PAIRS // TURNS, 1) * TURNS
    return [(cost_us(REQUESTS, part), cost_us(SESSIONS, part)) for _ in range(PAIRS)]


def looks_us(asked: int, answered: int) -> list[float]:
    """CPU time of the look at a turn's prompt and its answer, of so many words each, with its packing."""
    chosen, found = random.Random(1), []
    for _ in range(PAIRS):
        prompts, turns = SentPrompts(), list[tuple[Slot, OpenSession]]()
        for number in range(LOOKED_AT):
            messages: list[dict[str, str]] = []
            open_one = OpenSession(number)
            for _ in range(TURNS):
                messages = [*messages, {"role": "user", "content": text(chosen, asked)}]
                slot, answer = Slot(), text(chosen, answered)
                slot.payload, slot.answer = {"model": "m", "messages": messages}, Answer(answer, (answer,))
                turns.append((slot, open_one))
                messages = [*messages, {"role": "assistant", "content": answer}]
        gc.collect()
        gc.disable()
        begun = thread_time_ns()
        for slot, open_one in turns:
            prompts.add(slot, open_one)
        prompts.unreported()
        found.append((thread_time_ns() - begun) / len(turns) / 1000)
        gc.enable()
    return found


def text(chosen: random.Random, words: int) -> str:
    """Words of five characters."""
    return " ".join(f"{chosen.randrange(100_000):05}" for _ in range(words))


def open_bytes() -> float:
    """The memory of a session that thinks after its first turn."""
    sessions, slot, writer = made(SESSIONS, OPEN)
    gc.collect()
    tracemalloc.start()
    sessions.serve(slot)
    writer.take({})
    gc.collect()
    size = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return size / OPEN


def figures(seconds: float) -> list[Figure]:
    """Of ``seconds`` x 20,000 requests of each kind; the medians of pairs."""
    pairs = pairs_us(int(seconds * 20_000))
    return [
        Figure("a request, for a worker", median(request for request, _ in pairs), "us"),
        Figure("a turn, above that", median(turn - request for request, turn in pairs), "us", below(3)),
        Figure("the look at a prompt of 50 more words, 20 answered", median(looks_us(50, 20)), "us"),
        Figure("the look at a prompt of 200 more words, 128 answered", median(looks_us(200, 128)), "us"),
        Figure("a session that is open", open_bytes() / 1000, "kB", below(10)),
    ]


PROGRAM = Program("turns of sessions", figures, seconds=10, quick_seconds=2)

if __name__ == "__main__":
    PROGRAM.main()
