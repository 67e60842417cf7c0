"""A comparison in words: aligned text, Markdown for a pull request, JUnit XML for a pipeline."""

from __future__ import annotations

import math
import os
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from inference_benchmarker.exit_codes import MISSED
from inference_benchmarker.records.user_metrics import PREFIX
from inference_benchmarker.report.headline import PASSED, VALID, gravest, outcome
from inference_benchmarker.report.markdown import escaped, literal
from inference_benchmarker.summary.time_table import marked
from inference_benchmarker.words.text import folded, plain, wrapped
from inference_benchmarker.words.wording import (
    INDENT,
    aligned,
    duration_text,
    metric_text,
    number_text,
    percent_text,
    pluralize,
    rate_text,
    unit_text,
)
from visualization.comparison.changes import TIMES, is_success
from visualization.comparison.headline import NEEDED, NOTHING_LEFT, finding, headline

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from inference_benchmarker.wave.wave import Wave
    from visualization.comparison.changes import MetricChange, Value
    from visualization.comparison.comparison import Check, Comparison, Side
    from visualization.comparison.server_rows import ServerRow

_TITLE = "COMPARISON – InferenceBenchmarker"
_HEADING = "### Benchmark comparison"
_ALL_SENT = "all waves were sent"
_WIDTH = 80
_OF_ONE_RUN = (
    "Intervals of the change: 95%, from one-second blocks. They leave out the variation between runs of the same "
    "version, because each side is a single run: they are too narrow."
)
_OF_SEVERAL_RUNS = (
    "Values: the mean of a side's runs (of logarithms). Intervals of the change: 95%, from how the runs of a "
    "side differ, and no narrower than those from their one-second blocks."
)
_OUTCOMES = (
    "They are corrected for the number of metrics (Holm; the metrics of the first line get most of the 5%). "
    "worse, improved: beyond noise, and by 3% or more (success: 0.3%). unchanged: neither, and a change of more "
    "than 10% is ruled out (success: 1%). cannot tell: otherwise"
)
_TOO_SHORT = ", or less than 20 seconds of load, or a changing rate"
_NO_INTERVAL = "-"
SAME_TIME = "*"
"""The verdict of a row whose time has its verdict in another row."""
_VIEWS, _NEARLY = {"latency", "response_time"}, 0.02
_NOTHING_NEW = "nothing can have changed"
_NOT_UNCHANGED = ("worse", "improved", "cannot tell")
_STATES = {"broken": "worse", "undecided": "cannot tell", "kept": "within the limit"}
_MARKS = {"broken": "✗", "undecided": "?", "kept": "✓"}


def to_text(comparison: Comparison, width: int | None = None) -> str:
    """For a terminal of ``width`` columns; without it the tables fit 80, and each sentence is a line of its own."""
    head = [headline(comparison), "", _TITLE, "-" * len(_TITLE)]
    head += [*(INDENT + line for line in _run_lines(comparison)), ""]
    table = list(aligned([_header(comparison), *(cells(row, comparison.rows) for row in comparison.rows)], width))
    lines = []
    if comparison.own:
        own_header = ["Your own metrics", *_header(comparison)[1:-1]]
        lines += ["", *aligned([own_header, *(cells(row)[:-1] for row in comparison.own)], width)]
    for title, rows in (
        ("The clients (not judged)", list(map(_client_cells, comparison.client))),
        ("Server metrics (no interval)", list(map(_server_cells, comparison.server_rows))),
    ):
        lines += ["", INDENT + title, *aligned(rows, width)] if rows else []
    lines += ["", *wrapped(_legend(comparison), min(_WIDTH, width or _WIDTH), INDENT, INDENT)]
    closing = list(_closing_lines(comparison))
    if width is not None:  # the first line may have scrolled away
        closing = _with_answer(closing, comparison)
    if closing:
        lines += ["", *closing]
    # the one way out: a line stays one, whatever name stands in it
    return _fitted([*head, *table, *lines], width) + "\n"


def _with_answer(closing: list[str], comparison: Comparison) -> list[str]:
    """The last lines with the first one's answer; of INVALID sides there is none beside the word."""
    if not closing:
        return [headline(comparison)]
    if not (comparison.base.valid and comparison.new.valid):
        return closing
    return [*closing[:-1], f"{closing[-1]}: {finding(comparison)}"]


def _fitted(lines: Sequence[str], width: int | None) -> str:
    text = "\n".join(map(plain, lines))
    return text if width is None else folded(text, width)


def to_markdown(comparison: Comparison) -> str:
    """For a comment on a pull request."""
    table_cells = [cells(row, comparison.rows) for row in comparison.rows]
    beside = [[*cells(row)[:-1], ""] for row in comparison.own]
    beside += [[*_client_cells(row), "the client's", ""] for row in comparison.client]
    beside += [
        [*(cell.replace("|", "\\|") for cell in _server_cells(row, literal)), "no interval", ""]
        for row in comparison.server_rows
    ]
    bold = [[*row[:-1], f"**{row[-1]}**" if row[-1] in _NOT_UNCHANGED else row[-1]] for row in table_cells]
    lines = [_HEADING, "", f"**{escaped(headline(comparison))}**", ""]
    lines += [*(f"- {line}" for line in _run_lines(comparison, literal)), ""]
    lines += [
        "| " + " | ".join(row) + " |" for row in [_header(comparison), ["---", *["---:"] * 4, "---"], *bold, *beside]
    ]
    if closing := list(_closing_lines(comparison, escaped)):
        lines += ["", *(f"- {line.strip()}" for line in closing)]
    return "\n".join(map(plain, [*lines, "", _legend(comparison)])) + "\n"


def to_junit(comparison: Comparison) -> str:
    """A test case for each run's verdict, each limit, and each metric without one."""
    suite = _suite()
    doubt = "failure" if comparison.strict and comparison.left_open_by else "skipped"
    for side in (comparison.base, comparison.new):
        case = _case(suite, f"{side.name} is VALID")
        if not side.valid:
            ElementTree.SubElement(case, "error", message=_side_text(side))
        elif side.warnings:
            ElementTree.SubElement(case, doubt, message="; ".join(side.warnings))
    if comparison.checks and comparison.loads:
        ElementTree.SubElement(_case(suite, "both have the same load"), doubt, message=comparison.loads)
    _cut_case(suite, comparison)
    for check in comparison.checks:
        case = _case(suite, check.limit.expression)
        if check.state != "kept":
            kind = "failure" if check in comparison.failed else "skipped"
            ElementTree.SubElement(case, kind, message=_check_text(check, comparison))
    limited = [check.row for check in comparison.checks]
    for row in comparison.rows:
        if row not in limited:
            ElementTree.SubElement(_case(suite, row.name), "system-out").text = ", ".join(cells(row)[1:])
    return _xml(suite)


def nothing_to_markdown(why: str) -> str:
    """The same where nothing can be compared, in a sentence."""
    return f"{_HEADING}\n\n**{escaped(why)}**\n"


def nothing_to_junit(why: str) -> str:
    """The same where nothing can be compared: an error."""
    suite = _suite()
    ElementTree.SubElement(_case(suite, _ALL_SENT), "error", message=plain(why))
    return _xml(suite)


def _header(comparison: Comparison) -> list[str]:
    return ["", comparison.base.name, comparison.new.name, "change", "interval", "outcome"]


def _legend(comparison: Comparison) -> str:
    kind = _OF_SEVERAL_RUNS if comparison.several else _OF_ONE_RUN
    asked = " asked for: the loads differ in it." if any(row.asked_for for row in comparison.rows) else ""
    text = asked + (f" {note}" if (note := of_one_time(comparison.rows)) else "")
    return f"{kind} {_OUTCOMES}{'' if comparison.several else _TOO_SHORT}.{text}"


def _run_lines(comparison: Comparison, quoted: Callable[[str], str] = plain) -> Iterator[str]:
    yield _side_text(comparison.base, quoted)
    yield _side_text(comparison.new, quoted)
    yield from (f"! {each}." for each in comparison.warnings)
    if same := comparison.on_both_sides:
        yield _on_both_sides(comparison, same)
    if comparison.unlike:
        yield f"! The sides were measured differently: {'; '.join(comparison.unlike)}."


def _on_both_sides(comparison: Comparison, same: int) -> str:
    sides = [len(side.waves) for side in (comparison.base, comparison.new)]
    if sides == [same, same]:
        return f"! {'A run is compared with itself' if same == 1 else 'The same runs are compared'}: {_NOTHING_NEW}."
    return f"! {pluralize(same, 'run is', 'runs are')} on both sides: they hide part of the change."


def _side_text(side: Side, quoted: Callable[[str], str] = plain) -> str:
    """The place of its runs, or what they were sent to, and what became of them."""
    names = [] if side.what else list(dict.fromkeys(wave.plan.name for wave in side.waves if wave.plan.name))
    where = side.what or _folder(side.waves)
    called = f"{where} ({', '.join(names)})".lstrip() if names else where
    if len(side.waves) > 1:
        called = f"{called}, {len(side.waves)} runs"
    sent = sum(wave.ledger.sent for wave in side.waves)
    near = marked("", [wave.summary.distribution(time) for wave in side.waves for time in (*TIMES, "lag")])
    clauses = (*_verdicts(side), pluralize(sent, "request", "requests"), near)
    return f"{side.name}: {quoted(called)}: {', '.join(filter(None, clauses))}"


def _folder(waves: Sequence[Wave]) -> str:
    """The directory of a run, or the one that those of several lie in."""
    paths = [wave.run_dir.path for wave in waves if wave.run_dir is not None]
    return os.path.commonpath(paths) if paths else ""


def _verdicts(side: Side) -> Iterator[str]:
    """The gravest word of the runs' first lines, how many of several begin with it, and why any are INVALID."""
    cut = ", interrupted" if any(wave.interrupted for wave in side.waves) else ""
    cut += ", aborted" if any(wave.aborted for wave in side.waves) else ""
    words = [outcome(wave.summary, wave.verdict) for wave in side.waves]
    word = gravest(words)
    is_good = word in (VALID, PASSED)
    yield f"{word}{'' if is_good or len(words) == 1 else f' ({words.count(word)} of them)'}{cut}"
    invalid = (wave for wave in side.waves if not wave.verdict.valid)
    yield from dict.fromkeys(
        finding.code for wave in invalid for finding in wave.verdict.findings if finding.severity == "invalid"
    )


def cells(row: MetricChange, rows: Sequence[MetricChange] = ()) -> list[str]:
    """Name, both values, change, interval and verdict; ``rows``: those beside it, see ``same_time``."""
    values = [_value(row, row.base), _value(row, row.new)]
    verdict = SAME_TIME if same_time(row, rows) is not None else row.outcome
    return [row.name, *values, _percent(row.change), _interval(row), verdict]


def same_time(row: MetricChange, rows: Sequence[MetricChange]) -> MetricChange | None:
    """The row that has the verdict of this one: the other view of the same time, with nearly the same change.

    Latency and response time differ by the client's lag alone. The more metrics a row is tested with, the wider its
    interval: of two views one may be worse, and the other undecided.
    """
    others = (each for each in rows if {each.metric, row.metric} == _VIEWS and each.stat == row.stat)
    other = next(others, None)
    if other is None or row.outcome != "cannot tell" or other.outcome not in ("worse", "improved"):
        return None
    apart = math.inf if row.change is None or other.change is None else abs(row.change - other.change)
    return other if apart < _NEARLY else None


def of_one_time(rows: Sequence[MetricChange]) -> str:
    """The sentence that explains ``SAME_TIME``; nothing where no row has it."""
    views = [other.name for row in rows if (other := same_time(row, rows)) is not None]
    return f"{SAME_TIME}: the same time as {' and '.join(views)}, whose verdict counts." if views else ""


def _value(row: MetricChange, estimate: Value | None) -> str:
    if estimate is None:
        return "-"
    if is_success(row.metric):
        return percent_text(estimate.value)
    if row.metric.startswith(PREFIX):
        return number_text(estimate.value)
    text = rate_text(estimate.value) if row.metric in ("rate", "tokens") else duration_text(estimate.value)
    return ("≥" if estimate.is_lower_bound else "") + text


def _percent(change: float | None) -> str:
    if change is None:
        return "-"
    rounded = round(100 * change, 1) + 0.0  # no -0.0
    return f"{rounded:+.1f}%" if abs(rounded) < 100 else f"{rounded:+,.0f}%"


def _interval(row: MetricChange) -> str:
    """The interval as text; an end that the records do not bound is left open."""
    if row.low is None or row.high is None:
        return _NO_INTERVAL
    if math.isinf(row.high):
        return _NO_INTERVAL if row.low <= NOTHING_LEFT else f"{_percent(row.low)} or more"
    return f"{_percent(row.low).removesuffix('%')} … {_percent(row.high)}"


def _client_cells(row: MetricChange) -> list[str]:
    return [row.name, _value(row, row.base), _value(row, row.new), _percent(row.change)]


def _server_cells(row: ServerRow, quoted: Callable[[str], str] = plain) -> list[str]:
    unit = unit_text(row.unit)
    name = quoted(row.name) + (f" ({unit})" if unit else "")
    base, new = (sign + metric_text(value) for sign, value in zip(row.signs, (row.base, row.new), strict=True))
    return [name, base, new, _percent(row.change)]


def _closing_lines(comparison: Comparison, quoted: Callable[[str], str] = plain) -> Iterator[str]:
    """A line for each limit, and the word that the exit code stands for."""
    for check in comparison.checks:
        yield f"{INDENT}{_MARKS[check.state]} {_check_text(check, comparison)}"
    broken = sum(check.broken for check in comparison.checks)
    undecided = sum(check.undecided for check in comparison.checks)
    invalid = [side.name for side in (comparison.base, comparison.new) if not side.valid]
    clauses = [
        *([] if comparison.cut is None else [quoted(comparison.cut.text)]),
        *([f"{broken} of {len(comparison.checks)} limits violated"] if broken else ()),
        *([f"{undecided} of {len(comparison.checks)} limits undecided"] if undecided else ()),
        *comparison.left_open_by,
    ]
    if invalid:
        yield f"INVALID ({' and '.join(invalid)}): these are not the endpoint's numbers"
    elif comparison.checks or comparison.cut is not None:
        yield comparison.outcome.upper() + (f" ({', '.join(clauses)})" if clauses else "")


def _check_text(check: Check, comparison: Comparison) -> str:
    row, (base, new) = check.row, (comparison.base.name, comparison.new.name)
    if row.change is None and row.measured:
        return (
            f"{check.limit.expression}: {row.name} {_value(row, row.base)} in {base}, {_value(row, row.new)} in {new}."
        )
    if row.change is None:
        return f"{check.limit.expression}: {row.name} was not measured on both sides."
    found = f"{check.limit.expression}: {row.name} {_percent(row.change)}"
    if (interval := _interval(row)) == _NO_INTERVAL:
        return f"{found}, cannot tell: {NEEDED if comparison.too_short else 'more runs are needed'}"
    return f"{found} ({interval}), {_STATES[check.state]}"


def _cut_case(suite: ElementTree.Element, comparison: Comparison) -> None:
    """An end before all waves is an error of the test, and no failure of the endpoint unless its code says so."""
    if comparison.cut is not None:
        case = _case(suite, _ALL_SENT)
        tag = "failure" if comparison.cut.exit_code == MISSED else "error"
        ElementTree.SubElement(case, tag, message=plain(headline(comparison)))


def _suite() -> ElementTree.Element:
    return ElementTree.Element("testsuite", name="benchmark compare")


def _xml(suite: ElementTree.Element) -> str:
    for attribute, tag in (("tests", "testcase"), ("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        suite.set(attribute, str(len(list(suite.iter(tag)))))
    ElementTree.indent(suite)
    return ElementTree.tostring(suite, "unicode", xml_declaration=True) + "\n"


def _case(suite: ElementTree.Element, name: str) -> ElementTree.Element:
    return ElementTree.SubElement(suite, "testcase", classname="benchmark.compare", name=name)
