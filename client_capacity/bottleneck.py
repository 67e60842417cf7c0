"""Says who was the limit of a wave: this client, with the evidence, or the endpoint. Pure.

The client is blamed only for what was measured in it. The endpoint is named only where the client is clean.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from client_capacity.case import Case
from client_capacity.endpoint_findings import SERVER_LIMITED, endpoint_findings
from client_capacity.network_findings import network_findings, waits_for_pool
from client_capacity.worker_findings import worker_findings

if TYPE_CHECKING:
    from collections.abc import Iterable

    from inference_benchmarker.finding import Finding
    from inference_benchmarker.observed import Observed
    from inference_benchmarker.summary import Summary

CLIENT_CODES = frozenset(
    {
        "schedule_lag",
        "worker_cpu",
        "loop_blocked",
        "payload_building",
        "payload_failed",
        "connection_pool",
        "descriptors",
        "ports",
        "local_network",
        "heartbeats_missed",
    }
)
# With these the client itself made answers late or missing. The others also follow from an endpoint that is too slow:
# more requests in flight overflow pools and take more descriptors.
CAUSES = frozenset({"schedule_lag", "loop_blocked", "payload_failed", "local_network", "heartbeats_missed"})


def limits_found(observed: Observed, summary: Summary) -> list[Finding]:
    """What was found on this side; ``server_limited`` where none of it explains that the endpoint fell behind."""
    case = Case(observed, summary)
    found = [*worker_findings(case), *network_findings(case)]
    caused_here = waits_for_pool(case) or any(finding.code in CAUSES for finding in found)
    return found if caused_here else [*found, *endpoint_findings(case)]


def limited_by(findings: Iterable[Finding]) -> str | None:
    """Which side the findings blame: ``client``, ``server`` or neither."""
    codes = {finding.code for finding in findings}
    return "server" if SERVER_LIMITED in codes else "client" if codes & CLIENT_CODES else None
