"""The rule of results of results: how a search ended, what confirmed it, and what whoever builds on it must say. Pure.

A search's exit code is that of its answer: 130 where it was interrupted, 3 where it ended early or left something
behind, and 0 only where a wave confirmed what was found. Stretches that violate a limit while it searches do not count.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from inference_benchmarker.exit_codes import INVALID, MISSED, OK, worst_exit_code
from inference_benchmarker.words.wording import duration_text
from server_capacity.search.recovery import RETURN

if TYPE_CHECKING:
    from collections.abc import Iterator

    from server_capacity.results.types.bounds import Ended, Verdict
    from server_capacity.results.types.capacity import CapacityResult
    from server_capacity.results.types.proof import ProofResult
    from server_capacity.results.types.ranking import RankedRow

FAILED = "failed"
"""The outcome of a variant that was not searched."""
EARLY = "The search ended early: "
NOT_REMOVED = "was not removed by its end (cleanup.json has what became of it)"
"""Of what a keeper may go on to remove: a stored result does not change any more."""
UNSAVED = "The results exist only in the printed text."
"""Ends the words on an answer that could not be stored."""
_LEFT = "its search: "
"""Begins each clause on what a search left behind."""
OPEN = {"client_limited": "the client was the limit of its search", "cannot_tell": "its search was inconclusive"}
"""A clause on each outcome that leaves open what else would have met the limits."""


class Standing(NamedTuple):
    """The keys of a search that follow from all its other keys."""

    ended: Ended
    confirmed: Verdict | None
    exit_code: int


def standing(found: CapacityResult) -> Standing:
    """The standing of a search, also of one that was stored without it."""
    ended, confirmed, code = ended_of(found), confirmed_of(found), found.exit_code
    if ended == "early" or any(left_behind(found)):
        code = worst_exit_code(code, INVALID)
    elif code == OK and confirmed != "holds":
        code = MISSED
    return Standing(ended, confirmed, code)


def settled(found: CapacityResult) -> CapacityResult:
    """The search with the standing that follows from all else that it tells by now."""
    return replace(found, **standing(found)._asdict())


def is_after_overload(found: CapacityResult) -> bool:
    """Tells whether the endpoint, once overloaded, met the limits again at lower rates only."""
    after = any(row.purpose == RETURN for row in found.stretches or [])
    return after and found.memory is not None and found.memory.differ


def ended_of(found: CapacityResult) -> Ended:
    """The way in which it ended: ``complete``, ``early`` or ``interrupted``."""
    if found.outcome == "interrupted":
        return "interrupted"
    return found.ended or ("early" if why_early(found) else "complete")


def confirmed_of(found: CapacityResult) -> Verdict | None:
    """The verdict of the last wave at the answer; None where there was none."""
    waves = found.confirmation or []
    return waves[-1].verdict if waves else None


def repeated_waves(found: CapacityResult) -> dict[str, str]:
    """The folders of the waves at the answer that do not count, each with the reason; none where none counts."""
    waves = found.confirmation or []
    spoilt = {wave.directory: wave.spoilt for wave in waves if wave.spoilt}
    return spoilt if any(not wave.spoilt for wave in waves) else {}


def inherited(found: ProofResult) -> int:
    """The exit code of a proof: its own, its plan's and that of what it left behind, whichever is the gravest."""
    left = INVALID if any(left_behind(found)) else OK
    return worst_exit_code(found.exit_code, found.plan_exit_code or OK, left)


def left_behind(found: CapacityResult | ProofResult) -> Iterator[str]:
    """Clauses on what was made or changed for it, and may be so still; nothing where all is as it was before."""
    if found.clean_up == "failed":
        yield f"something that was created for it {NOT_REMOVED}"
    if found.suspended is not None and not found.suspended.put_back:
        yield "scaling that was suspended for it is not restored"


def broken_by(found: CapacityResult) -> Iterator[str]:
    """Clauses on what ended a search early and on what it left behind, whether it has an answer or none."""
    if ended_of(found) == "early":
        yield f"its search ended early: {why_early(found) or 'the reason is not recorded'}"
    yield from (f"{_LEFT}{each}" for each in left_behind(found))


def left_open_by(found: CapacityResult) -> Iterator[str]:
    """Clauses on what a search leaves open beside its answer: of one without a rate only on what broke."""
    has_rate = found.at_least is not None if found.interval is None else found.rate is not None
    return warnings_of(found) if has_rate else broken_by(found)


def row_code(row: RankedRow) -> int:
    """The part of a row in the exit code of its ranking: its own where it has a rank, else what broke."""
    return broken_code(row) if row.rank is None else row.exit_code or OK


def broken_code(row: RankedRow) -> int:
    """The exit code of what went wrong with a search beside its answer; OK where nothing did.

    It could not begin, ended early or left something behind; its answers are not those of the others; or it has no
    rank, because it found no rate, and so may be better than those that have one. Beside a rate, that the client
    reached its limit is none of these.
    """
    if row.ended == "early":
        return INVALID
    if row.outcome == FAILED or is_unknown(row):  # an earlier version stored no code
        return row.exit_code or OK
    left = any(each.startswith(_LEFT) for each in row.warnings)
    broken = INVALID if left or (row.exit_code == INVALID and row.outcome != "client_limited") else OK
    return worst_exit_code(MISSED, broken) if answers_differ(row) else broken


def answers_differ(row: RankedRow) -> bool:
    """Tells whether its answers are not those of the others, so that it does another job."""
    return row.answers is not None and row.answers.equal is False


def is_unknown(row: RankedRow) -> bool:
    """Tells whether a search has no rank because it found no rate."""
    return row.rank is None and row.outcome in OPEN


def warnings_of(found: CapacityResult) -> Iterator[str]:
    """Clauses on what a search leaves open, for whoever builds on it: ``its search ended early: ...``."""
    yield from broken_by(found)
    if ended_of(found) == "interrupted":
        yield "its search was interrupted"
    if found.outcome in OPEN:
        yield OPEN[found.outcome]
    verdict = confirmed_of(found)
    if verdict == "fails":
        yield "the confirming wave failed"
    elif verdict != "holds":
        yield "no wave confirmed it"
    yield from _violated(found)
    yield from (f"of its search, {each}" for each in found.warnings or [])


def is_unsaved(found: CapacityResult) -> bool:
    """Tells whether it could not be stored."""
    return any(each.endswith(UNSAVED) for each in found.failures or [])


def why_early(found: CapacityResult) -> str:
    """The words on what ended a search early, without a period; empty where nothing did."""
    lines = (each.removeprefix(EARLY) for each in found.failures or [] if each.startswith(EARLY))
    return next(lines, "").rstrip(".")


def is_refuted(found: CapacityResult) -> bool:
    """Tells whether what was measured at the lower end violates a limit there."""
    return confirmed_of(found) == "fails" or any(_violated(found))


def _violated(found: CapacityResult) -> Iterator[str]:
    """The limits on a percentile whose value at the lower end violates them."""
    for row in found.limits:
        bound, value = row.bound, row.at_low
        if row.unit != "s" or bound is None or value is None or row.allowed is None:
            continue
        if value > bound:
            yield f"{duration_text(value)} at the lower end violates {row.expression}"
