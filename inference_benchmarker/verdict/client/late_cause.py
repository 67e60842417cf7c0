"""Names the cause of late arrivals from what was measured beside them, and what to do about it. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inference_benchmarker.words.wording import duration_text, percent_text

if TYPE_CHECKING:
    from inference_benchmarker.facts.client_use import WorkerUse
    from inference_benchmarker.verdict.client.evidence import Evidence, Sender

BUILD_FLOOR_S = 0.001
STARVED_SHARE = 0.1
NOTABLE_STEAL = 0.02
BUSY_WORKER = 0.5  # of a core: below it a worker has time to spare, whatever else held it up


def late_advice(evidence: Evidence, limit_s: float) -> str:
    """The cause of steady lateness that the evidence names, and one thing to do; else that nothing names one."""
    return _seen_cause(evidence, limit_s) or _pace(evidence)


def hiccup_advice(evidence: Evidence, limit_s: float) -> str:
    """The same of a few late arrivals, which are no evidence against the pace."""
    cause = _seen_cause(evidence, limit_s)
    if cause:
        return f"{cause} A few late arrivals do not make the wave INVALID."
    return (
        "A few late arrivals do not make the wave INVALID, and no measurement shows their cause; a short pause of "
        "this machine is typical. Send the wave again if the high percentiles matter."
    )


def _seen_cause(evidence: Evidence, limit_s: float) -> str:
    """The cause that was seen, the most certain first; empty where none was."""
    build = evidence.summary.build
    if build is not None and build.mean > BUILD_FLOOR_S:
        return (
            f"Building a payload takes {duration_text(build.mean)} on average: compute payloads before the wave "
            f'("pre_computed": True), or {evidence.more_workers()}.'
        )
    starved = [worker for worker in evidence.workers if is_starved(worker)]
    if starved:
        return starved_advice(evidence, max(starved, key=lambda worker: worker.starved_share or 0.0), limit_s)
    for worker in evidence.workers:
        if worker.block and worker.block.part == "invoke":
            where = worker.block.where
            return f"{where} prevents the worker from sending on time: make it faster, or {evidence.more_workers()}."
    of_hosts = (_host(evidence, sender, limit_s) for sender in evidence.senders)
    return _pause(evidence, limit_s) or next(filter(None, of_hosts), "")


def _pause(evidence: Evidence, limit_s: float) -> str:
    longest = max((worker.collections.longest_s for worker in evidence.workers), default=0.0)
    if longest <= limit_s:
        return ""
    return (
        f"Python's garbage collection stopped a worker for {duration_text(longest)}: keep fewer objects alive, or call "
        "gc.freeze() at the end of invoke_factory."
    )


def _host(evidence: Evidence, sender: Sender, limit_s: float) -> str:
    host = sender.use
    if sender.others_took_cores:
        return others_advice(evidence, sender)
    if throttled := _throttled(sender, limit_s):
        return throttled
    if host is not None and (host.steal_share_mean or 0.0) > NOTABLE_STEAL:
        return (
            f"Other guests of the {'same machine' if sender.name is None else f'machine of {sender.name}'} took "
            f"{percent_text(host.steal_share_mean or 0.0)} of the CPU (steal): more workers do not help. Send the "
            "wave again, or use a client with dedicated CPUs."
        )
    return ""


def _throttled(sender: Sender, limit_s: float) -> str:
    throttled_s = 0.0 if sender.use is None else sender.use.throttled_s or 0.0
    if throttled_s <= limit_s:
        return ""
    return (
        f"The cgroup throttled {'this client' if sender.name is None else sender.name} for "
        f"{duration_text(throttled_s)} in total, since it used up its CPU quota: raise the quota."
    )


def _pace(evidence: Evidence) -> str:
    """Too much to do, where a worker was busy or that is not known."""
    shares = [worker.cpu_share for worker in evidence.workers if worker.cpu_share is not None]
    if not shares or max(shares) > BUSY_WORKER:
        return f"The client cannot keep this rate: {evidence.more_workers()}."
    return (
        f"No measurement shows the cause (the busiest worker used {percent_text(max(shares))} of a core): send the "
        f"wave again; if it is late again, {evidence.more_workers()}."
    )


def is_starved(worker: WorkerUse) -> bool:
    """Tells whether it waited for a free core rather than for its own code."""
    waited = worker.starved_share or 0.0
    return waited > STARVED_SHARE and waited > (worker.cpu_share or 0.0)


def starved_advice(evidence: Evidence, worker: WorkerUse, limit_s: float) -> str:
    """The advice where a worker waited for a free core, as one does whose cgroup is throttled."""
    sender, waited = evidence.sender_of(worker), percent_text(worker.starved_share or 0.0)
    name = sender.name
    return _throttled(sender, limit_s) or (
        f"A worker{'' if name is None else f' on {name}'} waited {waited} of the time for a free core: run fewer "
        f"other programs, or use a larger client{shown_by_process(evidence)}."
    )


def others_advice(evidence: Evidence, sender: Sender) -> str:
    """The advice where others left too little of a host, as ``others_took_cores`` finds."""
    host, own = sender.use, sender.workers_cpu_share
    assert host is not None
    assert own is not None
    busy, most = f"{host.cpu_share_mean:.0%}", f"{min(host.cpu_share_max, 1.0):.0%}"
    top = "" if busy == most else f" on average and {most} at most"
    return (
        f"Other programs on {sender.described} took the CPU (its {host.cores} cores were {busy} busy{top}; "
        f"this wave's workers used {own:.1%}). Run fewer other "
        f"programs, or use a larger client{shown_by_process(evidence)}."
    )


def shown_by_process(evidence: Evidence) -> str:
    """The flag that shows which process it was, as a sentence after another; empty where it was given."""
    return "" if evidence.facts.processes else ". --sample-client-hw shows what each process of the wave used"
