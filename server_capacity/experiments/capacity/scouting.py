"""A few sessions before a search: how long one takes, so how long the search must be, and how sure it will be.

Of requests, too: those whose answers are generated are like sessions of one turn.
"""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING

from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.plan.load import Bounds, ClosedLoop
from inference_benchmarker.words.wording import duration_text, length_text, number_text
from server_capacity.experiments.measurements.question import SessionShape
from server_capacity.search.settings import (
    LEAST_LENGTHS,
    LONGEST_TIME_S,
    OF_LENGTHS,
    RECOVERY_LENGTHS,
    USUAL_LENGTHS,
    Settings,
    half_width,
    time_for,
)

if TYPE_CHECKING:
    from inference_benchmarker.plan.plan import WavePlan
    from inference_benchmarker.summary.summary import Summary
    from inference_benchmarker.wave.wave import Wave
    from server_capacity.experiments.capacity.waves import Waves
    from server_capacity.experiments.measurements.question import Question
    from server_capacity.search.settings import SessionTimes

AT_ONCE, NUMBER = 2, 8
_WIDER = ", and about twice that if sessions differ much in length or a cache is nearly full"
WAITS = 0.4
"""The part of an answer's time before its first token, from which a request waits rather than being generated."""
MOST_S = Decimal(900)


def scout(question: Question, waves: Waves) -> tuple[Question, Wave]:
    """The question with the shape of a session and the time for it, and the wave that showed it.

    Requests have a shape where their answers are generated. KeyboardInterrupt where it was interrupted; BenchmarkError
    where no session ended, or the time given is too short.
    """
    what = "requests" if question.sessions is None else "sessions"
    waves.say(f"Sending {NUMBER} {what}, {AT_ONCE} at a time, to see how long one takes.")
    wave = waves.warm(_plan(question, waves))
    if wave.interrupted:
        raise KeyboardInterrupt("Interrupted before the search began; nothing was measured.")
    if question.sessions is None:
        return replace(question, alone=_request(question, wave)), wave
    shape = _shape(wave)
    settings = replace(question.settings, time_s=_time_s(question, shape))
    waves.say(_forecast(question, shape, settings.time_s))
    return replace(question, sessions=shape, settings=settings), wave


def _request(question: Question, wave: Wave) -> SessionShape | None:
    """None where no limit is on tokens, and answers are not generated for many at a time: they wait in a queue."""
    latency = wave.summary.latency
    if not question.is_of_streams and (latency is None or not _is_generated(wave.summary)):
        return None
    if latency is None:
        raise _none_completed(wave, "requests")
    tpot = wave.summary.tpot
    return SessionShape(max(latency.mean, 0.001), token_s=0.0 if tpot is None else tpot.mean)


def _is_generated(seen: Summary) -> bool:
    """Tells whether answers are streams, or whole ones that report output tokens.

    A server that generates one at a time is none: the other request waits, and its first token comes late.
    """
    if seen.ttft is None or seen.latency is None:
        return bool(seen.tokens and seen.tokens.tokens_out)
    return seen.ttft.mean < WAITS * seen.latency.mean


def _shape(wave: Wave) -> SessionShape:
    found = wave.summary.sessions
    if found is None or not found.completed or found.duration is None or found.turns is None:
        raise _none_completed(wave, "sessions")
    return SessionShape(max(found.duration.mean, 0.001), found.turns.mean)


def _none_completed(wave: Wave, what: str) -> BenchmarkError:
    errors = f": {wave.summary.errors[0].key}" if wave.summary.errors else f" within {length_text(float(MOST_S))}"
    return BenchmarkError(f"None of the first {what} was completed{errors}.", "Try one: `benchmark check`.")


def _time_s(question: Question, shape: SessionShape) -> float | None:
    """The seconds of load; None where a precision ends the search."""
    asked, least_s = question.settings.time_s, LEAST_LENGTHS * shape.seconds
    if asked is None and question.settings.precision is not None and least_s <= LONGEST_TIME_S:
        return None
    if asked is None and least_s > LONGEST_TIME_S:
        raise BenchmarkError(f"A session takes {length_text(shape.seconds)}: {_advice(shape)}")
    if asked is not None and asked < least_s:
        lengths = f"{asked / shape.seconds:.3g} lengths of a session of {duration_text(shape.seconds)}"
        raise BenchmarkError(f"--time {asked:g} is {lengths}, which tells nothing: {_advice(shape)}")
    return asked or time_for(shape.seconds)


def _advice(shape: SessionShape) -> str:
    least, usual = (f"{lengths * shape.seconds:.0f}" for lengths in (LEAST_LENGTHS, USUAL_LENGTHS))
    width = f"{half_width(OF_LENGTHS):.0%}"
    return f"give --time {least} at least, or --time {usual} for an interval of about ±{width}{_WIDER}."


def _forecast(question: Question, shape: SessionShape, time_s: float | None) -> str:
    turns = number_text(shape.turns, 1.0)
    first = f"With few sessions open, a session takes {duration_text(shape.seconds)} on average ({turns} turns)."
    if time_s is None:
        goes_on = f"The search goes on until its interval is {question.settings.precision:.0%} wide, or for an hour"
        return f"{first} {goes_on}. Then it sends too many sessions, to see whether the endpoint recovers."
    lengths, times = time_s / shape.seconds, Settings(time_s=time_s).times_of_sessions(shape.seconds)
    width = f"{half_width(times.search_s / shape.seconds):.0%}"
    load = f"The search sends load for {length_text(time_s)}, which is {lengths:.0f} session durations"
    text = f"{first} {load}: expect an interval of about ±{width}{_WIDER}. {_on_recovery(times, time_s, shape)}"
    if lengths < USUAL_LENGTHS / 2:
        text += f" For ±{half_width(OF_LENGTHS):.0%} give --time {USUAL_LENGTHS * shape.seconds:.0f}."
    return text


def _on_recovery(times: SessionTimes, time_s: float, shape: SessionShape) -> str:
    if not times.recovers:
        least = f"--time {RECOVERY_LENGTHS * shape.seconds:.0f}"
        return f"That is too short to see whether the endpoint recovers from overload, which {least} would show."
    last, more = (length_text(round(seconds)) for seconds in (time_s - times.search_s, times.most_s - time_s))
    return (
        f"In the last {last} it sends too many sessions, and then fewer: if the endpoint does not recover from that, "
        f"the search takes up to {more} longer."
    )


def _plan(question: Question, waves: Waves) -> WavePlan:
    """So many sessions, a few at once; nobody limits what the first ones take."""
    return replace(
        question.plan.with_workers(1),
        load=ClosedLoop(AT_ONCE, question.think),
        bounds=Bounds(MOST_S, NUMBER),
        max_in_flight=None,
        slos=(),
        server_limits=(),
        goodput=(),
        success_threshold=0.0,
        output_dir=waves.folder,
        name=question.named("first requests" if question.sessions is None else "first sessions"),
    )
