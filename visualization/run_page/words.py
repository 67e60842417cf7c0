"""A run in words above its pictures: verdict, load, the numbers to know first, limits and findings. Pure."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from inference_benchmarker.plan.load import OpenLoop
from inference_benchmarker.report.headline import OUTCOMES, headline
from inference_benchmarker.report.user_metrics import user_metric_rows
from inference_benchmarker.summary.time_table import has_enough, time_rows, value_text
from inference_benchmarker.verdict.limit_rows import limit_rows
from inference_benchmarker.words.text import one_line
from inference_benchmarker.words.units import NS
from inference_benchmarker.words.wording import duration_text, length_text, percent_text, pluralize, rate_text
from visualization.run_page.markup import Markup, element, joined

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from inference_benchmarker.facts.wave_facts import WaveFacts
    from inference_benchmarker.summary.statistics.distribution import Distribution
    from inference_benchmarker.summary.summary import Summary
    from inference_benchmarker.verdict.finding import Finding
    from inference_benchmarker.verdict.verdict import Verdict

_LONG, _LONGEST = 200, 1_000
_FLAG = re.compile(r"(--[a-z][a-z-]*)")
_PERCENTILE = re.compile(r"p\d+(\.\d+)?")
_MARKS = {"invalid": "✗", "missed": "✗", "warning": "!"}


def tone_of(verdict: Verdict) -> str:
    """The gravity of the verdict, as the page colours it."""
    if not verdict.valid:
        return "bad"
    missed = verdict.pending or verdict.interrupted or any(each.severity == "missed" for each in verdict.findings)
    return "warn" if missed else "good"


def lead(summary: Summary, verdict: Verdict) -> Markup:
    """The verdict and its cause: the line that a report begins with."""
    word, _, rest = headline(summary, verdict).partition(":")
    codes = [each.code for each in verdict.findings if each.severity == "missed"]
    is_stated = not codes or word.startswith(OUTCOMES)
    outcome = "" if is_stated else ", aborted" if "aborted" in codes else ", limit missed"
    return element(
        "p", element("b", word + outcome), element("span", rest.strip()), class_=f"verdict-line {tone_of(verdict)}"
    )


def what_it_was(facts: WaveFacts, summary: Summary) -> list[str]:
    """The load, whom it was sent to, from what, and when."""
    plan, load = facts.plan, facts.plan.load
    what = "session" if facts.has_sessions else "request"
    arrivals = f"{load.arrivals} arrivals" if isinstance(load, OpenLoop) and not load.replay else ""
    planned = [] if summary.planned_s is None else [f"for {_length(summary.planned_s)}"]
    if plan.bounds.num_requests is not None:
        planned.append(pluralize(plan.bounds.num_requests, what, f"{what}s"))
    endpoint = plan.endpoint
    file = plan.factories_file or plan.locust_file
    start = datetime.fromtimestamp(facts.window.start_unix_ns / NS, UTC)
    texts = [
        " ".join(filter(None, (facts.load_text, ", ".join(planned)))),
        arrivals if isinstance(load, OpenLoop) else "closed loop",
        pluralize(plan.workers, "worker", "workers") + (f" on {len(plan.hosts.hosts)} hosts" if plan.hosts else ""),
        f"warm-up {_length(float(plan.warmup_s))}" if plan.warmup_s else "",
        f"endpoint {endpoint}" if endpoint else "",
        f"{file.parent.name}/{file.name}" if file else "",
        f"{start:%Y-%m-%d %H:%M:%S} UTC",
    ]
    return [one_line(each, _LONG) for each in texts if each]


def _length(seconds: float) -> str:
    """Some seconds as they were given, and longer times as people tell them."""
    return f"{seconds:.4g} s" if seconds < 300 else length_text(seconds)


def tiles(facts: WaveFacts, summary: Summary) -> Iterator[Markup]:
    """The numbers to know first, each with what it is compared with."""
    rates, ledger = summary.rates, summary.ledger
    target = f"{rate_text(rates.target, 6)} target, " if rates.target is not None else ""
    yield _tile("Completed", rate_text(rates.completed), f"{target}{rate_text(rates.sent)} sent")
    share = summary.success_rate
    if share is not None:
        others = ((ledger.failed, "failed"), (ledger.abandoned, "abandoned"), (ledger.dropped, "never sent"))
        note = ", ".join(f"{count:,} {word}" for count, word in others if count) or pluralize(
            ledger.ok, "request", "requests"
        )
        tone = "bad" if share < facts.plan.success_threshold else "good" if share == 1 else ""
        yield _tile("Success", percent_text(share), note, tone)
    main = summary.distribution("default")
    if main is not None:
        name = "Latency" if summary.response_time is None else "Response time"
        yield _tile(f"{name} p50", value_text(main, main.percentile(50)), f"mean {duration_text(main.mean)}")
        tail = f"p99.9 {value_text(main, main.percentile(99.9))}, " if has_enough(main.count, 99.9) else ""
        rest = f"{tail}max {value_text(main, main.maximum)}"
        yield _tile(f"{name} p99", value_text(main, main.percentile(99)), rest)
    yield from _stream_tiles(summary)
    if summary.goodput is not None and summary.goodput.rate is not None:
        text = ", ".join(each.limit.expression for each in summary.goodput.limits)
        share_text = percent_text(summary.goodput.share or 0.0)
        yield _tile("Goodput", rate_text(summary.goodput.rate), f"{share_text} met {text}")


def _stream_tiles(summary: Summary) -> Iterator[Markup]:
    for name, d in (("TTFT p99", summary.ttft), ("ITL p99", summary.itl)):
        if d is not None:
            yield _tile(name, value_text(d, d.percentile(99)), f"p50 {value_text(d, d.percentile(50))}")
    tokens = summary.tokens
    if tokens is not None and tokens.tokens_out_per_s is not None:
        note = f"{tokens.tokens_out:,} in total" if tokens.tokens_out is not None else ""
        yield _tile("Output tokens", rate_text(float(f"{tokens.tokens_out_per_s:.4g}")), note)  # a tile is narrow


def _tile(name: str, value: str, note: str, tone: str = "") -> Markup:
    return element(
        "div", element("dt", name), element("dd", value), element("p", note) if note else None, class_=f"tile {tone}"
    )


def limits(facts: WaveFacts, summary: Summary, verdict: Verdict) -> Markup | None:
    """Each limit with its mark and what was measured; the missed ones first, with what to do."""
    listed = listed_by_limits(facts, summary, verdict)
    rows = sorted(limit_rows(facts, summary), key=lambda row: row.outcome != "missed")
    lines = [
        element(
            "li",
            element("b", row.mark, class_="badge"),
            element("code", one_line(row.expression, _LONG)),
            element("span", row.measured),
            element("em", *_with_flags(one_line(listed[row.expression].advice, _LONGEST)))
            if row.expression in listed
            else None,
            class_=row.outcome,
        )
        for row in rows
    ]
    return element("ul", *lines, class_="limits") if lines else None


def listed_by_limits(facts: WaveFacts, summary: Summary, verdict: Verdict) -> dict[str, Finding]:
    """The findings that the list of limits has, by the limit, so that none is shown twice."""
    missed = {row.expression for row in limit_rows(facts, summary) if row.outcome == "missed"}
    of_limits = {"slo_missed": "", "success_below_threshold": "success>="}
    found = {f"{of_limits[each.code]}{each.limit}": each for each in verdict.findings if each.code in of_limits}
    return {limit: each for limit, each in found.items() if limit in missed}


def findings(verdict: Verdict, listed: Collection[Finding] = ()) -> Markup | None:
    """Each finding: what was measured, against which limit, and what to do, but for those shown elsewhere."""
    rows = [
        element(
            "li",
            element("b", f"{_MARKS[each.severity]} {each.code}", class_="badge"),
            element(
                "span",
                one_line(f"{each.compared}.", _LONGEST),
                " ",
                element("em", *_with_flags(one_line(each.advice, _LONGEST))),
            ),
            class_=each.severity,
        )
        for each in verdict.findings
        if each not in listed
    ]
    return element("ul", *rows, class_="findings") if rows else None


def _with_flags(text: str) -> Iterator[str]:
    """The text with each flag in it in one piece."""
    for number, piece in enumerate(_FLAG.split(text)):
        yield element("code", piece) if number % 2 else piece


def about_times(summary: Summary) -> str:
    """The sentences that say what the times are."""
    texts = ["Latency is the time that the endpoint took, as seen by the client"]
    if summary.response_time is not None:
        texts.append("Response time starts when a request is due")
    texts.append("99 of 100 requests took at most the p99")
    if summary.ledger.abandoned:
        texts.append("≥ marks a lower bound, because requests were abandoned")
    return " ".join(f"{text}." for text in texts)


def times(summary: Summary) -> Markup | None:
    """The table of times."""
    return headed(time_rows(summary.distribution))


def user_metrics(summary: Summary) -> Markup | None:
    """The table of the values that requests reported of themselves."""
    return headed(user_metric_rows(summary.metrics))


def headed(rows: Sequence[Sequence[str]]) -> Markup | None:
    """The table of a head and its rows; nothing where there are none."""
    return table(rows[0], rows[1:]) if rows else None


def table(head: Sequence[str], rows: Sequence[Sequence[str]], *, left: int = 1) -> Markup:
    """A table whose first ``left`` columns are texts; on a phone, each cell stands beside its column's name."""
    kinds = ["left" if column < left else None for column in range(len(head))]
    names = list(_whole_names(head))
    cells = [
        element("tr", element("th", row[0], class_=kinds[0]),
                *(element("td", cell, class_=kind, data_of=name) for cell, kind, name in
                  zip(row[1:], kinds[1:], names[1:], strict=True)))
        for row in rows
    ]  # fmt: skip
    top = element("tr", *(element("th", name, class_=kind) for name, kind in zip(head, kinds, strict=True)))
    inside = element("table", element("thead", top), element("tbody", *cells))
    return element("div", inside, class_="rows", tabindex=0)


def _whole_names(head: Sequence[str]) -> Iterator[str]:
    """The columns' names with what a bare percentile is of, where the column before it says that: ``TTFT p99``."""
    of = ""
    for name in head:
        what, _, stat = name.rpartition(" ")
        is_percentile = _PERCENTILE.fullmatch(stat) is not None
        of = (what or of) if is_percentile else ""
        yield f"{of} {stat}" if is_percentile and of else name


def middle_and_tail(d: Distribution | None) -> list[str]:
    """p50, p99 and the longest; - where there is none."""
    return ["-"] * 3 if d is None else [value_text(d, v) for v in (d.percentile(50), d.percentile(99), d.maximum)]


def lines(texts: Sequence[str]) -> Markup:
    """Lines of a report as they are."""
    shown = (joined(line) for text in texts for line in text.split("\n"))
    return element("pre", Markup("\n".join(shown)))
