"""A plan in words: its first line, the options side by side, and what follows from them. Pure.

What is read here is the object of ``fleet_plan.json``.
"""

from __future__ import annotations

from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING

from inference_benchmarker.system.packaged import shown_path
from inference_benchmarker.words.text import one_line, plain
from inference_benchmarker.words.wording import INDENT, aligned, duration_text, length_text, money_text
from server_capacity.planning.measured import COMPONENT
from server_capacity.planning.remarks import instances_text
from server_capacity.planning.totals import bounds_text, headline, limit_alone, load_text
from server_capacity.planning.users.text import options_rows, sentences
from server_capacity.results.text.headline import between, rate_text
from server_capacity.results.types.bounds import Interval
from server_capacity.results.types.price import NO_PRICE
from server_capacity.search.limit_bracket import KEEPS_UP

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from server_capacity.results.types.bounds import Cost, Endpoint
    from server_capacity.results.types.plan import EndpointPlan, PlanResult, Run, Simulation
    from server_capacity.results.types.users_plan import UsersPlan

WIDTH = 100
_LEAST_COLUMNS = 6  # of a table: the hour's price is the sixth


def to_text(data: PlanResult, folder: str = "", width: int = WIDTH) -> str:
    """The whole report: the answer first and last, tables of at most ``width`` columns but for names.

    Columns of money that have no room are left out.
    """
    width = min(width, WIDTH)
    answer = [headline(data)]
    several = len(data.endpoints) > 1
    sections = [
        answer,
        list(_mix(data)) if several else [],
        [] if data.users is None else list(_users(data.users, width)),
        *(list(_endpoint(each, width, several=several)) for each in data.endpoints),
        list(_afterwards(data, width)),
        [*answer, *([f"Folder: {folder}"] if folder else [])],
    ]
    return "\n\n".join("\n".join(map(plain, lines)) for lines in sections if lines) + "\n"


def _mix(data: PlanResult) -> Iterator[str]:
    """A row for each endpoint."""
    rows = [["Endpoint", "type", "target", "instances", "at the limit", "scaling", "per hour"]]
    for each in data.endpoints:
        chosen, kind = each.chosen, (each.endpoint and each.endpoint.instance_type) or "-"
        counts = f"{chosen.instances:,}", f"{limit_alone(each):,}", bounds_text(chosen)
        rows.append([each.name, kind, load_text(each.target_rps), *counts, _an_hour(each.cost)])
    yield from aligned(rows)


def _an_hour(cost: Cost | None) -> str:
    return "-" if cost is None else money_text(cost.hour, cost.currency)


def _endpoint(plan: EndpointPlan, width: int, *, several: bool) -> Iterator[str]:
    if several:
        yield f"{plan.name}: {instances_text(plan.chosen.instances)} for {load_text(plan.target_rps)}"
    yield from _fitting(list(_options(plan)), width)
    yield ""
    for sentence in (_measured(plan), *_requests(plan), *plan.remarks, *_money(plan.cost)):
        yield from _folded(sentence, width)
    yield from _simulated(plan.simulation, width)


def _users(plan: UsersPlan, width: int) -> Iterator[str]:
    yield from aligned(list(options_rows(plan)), width)
    yield ""
    for sentence in sentences(plan):
        yield from _folded(sentence, width)


def _fitting(rows: Sequence[Sequence[str]], width: int) -> list[str]:
    """A table without as many of its last columns, of what money there is by the month and so on, as have no room."""
    lines = list(aligned(rows))
    while max(map(len, lines)) > width and len(rows[0]) > _LEAST_COLUMNS:
        rows = [row[:-1] for row in rows]
        lines = list(aligned(rows))
    return lines


def _options(plan: EndpointPlan) -> Iterator[list[str]]:
    priced = any(option.cost for option in plan.options)
    per = "$/" if _in_dollars(plan) else "per "
    money = [f"{per}hour", f"{per}month", f"{per}1M req"] if priced else []
    yield ["Run at", "share", "instances", "with spare", "req/min each", *money]
    for option in plan.options:
        mark = " ←" if option.name == plan.chosen.name else ""
        counts = [_count(count) for count in (option.instances, option.with_spare)]
        each = option.invocations_per_instance
        yield [
            option.name + mark,
            f"{option.share:.1%}".replace(".0%", "%"),
            *counts,
            "-" if each is None else f"{each:,.15g}",
            *(_amounts(option.cost) if priced else []),
        ]


def _in_dollars(plan: EndpointPlan) -> bool:
    return all(option.cost.currency == "USD" for option in plan.options if option.cost)


def _amounts(cost: Cost | None) -> list[str]:
    if cost is None:
        return ["-", "-", "-"]
    return [
        "-" if amount is None else money_text(amount, cost.currency)
        for amount in (cost.hour, cost.month, cost.per_million)
    ]


def _count(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"


def _measured(plan: EndpointPlan) -> str:
    """The rate that the plan rests on: the interval's lower end."""
    one = plan.per_instance
    low = rate_text(one.low)
    counted = ("Measured on " if one.counted else "Taken as ") + instances_text(one.measured_at)
    if one.at_least or one.high is None:
        return f"{counted}: each served {low}, and no limit was violated."
    interval = Interval(one.low, one.high)
    rate = rate_text(one.rate, interval)
    ends = between(interval, "/s")
    return f"{counted}: {meets_text(plan)} {rate} (95%: {ends}). The plan uses the lower end, {low}."


def _requests(plan: EndpointPlan) -> Iterator[str]:
    """The requests that the search sent, where more than its file says what they were."""
    sent = plan.requests
    if sent is None or not (sent.settings or sent.flags or sent.headers):
        return
    settings = [f"{name}={value}" for name, value in sent.settings.items()]
    flags = [f"{flag} {text}" for flag, texts in sent.flags.items() for text in texts]
    flags += [f"--header {name}" for name in sent.headers]
    file = "" if plan.factories_file is None else f" with {shown_path(Path(plan.factories_file))}"
    yield f"Searched{file}: {', '.join(one_line(each) for each in (*settings, *flags))}."


def meets_text(plan: EndpointPlan) -> str:
    """The words before the rate of an instance: what it meets up to there."""
    return "each keeps up with" if plan.limit == KEEPS_UP else f"each meets {plan.limit or 'every limit'} up to"


def _money(cost: Cost | None) -> Iterator[str]:
    if cost is not None:
        beside = ", ".join(filter(None, (cost.region, cost.source, cost.date)))
        price = f"{cost.price_per_hour:g} {cost.currency}"
        yield f"{price} per hour of {cost.instance_type} ({beside}); a month has 730 hours."


def _simulated(found: Simulation | None, width: int) -> Iterator[str]:
    """A row for each policy: how it kept the limit under the load, and with how many instances."""
    if found is None:
        return
    yield ""
    if not found.runs:
        yield from _folded(f"Not simulated: {found.reason}.", width)
        return
    minutes = found.runs[0].minutes
    routing, start = found.routing.replace("_", " "), length_text(found.instance_start_s)
    yield from _folded(
        f"Simulated for {length_text(60 * minutes)} of the load with {routing} routing; a new instance serves after "
        f"{start}. Over: requests that violate {found.limit}; minutes: those in which too many do.",
        width,
    )
    yield from _fitting(list(_policies(found.runs)), width)


def _policies(runs: Sequence[Run]) -> Iterator[list[str]]:
    priced = any(run.cost for run in runs)
    yield ["Policy", "over", "minutes", "refused", "instances", "at most", "p99", *(["per hour"] if priced else [])]
    for run in runs:
        yield [
            run.policy,
            f"{100 * run.share_over:.3g}%",
            f"{run.minutes_over:.3g}",
            f"{run.refused:,}",
            f"{run.mean_instances:.3g}",
            f"{run.most_instances:.3g}",
            "-" if run.p99 is None else duration_text(run.p99),
            *([f"{run.cost.hour:,.2f}" if run.cost else "-"] if priced else []),
        ]


def _afterwards(data: PlanResult, width: int) -> Iterator[str]:
    """Refusals, the quota, prices that are missing, and the files."""
    for sentence in data.refused:
        yield from _folded(f"✗ {sentence}", width)
    if data.users is not None and data.cost is None:
        yield from _folded(_of_others(data.priced, [data.users.endpoint]) or NO_PRICE, width)
    if data.endpoints and data.cost is None:
        yield from _folded(_no_cost(data), width)
    for row in data.quota or []:
        enough = "it is enough." if row.enough else "it is not enough. Request an increase:"
        yield from _folded(f"Quota of {row.name}: {row.limit:,}, and {row.needed:,} are needed: {enough}", width)
        if not row.enough:
            yield f"{2 * INDENT}{row.increase}"  # one line, to be pasted
    if data.files:
        yield from _folded(f"Files: {', '.join(data.files)}", width)
    for sentence in data.missing:
        yield from _folded(sentence, width)


def _no_cost(data: PlanResult) -> str:
    """The reason why there is no cost of all together."""
    endpoints = data.endpoints
    currencies = sorted({each.cost.currency for each in endpoints if each.cost})
    priceless = [each for each in endpoints if not each.cost]
    if not priceless:
        return f"There is no total cost: prices are in {' and '.join(currencies)}."
    if all((each.endpoint and each.endpoint.kind) == COMPONENT for each in priceless):
        return "No cost of copies of an inference component: you pay for the instances below them."
    return _of_others(data.priced, [each.endpoint for each in priceless]) or NO_PRICE


def _of_others(priced: Sequence[str], priceless: Sequence[Endpoint | None]) -> str:
    """The reason why the prices that were given are of none of the endpoints; empty where none was given."""
    if not priced:
        return ""
    given = f"There is no cost: --price is for {' and '.join(priced)}, and"
    kinds = list(dict.fromkeys((each and each.instance_type) or "" for each in priceless))
    if not all(kinds):
        return f"{given} the search does not know the instance type: give --instance-type {priced[0]}."
    return f"{given} the instances are {' and '.join(kinds)}."


def _folded(sentence: str, width: int) -> list[str]:
    """A sentence within so many columns."""
    return wrap(
        sentence, width, initial_indent=INDENT, subsequent_indent=2 * INDENT, break_long_words=False,
        break_on_hyphens=False,
    )  # fmt: skip
