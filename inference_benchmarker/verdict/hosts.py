"""The findings on the hosts of a wave: one that was lost, clocks that cannot be compared, one that sees more. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inference_benchmarker.verdict.finding import Finding
from inference_benchmarker.words.text import one_line
from inference_benchmarker.words.wording import duration_text, percent_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from inference_benchmarker.facts.hosts import HostClock, HostFacts
    from inference_benchmarker.facts.wave_facts import WaveFacts
    from inference_benchmarker.summary.hosts import HostRow
    from inference_benchmarker.summary.summary import Summary

FAR_BEYOND = 10  # times --max-clock-error
NOTABLE_LAG_S = 0.001
_LONG = 300
_MEASURE = "Use a host with a shorter network path, or raise --max-clock-error if you do not compare hosts: "
_EXACT = "latency and lag are differences on one clock, and so exact."


def host_findings(facts: WaveFacts, summary: Summary) -> Iterator[Finding]:
    """Each names its host, as the user does."""
    limit_s = float(facts.plan.hosts.max_clock_error_s)
    for host in facts.hosts:
        if host.lost is not None:
            yield _lost(facts, host)
        if host.clock is not None:
            yield from _clock(host.name, host.clock, limit_s)
    for row in summary.hosts:
        yield from _differs(row)


def _lost(facts: WaveFacts, host: HostFacts) -> Finding:
    missing = sum(facts.ledgers[number].lost for number in host.workers)
    more = f"`benchmark hosts check --hosts {host.name}` shows whether it is back."
    if facts.plan.hosts.host_keys is not None:
        more = "The output of `benchmark hosts join` there may say why, or, for a pod, `kubectl describe pod`."
    return Finding(
        "host_lost",
        "invalid",
        f"{host.name}: {one_line((host.lost or '').rstrip('.'), _LONG)}; {missing:,} arrivals with it",
        "0 hosts",
        f"No other host took over its share; its records up to then are in this report. {more}",
    )


def _clock(name: str, clock: HostClock, limit_s: float) -> Iterator[Finding]:
    """Of a clock that cannot be trusted, the gravest thing alone; and that somebody corrects it."""
    uncertainty, limit = duration_text(clock.uncertainty_s, limit_s), duration_text(limit_s)
    if clock.ahead_s > 0:
        measured = f"{name}: a request ended {duration_text(clock.ahead_s)} after its record had arrived here"
        advice = "Its clock was set or is wrong: the times at which its requests started are unknown."
        yield Finding("host_clock", "invalid", measured, f"± {uncertainty}", advice)
    elif clock.round_trip_s < -limit_s:
        measured = f"{name}: by its clock it took {duration_text(-clock.round_trip_s)} longer to answer than it did"
        advice = "Its clock cannot be trusted: the time that its requests took is unknown. Leave this host out."
        yield Finding("host_clock", "invalid", measured, "0 s", advice)
    elif clock.jump_s > clock.uncertainty_s:
        measured = f"{name}: its clock jumped by {duration_text(clock.jump_s, clock.uncertainty_s)}"
        advice = (
            "Drift cannot explain it: find out what set the clock or moved the virtual machine, and send the "
            "wave again."
        )
        yield Finding("host_clock", "invalid", measured, f"± {uncertainty}", advice)
    elif clock.uncertainty_s > FAR_BEYOND * limit_s:
        measured = (
            f"{name}: the uncertainty of its clock is ± {duration_text(clock.uncertainty_s, FAR_BEYOND * limit_s)}"
        )
        advice = f"The time when it began to send is as uncertain. {_MEASURE}{_EXACT}"
        yield Finding("host_clock", "invalid", measured, duration_text(FAR_BEYOND * limit_s), advice)
    elif clock.uncertainty_s > limit_s:
        measured, advice = f"{name}: the uncertainty of its clock is ± {uncertainty}", f"{_MEASURE}{_EXACT}"
        yield Finding("host_clock", "warning", measured, limit, advice)
    if clock.is_slewed:
        yield _slewed(name, clock.slew_ppm or 0.0)


def _slewed(name: str, slew_ppm: float) -> Finding:
    return Finding(
        "host_clock",
        "warning",
        f"{name}: its clock is slewed, by {slew_ppm:,.0f} ppm",
        "no correction during the wave",
        f"Times on it are longer or shorter by {percent_text(abs(slew_ppm) / 1e6)}: let NTP settle, and send again.",
    )


def _differs(row: HostRow) -> Iterator[Finding]:
    lag, latency, name = row.more_lag, row.more_latency, row.host.name
    if lag is not None and lag.is_worse and lag.mine - lag.others > NOTABLE_LAG_S:
        yield _worse(name, "schedule lag", lag.mine, lag.others, "It has too little CPU, or a busy neighbour")
    if latency is not None and latency.is_worse:
        yield _worse(name, "latency", latency.mine, latency.others, "It is in a zone farther away, or has a busy link")


def _worse(name: str, what: str, mine_s: float, others_s: float, cause: str) -> Finding:
    more = duration_text(mine_s - others_s)
    return Finding(
        "host_differs",
        "warning",
        f"{name} sees {more} more {what} than the others ({duration_text(mine_s)} against {duration_text(others_s)})",
        "20% more, beyond noise",
        f"{cause}: leave it out, or read the percentiles as a mixture of two places.",
    )
