"""The parts of a run's page below its first screen, each a heading and what belongs to it; empty ones are left out."""

from __future__ import annotations

import json
from itertools import takewhile
from typing import TYPE_CHECKING

from inference_benchmarker.report import client_table
from inference_benchmarker.report.hosts import host_table
from inference_benchmarker.report.instances import instance_lines
from inference_benchmarker.report.server_metrics import metric_lines
from inference_benchmarker.report.sessions import session_lines, turn_table, turns_left_out
from inference_benchmarker.verdict.server import diagnose
from inference_benchmarker.words.text import one_line, shortened
from inference_benchmarker.words.units import NS
from inference_benchmarker.words.wording import duration_text, percent_text, rate_text
from visualization.run_page.figure_types import whole_wave
from visualization.run_page.markup import Markup, element, joined
from visualization.run_page.rerun_command import command
from visualization.run_page.timeline_figures import MOST_SECONDS, is_too_long
from visualization.run_page.waterfall import Step, steps
from visualization.run_page.words import lines, middle_and_tail, table

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from inference_benchmarker.facts.wave_facts import WaveFacts
    from inference_benchmarker.records.record import RequestRecord
    from inference_benchmarker.summary.summary import StageRow, Summary
    from inference_benchmarker.verdict.verdict import Verdict
    from visualization.run_page.requests import RequestFigures

_MOST_ROWS, _LONG, _LONGEST = 50, 80, 500


def section(key: str, title: str, text: str, *pieces: Markup | None) -> Markup | None:
    """A heading, how to read it, and what belongs to it; nothing where that is nothing."""
    kept = [piece for piece in pieces if piece]
    if not kept:
        return None
    return element("section", element("h2", title), element("p", text, class_="text") if text else None, *kept, id=key)


def left_out(summary: Summary) -> Iterator[str]:
    """The sentence on a wave that is too long for its seconds to be drawn."""
    if is_too_long(summary):
        yield (
            f"Seconds are not drawn for a wave longer than {MOST_SECONDS:,} s, such as this one of "
            f"{whole_wave(summary)[1]:,.0f} s: see timeline.csv."
        )


def stages(summary: Summary) -> Markup | None:
    """A table of the stages: their load, and what came of it."""
    rows = [_stage(row) for row in summary.stages[:_MOST_ROWS]]
    head = ["Stage", "from", "rate", "sent", "completed", "success", "in flight at its end", "p50", "p99", "max"]
    return table(head, rows) if rows else None


def _stage(row: StageRow) -> list[str]:
    part = row.summary
    rate = f"{row.from_rps:g}" if row.from_rps == row.to_rps else f"{row.from_rps:g}..{row.to_rps:g}"
    return [
        one_line(row.name, _LONG),
        f"{row.start_s:g} s",
        f"{rate}/s",
        *map(rate_text, (part.rates.sent, part.rates.completed)),
        "-" if part.success_rate is None else percent_text(part.success_rate),
        f"{row.in_flight_end:,}",
        *middle_and_tail(part.distribution("default")),
    ]


def sessions(summary: Summary) -> Markup | None:
    """The sessions by how they ended, and a table of their turns."""
    if summary.sessions is None:
        return None
    texts = [line.strip() for line in takewhile(str.strip, session_lines(summary.sessions, summary.ledger))]
    head, *rows = turn_table(summary.sessions.by_turn) or [[]]
    left = turns_left_out(summary.sessions.by_turn)
    note = element("p", left, class_="note") if left else None
    return element("div", lines(texts), table(head, rows) if rows else None, note, class_="stack")


def errors(summary: Summary) -> Markup | None:
    """Each kind of error with its first texts."""
    rows = [
        [one_line(row.key, _LONG), f"{row.count:,}", f"{row.first_s:.1f} s", one_line(" | ".join(row.texts), _LONGEST)]
        for row in summary.errors[:_MOST_ROWS]
    ]
    errors_table = table(["Error", "count", "first at", "first texts"], rows)
    return element("div", errors_table, class_="texts") if rows else None


def _name(text: str) -> str:
    """A name of the user's, such as a route: many differ at their end alone."""
    return shortened(one_line(text, _LONGEST), _LONG)


def labels(summary: Summary) -> Markup | None:
    """The requests of each label."""
    shown = summary.labels[:_MOST_ROWS]
    streams = any(row.ttft for row in shown)
    rows = [
        [
            _name(row.label),
            *(f"{count:,}" for count in (row.sent, row.ok, row.failed)),
            *(middle_and_tail(row.ttft)[:2] if streams else ()),
            *middle_and_tail(row.latency),
        ]
        for row in shown
    ]
    head = ["Label", "sent", "ok", "failed", *(("TTFT p50", "p99") if streams else ()), "latency p50", "p99", "max"]
    more = len(summary.labels) - _MOST_ROWS
    note = element("p", f"{more:,} more labels are in summary.json.", class_="note") if more > 0 else None
    return element("div", table(head, rows), note) if rows else None


def slowest(found: RequestFigures, facts: WaveFacts) -> Markup | None:
    """The slowest requests by name: the numbers are those in the picture above."""
    rows = [_request(number, record, facts) for number, record in enumerate(found.worst, 1)]
    head = ["", "latency", "response time", "sent at", "request", "worker", "payload", "label", "outcome"]
    columns = [
        column for column in range(len(head)) if any(row[column] for row in rows)
    ]  # not all have payloads, labels
    shown = [[row[column] for column in columns] for row in (head, *rows)]
    return table(shown[0], shown[1:]) if rows else None


def _request(number: int, record: RequestRecord, facts: WaveFacts) -> list[str]:
    payloads = _payloads(facts)
    latency = duration_text((record.done - record.sent) / NS)
    response = duration_text((record.done - record.due) / NS) if facts.open_loop and not record.attempt else "-"
    again = f", attempt {record.attempt + 1}" if record.attempt else ""
    text = record.outcome if record.error is None else f"{record.outcome}: {record.error}"
    return [
        str(number),
        f"≥{latency}" if record.outcome == "abandoned" else latency,
        response,
        f"{record.sent / NS:.3f} s",
        f"{record.index:,}{again}",
        str(record.worker),
        "" if payloads is None else f"{(facts.plan.first_payload + record.index) % payloads:,}",
        _name(record.label),
        one_line(text, _LONG),
    ]


def _payloads(facts: WaveFacts) -> int | None:
    """The number of payloads that arrivals took in turn, where it is known."""
    number = facts.environment.get("payloads")
    return number if type(number) is int and number > 0 else None


def waterfall(facts: WaveFacts, summary: Summary, verdict: Verdict) -> Markup | None:
    """The parts of the mean time, one after the other."""
    found = steps(facts, summary, verdict.limited_by)
    total = sum(step.seconds for step in found)
    if not found or not total:
        return None
    rows, begun = [], 0.0
    for step in found:
        rows.append(_step(step, begun, total))
        begun += step.seconds
    return element("div", *rows, class_="waterfall", role="img", aria_label="The parts of the mean time")


def _step(step: Step, begun: float, total: float) -> Markup:
    share = step.seconds / total
    bar = element("i", class_=step.side, style=f"left:{100 * begun / total:.2f}%;width:{max(100 * share, 0.15):.2f}%")
    text = "under 1%" if 0 < share < 0.005 else f"{100 * share:.0f}%"
    value = f"{duration_text(step.seconds)} ({text})"
    return element(
        "div", element("span", step.name), element("span", bar, class_="lane"), element("b", value), class_="step"
    )


def where_text(facts: WaveFacts, summary: Summary) -> str:
    """The sentence above the waterfall."""
    if summary.repeats is not None:  # the response time of an arrival has its earlier attempts, too
        text = "The mean time of successful attempts, from due time to last byte, consists of these parts."
    else:
        is_open = summary.response_time is not None
        whole, begin = ("response time", "due time") if is_open else ("latency", "sending")
        text = f"The mean {whole} of successful requests, from {begin} to last byte, consists of these parts."
    if facts.server_metrics is None:
        text += " --endpoint-config separates the network's time from the endpoint's."
    return text


def server(facts: WaveFacts, verdict: Verdict) -> Markup | None:
    """The server's instances and metrics in words."""
    texts = [*instance_lines(facts, verdict), *metric_lines(facts.server_metrics or ())]
    return lines([line.strip() for line in texts]) if texts else None


def remarks(facts: WaveFacts, summary: Summary, verdict: Verdict) -> Markup | None:
    """The conclusions from the server's metrics beside the client's numbers."""
    rows = [
        element(
            "li",
            element("span", remark.measured + ". ", element("em", remark.advice) if remark.advice else None),
            lines(remark.lines) if remark.lines else None,
        )
        for remark in diagnose(facts, summary, verdict.limited_by)
    ]
    return element("ul", *rows, class_="findings") if rows else None


def client(facts: WaveFacts, summary: Summary) -> Markup | None:
    """Tables of the client: its lag, its workers and its host, or the hosts that sent."""
    pieces: list[Markup] = []
    late = [("Schedule lag", summary.lag), ("Payload building", summary.build)]
    rows = [[name, *middle_and_tail(d)] for name, d in late if d is not None]
    if rows:
        pieces.append(table(["", "p50", "p99", "max"], rows))
    if summary.hosts:
        head, *hosts = host_table(summary.hosts)
        pieces.append(table(head, hosts))
    if facts.workers:
        head, *workers = client_table.worker_rows(facts)
        pieces.append(table(head, workers[:_MOST_ROWS]))
    if facts.host is not None:
        pieces.append(lines([line.strip() for line in client_table.host_lines(facts.host)]))
    return element("div", *pieces, class_="stack") if pieces else None


def plan(facts: WaveFacts) -> Markup:
    """The plan and the environment, as they are stored; folded."""
    again = None if facts.environment.get("headers") else command(facts.plan)  # whose values are stored nowhere
    parts = (("The plan (plan.json)", facts.plan.public_json()), ("The environment", facts.environment))
    folded = [
        element("details", element("summary", title), lines([json.dumps(data, indent=2, ensure_ascii=False)]))
        for title, data in parts
        if data
    ]
    line = None if again is None else joined(element("p", "The same load again:", class_="note"), lines([again]))
    return element("div", line, *folded)


def notes(found: Sequence[str]) -> Iterator[Markup]:
    """Sentences on what of the run could not be read."""
    yield from (element("p", one_line(text, _LONGEST), class_="problem") for text in found)
