"""Turns a summary into Markdown, for a pull request or an issue: verdict, times, limits, errors, findings. Pure."""

from __future__ import annotations

import re
from itertools import takewhile
from typing import TYPE_CHECKING

from inference_benchmarker.report.headline import headline
from inference_benchmarker.report.hosts import host_table
from inference_benchmarker.report.sessions import session_lines, turn_table, turns_left_out
from inference_benchmarker.report.user_metrics import user_metric_rows
from inference_benchmarker.summary.time_table import time_rows, value_text
from inference_benchmarker.verdict.limit_rows import limit_rows
from inference_benchmarker.verdict.server import diagnose
from inference_benchmarker.words.text import one_line, plain
from inference_benchmarker.words.wording import rate_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from inference_benchmarker.facts.wave_facts import WaveFacts
    from inference_benchmarker.summary.statistics.distribution import Distribution
    from inference_benchmarker.summary.summary import Summary
    from inference_benchmarker.verdict.finding import Finding
    from inference_benchmarker.verdict.verdict import Verdict

_MOST_ROWS, _LONG = 20, 300
_SIGNS = re.compile(r"([\\`*_\[\]<>#|~$])")
_MARKS = {"invalid": "✗", "missed": "✗", "warning": "!"}


def to_markdown(facts: WaveFacts, summary: Summary, verdict: Verdict, run_dir: Path | None = None) -> str:
    """The report of a wave as Markdown; what stands in it of others is no mark-up and mentions nobody."""
    sections = (
        [f"### {escaped(headline(summary, verdict))}"],
        [_what_it_was(facts, summary, run_dir)],
        table(time_rows(summary.distribution)),
        table([[escaped(cell) for cell in row] for row in user_metric_rows(summary.metrics)]),
        _sessions(summary),
        _turns(summary),
        _limits(facts, summary),
        _labels(summary),
        _errors(summary),
        table(_hosts(summary)),
        [
            f"- {_MARKS[each.severity]} **{escaped(each.code)}**: {escaped(_finding_text(each))}"
            for each in _first(verdict)
        ],
        [f"- → {escaped(remark.text)}" for remark in diagnose(facts, summary, verdict.limited_by)],
    )
    return "\n\n".join("\n".join(map(plain, lines)) for section in sections if (lines := list(section))) + "\n"


def in_a_fence(text: str) -> str:
    """A text of many lines as a block of Markdown that shows it as it is."""
    fence = "`" * (1 + max(map(len, re.findall("`{2,}", text)), default=2))
    return f"{fence}text\n{text.rstrip()}\n{fence}\n"


def literal(text: str) -> str:
    """A name or path of the user as Markdown's code, in which nothing is mark-up or a mention."""
    text = plain(text)
    if not text.strip():
        return ""
    fence = "`" * (1 + max(map(len, re.findall("`+", text)), default=0))
    room = " " if "`" in text else ""
    return f"{fence}{room}{text}{room}{fence}"


def escaped(text: str) -> str:
    """A sentence in which names of others may stand: its signs stay signs, and it mentions nobody."""
    return _SIGNS.sub(r"\\\1", plain(text)).replace("&", "&amp;").replace("@", "@<!-- -->")


def table(rows: Sequence[Sequence[str]], *, left: int = 1) -> Iterator[str]:
    """A header and its rows, whose cells are Markdown already; the first ``left`` columns to the left."""
    if rows:
        yield _row(rows[0])
        yield _row(["---" if column < left else "---:" for column in range(len(rows[0]))])
        yield from map(_row, rows[1:])


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _what_it_was(facts: WaveFacts, summary: Summary, run_dir: Path | None) -> str:
    """Its name, its load, and the rates that came of it."""
    called = facts.plan.name or ("" if run_dir is None else run_dir.name)
    endpoint = facts.plan.endpoint or facts.environment.get("file") or ""
    rates = summary.rates
    load = f"{facts.load_text}, {summary.duration_s:.1f} s"
    text = f"{rate_text(rates.sent)} sent, {rate_text(rates.completed)} completed"
    return " · ".join(
        filter(
            None, (*(literal(one_line(name, _LONG)) for name in (called, str(endpoint))), escaped(load), escaped(text))
        )
    )


def _sessions(summary: Summary) -> Iterator[str]:
    """The sessions by how they ended."""
    lines = takewhile(str.strip, session_lines(summary.sessions, summary.ledger))
    return (f"- {escaped(line.strip())}" for line in lines)


def _turns(summary: Summary) -> Iterator[str]:
    """A table of the turns of sessions, and how many it leaves out."""
    rows = () if summary.sessions is None else summary.sessions.by_turn
    yield from table(turn_table(rows))
    if left := turns_left_out(rows):
        yield from ("", left)


def _limits(facts: WaveFacts, summary: Summary) -> Iterator[str]:
    rows = [[_in_cell(row.expression), escaped(row.measured), row.mark] for row in limit_rows(facts, summary)]
    return table([["Limit", "Measured", ""], *rows] if rows else [], left=3)


def _labels(summary: Summary) -> Iterator[str]:
    labels = summary.labels[:_MOST_ROWS]
    streams = any(row.ttft for row in labels)
    rows = [
        [
            _in_cell(row.label),
            *(f"{count:,}" for count in (row.sent, row.ok, row.failed)),
            *(_middle_and_tail(row.ttft) if streams else ()),
            *_middle_and_tail(row.latency),
        ]
        for row in labels
    ]
    head = ["Label", "sent", "ok", "failed", *(("TTFT p50", "TTFT p99") if streams else ()), "p50", "p99"]
    return table([head, *rows] if rows else [])


def _middle_and_tail(d: Distribution | None) -> list[str]:
    return ["-", "-"] if d is None else [value_text(d, d.percentile(percent)) for percent in (50, 99)]


def _errors(summary: Summary) -> Iterator[str]:
    rows = [
        [_in_cell(row.key), _in_cell("".join(row.texts[:1])), f"{row.count:,}", f"{row.first_s:.1f} s"]
        for row in summary.errors[:_MOST_ROWS]
    ]
    return table([["Error", "its first text", "count", "first at"], *rows] if rows else [], left=2)


def _hosts(summary: Summary) -> list[list[str]]:
    rows = host_table(summary.hosts)
    return [*rows[:1], *([_in_cell(name), *map(escaped, rest)] for name, *rest in rows[1:])]


def _in_cell(text: str) -> str:
    """A foreign text in a cell: even in code, a bar would end it."""
    return literal(one_line(text, _LONG)).replace("|", "\\|")


def _first(verdict: Verdict) -> Sequence[Finding]:
    return verdict.findings[:_MOST_ROWS]


def _finding_text(finding: Finding) -> str:
    return one_line(f"{finding.compared}. {finding.advice}", 4 * _LONG)
