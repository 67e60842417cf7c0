"""``--tier``: the limits of several tiers, each of which is a search."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from inference_benchmarker.cli.core.flags import Flag, read_flags
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.words.redact import quoted

if TYPE_CHECKING:
    from collections.abc import Iterator

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,31}", re.ASCII)
_EXPECTED = "expected NAME:LIMIT,LIMIT such as gold:ttft.p95<1s,itl.p95<20ms, the name of letters, digits, - and _"


class TierLimits(NamedTuple):
    """A tier as it was given: its name, and the text of each of its limits."""

    name: str
    limits: list[str]


def parse_tier(flag: str, text: str) -> TierLimits:
    """``NAME:LIMIT,LIMIT``; whether each is a limit is seen where a search is made of them."""
    name, _, rest = text.partition(":")
    limits = [each.strip() for each in rest.split(",")]
    if not _NAME.fullmatch(name.strip()) or not all(limits):
        raise BenchmarkError(f"{flag} {quoted(text)}: {_EXPECTED}.")
    return TierLimits(name.strip(), limits)


TIER_FLAG = Flag(
    "--tier",
    "NAME:LIMITS",
    "a named set of --slo limits (repeatable): gold:ttft.p95<1s,itl.p95<20ms. Each tier gets a capacity of its own, "
    "and measurements for one are reused for the next",
    parse_tier,
    repeatable=True,
)
"""In place of ``--slo``."""


def tiers_of(options: dict[str, Any], problems: list[str]) -> tuple[TierLimits, ...]:
    """The tiers that were asked for; what speaks against them is added to the problems."""
    if options["tier"] is None:
        return ()
    found: tuple[TierLimits, ...] = read_flags([TIER_FLAG], options, []).values["tier"]
    problems += _problems(options, found)
    return found


def _problems(options: dict[str, Any], tiers: tuple[TierLimits, ...]) -> Iterator[str]:
    if options["slo"] is not None:
        given = ", ".join(options["slo"])
        yield f"--tier has the limits of each tier, and --slo {given} is of none: put it into each --tier."
    for flag, why in (("vary", "ranks by one capacity of each variant"), ("verify", "sends the limits of its plan")):
        if options[flag] is not None:
            yield f"--tier has several capacities, and --{flag} {why}: give one of them."
    names = [tier.name.lower() for tier in tiers]  # they are folders, which some disks do not tell apart by case
    if twice := sorted({name for name in names if names.count(name) > 1}):
        yield f"--tier {twice[0]}: two tiers have this name."
