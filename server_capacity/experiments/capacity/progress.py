"""A line on a search that runs: the rate that is tried now, and between which the answer seems to lie. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from server_capacity.search.limits import Limit
    from server_capacity.search.stretch import Stretch


def progress_text(
    limits: Sequence[Limit], stretches: Sequence[Stretch], time_s: float | None, *, in_users: bool = False
) -> str:
    """``34 of 60 s: 176/s (above), between 160 and 190/s``; what is void comes on top: ``34 of 60 s and 8 s void``."""
    loads = [stretch for stretch in stretches if stretch.rate > 0]
    void = sum(stretch.seconds for stretch in loads if stretch.void)
    spent = sum(stretch.seconds for stretch in loads) - void
    running, unit = stretches[-1], " users" if in_users else "/s"
    doing = (
        f"{running.rate:,.4g}{unit} ({running.purpose})" if running.rate else ("a pause until no request is in flight")
    )
    of = "" if time_s is None else f" of {time_s:.0f}"
    beside = f" and {void:.0f} s void" if round(void) else ""
    return f"{spent:.0f}{of} s{beside}: {doing}{_between(limits, loads, unit)}"


def _between(limits: Sequence[Limit], loads: Sequence[Stretch], unit: str) -> str:
    ended = [stretch for stretch in loads[:-1] if not stretch.void]
    broken = [stretch.rate for stretch in ended if _breaks(limits, stretch)]
    most = min(broken, default=None)
    kept = [stretch.rate for stretch in ended if not _breaks(limits, stretch) and (most is None or stretch.rate < most)]
    if most is None:
        return f", kept at {max(kept):,.4g}{unit}" if kept else ""
    return f", between {max(kept, default=0):,.4g} and {most:,.4g}{unit}"


def _breaks(limits: Sequence[Limit], stretch: Stretch) -> bool:
    for place, limit in enumerate(limits):
        of, over = (sum(each.counts[place][side] for each in stretch.slices) for side in (0, 1))
        if over > limit.allowed * of:
            return True
    return False
