"""The verdict of a stored wave, whichever rules gave it: those of another version may have judged otherwise. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast, get_args

from inference_benchmarker.data.decoded import decoded
from inference_benchmarker.data.typed import require
from inference_benchmarker.verdict.finding import Finding, FindingCode, Severity
from inference_benchmarker.verdict.verdict import PENDING, RULES
from inference_benchmarker.words.text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from inference_benchmarker.verdict.verdict import Verdict

JUDGED_BEFORE = "was judged by the rules of an earlier version: its verdict and exit code are those of then"
JUDGED_AGAIN = "is judged again by the rules of today, with the metrics that were collected now"
_LONG = 1_000


@dataclass(frozen=True, slots=True)
class _Row:
    """A finding as it is stored: another version may have codes of its own."""

    code: str
    severity: str
    measured: str
    limit: str
    advice: str


def is_judged_by_today(fields: Mapping[str, Any]) -> bool:
    """Tells whether the verdict of a summary.json is one of today's rules; an earlier version stored no number."""
    require(fields.get("judged_by"), int | None, "judged_by")
    return fields.get("judged_by") == RULES


def stored_verdict(fields: Mapping[str, Any], judged: Verdict) -> Verdict:
    """The verdict in a summary.json of other rules; ValueError where it is not what its own findings make of it.

    ``judged``: that of today, for what is no matter of the rules. A wave that was pending is judged anew.
    """
    if fields["verdict"] == PENDING:
        return judged
    findings = tuple(_findings(fields.get("findings", [])))
    missed = {finding.limit for finding in findings if finding.severity == "missed"}
    met = tuple(limit for limit in judged.met if limit.expression not in missed)
    found = replace(judged, findings=findings, pending=(), met=met, judged_by=fields.get("judged_by"))
    if (found.word, found.exit_code) != (fields["verdict"], fields["exit_code"]):
        raise ValueError(
            f"it is {fields['verdict']} with exit code {fields['exit_code']}, "
            f"and its findings make it {found.word} with {found.exit_code}"
        )
    return found


def of_other_rules(verdict: Verdict) -> str:
    """A clause on the version whose rules it is of; empty where they are today's."""
    if verdict.judged_by == RULES:
        return ""
    if (verdict.judged_by or 0) < RULES:
        return JUDGED_BEFORE
    return (
        f"was judged by rules {verdict.judged_by} of a newer version, and this one has {RULES}: its verdict and exit "
        "code are as stored; update the tool to judge as that one does"
    )


def _findings(rows: Any) -> Iterator[Finding]:
    """Those of a severity that is known today, without what would break or colour a line."""
    require(rows, list[Any], "findings")
    for row in rows:
        found = decoded(row, _Row)
        if found.severity in get_args(Severity):
            code, measured, limit, advice = (
                one_line(text, _LONG) for text in (found.code, found.measured, found.limit, found.advice)
            )
            yield Finding(cast("FindingCode", code), cast("Severity", found.severity), measured, limit, advice)
