"""Turns a summary into words: aligned text for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inference_benchmarker.facts.client_samples import NOT_MEASURED
from inference_benchmarker.report import client_table
from inference_benchmarker.report.by_name import error_lines, label_lines
from inference_benchmarker.report.headline import headline, outcome
from inference_benchmarker.report.hosts import host_lines
from inference_benchmarker.report.instances import instance_lines
from inference_benchmarker.report.load_sections import load_sections
from inference_benchmarker.report.screen import last_lines, server_in_short
from inference_benchmarker.report.server_metrics import metric_lines, prefix_lines
from inference_benchmarker.report.sessions import session_lines
from inference_benchmarker.report.stages import stage_lines
from inference_benchmarker.report.tokens import token_lines
from inference_benchmarker.report.user_metrics import user_metric_lines
from inference_benchmarker.summary.time_table import (
    time_rows,
)
from inference_benchmarker.verdict.client.bottleneck import CLIENT_CODES, limited_words
from inference_benchmarker.verdict.server import diagnose
from inference_benchmarker.words.text import MOST_PROSE, one_line, plain, wrapped
from inference_benchmarker.words.wording import INDENT as _INDENT
from inference_benchmarker.words.wording import (
    aligned,
    percent_text,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from inference_benchmarker.facts.wave_facts import WaveFacts
    from inference_benchmarker.summary.summary import Summary
    from inference_benchmarker.verdict.finding import Finding
    from inference_benchmarker.verdict.verdict import Verdict

_WIDTH = 80  # of prose where there is no terminal
_TITLE = "RESULTS – InferenceBenchmarker"
_TWO_TIMES = "A request's latency starts when it is sent, its response time when it is due."
_LONG, _LONGEST = 300, 1_000  # of a name or text of somebody else's in a line


def to_text(
    facts: WaveFacts,
    summary: Summary,
    verdict: Verdict,
    run_dir: Path | None = None,
    width: int | None = None,
    *,
    next_commands: Sequence[str] | None = None,
) -> str:
    """The whole report: verdict and cause in one line, the fixed block, the verdict line and the run directory last.

    ``width``: the columns into which tables and prose are fitted. Other statements are a line, however long it is.
    ``next_commands``: of the short report of a terminal, which names them at its end; None: the whole report.
    """
    return (
        client_text(facts, summary, verdict, width, is_short=next_commands is not None)
        + "\n"
        + server_text(facts, summary, verdict, run_dir, width, next_commands=next_commands)
    )


def client_text(
    facts: WaveFacts, summary: Summary, verdict: Verdict, width: int | None = None, *, is_short: bool = False
) -> str:
    """The client's part of the report; it can be printed while the server's metrics are waited for.

    ``is_short``: for a terminal, without an explanation of its terms.
    """
    return joined(
        iter([headline(summary, verdict)]),
        _block(facts, summary),
        _times(summary, width, explained=not is_short),
        session_lines(summary.sessions, summary.ledger, width),
        stage_lines(summary, facts.plan, width),
        token_lines(summary, width),
        user_metric_lines(summary.metrics, width),
        label_lines(summary.labels, width),
        error_lines(summary.errors, width),
        *load_sections(facts, summary),
        host_lines(summary.hosts, width),
        _client_section(facts, verdict, width),
        aligned(list(client_table.process_rows(facts.processes)) if facts.processes else [], width),
    )


def server_text(
    facts: WaveFacts,
    summary: Summary,
    verdict: Verdict,
    run_dir: Path | None = None,
    width: int | None = None,
    *,
    next_commands: Sequence[str] | None = None,
) -> str:
    """The server's instances and metrics and what they say, the findings, and the verdict."""
    columns = width or _WIDTH
    in_short = [] if next_commands is None else server_in_short(facts, summary, verdict, columns)
    server: tuple[Iterator[str], ...] = (
        instance_lines(facts, verdict),
        metric_lines(facts.server_metrics or ()),
        prefix_lines(facts.server_metrics or (), facts.prompts),
        _diagnosis_section(facts, summary, verdict, columns),
    )
    folded = (iter(in_short), prefix_lines(facts.server_metrics or (), facts.prompts))
    return joined(
        *(folded if in_short else server),
        _limits_section(verdict, columns),
        _findings_section(verdict),
        _closing(summary, verdict, run_dir, facts.plan.name)
        if next_commands is None
        else last_lines(facts, summary, verdict, run_dir, columns, next_commands=next_commands),
    )


def joined(*sections: Iterator[str]) -> str:
    """The one way out of a report: a line stays one, whatever name or answer stands in it."""
    return "\n\n".join("\n".join(map(plain, lines)) for section in sections if (lines := list(section))) + "\n"


def _block(facts: WaveFacts, summary: Summary) -> Iterator[str]:
    """The requests sent and answered; counts that are equal are one line."""
    ledger = summary.ledger
    yield _TITLE
    yield "-" * len(_TITLE)
    yield f"{_INDENT}Total requests fired: {ledger.sent}{all_ended(ledger.sent, ledger.ok, ledger.failed)}"
    yield ""
    yield f"{_INDENT}Duration:         {summary.duration_s:.1f}s"
    yield f"{_INDENT}Server RPS:       {summary.rates.server_rps:.1f} req/s"
    if not 0 < ledger.sent == ledger.completed or _of_warmup(summary):
        yield f"{_INDENT}Total requests:   {ledger.completed}{_of_warmup(summary)}"
    yield success_line(summary.success_rate, facts.plan.success_threshold)


def _times(summary: Summary, width: int | None, *, explained: bool) -> Iterator[str]:
    """The table of times, and the difference between the two that readers take for one."""
    yield from aligned(time_rows(summary.distribution), width)
    if explained and summary.latency is not None and summary.distribution("response_time") is not None:
        yield from wrapped(_TWO_TIMES, min(width or _WIDTH, MOST_PROSE), _INDENT, _INDENT)


def all_ended(sent: int, ok: int, failed: int) -> str:
    """The end of all requests, where none was left: one that failed may never have been answered."""
    if not 0 < sent == ok + failed:
        return ""
    return f", {'all' if failed == sent else failed} failed" if failed else ", all answered"


def _of_warmup(summary: Summary) -> str:
    """The requests that the server's rate has beside the total: of sessions that the warm-up began."""
    answered = summary.warmup.answered_in_window if summary.warmup else None
    return f", and {answered:,} of the warm-up's sessions" if answered else ""


def success_line(share: float | None, target: float, *, at_most: bool = False) -> str:
    """The success rate and whether it reached its target: not where nothing was sent (None), or it is only a bound."""
    mark = "✓ passed" if share is not None and share >= target and not at_most else "✗ failed"
    bound = "at most " if at_most else ""
    judged = f"{mark}, {100 * target:g}% target" if target or mark != "✓ passed" else "no target"
    return f"{_INDENT}Success rate:     {bound}{_share(share or 0.0, target)} ({judged})"


def _client_section(facts: WaveFacts, verdict: Verdict, width: int | None) -> Iterator[str]:
    """The client's section, where it was the limit, was asked about, or something on it was out of the ordinary."""
    if (why := facts.environment.get(NOT_MEASURED)) is not None:
        yield f"{_INDENT}Client's host:    CPU, memory and network N/A ({one_line(str(why), _LONG)})"
    if not facts.workers or not (verdict.limited_by == "client" or facts.processes or client_table.notable(facts)):
        return
    yield from aligned(client_table.worker_rows(facts), width)
    if facts.host is not None:
        yield from client_table.host_lines(facts.host, width)


def _diagnosis_section(facts: WaveFacts, summary: Summary, verdict: Verdict, width: int) -> Iterator[str]:
    for remark in diagnose(facts, summary, verdict.limited_by):
        yield from wrapped(remark.text, min(width, MOST_PROSE), f"{_INDENT}→ ", f"{_INDENT}  ")
        yield from (f"{_INDENT}     {line}" for line in remark.lines)


def _limits_section(verdict: Verdict, width: int) -> Iterator[str]:
    """The user's limits that were met; a missed one is a finding, and the success rate has its own line."""
    if verdict.met:
        yield from wrapped(
            "; ".join(each.text for each in verdict.met),
            min(width, MOST_PROSE),
            f"{_INDENT}Limits met:       ",
            " " * 21,
        )


def _findings_section(verdict: Verdict) -> Iterator[str]:
    for finding in verdict.findings:
        shown = f"{one_line(finding.compared, _LONGEST)}. {one_line(finding.advice, _LONGEST)}"
        if finding.code in CLIENT_CODES and verdict.limited_by == "client":
            yield f"{_INDENT}⚠️ CLIENT BOTTLENECK detected: {finding.code}, {shown}"
        else:
            yield f"{_INDENT}{_mark(finding)} {finding.code}: {shown}"


def _mark(finding: Finding) -> str:
    return {"invalid": "✗", "missed": "✗", "warning": "!"}[finding.severity]


def _closing(summary: Summary, verdict: Verdict, run_dir: Path | None, name: str | None) -> Iterator[str]:
    missed = sum(finding.severity == "missed" and finding.code != "aborted" for finding in verdict.findings)
    notes = []
    if verdict.interrupted:
        notes.append("interrupted")
    if any(finding.code == "aborted" for finding in verdict.findings):
        notes.append("aborted")
    if verdict.limited_by:
        notes.append(limited_words(verdict.limited_by))
    if missed:
        notes.append(f"{missed} threshold{'s' if missed > 1 else ''} missed")
    word = outcome(summary, verdict)
    believed = "" if word == verdict.word else f"; the measurement is {verdict.word}"
    yield word + (f" ({', '.join(notes)})" if notes else "") + believed
    if run_dir is not None:
        yield f"Run directory: {run_dir}" + (f" ({one_line(name, _LONG)})" if name else "")


def _share(share: float, target: float) -> str:
    """A percentage that never rounds a failure away, nor a miss onto its target."""
    text = f"{100 * share:.1f}%"
    ambiguous = any(share != other and text == f"{100 * other:.1f}%" for other in (1.0, target))
    return percent_text(share, target) if ambiguous else text
