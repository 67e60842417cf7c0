"""An ordinary wave at one rate, compared with the limits. Pure."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from inference_benchmarker.verdict.server.limit_checks import held_against
from inference_benchmarker.words.wording import duration_text, number_text, percent_text
from server_capacity.results.types.search_waves import Confirmation, ConfirmedLimit
from server_capacity.search.limit_bracket import KEEPS_UP
from server_capacity.search.user_limits import UserLimit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from inference_benchmarker.facts.server_metric import ServerMetric
    from inference_benchmarker.verdict.server.limit_checks import LimitCheck
    from inference_benchmarker.wave.wave import Wave
    from server_capacity.experiments.measurements.counting import Counted
    from server_capacity.experiments.measurements.question import Question
    from server_capacity.search.limits import Limit


Judgement = Literal["holds", "fails", "cannot_tell"]
SURELY_OVER = 0.03
"""By more than this share of its limit a server's metric is over it, whatever the buckets that it was read from."""


@dataclass(frozen=True, slots=True)
class Confirmed:
    """A wave at one rate, compared with the limits.

    ``judgements``: one for each limit, those on values of the user's own last; ``spoilt``: why it does not count, or
    empty (``by_server``: by no fault of this client); ``soak``: it was a long one. ``behind``: the part of its rate
    that the endpoint completed, where it did not keep up; or empty.
    """

    wave: Wave
    stage: Counted
    judgements: tuple[Judgement, ...]
    spoilt: str = ""
    soak: bool = False
    by_server: bool = False
    behind: str = ""

    @property
    def judgement(self) -> Judgement:
        """The worst of them, those on server metrics included; of a wave that is spoilt none counts."""
        if self.spoilt:
            return "cannot_tell"
        order: tuple[Judgement, ...] = ("fails", "cannot_tell", "holds")
        kept_up: Judgement = "fails" if self.behind else "holds"
        return min((*self.judgements, kept_up, *(judgement for _, judgement in self.of_server)), key=order.index)

    @property
    def of_server(self) -> list[tuple[LimitCheck, Judgement]]:
        """The limits on server metrics, compared with what was reported of the wave; none while nothing was."""
        metrics = self.wave.server_metrics
        limits = self.wave.plan.server_limits if metrics is not None else ()
        return [(held, _on_server(held)) for held in (held_against(limit, metrics or ()) for limit in limits)]

    def to_result(self, question: Question) -> Confirmation:
        """Its part of a result."""
        limits = zip(question.every_limit, self.judgements, strict=True)
        return Confirmation(
            directory="" if self.wave.run_dir is None else self.wave.run_dir.path.name,
            rate=self.stage.stretch.rate,
            seconds=self.stage.stretch.seconds,
            soak=self.soak,
            verdict=self.judgement,
            spoilt=self.spoilt,
            spoilt_by=("server" if self.by_server else "client") if self.spoilt else None,
            invalid="" if self.spoilt or self.wave.verdict.valid else _invalid(self.wave),
            exit_code=self.wave.verdict.exit_code,
            limits=[
                *(_limit_row(self.wave, question, limit, each) for limit, each in limits),
                *([ConfirmedLimit(KEEPS_UP, None, self.behind, met=False, verdict="fails")] if self.behind else []),
                *(_server_row(held, judgement) for held, judgement in self.of_server),
            ],
            server_metrics=reported_values(self.wave.server_metrics or ()),
        )


def reported_values(metrics: Sequence[ServerMetric]) -> dict[str, dict[str, float | None]]:
    """The values that are exact; where several rows have one name, as GPUs, each has its labels beside it."""
    names = Counter(row.name for row in metrics)
    titles = {
        id(row): row.name
        if names[row.name] == 1
        else f"{row.name} ({', '.join(map('='.join, row.dimensions.items()))})"
        for row in metrics
    }
    return {titles[id(row)]: {name: row.exact(name) for name in row.statistics} for row in metrics}


def _on_server(held: LimitCheck) -> Judgement:
    """A value that is hardly over its limit may be noise of its few buckets."""
    if held.kept is None:
        return "cannot_tell"
    return "holds" if held.kept else "fails" if held.excess > SURELY_OVER else "cannot_tell"


def _server_row(held: LimitCheck, judgement: Judgement) -> ConfirmedLimit:
    reason = "" if held.kept is not None else held.reason
    value = held.in_unit if held.side is None else None
    return ConfirmedLimit(held.limit.expression, value, held.text, judgement == "holds", judgement, reason)


def _limit_row(wave: Wave, question: Question, limit: Limit | UserLimit, judgement: Judgement) -> ConfirmedLimit:
    """The limit's own value in the wave, as its report has it."""
    slo = next((each for each in question.plan.slos if each.expression == limit.expression), None)
    part = None if slo is None else wave.summary.part(slo)
    value = wave.summary.success_rate if slo is None else None
    if slo is not None and part is not None:
        value = part.measured(slo.metric, slo.stat)
    text = "" if value is None else _limit_text(limit, value)
    return ConfirmedLimit(limit.expression, value, text, judgement == "holds", judgement)


def _limit_text(limit: Limit | UserLimit, value: float) -> str:
    if isinstance(limit, UserLimit):
        return number_text(value, limit.bound)
    return percent_text(value) if limit.bound_s is None else duration_text(value)


def _invalid(wave: Wave) -> str:
    """The findings that make the verdict of the wave itself INVALID."""
    found = (finding for finding in wave.verdict.findings if finding.severity == "invalid")
    return "; ".join(f"{finding.code} {finding.measured}" for finding in found)
