"""The question of a plan: for which load, from which searches, with how much room. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from inference_benchmarker.errors import BenchmarkError, Problem
from inference_benchmarker.plan.stage import LEAST_RATE, MAX_RATE
from inference_benchmarker.words.redact import quoted
from inference_benchmarker.words.units import MAX_SECONDS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from inference_benchmarker.plan.replay import Replay
    from inference_benchmarker.plan.stage import Stage

RANDOM, LEAST_OUTSTANDING, PREFIX_AWARE = "random", "least_outstanding", "prefix_aware"
LEAST_USE, MOST_USE = 0.05, 1.0
MOST_INSTANCES = 10_000
MOST_GROWTH = 100.0
MOST_USERS, MOST_PER_DAY, MOST_PEAK = 10_000_000_000, 100_000.0, 24.0
MOST_KV_TOKENS = 1_000_000_000
_GROWTH = re.compile(r"(?P<number>\d{1,9}(?:\.\d{1,9})?)\s*(?P<percent>%)?\s*(?:/\s*(?P<unit>s|min|h))?")
_PER_MIN = {"s": 60.0, "min": 1.0, "h": 1 / 60}


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """A question about one endpoint, searched once or, for one that does not scale linearly, at two counts.

    ``capacities`` are folders of searches, ``instances`` how many instances each of them measured, where the folders do
    not say. ``growth_per_min`` and ``utilisation`` are shares, ``spare`` instances that may be lost.
    ``tier``: whose search is planned for, in a folder of several tiers.
    ``users``: a plan for so many, each with so many conversations per day, of which ``peak_factor`` times the average
    begin in the busiest hour; ``kv_tokens``: the KV cache of a replica, where that is simulated.
    ``endpoint_name``: as the deployed endpoint is called, which policies name; ``instance_type``: where the search does
    not know it.
    """

    capacities: tuple[Path, ...]
    target_rps: float | None = None
    stages: tuple[Stage, ...] = ()
    replay: Replay | None = None
    growth_per_min: float | None = None
    seconds_to_create: float | None = None
    utilisation: float = 0.7
    spare: int = 1
    instances: tuple[int, ...] = ()
    minimum: int | None = None
    maximum: int | None = None
    routing: str = ""
    name: str = ""
    endpoint_name: str = ""
    instance_type: str = ""
    tier: str = ""
    users: int | None = None
    conversations_per_day: float | None = None
    peak_factor: float | None = None
    kv_tokens: int | None = None

    def problems(self) -> Iterator[Problem]:
        """Everything that is wrong with it, whatever the searches found."""
        if not self.capacities:
            yield Problem(("capacities",), "Give the folder of a search: CAPACITY_DIR, or one per entry of --mix.")
        yield from self._of_users() if self.users is not None else self._of_requests()
        if self.target_rps is not None and not float(LEAST_RATE) <= self.target_rps <= MAX_RATE:
            text = f"--target-rps must be from {LEAST_RATE} to {MAX_RATE:,} requests/s, not {self.target_rps:g}."
            yield Problem(("target_rps",), text)
        if self.stages and self.replay is not None:
            yield Problem(("stages", "replay"), "Give either --replay or --stages, not both.")
        if not LEAST_USE <= self.utilisation <= MOST_USE:
            meant = f": did you mean {self.utilisation:g}%?" if 1 < self.utilisation <= 100 else "."
            shown = f"{100 * self.utilisation:.6g}%{meant}"
            text = f"--utilisation must be from {LEAST_USE:.0%} to {MOST_USE:.0%}, not {shown}"
            yield Problem(("utilisation",), text)
        if self.growth_per_min is not None and not 0 < self.growth_per_min <= MOST_GROWTH:
            text = f"--growth must be above 0 and at most {MOST_GROWTH:.0%} a minute, not {self.growth_per_min:.4%}."
            yield Problem(("growth_per_min",), text)
        if self.seconds_to_create is not None and not 0 <= self.seconds_to_create <= MAX_SECONDS:
            text = f"--seconds-to-create must be from 0 to {MAX_SECONDS:,}, not {self.seconds_to_create:g}."
            yield Problem(("seconds_to_create",), text)
        yield from self._counts()

    def _of_requests(self) -> Iterator[Problem]:
        if self.target_rps is None and not self.stages and self.replay is None:
            text = "No load: give --target-rps R, --stages or --replay. For users give --users N."
            yield Problem(("target_rps", "stages", "replay"), text)
        if self.routing not in ("", RANDOM, LEAST_OUTSTANDING):
            also = f": {PREFIX_AWARE} is for --users" if self.routing == PREFIX_AWARE else ""
            text = f"--routing must be {RANDOM} or {LEAST_OUTSTANDING}, not {quoted(self.routing)}{also}."
            yield Problem(("routing",), text)
        for field in ("conversations_per_day", "peak_factor", "kv_tokens"):
            if getattr(self, field) is not None:
                yield Problem((field,), f"--{field.replace('_', '-')} is for --users.")

    def _of_users(self) -> Iterator[Problem]:
        if len(self.capacities) > 1:
            yield Problem(("capacities",), f"--users takes the folder of one search, not {len(self.capacities)}.")
        for field in ("target_rps", "stages", "replay", "growth_per_min", "minimum", "maximum", "seconds_to_create"):
            if getattr(self, field) not in (None, ()):
                flag = "growth" if field == "growth_per_min" else field.replace("_", "-")
                yield Problem((field,), f"--{flag} is for a plan in requests per second, not for --users.")
        if self.routing not in ("", RANDOM, PREFIX_AWARE):
            text = f"--routing must be {RANDOM} or {PREFIX_AWARE} with --users, not {quoted(self.routing)}."
            yield Problem(("routing",), text)
        yield from self._of_day()

    def _of_day(self) -> Iterator[Problem]:
        """The conversations of a day, and the busiest hour: nobody but the user knows either."""
        if self.conversations_per_day is None:
            text = "--users needs --conversations-per-day: how many conversations each user begins in a day."
            yield Problem(("conversations_per_day",), text)
        if self.peak_factor is None:
            yield Problem(
                ("peak_factor",),
                "--users needs --peak-factor: how many times as many conversations begin in the busiest hour as in an "
                "average one (1: evenly over 24 hours; 3: all of them within 8 hours).",
            )
        limits = (
            ("users", 1, MOST_USERS),
            ("conversations_per_day", 0.001, MOST_PER_DAY),
            ("peak_factor", 1.0, MOST_PEAK),
            ("kv_tokens", 1_000, MOST_KV_TOKENS),
        )
        for field, least, most in limits:
            value = getattr(self, field)
            if value is not None and not least <= value <= most:
                text = f"--{field.replace('_', '-')} must be from {least:g} to {most:,.15g}, not {value:,.15g}."
                yield Problem((field,), text)

    def _counts(self) -> Iterator[Problem]:
        limits = (("spare", 0, self.spare), ("minimum", 1, self.minimum), ("maximum", 1, self.maximum))
        for field, least, value in (*limits, *(("instances", 1, each) for each in self.instances)):
            if value is not None and not least <= value <= MOST_INSTANCES:
                text = f"--{field} must be from {least} to {MOST_INSTANCES:,}, not {value:,}."
                yield Problem((field,), text)
        if self.minimum is not None and self.maximum is not None and self.minimum > self.maximum:
            yield Problem(("minimum", "maximum"), "--minimum must not be above --maximum.")
        if len(self.instances) not in (0, 1, len(self.capacities)):
            counts = f"{len(self.instances)} counts for {len(self.capacities)} searches"
            yield Problem(("instances",), f"--instances has {counts}: give one for all, or one for each.")


def parse_growth(flag: str, text: str) -> float:
    """The share by which the load grows in a minute: ``20%/min``, ``0.2``, ``50%/h``."""
    match = _GROWTH.fullmatch(text.strip()) if text.isascii() else None
    if match is None:
        raise BenchmarkError(f"{flag} must be the growth of the load, such as 20%/min or 50%/h, not {quoted(text)}.")
    if float(match["number"]) > 1 and not match["percent"]:
        number, unit = match["number"], match["unit"] or "min"
        raise BenchmarkError(
            f"{flag} {text.strip()} is {100 * float(number):.15g}%/{unit}.",
            f"Give {number}%/{unit}, or {100 * float(number):.15g}%/{unit} if you mean it.",
        )
    return float(match["number"]) * (0.01 if match["percent"] else 1.0) * _PER_MIN[match["unit"] or "min"]
