"""A comparison in words: aligned text, Markdown for a pull request, JUnit XML for a pipeline, a JSON object."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from inference_benchmarker.records.metrics import PREFIX
from inference_benchmarker.summary.time_table import marked
from inference_benchmarker.text import plain
from inference_benchmarker.version import SCHEMA_VERSION
from inference_benchmarker.wording import (
    INDENT,
    aligned,
    duration_text,
    metric_text,
    number_text,
    percent_text,
    unit_text,
)
from visualization.intervals import Percentile, interval
from visualization.runs import TIMES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from inference_benchmarker.wave.wave import Wave
    from visualization.comparison import Check, Comparison, Row, ServerRow
    from visualization.intervals import Estimate

_TITLE = "COMPARISON – InferenceBenchmarker"
_HEADER = ["", "base", "new", "change", "interval", "outcome"]
_LEGEND = (
    "Intervals of the change: 95%, from one-second blocks, corrected for the",
    "number of metrics (Holm). worse, improved: beyond noise, and by 3% or more",
    "(success: 0.3%). unchanged: not so, and a change of 10% is excluded",
    "(success: 1%). cannot tell: neither, less than 20 seconds of load, or a rate",
    "that changes.",
)
_COLOURS = {"worse": "31", "improved": "32", "cannot tell": "33"}
_MARKS = {"broken": "✗", "undecided": "?", "kept": "✓"}


def to_text(comparison: Comparison, *, colour: bool = False) -> str:
    """For a terminal of 80 columns."""
    head = [_TITLE, "-" * len(_TITLE), *(INDENT + line for line in _run_lines(comparison)), ""]
    table = map(plain, aligned([_HEADER, *map(_cells, comparison.rows)]))
    lines = []
    if comparison.own:
        head_of_own = ["Values of your own", *_HEADER[1:-1]]
        lines += ["", *aligned([head_of_own, *(_cells(row)[:-1] for row in comparison.own)])]
    if comparison.server_rows:
        lines += [
            "",
            INDENT + "Server metrics (no interval)",
            *aligned([_server_cells(row) for row in comparison.server_rows]),
        ]
    lines += ["", *(INDENT + line for line in _LEGEND)]
    if closing := list(_closing_lines(comparison)):
        lines += ["", *closing]
    # the one way out: a line stays one, whatever name stands in it
    return "\n".join((*map(plain, head), *(map(_coloured, table) if colour else table), *map(plain, lines))) + "\n"


def to_markdown(comparison: Comparison) -> str:
    """For a comment on a pull request."""
    cells = [_cells(row) for row in comparison.rows]
    server = [
        [*(cell.replace("|", "\\|") for cell in _server_cells(row, _literal)), "no interval", ""]
        for row in comparison.server_rows
    ]
    bold = [[*row[:-1], f"**{row[-1]}**" if row[-1] in _COLOURS else row[-1]] for row in cells]
    lines = ["### Benchmark comparison", "", *(f"- {line}" for line in _run_lines(comparison, _literal)), ""]
    own = [[*_cells(row)[:-1], ""] for row in comparison.own]
    lines += ["| " + " | ".join(row) + " |" for row in [_HEADER, ["---", *["---:"] * 4, "---"], *bold, *own, *server]]
    if closing := list(_closing_lines(comparison)):
        lines += ["", *(f"- {line.strip()}" for line in closing)]
    return "\n".join(map(plain, [*lines, "", " ".join(_LEGEND)])) + "\n"


def to_junit(comparison: Comparison) -> str:
    """A test case for each run's verdict, each limit, and each metric without one."""
    suite = ElementTree.Element("testsuite", name="benchmark --compare")
    for role, wave in (("base", comparison.base), ("new", comparison.new)):
        case = _case(suite, f"{role} is VALID")
        if not wave.verdict.valid:
            ElementTree.SubElement(case, "error", message=_run_text(role, wave))
    for check in comparison.checks:
        case = _case(suite, check.limit.expression)
        if state := {"broken": "failure", "undecided": "skipped"}.get(_state(check)):
            ElementTree.SubElement(case, state, message=_check_text(check))
    limited = [check.row for check in comparison.checks]
    for row in comparison.rows:
        if row not in limited:
            ElementTree.SubElement(_case(suite, row.name), "system-out").text = ", ".join(_cells(row)[1:])
    for attribute, tag in (("tests", "testcase"), ("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        suite.set(attribute, str(len(list(suite.iter(tag)))))
    ElementTree.indent(suite)
    return ElementTree.tostring(suite, "unicode", xml_declaration=True) + "\n"


def to_json(comparison: Comparison) -> dict[str, Any]:
    """Every number; times in seconds, changes as shares of the base's value."""
    return {
        "schema_version": SCHEMA_VERSION,
        "base": _run_json(comparison.base),
        "new": _run_json(comparison.new),
        "unlike": list(comparison.unlike),
        "metrics": [_row_json(row) for row in comparison.rows],
        "user_metrics": [_own_json(row) for row in comparison.own],
        "server_metrics": [
            {
                "metric": row.name,
                "unit": row.unit,
                "base": row.base,
                "new": row.new,
                "signs": list(row.signs),
                "change": row.change,
            }
            for row in comparison.server_rows
        ],
        "limits": [
            {"limit": check.limit.expression, "metric": check.row.name, "outcome": _state(check)}
            for check in comparison.checks
        ],
        "outcome": comparison.outcome,
    }


def _run_lines(comparison: Comparison, quoted: Callable[[str], str] = plain) -> Iterator[str]:
    yield _run_text("base", comparison.base, quoted)
    yield _run_text("new", comparison.new, quoted)
    if comparison.of_one_run:
        yield "! A run is compared with itself: nothing can have changed."
    if comparison.unlike:
        yield f"! Unlike things are compared: {'; '.join(comparison.unlike)}."


def _run_text(role: str, wave: Wave, quoted: Callable[[str], str] = plain) -> str:
    where = "" if wave.run_dir is None else str(wave.run_dir.path)
    called = f"{where} ({wave.plan.name})".lstrip() if wave.plan.name else where
    cut = ", interrupted" if wave.interrupted else ", aborted" if wave.aborted else ""
    reasons = "".join(f", {finding.code}" for finding in wave.verdict.findings if finding.severity == "invalid")
    near = marked("", map(wave.summary.distribution, (*TIMES, "lag")))
    told = (f"{wave.verdict.word}{cut}{reasons}", f"{wave.ledger.sent:,} requests", near)
    return f"{role}: {quoted(called)}: {', '.join(filter(None, told))}"


def _cells(row: Row) -> list[str]:
    values = [_value(row, row.base), _value(row, row.new)]
    return [row.name, *values, _percent(row.change), _interval(row), row.outcome]


def _value(row: Row, estimate: Estimate | None) -> str:
    if estimate is None:
        return "-"
    if row.metric == "success":
        return percent_text(estimate.value)
    if row.metric.startswith(PREFIX):
        return number_text(estimate.value)
    text = f"{estimate.value:.4g}/s" if row.metric in ("rate", "tokens") else duration_text(estimate.value)
    return ("≥" if estimate.is_lower_bound else "") + text


def _percent(change: float | None) -> str:
    if change is None:
        return "-"
    rounded = round(100 * change, 1) + 0.0  # no -0.0
    return f"{rounded:+.1f}%" if abs(rounded) < 100 else f"{rounded:+,.0f}%"


def _interval(row: Row) -> str:
    """The interval as text; an end that the records do not bound is left open."""
    if row.low is None or row.high is None:
        return "-"
    if math.isinf(row.high):
        return "-" if row.low <= -1 else f"{_percent(row.low)} or more"
    return f"{_percent(row.low).removesuffix('%')} … {_percent(row.high)}"


def _server_cells(row: ServerRow, quoted: Callable[[str], str] = plain) -> list[str]:
    unit = unit_text(row.unit)
    name = quoted(row.name) + (f" ({unit})" if unit else "")
    base, new = (sign + metric_text(value) for sign, value in zip(row.signs, (row.base, row.new), strict=True))
    return [name, base, new, _percent(row.change)]


def _coloured(line: str) -> str:
    for word, code in _COLOURS.items():
        if line.endswith(word):
            return f"{line.removesuffix(word)}\x1b[{code}m{word}\x1b[0m"
    return line


def _closing_lines(comparison: Comparison) -> Iterator[str]:
    """A line for each limit, and the word that the exit code stands for."""
    for check in comparison.checks:
        yield f"{INDENT}{_MARKS[_state(check)]} {_check_text(check)}"
    broken = sum(check.broken for check in comparison.checks)
    waves = {"base": comparison.base, "new": comparison.new}
    invalid = [role for role, wave in waves.items() if not wave.verdict.valid]
    if invalid:
        yield f"INVALID ({' and '.join(invalid)}): these are not the endpoint's numbers"
    elif broken:
        yield f"FAILED ({broken} of {len(comparison.checks)} limits broken)"
    elif comparison.checks:
        undecided = sum(check.undecided for check in comparison.checks)
        yield "PASSED" + (f" ({undecided} of {len(comparison.checks)} limits undecided)" if undecided else "")


def _check_text(check: Check) -> str:
    row = check.row
    if row.change is None and row.measured:
        return f"{check.limit.expression}: {row.name} {_value(row, row.base)} in base, {_value(row, row.new)} in new."
    if row.change is None:
        return f"{check.limit.expression}: {row.name} was not measured in both runs."
    found = f"{check.limit.expression}: {row.name} {_percent(row.change)}"
    if check.undecided:
        return f"{found}, cannot tell: compare longer runs."
    return f"{found} ({_interval(row)}), {row.outcome}"


def _state(check: Check) -> str:
    return "broken" if check.broken else "undecided" if check.undecided else "kept"


def _case(suite: ElementTree.Element, name: str) -> ElementTree.Element:
    return ElementTree.SubElement(suite, "testcase", classname="benchmark.compare", name=name)


def _run_json(wave: Wave) -> dict[str, Any]:
    path = None if wave.run_dir is None else str(wave.run_dir.path)
    return {"run_dir": path, "name": wave.plan.name, **wave.verdict.to_json()}


def _row_json(row: Row) -> dict[str, Any]:
    return {
        "metric": row.name,
        "base": _estimate_json(row.base),
        "new": _estimate_json(row.new),
        "change": row.change,
        "low": row.low,
        "high": None if row.high is None or math.isinf(row.high) else row.high,
        "outcome": row.outcome,
    }


def _own_json(row: Row) -> dict[str, Any]:
    """Without an outcome: whether more is better is not known."""
    return {name: value for name, value in _row_json(row).items() if name != "outcome"}


def _estimate_json(estimate: Estimate | None) -> dict[str, Any] | None:
    """With its own 95% interval, not that of the change."""
    if estimate is None:
        return None
    low, high = interval(estimate) or (None, None)
    told = {"value": estimate.value, "low": low, "high": high, "lower_bound": estimate.is_lower_bound}
    precision = estimate.distribution.precision if isinstance(estimate, Percentile) else 0.0
    return {**told, "precision": precision} if precision else told


def _literal(text: str) -> str:
    """A name or path of the user as Markdown's code, in which nothing is mark-up or a mention."""
    if not text:
        return ""
    fence = "`" * (1 + max(map(len, re.findall("`+", text)), default=0))
    room = " " if "`" in text else ""
    return f"{fence}{room}{plain(text)}{room}{fence}"
