"""Says who was the limit of a wave: this client, with the evidence, or the endpoint. Pure.

The client is blamed only for what was measured in it. The endpoint is named only for what was seen while the client was
clean: what came first is the cause, what came then may be its consequence. Where the requests waited within the user's
own code, both are named.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Final

from inference_benchmarker.facts.stages import stages_of
from inference_benchmarker.verdict.client.answers import answer_findings
from inference_benchmarker.verdict.client.endpoint import (
    ENDPOINT_STALLED,
    SERVER_LIMITED,
    endpoint_findings,
    has_kept_up,
    standstill_findings,
)
from inference_benchmarker.verdict.client.evidence import Evidence
from inference_benchmarker.verdict.client.network import as_consequence, clear_until_ns, network_findings, seen_aside
from inference_benchmarker.verdict.client.worker import SCHEDULE_LAG, in_time_until_ns, worker_findings
from inference_benchmarker.verdict.finding import Finding

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from inference_benchmarker.facts.wave_facts import WaveFacts
    from inference_benchmarker.summary.summary import Summary
    from inference_benchmarker.verdict.finding import FindingCode

CLIENT_CODES: frozenset[FindingCode] = frozenset(
    {
        "schedule_lag",
        "worker_memory",
        "worker_cpu",
        "loop_blocked",
        "payload_building",
        "payload_failed",
        "connection_pool",
        "lock_wait",
        "descriptors",
        "ports",
        "local_network",
        "heartbeats_missed",
    }
)
SERVER_CODES: frozenset[FindingCode] = frozenset({SERVER_LIMITED, ENDPOINT_STALLED})
CLIENT_OR_SERVER: Final = "client_or_server"
EITHER_CODES: frozenset[FindingCode] = frozenset({CLIENT_OR_SERVER})
EITHER: Final = "either"
SIDES = {EITHER: EITHER_CODES, "server": SERVER_CODES, "client": CLIENT_CODES}
# With these the client itself made answers late or missing. The others also follow from an endpoint that is too slow:
# more requests in flight overflow pools and take more descriptors.
CAUSES: frozenset[FindingCode] = frozenset(
    {SCHEDULE_LAG, "loop_blocked", "payload_failed", "local_network", "heartbeats_missed"}
)


def bottleneck_findings(facts: WaveFacts, summary: Summary) -> list[Finding]:
    """The findings: ``server_limited`` where the endpoint fell behind before anything of this side explains it."""
    evidence = Evidence(facts, summary)
    found = [*([] if _was_dead(facts) else worker_findings(evidence)), *network_findings(evidence)]
    clean_ns = _clean_until_ns(evidence, found)
    server = list(endpoint_findings(evidence, clean_ns)) or list(islice(_stage_findings(evidence, clean_ns), 1))
    server = server or list(standstill_findings(evidence))
    if server and (aside := seen_aside(evidence)):
        return [_of_either(server[0], aside), *found, *answer_findings(evidence)]
    fell_behind = any(finding.code == SERVER_LIMITED for finding in server)
    own = [as_consequence(evidence, finding) if fell_behind else finding for finding in found]
    return [*server, *own, *answer_findings(evidence)]


def _of_either(finding: Finding, aside: str) -> Finding:
    """A finding on the endpoint where the requests may have waited before they were sent to it."""
    return Finding(
        CLIENT_OR_SERVER,
        "warning",
        f"{finding.measured}; {aside}",
        finding.limit,
        "The client or the endpoint was the limit: this client cannot see which requests the endpoint had. "
        "Compare the requests in flight with what the endpoint itself counts: where it had fewer, invoke let too few "
        "through (its workers, its pool, its pauses).",
    )


def _was_dead(facts: WaveFacts) -> bool:
    """The endpoint was dead all along: there is no time of an answer that a late client could have spoilt."""
    return facts.aborted is not None and facts.aborted.by_dead_endpoint and not facts.ledger.ok


def _stage_findings(evidence: Evidence, clean_ns: int | None) -> Iterator[Finding]:
    """The endpoint fell behind in a stage of one rate, judged as a wave: the next stages may have made up for it."""
    if all(has_kept_up(row.summary) for row in evidence.summary.stages):
        return
    for found, row in zip(stages_of(evidence.facts), evidence.summary.stages, strict=True):
        clean = None if clean_ns is None else clean_ns - found.start_ns
        if found.stage.from_rps == found.stage.to_rps and (clean is None or clean > 0):
            for finding in endpoint_findings(Evidence(found.facts, row.summary), clean):
                yield replace(finding, measured=f"stage {found.name}: {finding.measured}")


def _clean_until_ns(evidence: Evidence, found: Iterable[Finding]) -> int | None:
    """From when on the client itself made answers late or missing; 0 where that is not known, None where it did not."""
    first_instant = {SCHEDULE_LAG: in_time_until_ns}
    causes = [first_instant.get(finding.code, _always)(evidence) for finding in found if finding.code in CAUSES]
    return min((instant for instant in (*causes, clear_until_ns(evidence)) if instant is not None), default=None)


def _always(_: Evidence) -> int:
    return 0


def limited_by(findings: Iterable[Finding]) -> str | None:
    """Which side the findings blame: ``client``, ``server``, ``either`` where it is one of both, or neither."""
    codes = {finding.code for finding in findings}
    return next((side for side, its in SIDES.items() if codes & its), None)


def limited_words(side: str) -> str:
    """The words for a side that was the limit."""
    return "client- or server-limited" if side == EITHER else f"{side}-limited"
