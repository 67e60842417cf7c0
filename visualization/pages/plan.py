"""A fleet plan -> figures: how many instances, what they cost, what holds with one lost, and the load through them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inference_benchmarker.words.wording import (
    metric_text,
    money_text,
    pluralize,
    supported,
)
from visualization.figures.figures import (
    Bar,
    Bars,
    Card,
    Figures,
    Level,
    Section,
    Table,
    TableRow,
    Tile,
)
from visualization.pages.plan_simulation import SIMULATED, count_text, simulated
from visualization.pages.series import made_plain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from server_capacity.results.types.bounds import Cost
    from server_capacity.results.types.plan import EndpointPlan, PlanResult

_FOOTER = "The plan uses the lower end of the capacity's interval."
_REGISTER = "aws application-autoscaling register-scalable-target --cli-input-json file://{}"
_POLICY = "aws application-autoscaling put-scaling-policy --cli-input-json file://{}"
_ALARM = "aws cloudwatch put-metric-alarm --cli-input-json file://{}"
_COMMANDS = (
    ("The recommended policy", {"scalable_target.json": _REGISTER, "scaling_policy.json": _POLICY}),
    ("Or instead: by requests in flight", {"scaling_policy_concurrency.json": _POLICY}),
    ("Or: by CPU", {"scaling_policy_cpu.json": _POLICY}),
    (
        "Or: in steps, with the alarms, once they have the policy's ARN",
        {"scaling_policy_step.json": _POLICY, "alarm_out.json": _ALARM, "alarm_in.json": _ALARM},
    ),
    ("On Kubernetes one of these", {"hpa.yaml": "kubectl apply -f {}", "keda.yaml": "kubectl apply -f {}"}),
)
_LOAD = "The load"


def plan_figures(data: PlanResult) -> Figures:
    """Everything that the page of a plan's folder shows."""
    plans = data.endpoints
    several = len(plans) > 1
    cards: list[Card] = []
    sections: list[Section] = []
    for place, plan in enumerate(plans, 1):
        suffix, of = (f"_{place}", f" of {plan.name}") if several else ("", "")
        if several:
            sections.append(Section(f"options{suffix}", plan.name, "", (), tables=(_options(plan),)))
        before = f"{plan.name}: " if several else ""
        sections.append(_capacity(plan, len(cards), suffix, of))
        cards += _option_cards(plan, before)
        sections += simulated(plan, len(cards), suffix, of)
        cards += _cards(plan, before)
    figures = Figures(
        runs=tuple(cards),
        sections=(*sections, *_files(data)),
        title="Fleet plan",
        lead=data.headline,
        tiles=tuple(_tiles(data)),
        answer=(_with_rest(data, _options(plans[0])) if len(plans) == 1 else _mix(data),),
        footer=_FOOTER + (SIMULATED if any(plan.simulation and plan.simulation.runs for plan in plans) else ""),
    )
    plain: Figures = made_plain(figures)
    return plain


def _tiles(data: PlanResult) -> Iterator[Tile]:
    """The number, the cost, and what is left with one lost."""
    plans = data.endpoints
    total = sum(plan.chosen.instances for plan in plans)
    if not plans:
        return
    chosen, kind = plans[0].chosen, _type_of(plans[0])
    if len(plans) > 1:
        yield Tile("Instances", f"{total:,}", f"of {len(plans)} endpoints")
    else:
        use = f"each at most at {chosen.share:.1%} of its limit".replace(".0%", "%")
        yield Tile("Instances", f"{total:,}", f"of {kind}, {use}" if kind else use)
        aim = f"with a target of {chosen.invocations_per_instance:,.0f} requests per minute each"
        yield Tile("With scaling", f"{chosen.minimum:,} to {chosen.maximum:,}", aim)
    if data.cost is not None:
        yield _cost_tile(data.cost)
    lost = [plan.chosen.with_one_lost for plan in plans]
    if all(each.holds for each in lost):
        share = max(each.share_of_low or 0.0 for each in lost)
        yield Tile(
            "With one lost", "limit met", f"the rest run at {share:.0%} of what they are certain to serve", "good"
        )
    else:
        spare = sum(plan.chosen.with_spare for plan in plans)
        yield Tile("With one lost", "limit missed", f"{pluralize(spare, 'instance', 'instances')} would", "bad")


def _type_of(plan: EndpointPlan) -> str | None:
    return None if plan.endpoint is None else plan.endpoint.instance_type


def _cost_tile(cost: Cost) -> Tile:
    million = cost.per_million
    beside = f", {money_text(million, cost.currency)} per million requests" if million is not None else ""
    hour, month = (money_text(amount, cost.currency) for amount in (cost.hour, cost.month))
    return Tile("Cost per hour", hour, f"{month} per month{beside}")


def _options(plan: EndpointPlan) -> Table:
    """The uses at which instances may run, side by side."""
    priced = any(option.cost for option in plan.options)
    head = ("Run at", "share", "instances", "with spare", "req/min each")
    rows = [
        TableRow(
            (
                option.name,
                f"{option.share:.1%}".replace(".0%", "%"),
                *map(count_text, (option.instances, option.with_spare, option.invocations_per_instance)),
                *(_amounts(option.cost) if priced else ()),
            ),
            strong=option.name == plan.chosen.name,
        )
        for option in plan.options
    ]
    notes = (_measured(plan), *plan.remarks, *_priced(plan.cost))
    return Table("", (*head, *(("per hour", "per month", "per 1M req") if priced else ())), tuple(rows), notes)


def _amounts(cost: Cost | None) -> Iterator[str]:
    for value in (None, None, None) if cost is None else (cost.hour, cost.month, cost.per_million):
        yield "-" if cost is None or value is None else money_text(value, cost.currency)


def _measured(plan: EndpointPlan) -> str:
    one = plan.per_instance
    count, low = pluralize(one.measured_at, "instance", "instances"), one.low
    count = ("Measured on " if one.counted else "Taken as ") + count
    if one.at_least or one.high is None:
        limits = " and ".join(["", *plan.limits]).replace(" and ", " of ", 1)
        return f"{count}: each served {metric_text(low)}/s, and no limit was violated{limits}."
    rate, lower, higher = (supported(value, one.high - low) for value in (one.rate, low, one.high))
    ends, limit = f"(95%: {lower} to {higher})", plan.limit or "every limit"
    meets = "each keeps up with" if limit == "keeps up" else f"each meets {limit} up to"
    return f"{count}: {meets} {rate}/s {ends}. The plan uses the lower end, {lower}/s."


def _priced(cost: Cost | None) -> Iterator[str]:
    if cost is not None and cost.instance_type:
        beside = ", ".join(filter(None, (cost.region, cost.source, cost.date)))
        price = f"{cost.price_per_hour:g} {cost.currency}"
        yield f"{price} per hour of {cost.instance_type} ({beside}); a month has 730 hours."


def _with_rest(data: PlanResult, table: Table) -> Table:
    """The table with what is to be known of the quota and of refusals."""
    return Table(table.title, table.head, table.rows, (*table.notes, *_rest(data)))


def _rest(data: PlanResult) -> Iterator[str]:
    for row in data.quota or []:
        enough = "it is enough." if row.enough else f"it is not enough. Request an increase: {row.increase}"
        yield f"Quota of {row.name}: {row.limit:,}, of {row.needed:,} needed: {enough}"
    yield from (f"✗ {sentence}" for sentence in data.refused)


def _mix(data: PlanResult) -> Table:
    """A row for each endpoint that has a plan."""
    rows = []
    for plan in data.endpoints:
        chosen, hour = plan.chosen, next(_amounts(plan.cost))
        cells = plan.name, _type_of(plan) or "-", f"{metric_text(plan.target_rps)}/s", count_text(chosen.instances)
        rows.append(TableRow((*cells, f"{chosen.minimum:,} to {chosen.maximum:,}", hour)))
    head = ("Endpoint", "type", "target", "instances", "with scaling", "per hour") if rows else ()
    return Table("", head, tuple(rows), tuple(_rest(data)))


def _option_cards(plan: EndpointPlan, before: str) -> list[Card]:
    """The uses at which instances may run, which bars are of; a tick stands behind the one that is planned."""
    names = (f"{each.name}{' ✓' if each.name == plan.chosen.name else ''}" for each in plan.options)
    return [Card(before + name, "VALID", False, False, (), (), (), (), ()) for name in names]


def _capacity(plan: EndpointPlan, first: int, suffix: str, of: str) -> Section:
    """The load beside what the instances of each option are certain to serve, whole and with one lost, and the cost."""
    low, load = plan.per_instance.low, (Level(plan.target_rps, f"{metric_text(plan.target_rps)}/s", word="load"),)

    def bars(value: Callable[[int], float]) -> dict[str, tuple[Bar, ...]]:
        counts = [each.with_spare for each in plan.options]
        return {"": tuple(Bar() if count is None else Bar(value(count)) for count in counts)}

    charts = [
        Bars("All instances", "All instances", "/s", "plan", bars(lambda count: low * count), first, load),
        Bars("One lost", "With one instance lost", "/s", "plan", bars(lambda count: low * (count - 1)), first, load),
    ]
    if (cost := plan.cost) is not None:
        hours = tuple(Bar(None if each.cost is None else each.cost.hour) for each in plan.options)
        charts.append(Bars("Cost", "Cost per hour", cost.currency, "plan", {"": hours}, first))
    text = (
        "What the instances of each option are certain to serve, spare ones included; the line is the load. "
        "✓ marks the option that is planned."
    )
    title = "Load and capacity" if cost is None else "Load, capacity and cost"
    return Section(f"capacity{suffix}", f"{title}{of}", text, tuple(each for each in charts if each.measured))


def _cards(plan: EndpointPlan, before: str) -> list[Card]:
    """The load and each policy, which lines and bars are of."""
    runs = plan.simulation.runs if plan.simulation else []
    names = [_LOAD, *(run.policy for run in runs)] if runs else []
    return [Card(before + name, "VALID", False, False, (), (), (), (), ()) for name in names]


def _files(data: PlanResult) -> Iterator[Section]:
    """The files to apply, with the command line of each."""
    files = data.files
    commands = [
        line for folder in dict.fromkeys(name.rpartition("/")[0] for name in files) for line in _apply(folder, files)
    ]
    if commands:
        text = "Run these in the folder of this page. Choose one scaling policy: several on one variant compete."
        missing = tuple(data.missing)
        tables = (Table("", (), (), missing),) if missing else ()
        yield Section("files", "Files to apply", text, (), tables=tables, commands=tuple(commands))


def _apply(folder: str, files: Sequence[str]) -> Iterator[str]:
    """The lines for the files of one endpoint, which may lie in a folder of its own."""
    for title, commands in _COMMANDS:
        named = {f"{folder}/{name}".lstrip("/"): command for name, command in commands.items()}
        if lines := [command.format(name) for name, command in named.items() if name in files]:
            yield f"# {title}{f' ({folder})' if folder else ''}"
            yield from lines
