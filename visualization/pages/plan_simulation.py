"""The simulation of a plan on its page: the course of each policy, and the policies compared."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inference_benchmarker.words.wording import (
    duration_text,
    length_text,
    money_text,
)
from visualization.figures.figures import (
    Axis,
    Bar,
    Bars,
    Curves,
    Line,
    Points,
    Section,
    Table,
    TableRow,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from server_capacity.results.types.plan import EndpointPlan, Minute, Run, Simulation

SIMULATED = (
    " The charts over time are simulated: they show what the policy's rules do with this load, not what AWS can "
    "provide."
)


def simulated(plan: EndpointPlan, first: int, suffix: str, of: str) -> Iterator[Section]:
    """The load over time, and what each policy makes of it; ``first``: the number of the load among the runs."""
    simulation = plan.simulation
    if simulation is None:
        return
    runs = simulation.runs
    if not runs:
        yield Section(f"load{suffix}", f"The load{of}", f"Not simulated: {simulation.reason}.", ())
        return
    limit, routing = simulation.limit, simulation.routing.replace("_", " ")
    text = (
        f"Simulated for {length_text(60 * runs[0].minutes)} with {routing} routing; a new instance serves "
        f"{length_text(simulation.instance_start_s)} after it was requested. Limit: {limit}."
    )
    yield Section(f"load{suffix}", f"The load over time{of}", text, tuple(_over_time(plan, simulation, first)))
    yield Section(
        f"policies{suffix}",
        f"Policies{of}",
        f"Over: requests that violate {limit}; minutes over: those in which more of them do than the limit allows.",
        tuple(chart for chart in _compared(runs, first + 1) if chart.measured),
        tables=(_policies(runs, first + 1, plan.cost.currency if plan.cost else "USD"),),
    )


def _over_time(plan: EndpointPlan, simulation: Simulation, first: int) -> Iterator[Curves]:
    low, runs = plan.per_instance.low, simulation.runs
    numbered = list(enumerate(runs, first + 1))[::-1]  # the planned one is drawn over the others
    held = tuple(Line(at, "", _course(run, lambda row: low * row.instances), stepped=True) for at, run in numbered)
    load = Line(first, "", _course(runs[0], lambda row: row.rate))
    yield Curves("Load, and what the instances are certain to serve", _MINUTES, Axis("Rate", "/s"), (*held, load))
    counts = tuple(Line(at, "", _course(run, lambda row: row.instances), stepped=True) for at, run in numbered)
    yield Curves("Instances", _MINUTES, Axis("Instances", ""), counts)
    over = tuple(Line(at, "", _course(run, lambda row: 100 * row.share_over)) for at, run in numbered)
    allowed = _level("allowed", 100 * simulation.allowed, runs[0])
    yield Curves("Requests over the limit", _MINUTES, Axis("Requests over the limit", "%"), (*over, allowed))
    times = tuple(
        Line(at, "", _course(run, lambda row: None if row.p99 is None else 1e3 * row.p99)) for at, run in numbered
    )
    yield Curves("p99", _MINUTES, Axis("p99", "ms"), (*times, _level("limit", 1e3 * simulation.bound, runs[0])))


_MINUTES = Axis("Since its start", "min")


def _course(run: Run, of: Callable[[Minute], float | None]) -> Points:
    return tuple((float(row.minute), of(row)) for row in run.timeline)


def _level(name: str, value: float, run: Run) -> Line:
    rows = run.timeline
    return Line(None, name, tuple((row.minute, value) for row in (rows[0], rows[-1])))


def _policies(runs: Sequence[Run], first: int, currency: str) -> Table:
    priced = any(run.cost for run in runs)
    head = ("Policy", "over", "minutes over", "refused", "instances", "at most", "p99", "instance hours")
    rows = [
        TableRow(
            (
                run.policy,
                f"{100 * run.share_over:.3g}%",
                f"{run.minutes_over:.3g}",
                count_text(run.refused),
                f"{run.mean_instances:.3g}",
                f"{run.most_instances:.3g}",
                "-" if run.p99 is None else duration_text(run.p99),
                f"{run.instance_hours:,.1f}",
                *((money_text(run.cost.total, currency) if run.cost else "-",) if priced else ()),
            ),
            run=at,
            strong=at == first,
        )
        for at, run in enumerate(runs, first)
    ]
    return Table("", (*head, *(("cost",) if priced else ())), tuple(rows))


def _compared(runs: Sequence[Run], first: int) -> Iterator[Bars]:
    found: tuple[tuple[str, str, Callable[[Run], float]], ...] = (
        ("Requests over the limit", "%", lambda run: 100 * run.share_over),
        ("Minutes over the limit", "min", lambda run: run.minutes_over),
        ("Instance hours", "h", lambda run: run.instance_hours),
    )
    for title, unit, value in found:
        yield Bars(title, title, unit, "plan", {"": tuple(Bar(value(run)) for run in runs)}, first)


def count_text(value: float | None) -> str:
    """A number without decimals; "-" where there is none."""
    return "-" if value is None else f"{value:,.0f}"
