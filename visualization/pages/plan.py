"""A fleet plan -> figures: how many instances, what they cost, what holds with one lost, and the load through them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from inference_benchmarker.data.json_file import read_json
from inference_benchmarker.words.wording import (
    duration_text,
    length_text,
    metric_text,
    money_text,
    pluralize,
    supported,
)
from visualization.figures.figures import (
    Axis,
    Bar,
    Bars,
    Card,
    Curves,
    Figures,
    Line,
    Points,
    Row,
    Section,
    Table,
    Tile,
)
from visualization.figures.runs import below, number
from visualization.pages.series import made_plain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    Plan = Mapping[str, Any]

PLAN_FILE = "fleet_plan.json"
_FOOTER = "Everything follows from the lower end of the capacity's interval."
_SIMULATED = (
    " What is drawn over time is simulated: what the policy's rules do with this load, not what AWS has to give."
)
_REGISTER = "aws application-autoscaling register-scalable-target --cli-input-json file://{}"
_POLICY = "aws application-autoscaling put-scaling-policy --cli-input-json file://{}"
_ALARM = "aws cloudwatch put-metric-alarm --cli-input-json file://{}"
_COMMANDS = (
    ("The recommended policy", {"scalable_target.json": _REGISTER, "scaling_policy.json": _POLICY}),
    ("Or in its place: by requests in flight", {"scaling_policy_concurrency.json": _POLICY}),
    ("Or: by CPU", {"scaling_policy_cpu.json": _POLICY}),
    (
        "Or: in steps, with the alarms, once they have the policy's ARN",
        {"scaling_policy_step.json": _POLICY, "alarm_out.json": _ALARM, "alarm_in.json": _ALARM},
    ),
    ("On Kubernetes one of these", {"hpa.yaml": "kubectl apply -f {}", "keda.yaml": "kubectl apply -f {}"}),
)
_LOAD = "The load"


def plan_figures(folder: Path) -> Figures:
    """Everything that the page of a plan's folder shows. Raises BenchmarkError for a damaged file."""
    data = read_json(folder / PLAN_FILE)
    plans = [plan for plan in data.get("endpoints") or [] if isinstance(plan, dict)]
    several = len(plans) > 1
    cards: list[Card] = []
    sections: list[Section] = []
    for place, plan in enumerate(plans, 1):
        suffix, of = (f"_{place}", f" of {plan.get('name')}") if several else ("", "")
        if several:
            sections.append(Section(f"options{suffix}", str(plan.get("name")), "", (), tables=(_options(plan),)))
        sections += _simulated(plan, len(cards), suffix, of)
        cards += _cards(plan, f"{plan.get('name')}: " if several else "")
    figures = Figures(
        runs=tuple(cards),
        sections=(*sections, *_files(data)),
        title="Fleet plan",
        lead=str(data.get("headline") or ""),
        tiles=tuple(_tiles(data, plans)),
        answer=(_with_rest(data, _options(plans[0])) if len(plans) == 1 else _mix(data, plans),),
        footer=_FOOTER + (_SIMULATED if cards else ""),
    )
    plain: Figures = made_plain(figures)
    return plain


def _tiles(data: Plan, plans: Sequence[Plan]) -> Iterator[Tile]:
    """The number, the cost, and what is left with one lost."""
    total = sum(number(plan, "chosen", "instances") or 0 for plan in plans)
    if not plans:
        return
    chosen, kind = plans[0]["chosen"], below(plans[0], "endpoint", "instance_type")
    if len(plans) > 1:
        yield Tile("Instances", f"{total:,.0f}", f"of {len(plans)} endpoints")
    else:
        use = f"each at {chosen['share']:.1%} of its limit at most".replace(".0%", "%")
        yield Tile("Instances", f"{total:,.0f}", f"of {kind}, {use}" if kind else use)
        yield Tile("With scaling", f"{chosen['minimum']:,} to {chosen['maximum']:,}", _aim(chosen))
    yield _cost_tile(data)
    lost = [plan["chosen"]["with_one_lost"] for plan in plans]
    if all(each["holds"] for each in lost):
        share = max(each["share_of_low"] for each in lost)
        yield Tile("With one lost", "holds", f"the rest run at {share:.0%} of what they are sure to hold", "good")
    else:
        spare = sum(plan["chosen"]["with_spare"] for plan in plans)
        yield Tile("With one lost", "does not hold", f"{pluralize(spare, 'instance', 'instances')} would", "bad")


def _aim(chosen: Plan) -> str:
    aim = number(chosen, "invocations_per_instance")
    return "" if aim is None else f"aiming at {aim:,.0f} requests a minute of each"


def _cost_tile(data: Plan) -> Tile:
    cost = data.get("cost")
    if not isinstance(cost, dict):
        return Tile("Cost", "no price", "--price TYPE=USD gives one")
    currency = str(cost.get("currency") or "USD")
    month, million = money_text(cost["month"], currency), cost.get("per_million")
    beside = f", {money_text(million, currency)} a million requests" if million is not None else ""
    return Tile("Cost of an hour", money_text(cost["hour"], currency), f"{month} a month{beside}")


def _options(plan: Plan) -> Table:
    """The uses at which instances may run, side by side."""
    options = [option for option in plan.get("options") or [] if isinstance(option, dict)]
    priced = any(option.get("cost") for option in options)
    head = ("Run at", "share", "instances", "with spare", "each a minute")
    rows = [
        Row(
            (
                str(option["name"]),
                f"{option['share']:.1%}".replace(".0%", "%"),
                *(_count(option.get(key)) for key in ("instances", "with_spare", "invocations_per_instance")),
                *(_amounts(option.get("cost")) if priced else ()),
            ),
            strong=option["name"] == plan["chosen"]["name"],
        )
        for option in options
    ]
    notes = (_measured(plan), *map(str, plan.get("remarks") or []), *_priced(plan.get("cost")))
    return Table("", (*head, *(("an hour", "a month", "a million") if priced else ())), tuple(rows), notes)


def _count(value: Any) -> str:
    return "-" if value is None else f"{value:,.0f}"


def _amounts(cost: Any) -> Iterator[str]:
    for key in ("hour", "month", "per_million"):
        value = number(cost, key)
        yield "-" if value is None else money_text(value, str(cost.get("currency") or "USD"))


def _measured(plan: Plan) -> str:
    one = plan["per_instance"]
    count, low = pluralize(one["measured_at"], "instance", "instances"), one["low"]
    count = ("Measured on " if one.get("counted", True) else "Taken as ") + count
    if one.get("at_least") or one["high"] is None:
        limits = " and ".join(["", *map(str, plan.get("limits") or [])]).replace(" and ", " of ", 1)
        return f"{count}: each held {metric_text(low)}/s and no limit gave out{limits}."
    rate, lower, higher = (supported(one[key], one["high"] - low) for key in ("rate", "low", "high"))
    limit = f" of {plan.get('limit') or ''}".removesuffix(" of ").replace(" of keeps up", ", which it keeps up with")
    ends = f"(95%: {lower} to {higher}){limit}"
    return f"{count}: {rate}/s each {ends}. The plan rests on the lower end, {lower}/s."


def _priced(cost: Any) -> Iterator[str]:
    if isinstance(cost, dict) and cost.get("instance_type"):
        beside = ", ".join(str(cost[key]) for key in ("region", "source", "date") if cost.get(key))
        price = f"{cost['price_per_hour']:g} {cost.get('currency') or 'USD'}"
        yield f"{price} an hour of {cost['instance_type']} ({beside}); a month has 730 hours."


def _with_rest(data: Plan, table: Table) -> Table:
    """The table with what is to be known of the quota and of refusals."""
    return Table(table.title, table.head, table.rows, (*table.notes, *_rest(data)))


def _rest(data: Plan) -> Iterator[str]:
    for row in data.get("quota") or []:
        enough = "it is enough." if row["enough"] else f"it is not enough. Ask for more: {row['increase']}"
        yield f"Quota of {row['name']}: {row['limit']:,}, of {row['needed']:,} needed: {enough}"
    yield from (f"✗ {sentence}" for sentence in data.get("refused") or [])


def _mix(data: Plan, plans: Sequence[Plan]) -> Table:
    """A row for each endpoint that has a plan."""
    rows = []
    for plan in plans:
        chosen, kind = plan["chosen"], below(plan, "endpoint", "instance_type")
        hour = next(_amounts(plan.get("cost")))
        cells = str(plan["name"]), str(kind or "-"), f"{metric_text(plan['target_rps'])}/s", _count(chosen["instances"])
        rows.append(Row((*cells, f"{chosen['minimum']:,} to {chosen['maximum']:,}", hour)))
    head = ("Endpoint", "type", "target", "instances", "with scaling", "an hour") if rows else ()
    return Table("", head, tuple(rows), tuple(_rest(data)))


def _runs(plan: Plan) -> list[Plan]:
    found = below(plan, "simulation", "runs")
    return [run for run in found if isinstance(run, dict)] if isinstance(found, list) else []


def _cards(plan: Plan, before: str) -> list[Card]:
    """The load and each policy, which lines and bars are of."""
    names = [_LOAD, *(str(run["policy"]) for run in _runs(plan))] if _runs(plan) else []
    return [Card(before + name, "VALID", False, False, (), (), (), (), ()) for name in names]


def _simulated(plan: Plan, first: int, suffix: str, of: str) -> Iterator[Section]:
    """The load over time, and what each policy makes of it; ``first``: the number of the load among the runs."""
    runs, simulation = _runs(plan), plan.get("simulation")
    if not runs:
        if isinstance(simulation, dict):
            yield Section(f"load{suffix}", f"The load{of}", f"Not simulated: {simulation.get('reason')}.", ())
        return
    assert isinstance(simulation, dict)
    limit, routing = simulation["limit"], str(simulation["routing"]).replace("_", " ")
    text = (
        f"Simulated for {length_text(60 * runs[0]['minutes'])} with {routing} routing; a new instance serves "
        f"{length_text(simulation['instance_start_s'])} after it was asked for. Limit: {limit}."
    )
    yield Section(f"load{suffix}", f"The load over time{of}", text, tuple(_over_time(plan, runs, simulation, first)))
    yield Section(
        f"policies{suffix}",
        f"Policies{of}",
        f"Over: requests that miss {limit}; minutes over: in which more of them do than may.",
        tuple(chart for chart in _compared(runs, first + 1) if chart.measured),
        tables=(_policies(runs, first + 1),),
    )


def _over_time(plan: Plan, runs: Sequence[Plan], simulation: Plan, first: int) -> Iterator[Curves]:
    low = plan["per_instance"]["low"]
    numbered = list(enumerate(runs, first + 1))[::-1]  # the planned one is drawn over the others
    held = tuple(Line(at, "", _course(run, "instances", low), stepped=True) for at, run in numbered)
    load = Line(first, "", _course(runs[0], "rate"))
    yield Curves("Load, and what the instances are sure to hold", _MINUTES, Axis("Rate", "/s"), (*held, load))
    counts = tuple(Line(at, "", _course(run, "instances"), stepped=True) for at, run in numbered)
    yield Curves("Instances", _MINUTES, Axis("Instances", ""), counts)
    over = tuple(Line(at, "", _course(run, "share_over", 100)) for at, run in numbered)
    allowed = _level("allowed", 100 * simulation["allowed"], runs[0])
    yield Curves("Requests over the limit", _MINUTES, Axis("Requests over the limit", "%"), (*over, allowed))
    times = tuple(Line(at, "", _course(run, "p99", 1e3)) for at, run in numbered)
    yield Curves("p99", _MINUTES, Axis("p99", "ms"), (*times, _level("limit", 1e3 * simulation["bound"], runs[0])))


_MINUTES = Axis("Since its start", "min")


def _course(run: Plan, key: str, factor: float = 1.0) -> Points:
    rows = ((number(row, "minute"), number(row, key)) for row in run["timeline"])
    return tuple((at, None if value is None else factor * value) for at, value in rows if at is not None)


def _level(name: str, value: float, run: Plan) -> Line:
    rows = run["timeline"]
    return Line(None, name, tuple((row["minute"], value) for row in (rows[0], rows[-1])))


def _policies(runs: Sequence[Plan], first: int) -> Table:
    priced = any(run.get("cost") for run in runs)
    head = ("Policy", "over", "minutes over", "refused", "instances", "at most", "p99", "instance hours")
    rows = [
        Row(
            (
                str(run["policy"]),
                f"{100 * run['share_over']:.3g}%",
                f"{run['minutes_over']:.3g}",
                _count(run["refused"]),
                f"{run['mean_instances']:.3g}",
                f"{run['most_instances']:.3g}",
                "-" if run["p99"] is None else duration_text(run["p99"]),
                f"{run['instance_hours']:,.1f}",
                *((_total(run),) if priced else ()),
            ),
            run=at,
            strong=at == first,
        )
        for at, run in enumerate(runs, first)
    ]
    return Table("", (*head, *(("cost",) if priced else ())), tuple(rows))


def _total(run: Plan) -> str:
    cost = run.get("cost")
    return money_text(cost["total"], str(cost.get("currency") or "USD")) if isinstance(cost, dict) else "-"


def _compared(runs: Sequence[Plan], first: int) -> Iterator[Bars]:
    found: tuple[tuple[str, str, Callable[[Plan], float | None]], ...] = (
        ("Requests over the limit", "%", lambda run: 100 * run["share_over"]),
        ("Minutes over the limit", "min", lambda run: number(run, "minutes_over")),
        ("Instance hours", "h", lambda run: number(run, "instance_hours")),
    )
    for title, unit, value in found:
        yield Bars(title, title, unit, "plan", {"": tuple(Bar(value(run)) for run in runs)}, first)


def _files(data: Plan) -> Iterator[Section]:
    """The files to apply, with the command line of each."""
    files = [str(name) for name in data.get("files") or []]
    told = [
        line for folder in dict.fromkeys(name.rpartition("/")[0] for name in files) for line in _apply(folder, files)
    ]
    if told:
        text = "Run in the folder of this page. Of the scaling policies choose one: several on one variant compete."
        missing = tuple(map(str, data.get("missing") or []))
        tables = (Table("", (), (), missing),) if missing else ()
        yield Section("files", "Files to apply", text, (), tables=tables, commands=tuple(told))


def _apply(folder: str, files: Sequence[str]) -> Iterator[str]:
    """The lines for the files of one endpoint, which may lie in a folder of its own."""
    for title, commands in _COMMANDS:
        named = {f"{folder}/{name}".lstrip("/"): command for name, command in commands.items()}
        if lines := [command.format(name) for name, command in named.items() if name in files]:
            yield f"# {title}{f' ({folder})' if folder else ''}"
            yield from lines
