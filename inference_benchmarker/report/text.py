"""Turns a summary into words: aligned text for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inference_benchmarker.facts.client_samples import NOT_MEASURED
from inference_benchmarker.plan.load import OpenLoop
from inference_benchmarker.plan.slo import FIRST_TURN, LATER_TURNS
from inference_benchmarker.report import client_table
from inference_benchmarker.report.by_name import error_lines, label_lines
from inference_benchmarker.report.headline import headline, outcome
from inference_benchmarker.report.hosts import host_lines
from inference_benchmarker.report.instances import instance_lines
from inference_benchmarker.report.screen import last_lines, server_in_short
from inference_benchmarker.report.server_metrics import metric_lines, prefix_lines
from inference_benchmarker.report.sessions import session_lines
from inference_benchmarker.report.stages import stage_lines
from inference_benchmarker.report.tokens import token_lines
from inference_benchmarker.report.user_metrics import user_metric_lines
from inference_benchmarker.summary.counted import missing_numbers
from inference_benchmarker.summary.time_table import (
    middle_and_tail,
    precision_mark,
    time_rows,
)
from inference_benchmarker.verdict.client.bottleneck import CLIENT_CODES
from inference_benchmarker.verdict.limit_rows import limit_rows
from inference_benchmarker.verdict.server import diagnose
from inference_benchmarker.words.text import MOST_PROSE, one_line, plain, wrapped
from inference_benchmarker.words.wording import INDENT as _INDENT
from inference_benchmarker.words.wording import (
    aligned,
    duration_text,
    percent_text,
    pluralize,
    precision_text,
    rate_text,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from inference_benchmarker.facts.wave_facts import WaveFacts
    from inference_benchmarker.summary.goodput import Goodput
    from inference_benchmarker.summary.repeats import Repeats
    from inference_benchmarker.summary.statistics.distribution import Distribution
    from inference_benchmarker.summary.summary import Summary
    from inference_benchmarker.verdict.finding import Finding
    from inference_benchmarker.verdict.verdict import Verdict

_WIDTH = 80  # of prose where there is no terminal
_TITLE = "RESULTS – InferenceBenchmarker"
_TURNS = {FIRST_TURN: "1st turns", LATER_TURNS: "later"}
_MAX_ROWS = 20
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
    of_the_client = client_text(facts, summary, verdict, width, short=next_commands is not None)
    return of_the_client + "\n" + server_text(facts, summary, verdict, run_dir, width, next_commands=next_commands)


def client_text(
    facts: WaveFacts, summary: Summary, verdict: Verdict, width: int | None = None, *, short: bool = False
) -> str:
    """The client's part of the report; it can be printed while the server's metrics are waited for."""
    return joined(
        iter([headline(summary, verdict)]),
        _short_block(facts, summary) if short else _block(facts, summary),
        aligned(time_rows(summary.distribution), width),
        session_lines(summary.sessions, summary.ledger, width),
        stage_lines(summary.stages, facts.plan.slos, width),
        token_lines(summary, width),
        user_metric_lines(summary.metrics, width),
        label_lines(summary.labels, width),
        error_lines(summary.errors, width),
        _accounts_section(facts, summary),
        _repeats_section(facts, summary),
        _warmup_section(summary),
        _records_section(facts),
        _warmed_section(facts),
        _calibration_section(facts),
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
        _limits_section(facts, summary, columns),
        _findings_section(verdict),
        _closing(summary, verdict, run_dir, facts.plan.name)
        if next_commands is None
        else last_lines(facts, summary, verdict, run_dir, next_commands=next_commands),
    )


def joined(*sections: Iterator[str]) -> str:
    """The one way out of a report: a line stays one, whatever name or answer stands in it."""
    return "\n\n".join("\n".join(map(plain, lines)) for section in sections if (lines := list(section))) + "\n"


def _block(facts: WaveFacts, summary: Summary) -> Iterator[str]:
    ledger = summary.ledger
    yield _TITLE
    yield "-" * len(_TITLE)
    yield f"{_INDENT}Total requests fired: {ledger.sent}"
    yield ""
    yield f"{_INDENT}Duration:         {summary.duration_s:.1f}s"
    yield f"{_INDENT}Server RPS:       {summary.rates.server_rps:.1f} req/s"
    yield f"{_INDENT}Total requests:   {ledger.completed}"
    yield success_line(summary.success_rate, facts.plan.success_threshold)


def _short_block(facts: WaveFacts, summary: Summary) -> Iterator[str]:
    """The same, with one line of two counts that are equal."""
    lines = list(_block(facts, summary))
    if summary.ledger.sent == summary.ledger.completed:
        lines[2:7] = [f"{lines[2]}, all answered", *lines[4:6]]
    yield from lines


def success_line(share: float | None, target: float, *, at_most: bool = False) -> str:
    """The success rate and whether it reached its target: not where nothing was sent (None), or it is only a bound."""
    mark = "✓ passed" if share is not None and share >= target and not at_most else "✗ failed"
    bound = "at most " if at_most else ""
    return f"{_INDENT}Success rate:     {bound}{_share(share or 0.0, target)} ({mark}, {100 * target:g}% target)"


def _recording_line(facts: WaveFacts) -> Iterator[str]:
    load, recording = facts.plan.load, facts.plan.recording
    if isinstance(load, OpenLoop) and recording is not None:
        text = f"{load.text}, {recording.rows:,} arrivals, at most {recording.peak_rps:,} in a second"
        yield f"{_INDENT}Recording:        {one_line(text, _LONG)}"
        yield f"{_INDENT}                  {one_line(recording.found, _LONG)}"
    if (sent := facts.plan.conversations) is not None and sent.recorded is not None:
        yield f"{_INDENT}Conversations:    {one_line(f'{sent.file.name}: {sent.recorded.found}', _LONG)}"
        if sent.recorded.lacking:
            yield f"{_INDENT}                  {one_line(sent.recorded.lacking, _LONG)}"


def _accounts_section(facts: WaveFacts, summary: Summary) -> Iterator[str]:
    rates, load = summary.rates, facts.plan.load
    given = isinstance(load, OpenLoop) and load.is_steady and not load.replay  # else it is a mean
    target = "" if rates.target is None else f"{rate_text(rates.target, 6 if given else 4)} target, "
    sent = f"{rate_text(rates.sent)} sent{' with repeats' if summary.ledger.repeated else ''}"
    within = f" ({precision_text(rates.precision)})" if rates.precision else ""
    if endpoint := facts.plan.endpoint:
        yield f"{_INDENT}Endpoint:         {one_line(endpoint, _LONG)}"
    yield f"{_INDENT}Rate:             {target}{sent}, {rate_text(rates.completed)} completed{within}"
    yield from _recording_line(facts)
    if summary.goodput is not None:
        yield f"{_INDENT}Goodput:          {_goodput(summary.goodput, summary.repeats)}"
    yield from _lag_lines(summary)
    if summary.build is not None:
        yield f"{_INDENT}Payload building: {_in_short(summary.build)}"
    for name in ("dropped", "abandoned", "lost", "in_flight"):
        if count := getattr(summary.ledger, name):
            yield f"{_INDENT}{name.replace('_', ' ').capitalize() + ':':<17} {count:,}"


def _lag_lines(summary: Summary) -> Iterator[str]:
    """The schedule lag; of sessions that of their first turns and that of the later ones, which are paced apart."""
    if summary.sessions is None:
        found = {"Schedule lag": summary.lag}
    else:
        found = {f"Lag, {_TURNS[turns]}": part.lag for turns, part in summary.of_turns.items() if turns in _TURNS}
    for name, lag in found.items():
        if lag is not None:
            yield f"{_INDENT}{name + ':':<17} {_in_short(lag)}"


def _repeats_section(facts: WaveFacts, summary: Summary) -> Iterator[str]:
    """Requests and users apart, where clients try again; in the open loop a user's time is the response time above."""
    repeats, success = summary.repeats, summary.success_rate
    if repeats is None or success is None:
        return
    unit = "arrival" if summary.sessions is None else "turn"
    yield (
        f"{_INDENT}{unit.capitalize() + 's:':<17} {repeats.arrivals:,}, {repeats.requests:,} requests "
        f"({repeats.attempts:.2f} per {unit}), {repeats.repeated:,} repeats"
    )
    by_user = percent_text(repeats.success_by_user)
    yield f"{_INDENT}Success:          {percent_text(success)} by request, {by_user} by user"
    if repeats.user_time is not None and not isinstance(facts.plan.load, OpenLoop):
        yield f"{_INDENT}User's time:      {middle_and_tail(repeats.user_time)}, from arrival to last answer"


def _in_short(d: Distribution) -> str:
    """Three numbers of a time that is none of the endpoint's: it gets no row beside those that are."""
    p50, p99, top = (duration_text(value) for value in (d.percentile(50), d.percentile(99), d.maximum))
    return f"p50 {p50}, p99 {p99}, max {top}{precision_mark(d)}"


def _goodput(goodput: Goodput, repeats: Repeats | None) -> str:
    """The rate, the share of the sent (the users' where clients try again), and how many met each limit."""
    unmeasured = [each.limit.metric for each in goodput.limits if each.share is None]
    if goodput.rate is None or goodput.share is None:
        return f"not measured: no answer has {', '.join(dict.fromkeys(unmeasured))} (invoke yields no tokens)"
    each = ", ".join(f"{one.limit.expression}: {percent_text(one.share or 0.0)}" for one in goodput.limits)
    of = "those sent" if repeats is None else "the arrivals"
    return f"{rate_text(goodput.rate)}, {percent_text(goodput.share)} of {of} ({each})"


def _warmup_section(summary: Summary) -> Iterator[str]:
    warmup = summary.warmup
    if warmup is None:
        return
    counts, latency = warmup.ledger, warmup.latency
    lines = [f"{pluralize(counts.sent, 'request', 'requests')} in {warmup.duration_s:g}s", f"{counts.failed:,} failed"]
    if latency is not None:
        lines.append(f"latency {middle_and_tail(latency)}")
    yield f"{_INDENT}Warm-up:          {', '.join(lines)} (not in the other numbers)"


def _records_section(facts: WaveFacts) -> Iterator[str]:
    """That requests were counted, and what is not measured therefore."""
    if missing := missing_numbers(facts):
        text = f"kept for the slowest {len(facts.records):,} requests only; not measured: {', '.join(missing.values())}"
        yield f"{_INDENT}Records:          {text}"


def _warmed_section(facts: WaveFacts) -> Iterator[str]:
    if facts.warmed is not None:
        number, seconds = facts.warmed
        sent = pluralize(number, "request", "requests")
        yield f"{_INDENT}Cache warmed:     {sent} in {seconds:.3g} s before the wave, excluded from every number here"


def _calibration_section(facts: WaveFacts) -> Iterator[str]:
    if facts.calibration is not None:
        lines = facts.calibration["lines"][:_MAX_ROWS]
        yield from (f"{_INDENT}Calibration:      {one_line(line, _LONG)}" for line in lines)


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


def _limits_section(facts: WaveFacts, summary: Summary, width: int) -> Iterator[str]:
    """The user's limits that were met; a missed one is a finding, and the success rate has its own line."""
    plan = facts.plan
    own = {slo.expression for slo in plan.slos} | {limit.expression for limit in plan.server_limits}
    met = [
        f"{one_line(row.expression, _LONG)} ({one_line(row.measured, _LONG)})"
        for row in limit_rows(facts, summary)
        if row.outcome == "kept" and row.expression in own
    ]
    if met:
        yield from wrapped("; ".join(met), min(width, MOST_PROSE), f"{_INDENT}Limits met:       ", " " * 21)


def _findings_section(verdict: Verdict) -> Iterator[str]:
    for finding in verdict.findings:
        measured, limit, advice = (
            one_line(text, _LONGEST) for text in (finding.measured, finding.limit, finding.advice)
        )
        shown = f"{measured} (limit {limit}). {advice}"
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
        notes.append(f"{verdict.limited_by}-limited")
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
