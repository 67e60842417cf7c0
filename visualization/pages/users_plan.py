"""A plan for users -> figures: replicas by routing, what they serve of the cache, the cost, and what is left of one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inference_benchmarker.words.wording import metric_text, money_text, percent_text
from visualization.figures.figures import Bar, Bars, Card, Figures, Level, Section, Table, TableRow, Tile
from visualization.pages.series import made_plain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from server_capacity.results.types.users_plan import ReplicaOption, Routing, UsersPlan

_ROUTINGS: dict[Routing, str] = {"prefix_aware": "prefix-aware routing", "random": "random routing"}
_FOOTER = (
    "The plan uses the lower end of the capacity's interval. Open conversations: arrivals x length (Little's law)."
)


def users_figures(plan: UsersPlan, lead: str, rows: Sequence[Sequence[str]], notes: Sequence[str]) -> Figures:
    """Everything that the page shows. ``rows``: the table of the report, whose head is the first one."""
    head, *others = rows
    strong = next(each.name for each in plan.options if each == plan.chosen)
    table = Table(
        "",
        tuple(head),
        tuple(TableRow(tuple(row), strong=row[0].removesuffix(" ←") == strong) for row in others),
        tuple(notes),
    )
    shown = [each for each in plan.options if each.share == plan.chosen.share]
    cards = [Card(_name(plan, each), "VALID", False, False, (), (), (), (), ()) for each in shown]
    figures = Figures(
        runs=tuple(cards),
        sections=(_routings(plan, shown),),
        title="Plan for users",
        lead=lead,
        tiles=tuple(_tiles(plan)),
        answer=(table,),
        footer=_FOOTER,
    )
    plain: Figures = made_plain(figures)
    return plain


def _name(plan: UsersPlan, option: ReplicaOption) -> str:
    return _ROUTINGS[option.routing] + (" ✓" if option.routing == plan.routing else "")


def _tiles(plan: UsersPlan) -> Iterator[Tile]:
    chosen, demand, cost = plan.chosen, plan.demand, plan.cost
    yield Tile(
        "Replicas", f"{chosen.replicas:,}", f"with {_ROUTINGS[plan.routing]}, each at {percent_text(chosen.share)}"
    )
    peak = f"open at a time in the busiest hour, {metric_text(demand.peak_per_s)}/s begin"
    yield Tile("Conversations", metric_text(demand.peak_open), peak)
    if cost is not None and plan.cost_per_user_month is not None and plan.cost_per_conversation is not None:
        of_one = money_text(plan.cost_per_conversation, cost.currency)
        beside = f"{of_one} per conversation, {money_text(cost.hour, cost.currency)} per hour"
        yield Tile("Cost per user and month", money_text(plan.cost_per_user_month, cost.currency), beside)
    if plan.lost.holds:
        yield Tile("With one lost", "limit met", f"by the other {plan.lost.replicas:,}", "good")
    else:
        yield Tile("With one lost", "limit missed", f"{chosen.with_spare:,} replicas would meet it", "bad")


def _routings(plan: UsersPlan, shown: Sequence[ReplicaOption]) -> Section:
    """The replicas by routing, what each of them serves, and what it finds in the cache."""
    unit = "open conversations" if plan.unit == "users" else "conversations/s"
    load = Level(plan.measured.low, f"{metric_text(plan.measured.low)}", word="measured")

    def bars(value: Callable[[ReplicaOption], float | None]) -> dict[str, tuple[Bar, ...]]:
        return {"": tuple(Bar(value(each)) for each in shown)}

    charts = (
        Bars("Replicas", "Replicas", "", "plan", bars(lambda each: each.replicas)),
        Bars("Per replica", "One replica", unit, "plan", bars(lambda each: each.per_replica), 0, (load,)),
        Bars("Hits", "Input tokens in the cache", "%", "plan", bars(lambda each: _percent(each.hit_rate))),
    )
    text = "Replicas at the planned share, what each is certain to serve, and the input tokens that its cache has."
    return Section("routing", "Routing", text, tuple(each for each in charts if each.measured))


def _percent(share: float | None) -> float | None:
    return None if share is None else 100 * share
