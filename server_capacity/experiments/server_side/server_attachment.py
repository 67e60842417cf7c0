"""A search once its waves are over: what the server reported of them joins what was counted. No input or output.

The evidence is changed: stretches in which the server was another one count for nothing from now on. Limits on the
server's metrics get their estimates, and the lowest of all limits holds.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from inference_benchmarker.verdict.server.limit_checks import held_against, is_share
from inference_benchmarker.words.units import NS
from server_capacity.experiments.measurements.completions import Completions, Span
from server_capacity.experiments.measurements.evidence import name_of
from server_capacity.experiments.measurements.generation import generated
from server_capacity.experiments.measurements.limit_rows import limit_row
from server_capacity.experiments.server_side.disturbance import disturbances, voids
from server_capacity.experiments.server_side.server_limits import Measured, resources, server_estimates
from server_capacity.experiments.server_side.server_points import metric_series, stretch_values
from server_capacity.experiments.server_side.utilisation import SAME_RATE
from server_capacity.search.answer import Answer, Interval

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from inference_benchmarker.plan.server_limit import ServerLimit
    from inference_benchmarker.wave.wave import Wave
    from server_capacity.experiments.measurements.confirmed import Confirmed
    from server_capacity.experiments.measurements.evidence import SearchEvidence
    from server_capacity.experiments.measurements.generation import Generated
    from server_capacity.experiments.server_side.server_limits import ServerEstimate
    from server_capacity.results.types.search_waves import LimitRow
    from server_capacity.results.types.server_side import Resources
    from server_capacity.search.user_limits import UserEstimate


@dataclass(frozen=True, slots=True)
class ServerAssessment:
    """The server's side of a search. ``values``: what each metric was in each stretch, by its number."""

    estimates: tuple[ServerEstimate, ...] = ()
    measured: Measured | None = None
    values: dict[int, dict[str, float]] = field(default_factory=dict)

    @property
    def known(self) -> tuple[ServerEstimate, ...]:
        """The estimates that have a result yet."""
        return tuple(each for each in self.estimates if each.estimate.rate is not None or each.estimate.kept_everywhere)

    def resources(self, limits: Sequence[ServerLimit], low: float | None) -> Resources | None:
        """The ``resources`` of capacity.json at the interval's lower end."""
        return None if self.measured is None or low is None else resources(self.measured, limits, low)

    def limit_rows(self, confirmed: Sequence[Confirmed]) -> list[LimitRow]:
        """The rows of capacity.json's ``limits``; the value at the lower end is the last confirmation wave's."""
        return [_limit_row(each, confirmed) for each in self.estimates]


def attach_server_metrics(
    limits: Sequence[ServerLimit], explored: SearchEvidence, confirmed: Sequence[Confirmed]
) -> ServerAssessment:
    """Compare what the server reported of the waves with the limits; stretches that it spoilt are void from now on."""
    waves = all_waves(explored, confirmed)
    metrics = tuple(row for wave in waves for row in wave.server_metrics or ())
    if not metrics and not any(wave.instances for wave in waves):
        return ServerAssessment(tuple(server_estimates(limits, None)))
    steady, loaded = ([of(each.wave) for each in confirmed] for of in (_whole, _loaded))
    spans = spans_of(explored)
    disturbed = disturbances(waves)
    explored.leave_out(voids(spans, disturbed))
    without = tuple(each.span for each in disturbed)
    measured = Measured(metrics, Completions.of(waves), (*spans.values(), *loaded), tuple(steady), without)
    return ServerAssessment(
        tuple(server_estimates(limits, measured)), measured, stretch_values(metric_series(metrics), spans)
    )


def generated_in(explored: SearchEvidence) -> dict[int, Generated]:
    """Each stretch's tokens a second and labels, by its number."""
    spans = spans_of(explored)
    found: dict[int, Generated] = {}
    for wave in explored.waves:
        own = {row.stretch.number: spans[row.stretch.number] for row in explored.rows if row.wave == name_of(wave)}
        found |= generated(wave, own)
    return found


def disturbed_confirmations(confirmed: Sequence[Confirmed], explored: SearchEvidence) -> list[Confirmed]:
    """The confirmation waves; of those that the server spoilt, why they confirm nothing."""
    disturbed = disturbances(all_waves(explored, confirmed))
    spoilt = voids({number: _whole(each.wave) for number, each in enumerate(confirmed)}, disturbed)
    return [
        replace(each, spoilt=spoilt[number], by_server=True) if number in spoilt and not each.spoilt else each
        for number, each in enumerate(confirmed)
    ]


def at_answer(confirmed: Sequence[Confirmed]) -> list[Wave]:
    """The waves at the interval's lower end: the last one that nothing spoilt, and those at about its rate."""
    usable = [each for each in confirmed if not each.spoilt]
    rates = [each.stage.stretch.rate for each in usable]
    return [each.wave for each, rate in zip(usable, rates, strict=True) if abs(rate / rates[-1] - 1) < SAME_RATE]


def with_limits_of_server(answer: Answer, estimates: Iterable[ServerEstimate | UserEstimate]) -> Answer:
    """The answer with limits that steered nothing, as the server's, among the others: the lowest holds.

    Where one of them is unknown, all is: it may be violated before all others.
    """
    listed = list(estimates)
    answer = replace(answer, estimates=(*answer.estimates, *(each.estimate for each in listed)))
    unknown = [each for each in listed if each.estimate.rate is None and not each.estimate.kept_everywhere]
    if unknown and answer.outcome in ("found", "at_least"):
        first = unknown[0]
        why = f"{first.limit.expression}: {first.reason}"
        return replace(answer, outcome="cannot_tell", rate=None, interval=None, at_least=None, reason=why)
    reached = [each for each in listed if each.estimate.rate is not None and each.estimate.interval is not None]
    return answer if not reached else _lowest(answer, min(reached, key=lambda each: each.estimate.rate or 0.0))


def _lowest(answer: Answer, first: ServerEstimate | UserEstimate) -> Answer:
    """The answer, or that of such a limit where it is lower, with the lower ends of both intervals."""
    rate, interval, name = first.estimate.rate, first.estimate.interval, first.limit.expression
    assert rate is not None
    assert interval is not None
    known = answer.rate if answer.outcome == "found" else answer.at_least
    if known is None or answer.interval is None:
        if answer.outcome != "at_least" or rate > (known or 0.0):
            return answer
        return replace(answer, outcome="found", rate=rate, interval=interval, limit=name, at_least=None, reason="")
    if rate <= 0:
        return replace(answer, outcome="not_kept", rate=None, interval=None, limit=name, reason=first.reason)
    low, high = min(interval.low, answer.interval.low), min(interval.high, answer.interval.high)
    holds = rate < known
    return replace(
        answer,
        rate=min(rate, known),
        interval=Interval(low, max(high, low)),
        limit=name if holds else answer.limit,
    )


def all_waves(explored: SearchEvidence, confirmed: Sequence[Confirmed]) -> list[Wave]:
    """The search's waves, each once, in their order."""
    return list({name_of(wave): wave for wave in (*explored.waves, *(each.wave for each in confirmed))}.values())


def spans_of(explored: SearchEvidence) -> dict[int, Span]:
    """When each stretch was, on the wall clock, by its number."""
    starts = {name_of(wave): wave.window.start_unix_ns / NS for wave in explored.waves}
    first: dict[str, float] = {}
    for row in explored.rows:
        first.setdefault(row.wave, row.stretch.start_s)
    found = {}
    for row in explored.rows:
        moved = starts[row.wave] - first[row.wave]
        found[row.stretch.number] = Span(row.stretch.start_s + moved, row.stretch.end_s + moved)
    return found


def _whole(wave: Wave) -> Span:
    interval = wave.interval()
    return Span(interval.start, interval.end)


def _loaded(wave: Wave) -> Span:
    """The time of load, of which gauges and rates are."""
    interval = wave.interval().under_load
    return Span(interval.start, interval.end)


def _limit_row(found: ServerEstimate, confirmed: Sequence[Confirmed]) -> LimitRow:
    usable = [each for each in confirmed if not each.spoilt]
    held = held_against(found.limit, usable[-1].wave.server_metrics or ()) if usable else None
    known = held is not None and held.kept is not None
    unit = "share" if held is not None and is_share(found.limit, held.metric) else found.limit.unit
    return limit_row(
        found.limit.expression,
        f"server.{found.limit.name}",
        found.estimate,
        bound=found.limit.limit,
        unit=unit,
        reason=found.reason,
        at_low=held.in_unit if held is not None and known and held.side is None else None,
        at_low_text=held.text if held is not None and known else "",
    )
