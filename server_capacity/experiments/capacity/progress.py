"""A line on a search that runs: the rate that is tried now, and between which the answer seems to lie. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from server_capacity.search.recovery import OVERLOAD, RETURN, from_below

if TYPE_CHECKING:
    from collections.abc import Sequence

    from server_capacity.search.limits import Limit
    from server_capacity.search.stretch import Stretch

_DOING = {OVERLOAD: "overload,", RETURN: "after overload,"}


def progress_text(limits: Sequence[Limit], stretches: Sequence[Stretch], time_s: float | None, unit: str = "/s") -> str:
    """``34 of 60 s of load: trying 176/s, limits so far met at 160/s, missed at 190/s``.

    Discarded seconds are sent again: they count as sent, and the whole grows by them: ``42 of 68 s of load
    (8 s discarded)``.
    """
    loads = [stretch for stretch in stretches if stretch.rate > 0]
    sent, void = (sum(stretch.seconds for stretch in loads if stretch.void or of_all) for of_all in (True, False))
    running = stretches[-1]
    doing = f"trying {running.rate:,.4g}{unit}" if running.rate else "waiting until no request is in flight"
    doing = f"{_DOING[running.purpose]} {doing}" if running.purpose in _DOING else doing
    of = "" if time_s is None else f" of {time_s + void:.0f}"
    beside = f" ({void:.0f} s discarded)" if round(void) else ""
    return f"{sent:.0f}{of} s of load{beside}: {doing}{_between(limits, from_below(loads), running, unit)}"


def _between(limits: Sequence[Limit], loads: Sequence[Stretch], running: Stretch, unit: str) -> str:
    ended = [stretch for stretch in loads if stretch is not running and not stretch.void]
    broken = [stretch.rate for stretch in ended if _breaks(limits, stretch)]
    most = min(broken, default=None)
    kept = [stretch.rate for stretch in ended if not _breaks(limits, stretch) and (most is None or stretch.rate < most)]
    met = f"met at {max(kept):,.4g}{unit}" if kept else ""
    missed = f"missed at {most:,.4g}{unit}" if most is not None else ""
    return f", limits so far {', '.join(filter(None, (met, missed)))}" if met or missed else ""


def _breaks(limits: Sequence[Limit], stretch: Stretch) -> bool:
    for place, limit in enumerate(limits):
        of, over = (sum(each.counts[place][side] for each in stretch.slices) for side in (0, 1))
        if over > limit.allowed * of:
            return True
    return False
