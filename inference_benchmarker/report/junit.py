"""Turns a verdict into JUnit XML, which CI systems show: a test case for the wave and for each limit. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree import ElementTree

from inference_benchmarker.report.headline import DOUBTED, headline
from inference_benchmarker.verdict.limit_rows import limit_rows
from inference_benchmarker.words.text import one_line, plain_lines

if TYPE_CHECKING:
    from inference_benchmarker.facts.wave_facts import WaveFacts
    from inference_benchmarker.summary.summary import Summary
    from inference_benchmarker.verdict.finding import Finding
    from inference_benchmarker.verdict.limit_rows import CheckedLimit
    from inference_benchmarker.verdict.verdict import Verdict

_CLASS = "benchmark.report"
_OF_LIMITS = ("slo_missed", "success_below_threshold")
_LONG = 1_000


def to_junit(facts: WaveFacts, summary: Summary, verdict: Verdict, name: str, text: str, *, beside: str = "") -> str:
    """A suite called ``name``: the wave's verdict, each limit, and whatever else was missed; ``text`` is the report.

    ``beside``: why a measurement beside the wave did not end well, where there is one.
    """
    suite = ElementTree.Element("testsuite", name=one_line(name, _LONG), time=f"{summary.duration_s:.3f}")
    _verdict_case(suite, summary, verdict)
    missed = [each for each in verdict.findings if each.severity == "missed"]
    for row in limit_rows(facts, summary):
        _limit_case(suite, row, missed)
    for finding in missed:
        if finding.code not in _OF_LIMITS:
            _tell(_case(suite, finding.code), "failure", finding.measured, finding.advice)
    if beside:
        _tell(_case(suite, "beside the wave"), "failure", beside)
    for attribute, tag in (("tests", "testcase"), ("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        suite.set(attribute, str(len(list(suite.iter(tag)))))
    ElementTree.SubElement(suite, "system-out").text = plain_lines(text)
    ElementTree.indent(suite)
    return ElementTree.tostring(suite, "unicode", xml_declaration=True) + "\n"


def _verdict_case(suite: ElementTree.Element, summary: Summary, verdict: Verdict) -> None:
    """An INVALID wave, or one that was interrupted, is an error of the test and no failure of the endpoint."""
    case = _case(suite, "the wave is VALID")
    reasons = [f"{each.code}: {_sentence(each)}" for each in verdict.findings if each.severity == "invalid"]
    if verdict.interrupted:
        reasons.append("interrupted: the wave ended early")
    warnings = [_sentence(each) for each in verdict.findings if each.code in DOUBTED]
    if reasons:
        _tell(case, "error", headline(summary, verdict), "\n".join(reasons))
    elif warnings:
        _tell(case, "skipped", headline(summary, verdict), "\n".join(warnings))


def _limit_case(suite: ElementTree.Element, row: CheckedLimit, missed: list[Finding]) -> None:
    case = _case(suite, row.expression)
    if row.outcome == "pending":  # its exit code is 1, and a suite whose worst is a skipped case looks green
        _tell(case, "error", row.measured)
    elif row.outcome == "missed":
        found = [each for each in missed if each.limit == row.expression or _is_success(each, row)]
        _tell(case, "failure", row.measured, "\n".join(map(_sentence, found)))
    else:
        ElementTree.SubElement(case, "system-out").text = one_line(row.measured, _LONG)


def _is_success(finding: Finding, row: CheckedLimit) -> bool:
    return finding.code == "success_below_threshold" and row.measured == finding.measured


def _sentence(finding: Finding) -> str:
    return one_line(f"{finding.compared}. {finding.advice}", _LONG)


def _case(suite: ElementTree.Element, name: str) -> ElementTree.Element:
    return ElementTree.SubElement(suite, "testcase", classname=_CLASS, name=one_line(name, _LONG))


def _tell(case: ElementTree.Element, tag: str, message: str, text: str = "") -> None:
    ElementTree.SubElement(case, tag, message=one_line(message, _LONG)).text = plain_lines(text) or None
