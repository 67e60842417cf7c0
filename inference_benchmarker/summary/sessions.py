"""Sessions as units of their own, and their requests turn by turn. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from inference_benchmarker.data.decoded import OMITTED
from inference_benchmarker.plan.load import ClosedLoop
from inference_benchmarker.records.columns import ROW_KEY
from inference_benchmarker.records.prompts import TOO_LONG
from inference_benchmarker.records.record import MOST_TURN
from inference_benchmarker.records.user_metrics import CACHED_TOKENS, PREFIX
from inference_benchmarker.summary.completed_rate import CompletedGathered, CompletedSpan
from inference_benchmarker.summary.gathering import gather, summed
from inference_benchmarker.summary.goodput import limit_columns, meets
from inference_benchmarker.summary.rate_window import rate_window
from inference_benchmarker.summary.request_times import request_times
from inference_benchmarker.summary.statistics.grouped_histogram import GroupedHistogram
from inference_benchmarker.summary.statistics.streaming_histogram import StreamingHistogram
from inference_benchmarker.words.units import NS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from inference_benchmarker.facts.prompt_reuse import PromptReuse
    from inference_benchmarker.facts.wave_facts import WaveFacts
    from inference_benchmarker.plan.slo import RequestLimit
    from inference_benchmarker.records.columns import Floats, Int64, Mask, Records
    from inference_benchmarker.summary.statistics.distribution import Distribution

MOST_TURN_ROWS = 100
"""Turns that have a row of their own; what follows is in the row after the last."""


@dataclass(frozen=True, slots=True)
class SessionRates:
    """Sessions a second over the planned duration: planned (in the open loop), begun, completed.

    ``over_s``: the time until the last of a number of them began, where the rates are over that. Then ``started``
    leaves out those that began at once, when no other had ended, and ``completed`` are all that completed in that time,
    whoever began them.
    """

    target: float | None
    scheduled: float | None
    started: float
    completed: float
    over_s: float | None = field(default=None, metadata=OMITTED)


@dataclass(frozen=True, slots=True)
class TurnRow:
    """The requests of one turn, or with ``and_later`` of it and all that follow.

    ``latency`` and ``ttft`` in seconds, as in a summary; ``context_tokens``: the mean of the input tokens that the
    server reported, ``cached_share``: the share of them that it had cached; None without any. ``reusable_share``:
    the share that a cache which forgets nothing would have had; None where no prompt was known.
    """

    turn: int
    sent: int
    ok: int
    failed: int
    latency: Distribution | None
    ttft: Distribution | None
    context_tokens: float | None
    cached_share: float | None
    and_later: bool = False
    reusable_share: float | None = None

    @property
    def name(self) -> str:
        """The number of the turn."""
        return f"{self.turn}+" if self.and_later else str(self.turn)


@dataclass(frozen=True, slots=True)
class Sessions:
    """The sessions of a wave of which something was sent.

    ``duration``: from when a session was due to its last answer, in seconds, of the completed ones; those that were
    ``open`` at the end have their age by then, a lower bound. ``turns``: how many turns each of them had. ``good``:
    those that completed, and all of whose turns were good; None without ``--goodput``. ``cached_share``: of all input
    tokens, those that the server had cached; None without any. ``recorded_reuse``: the share that is in blocks
    which were there before, of the recorded conversations that were sent; None without any. ``reusable_share``: the
    share of the input that was sent or answered before in this wave, as of a turn, by ``known_prompts`` of the answered
    requests; None where no prompt was known.
    """

    started: int
    completed: int
    failed: int
    raised: int
    open: int
    good: int | None
    duration: Distribution | None
    turns: Distribution | None
    rates: SessionRates
    by_turn: tuple[TurnRow, ...]
    cached_share: float | None = None
    recorded_reuse: float | None = None
    reusable_share: float | None = None
    known_prompts: int | None = None

    @property
    def success(self) -> float | None:
        """Completed / started."""
        return self.completed / self.started if self.started else None

    @property
    def completed_share(self) -> float | None:
        """Completed rate over scheduled rate."""
        return self.rates.completed / self.rates.scheduled if self.rates.scheduled else None


def sessions_of(facts: WaveFacts) -> Sessions:
    """The sessions of a wave, or of a part of it that has whole ones."""
    gathered, turns = SessionsGathered(facts.plan.goodput), TurnsGathered(facts.records.metrics)
    gather(facts.records, gathered, turns)
    rates = _rates(facts, gathered)
    talks = facts.plan.conversations
    reuse = None if talks is None or talks.recorded is None else talks.recorded.reuse
    found = gathered.sessions(rates, _with_reuse(turns.rows(), facts.prompts))
    found = replace(found, cached_share=turns.cached_share, recorded_reuse=reuse)
    if facts.prompts is None:
        return found
    return replace(found, reusable_share=facts.prompts.share, known_prompts=facts.prompts.requests)


def _rates(facts: WaveFacts, gathered: SessionsGathered) -> SessionRates:
    """The rates of the sessions; those that began in place of another one, where only so many were to begin."""
    window = rate_window(facts)
    seconds = (window.planned_ns or window.duration_ns) / NS
    begun, several, over_s = gathered.started, [facts.records], None
    if window == facts.window:
        span = CompletedSpan.of(gathered.middle_duration_s, max(begun, 1), gathered.first_open_ns, window)
    else:
        span, over_s = CompletedSpan(0.0, (window.planned_ns or 0) + 1.0, seconds), seconds
        several.append(facts.begun_before)
        if isinstance(facts.plan.load, ClosedLoop) and not facts.plan.warmup_ns:
            begun = max(begun - facts.plan.load.concurrency, 0)
    completed = CompletedGathered(span, ("ended",), _completed)
    for records in several:
        gather(records, completed)
    return SessionRates(
        target=facts.plan.target_rate,
        scheduled=facts.ledger.scheduled / seconds if facts.open_loop and seconds else None,
        started=begun / seconds if seconds else 0.0,
        completed=completed.rate,
        over_s=over_s,
    )


def _with_reuse(rows: tuple[TurnRow, ...], prompts: PromptReuse | None) -> tuple[TurnRow, ...]:
    """The turns with what could have been cached of each."""
    if prompts is None:
        return rows
    return tuple(
        replace(row, reusable_share=prompts.share_of(row.turn, MOST_TURN if row.and_later else row.turn))
        for row in rows
    )


def _completed(part: Records) -> Mask:
    return part.named("ended", "completed")


class SessionsGathered:
    """Gathers sessions; all requests of one are in one part."""

    def __init__(self, limits: Sequence[RequestLimit] = ()) -> None:
        self.columns = (*ROW_KEY, "due", "sent", "done", "outcome", "ended", *(limit_columns(limits) if limits else ()))
        self._limits = limits
        self._counts = dict.fromkeys(("started", "completed", "failed", "raised", "open"), 0)
        self._good = 0
        self._durations, self._turns = StreamingHistogram(), StreamingHistogram()
        self._open_since: list[Int64] = []
        self._open_turns: list[Floats] = []
        self._last_ns = 0

    @property
    def started(self) -> int:
        """Sessions of which something was sent."""
        return self._counts["started"]

    @property
    def middle_duration_s(self) -> tuple[float, float] | None:
        """The two in the middle of the completed ones; None without any."""
        return self._durations.middle

    @property
    def first_open_ns(self) -> int | None:
        """When those that were open at the end were given up; None without any."""
        return self._last_ns if self._counts["open"] else None

    def add(self, part: Records) -> None:
        """As ``Gatherer`` says."""
        index, done = part.int("index"), part.int("done")
        last = np.append(index[1:] != index[:-1], True)[: len(index)]
        begun, turns = part.begun[last], part.int("turn")[last].astype(np.float64)
        ended = {name: part.named("ended", name)[last] for name in ("completed", "failed", "raised")}
        is_open = ~part.has("ended")[last]
        for name, mask in {**ended, "open": is_open, "started": np.ones(len(turns), bool)}.items():
            self._counts[name] += int(np.count_nonzero(mask))
        completed = ended["completed"]
        self._durations.add((done[last] - begun)[completed] / NS)
        self._turns.add(turns[completed])
        self._open_since.append(begun[is_open])
        self._open_turns.append(turns[is_open])
        self._last_ns = max(self._last_ns, int(done.max()))
        if self._limits:
            good = meets(part, self._limits) | ~part.lasts  # an attempt that was tried again is not the user's answer
            all_good = np.logical_and.reduceat(good, np.flatnonzero(np.append(True, last[:-1])))
            self._good += int(np.count_nonzero(all_good & completed))

    def sessions(self, rates: SessionRates, by_turn: tuple[TurnRow, ...]) -> Sessions:
        """All that was gathered, with their rates and turns. Nothing can follow."""
        since = np.concatenate(self._open_since) if self._open_since else np.zeros(0, np.int64)
        open_turns = np.concatenate(self._open_turns) if self._open_turns else np.zeros(0)
        return Sessions(
            **self._counts,
            good=self._good if self._limits else None,
            duration=self._durations.distribution((self._last_ns - since) / NS),
            turns=self._turns.distribution(open_turns),
            rates=rates,
            by_turn=by_turn,
        )


class TurnsGathered:
    """Gathers the requests of each turn."""

    def __init__(self, metrics: Sequence[str]) -> None:
        self._cached = PREFIX + CACHED_TOKENS if CACHED_TOKENS in metrics else None
        cached = () if self._cached is None else (self._cached,)
        self.columns = ("turn", "outcome", "sent", "done", "first_token", "tokens_in", *cached)
        self._counts = {
            name: np.zeros(0, np.int64) for name in ("sent", "ok", "failed", "reported", "tokens", "of_cached")
        }
        self._cached_tokens = np.zeros(0, np.int64)
        self._times = {name: GroupedHistogram() for name in ("latency", "ttft")}
        self._ages: dict[str, list[tuple[Int64, Floats]]] = {name: [] for name in self._times}

    def add(self, part: Records) -> None:
        """As ``Gatherer`` says."""
        place = np.minimum(part.int("turn").astype(np.int64) - 1, MOST_TURN_ROWS)
        ok, abandoned = part.outcome("ok"), part.outcome("abandoned")
        known = part.has("tokens_in") & (part.int("tokens_in") < TOO_LONG)
        for name, mask in {"sent": place >= 0, "ok": ok, "failed": part.outcome("failed"), "reported": known}.items():
            self._count(name, place[mask])
        self._count("tokens", place[known], part.int("tokens_in")[known])
        if self._cached is not None:
            cached = part.metric(CACHED_TOKENS)
            both = known & (cached >= 0) & (cached <= part.int("tokens_in"))  # a part of the prompt; nan is none
            self._count("of_cached", place[both], part.int("tokens_in")[both])
            found = np.bincount(place[both], cached[both]).astype(np.int64)
            self._cached_tokens = summed(self._cached_tokens, found)
        times = request_times(part)
        latency, (ttft, streamed) = times["latency"].values, times["ttft"]
        for name, values, measured, aged in (
            ("latency", latency, ok, abandoned),
            ("ttft", ttft, (ok | abandoned) & streamed, np.zeros(len(ok), bool)),
        ):
            self._times[name].add(place[measured], values[measured])
            self._ages[name].append((place[aged], values[aged]))

    @property
    def cached_share(self) -> float | None:
        """The share of all input tokens that the server had cached, of the requests that reported both."""
        return _share(int(self._cached_tokens.sum()), int(self._counts["of_cached"].sum()))

    def rows(self) -> tuple[TurnRow, ...]:
        """A row for each turn. Nothing can follow."""
        number = len(self._counts["sent"])
        if not number:
            return ()
        counts = {name: summed(found, np.zeros(number, np.int64)) for name, found in self._counts.items()}
        cached = summed(self._cached_tokens, np.zeros(number, np.int64))
        times = {}
        for name, measured in self._times.items():
            places, ages = (np.concatenate(column) for column in zip(*self._ages[name], strict=True))
            times[name] = measured.distributions(number, places, ages)
        return tuple(
            TurnRow(
                turn=place + 1,
                sent=int(counts["sent"][place]),
                ok=int(counts["ok"][place]),
                failed=int(counts["failed"][place]),
                latency=times["latency"][place],
                ttft=times["ttft"][place],
                context_tokens=_share(counts["tokens"][place], counts["reported"][place]),
                cached_share=_share(cached[place], counts["of_cached"][place]),
                and_later=place == MOST_TURN_ROWS,
            )
            for place in range(number)
            if counts["sent"][place]
        )

    def _count(self, name: str, places: Int64, weights: Int64 | None = None) -> None:
        found = np.bincount(places, weights).astype(np.int64)
        self._counts[name] = summed(self._counts[name], found)


def _share(part: int, whole: int) -> float | None:
    return float(part / whole) if whole else None
