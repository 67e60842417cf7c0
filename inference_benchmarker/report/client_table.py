"""The rows that stand beside the client's findings: what its workers and its host did during the wave. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inference_benchmarker.verdict.client.late_cause import NOTABLE_STEAL
from inference_benchmarker.words.text import wrapped
from inference_benchmarker.words.units import MIB
from inference_benchmarker.words.wording import INDENT, duration_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from inference_benchmarker.facts.client_use import HostUse, ProcessUse, WorkerUse
    from inference_benchmarker.facts.wave_facts import WaveFacts

HEADER = ("Client", "CPU", "CPU wait", "loop delay p99", "longest block", "GC", "memory", "connections", "open files")
NOTABLE_PAUSE_S = 0.01
NOTABLE_MEMORY = 0.05
LEAST_RECONNECTS = 20
RECONNECTS = 0.5  # of the requests: a client or an endpoint that does not keep connections open
_BARS = "▁▂▃▄▅▆▇█"


def notable(facts: WaveFacts) -> bool:
    """Tells whether more than the findings is worth a look: the host, long GC pauses, a connection per request."""
    host = facts.host
    pauses = any(worker.collections.longest_s > NOTABLE_PAUSE_S for worker in facts.workers)
    opened = sum(worker.connections.opened for worker in facts.workers)
    reconnects = opened > max(RECONNECTS * facts.ledger.sent, LEAST_RECONNECTS)
    if host is None:
        return pauses or reconnects
    free = host.memory_available_bytes
    scarce = free is not None and free < NOTABLE_MEMORY * host.memory_total_bytes
    stolen = (host.steal_share_mean or 0.0) > NOTABLE_STEAL
    return pauses or reconnects or scarce or stolen or bool(host.throttled_s)


def worker_rows(facts: WaveFacts) -> list[list[str]]:
    """A header and a row a worker; ``-`` where something is not known."""
    return [list(HEADER), *(_worker_row(number, use) for number, use in enumerate(facts.workers))]


def _worker_row(number: int, use: WorkerUse) -> list[str]:
    gc = use.collections
    return [
        f"worker {number}",
        _percent(use.cpu_share),
        _percent(use.starved_share),
        "-" if use.loop_delay is None else duration_text(use.loop_delay.p99_s),
        "-" if use.loop_delay is None else duration_text(use.loop_delay.max_s),
        f"{gc.pauses:,}" + (f" (max {duration_text(gc.longest_s)})" if gc.pauses else ""),
        f"{use.max_rss_bytes / MIB:,.0f} MiB",
        f"{use.connections.opened:,}",
        f"{use.descriptors:,}",
    ]


def host_lines(host: HostUse, width: int | None = None) -> Iterator[str]:
    """The host's CPU, then its memory and network; below the first word where a line is wider than ``width``."""
    label = f"{INDENT}host: "
    for line, before in zip(_host_facts(host), (label, " " * len(label)), strict=True):
        yield from [before + line] if width is None else wrapped(line, width, before, " " * len(label))


def _host_facts(host: HostUse) -> Iterator[str]:
    cpu = [f"CPU {_percent(host.cpu_share_mean)} of {host.cores} cores (max {_percent(min(host.cpu_share_max, 1.0))})"]
    if host.steal_share_mean is not None:
        cpu.append(f"{_percent(host.steal_share_mean)} stolen by other guests")
    if host.throttled_s is not None:
        cpu.append(
            f"{duration_text(host.throttled_s)} throttled by the cgroup" if host.throttled_s else "not throttled"
        )
    yield ", ".join(cpu)
    rest = []
    if host.memory_available_bytes is not None:
        free, total = host.memory_available_bytes / MIB, host.memory_total_bytes / MIB
        rest.append(f"{free:,.0f} of {total:,.0f} MiB memory free")
    sent, received = host.network_sent_bytes_per_s, host.network_received_bytes_per_s
    rest.append(f"network {_rate(sent)} out, {_rate(received)} in")
    yield ", ".join(rest)


def process_rows(processes: tuple[ProcessUse, ...]) -> Iterator[list[str]]:
    """A header and a row a process, with its CPU over the wave's time as bars up to its own maximum."""
    yield ["Process", "CPU mean", "CPU max", "memory max", "CPU over time"]
    for process in processes:
        yield [
            process.process.replace("_", " "),
            f"{process.cpu_percent_mean:.0f}%",
            f"{process.cpu_percent_max:.0f}%",
            f"{process.memory_bytes_max / MIB:,.0f} MiB",
            _bars(process.cpu_series),
        ]


def _bars(values: tuple[float, ...]) -> str:
    top = max((100.0, *values))  # a core, or more where more is used
    return "".join(_BARS[min(int(value / top * len(_BARS)), len(_BARS) - 1)] for value in values)


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.0f}%" if share >= 0.1 else f"{100 * share:.1f}%"


def _rate(bytes_per_s: float) -> str:
    return f"{bytes_per_s / 1e6:.3g} MB/s"
