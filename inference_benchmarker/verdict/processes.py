"""The findings on a wave's processes: lost, left behind, and books of theirs that do not add up. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inference_benchmarker.facts.hosts import host_of_worker
from inference_benchmarker.records.record import OUTCOMES
from inference_benchmarker.verdict.finding import Finding
from inference_benchmarker.words.text import one_line
from inference_benchmarker.words.wording import pluralize

if TYPE_CHECKING:
    from collections.abc import Iterator

    from inference_benchmarker.facts.wave_facts import WaveFacts

_FILE_TOO_LARGE = "File too large"  # of EFBIG


def process_findings(facts: WaveFacts) -> Iterator[Finding]:
    """Processes and hosts of the client that were lost or changed what they were to do."""
    yield from _lost_findings(facts)
    yield from _stranger_findings(facts)
    yield from _book_findings(facts)


def _lost_findings(facts: WaveFacts) -> Iterator[Finding]:
    """The parts of the wave that were gone before its end."""
    if facts.loopback_down_s is not None:
        yield Finding(
            "loopback_down",
            "invalid",
            f"this host could not reach itself on 127.0.0.1 from about {facts.loopback_down_s:.0f} s on",
            "the processes of the wave reach each other throughout",
            "The loopback interface (lo) was down, or a firewall closed it: what the workers reported since may be "
            "late or lost. As root, `ip link set lo up` brings it up.",
        )
    if facts.primary_lost:
        yield Finding(
            "primary_lost",
            "invalid",
            "the primary process ended in the middle of the wave",
            "it runs until its last report",
            "See logs/primary.log in the run directory; this report has what was reported until then.",
        )
    if facts.lost_workers:
        yield Finding(
            "worker_lost",
            "invalid",
            f"{_where(facts)}{len(facts.lost_workers)} of {facts.plan.workers} workers, "
            f"{facts.ledger.lost:,} arrivals with them",
            "0 workers",
            f"See logs/worker_{facts.lost_workers[0]}.log in the run directory: killed, out of memory, "
            "or blocked in invoke forever.",
        )
    if facts.disk_error:
        yield Finding(
            "disk_full",
            "invalid",
            f"the run directory could not be written: {facts.disk_error}",
            "all records stored",
            f"{_room(facts.disk_error)}; the wave was stopped when it happened.",
        )


def _room(error: str) -> str:
    """The advice for what the system says of a file that cannot be written."""
    if error == _FILE_TOO_LARGE:
        return "Raise the limit on a file's size, as by `ulimit -f unlimited`"
    return "Free some space, or choose another place with --output-dir"


def _stranger_findings(facts: WaveFacts) -> Iterator[Finding]:
    """Processes and connections that are not the wave's."""
    if facts.left_behind:
        yield Finding(
            "processes_left",
            "warning",
            f"{pluralize(len(facts.left_behind), 'process', 'processes')} outlived the wave: "
            + one_line(", ".join(facts.left_behind)),
            "0",
            "They were ended. This report does not count what they sent: let invoke stop the processes that it starts.",
        )
    if facts.foreign_connections:
        yield Finding(
            "foreign_connections",
            "warning",
            pluralize(facts.foreign_connections, "connection", "connections") + " of other programs to the wave's port",
            "0",
            "They were refused and changed nothing. Leave --port out, or check what else uses that port: a Locust "
            "worker of another test, a port scan.",
        )


def _book_findings(facts: WaveFacts) -> Iterator[Finding]:
    """Arrivals and requests that do not add up."""
    ledger = facts.ledger
    if not all(ledger.balanced for ledger in facts.ledgers):
        yield Finding(
            "ledger_broken",
            "invalid",
            f"scheduled {ledger.scheduled:,}, sent {ledger.sent:,}, repeated {ledger.repeated:,}, "
            f"dropped {ledger.dropped:,}, lost {ledger.lost:,}",
            "scheduled + repeated = sent + dropped + lost",
            "This is a bug in this tool: please report it with the run directory.",
        )
    if unrecorded := _unrecorded(facts) or _miscounted(facts):
        yield Finding(
            "ledger_broken",
            "invalid",
            unrecorded,
            "each is recorded once",
            "A worker was out of memory while recording, so the report has the other requests alone: keep less in "
            "invoke, or give the worker more memory (ulimit -v shows the limit).",
        )


def _where(facts: WaveFacts) -> str:
    """The hosts whose workers were lost."""
    names = dict.fromkeys(host_of_worker(facts.hosts, number) for number in facts.lost_workers)
    return f"{', '.join(filter(None, names))}: " if facts.hosts else ""


def _unrecorded(facts: WaveFacts) -> str:
    """The requests whose record was lost, in words: a worker that reported to the end leaves none in flight."""
    there = (ledger for number, ledger in enumerate(facts.ledgers) if number not in facts.lost_workers)
    lost = sum(ledger.in_flight for ledger in there)
    return f"{lost:,} of {facts.ledger.sent:,} requests were sent and not recorded" if lost > 0 else ""


def _miscounted(facts: WaveFacts) -> str:
    """Of a wave without records what was not counted as often as it came, first sendings, in words; else nothing."""
    if facts.counts is None:
        return ""
    window = facts.counts.window
    pairs = ((name, getattr(facts.ledger, name), window.total(name)) for name in ("sent", *OUTCOMES))
    return next((f"{came:,} {name} requests, {found:,} counted" for name, came, found in pairs if came != found), "")
