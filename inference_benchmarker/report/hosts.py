"""The hosts of a wave in a table: what each sent and used, and what is known of its clock. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inference_benchmarker.summary.time_table import value_text
from inference_benchmarker.words.text import one_line
from inference_benchmarker.words.wording import INDENT, aligned, duration_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from inference_benchmarker.facts.client_use import HostUse
    from inference_benchmarker.facts.hosts import HostClock, HostFacts
    from inference_benchmarker.summary.hosts import HostRow
    from inference_benchmarker.summary.statistics.distribution import Distribution

HEADER = (
    *("Host", "workers", "sent", "lag p99", "latency p50", "p99", "CPU", "steal"),
    *("clock", "uncertainty", "drift", "round trip"),
)
_MOST_ROWS, _LONG = 50, 60


def host_table(rows: Sequence[HostRow]) -> list[list[str]]:
    """A header and a row a host; ``-`` where something is not known, or the clock is our own. Nothing without hosts."""
    if not rows:
        return []
    return [list(HEADER), *map(_row, rows[:_MOST_ROWS])]


def host_lines(rows: Sequence[HostRow], width: int | None = None) -> Iterator[str]:
    """The table, and how many hosts are left out of it."""
    yield from aligned(host_table(rows), width) if rows else ()
    if len(rows) > _MOST_ROWS:
        yield f"{INDENT}… and {len(rows) - _MOST_ROWS} more hosts, in summary.json"


def _row(row: HostRow) -> list[str]:
    host = row.host
    return [
        one_line(host.name, _LONG) + (f" ({', '.join(marks)})" if (marks := list(_marks(host))) else ""),
        str(len(host.workers)),
        f"{row.ledger.sent:,}",
        _value(row.lag, 99),
        *(_value(row.latency, percent) for percent in (50, 99)),
        *_use(host.use),
        *_clock(host.clock),
    ]


def _marks(host: HostFacts) -> Iterator[str]:
    """The remarks that stand beside the name of a host."""
    for mark in (host.node, host.zone, host.instance_type):
        if mark is not None:
            yield one_line(mark, _LONG)
    if host.lost is not None:
        yield "lost"


def _value(distribution: Distribution | None, percent: float) -> str:
    return "-" if distribution is None else value_text(distribution, distribution.percentile(percent))


def _use(use: HostUse | None) -> list[str]:
    if use is None:
        return ["-", "-"]
    cpu = f"{use.cpu_share_mean:.0%} of {use.cores}"
    return [cpu, "-" if use.steal_share_mean is None else f"{use.steal_share_mean:.1%}"]


def _clock(clock: HostClock | None) -> list[str]:
    if clock is None:
        return ["-"] * 4
    sign = "-" if clock.offset_s < 0 else "+"
    return [
        f"{sign}{duration_text(abs(clock.offset_s))}",
        f"± {duration_text(clock.uncertainty_s)}",
        "-" if clock.drift_ppm is None else f"{clock.drift_ppm:+.1f} ppm",
        duration_text(clock.round_trip_s),
    ]
