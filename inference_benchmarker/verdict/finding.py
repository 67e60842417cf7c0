"""A finding, which a reader of a wave's numbers must know, and the closed list of the codes of findings. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Severity = Literal["invalid", "missed", "warning"]
FindingCode = Literal[
    "primary_lost",
    "host_lost",
    "worker_lost",
    "foreign_connections",
    "processes_left",
    "disk_full",
    "loopback_down",
    "ledger_broken",
    "dropped_arrivals",
    "rate_missed",
    "schedule_late",
    "schedule_lag",
    "late_arrivals",
    "host_clock",
    "host_differs",
    "loop_blocked",
    "heartbeats_missed",
    "worker_memory",
    "worker_cpu",
    "payload_building",
    "payload_failed",
    "connection_pool",
    "descriptors",
    "ports",
    "local_network",
    "hidden_statuses",
    "textless_streams",
    "no_connection",
    "server_metrics",
    "impossible_usage",
    "lock_wait",
    "connections_opened",
    "hidden_retries",
    "server_limited",
    "client_or_server",
    "endpoint_stalled",
    "not_recovered",
    "aborted",
    "nothing_sent",
    "success_below_threshold",
    "slo_missed",
    "unfinished_requests",
    "sessions_open",
    "sessions_raised",
    "sessions_began_together",
    "canary_swapped",
    "canary_differs",
    "cache_from_before",
    "answer_lengths",
    "too_few_samples",
]
"""The closed list of findings; docs/reference/findings.md has a row for each, and ``verdict.judge`` asks for them."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Something a reader of the numbers must know: what was measured, against which limit, and what to do."""

    code: FindingCode
    severity: Severity
    measured: str
    limit: str
    advice: str

    @property
    def compared(self) -> str:
        """The measured value with its limit; what else was seen, behind a semicolon, comes after both.

        A limit on a share joins the share, which ends the value in parentheses.
        """
        value, semicolon, more = self.measured.partition("; ")
        before, _, share = value.rpartition(" (")
        if "%" in self.limit and "%" in share and share.endswith(")"):
            return f"{before} ({share[:-1]}, limit {self.limit}){semicolon}{more}"
        return f"{value} (limit {self.limit}){semicolon}{more}"

    @property
    def named(self) -> str:
        """The measured value where no title stands above it: a bare number has the finding's name before it."""
        name = f"{self.code.replace('_', ' ')}: " if self.measured[:1].isdigit() else ""
        return f"{name}{self.measured}"
