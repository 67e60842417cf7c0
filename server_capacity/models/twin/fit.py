"""The exploration becomes a twin, or a reason why it is no queue with one line. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from server_capacity.models.twin.line import Line, Lines
from server_capacity.models.twin.twin import Twin

if TYPE_CHECKING:
    from collections.abc import Sequence

    from server_capacity.models.twin.trace import Floats, Trace

SERVERS_AT_MOST = 128
_SKETCH, _CLOSE = 10_000, 200_000  # requests that are looked at for every number of servers, and for the likely ones
_FAILED = 0.001
_APART = 0.03  # as a share of a service, beyond chance: what the services of two groups may differ
_IMPOSSIBLE = 0.01
_SIGMAS = 4.0


@dataclass(frozen=True, slots=True)
class Refused:
    """The endpoint is not what the model describes, or too little was seen to tell: ``reason``, a clause."""

    reason: str


def fit(waves: Sequence[Trace]) -> Twin | Refused:
    """The twin of what answered these waves, each of which began with an empty queue."""
    of = sum(len(wave.sent_s) for wave in waves)
    if not of:
        return Refused("nothing was sent")
    good = sum(int((wave.ok & wave.answered).sum()) for wave in waves)
    if of - good > max(3, _FAILED * of):
        return Refused(
            f"{1 - good / of:.1%} of requests failed, and the model does not describe a queue that rejects requests"
        )
    line = _likeliest(waves)
    if line is None:
        return Refused(
            "too few requests waited, or too few did not wait, to estimate the number of servers and their service time"
        )
    reason = _no_line(line) or _changing(line) or _together(line)
    return Refused(reason) if reason else Twin.of(line)


def _likeliest(waves: Sequence[Trace]) -> Line | None:
    """The line whose services are most alike, whether requests waited or not."""
    sketch = _best(Lines(waves, _SKETCH), range(1, SERVERS_AT_MOST + 1))
    if sketch is None:
        return None
    around = range(max(1, sketch.servers - 2), min(SERVERS_AT_MOST, sketch.servers + 2) + 1)
    lines = Lines(waves, _CLOSE)
    line = _best(lines, around)
    return line and replace(line, own=lines.own(line))


def _best(lines: Lines, servers: range) -> Line | None:
    found = [line for number in servers if (line := lines.of(number)).is_usable]
    return min(found, key=lambda line: line.disagreement + line.impossible, default=None)


def _no_line(line: Line) -> str:
    if line.impossible > _IMPOSSIBLE:
        return (
            f"{line.impossible:.0%} of requests overtook others; last-in-first-out order, processor sharing, or "
            "several queues behind a router look like this"
        )
    services, waited = line.services_s, line.waited
    chance = _SIGMAS * _spread(services) * (1 / waited.sum() + 1 / (~waited).sum()) ** 0.5 / 2
    if line.disagreement > _APART + chance:
        return (
            f"no number of servers explains the response times both with and without waiting ({line.servers} "
            f"servers come closest, {line.disagreement:.0%} off); batching, processor sharing or a changing number "
            "of workers look like this"
        )
    queue = waited & (line.wait_s > np.median(line.wait_s[waited]))
    return _different(services[waited & ~queue], services[queue], "services take {:.0%} {} where many wait")


def _changing(line: Line) -> str:
    services = line.services_s
    half = len(services) // 2
    return _different(services[:half], services[half:], "services took {:.0%} {} in the second half of the exploration")


def _different(one: Floats, other: Floats, sentence: str) -> str:
    if min(len(one), len(other)) < 100:
        return ""
    change = float(other.mean() / one.mean() - 1)
    chance = _SIGMAS * float(np.hypot(_spread(one) / len(one) ** 0.5, _spread(other) / len(other) ** 0.5))
    return sentence.format(abs(change), "longer" if change > 0 else "less") if abs(change) > _APART + chance else ""


def _together(line: Line) -> str:
    """Services that are long at the same time, as in a pause of the whole server, are not drawn independently."""
    services = line.services_s
    size = max(50, 8 * line.servers)
    blocks = services[: len(services) // size * size].reshape(-1, size)
    if len(blocks) < 10 or _spread(services) < 2 * _APART:
        return ""
    dispersion = float(blocks.mean(axis=1).var(ddof=1) * size / services.var())
    if dispersion > 1.5 + _SIGMAS * (2 / len(blocks)) ** 0.5:
        return (
            f"slow requests come in bursts (the variance of their means is {dispersion:.1f} times that of "
            "independent ones), as during pauses"
        )
    return ""


def _spread(services: Floats) -> float:
    return float(services.std() / services.mean())
