"""The answer of a search for sessions in other units, from the waves at the interval's lower end. Pure."""

from __future__ import annotations

from statistics import fmean
from typing import TYPE_CHECKING

from inference_benchmarker.plan.load import ClosedLoop
from server_capacity.results.types.capacity import SessionsAt

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from inference_benchmarker.wave.wave import Wave
    from server_capacity.experiments.measurements.question import Question


def sessions_at(question: Question, waves: Sequence[Wave]) -> SessionsAt | None:
    """The load of these waves, on average; None of a search for single requests."""
    if question.sessions is None:
        return None
    found = [_of(wave) for wave in waves]
    names = [name for name in SessionsAt.__slots__ if name != "alone_s"]
    means = {name: _mean(getattr(each, name) for each in found) for name in names}
    return SessionsAt(**means, alone_s=question.sessions.seconds)


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def _of(wave: Wave) -> SessionsAt:
    """By Little's law, open sessions = rate x length; what turns have is scaled to the rate of sessions.

    In a closed loop the number of open sessions is known, and gives the length. The mean of those that the wave began
    would be too short, since the last of them end among ever fewer.
    """
    sessions, tokens = wave.summary.sessions, wave.summary.tokens
    if sessions is None:
        return SessionsAt()
    turns = None if sessions.turns is None else sessions.turns.mean
    rate = sessions.rates.target or sessions.rates.started  # that of a short wave is off by chance
    if isinstance(wave.plan.load, ClosedLoop):
        is_open: float | None = wave.plan.load.concurrency
        length_s = is_open / rate if is_open and rate else None
    else:
        length_s = None if sessions.duration is None else sessions.duration.mean
        is_open = None if length_s is None else rate * length_s
    turn_rate = None if turns is None else rate * turns
    output, given = (None, None) if tokens is None else (tokens.tokens_out_per_request, tokens.tokens_in_per_request)
    given_per_s = None if given is None or turn_rate is None else given.mean * turn_rate
    share = sessions.cached_share
    return SessionsAt(
        sessions_per_s=rate,
        open_sessions=is_open,
        turns_per_s=turn_rate,
        input_tokens_per_s=given_per_s,
        output_tokens_per_s=None if output is None or turn_rate is None else output.mean * turn_rate,
        cached_tokens_per_s=None if share is None or given_per_s is None else share * given_per_s,
        turns=turns,
        length_s=length_s,
        begun_per_s=None if sessions.rates.target is None else sessions.rates.started,
    )
