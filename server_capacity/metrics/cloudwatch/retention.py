"""For how long CloudWatch keeps buckets of which length. Pure."""

from __future__ import annotations

DAY_S = 86_400.0
KEPT_S = {1: 3 * 3600.0, 60: 15 * DAY_S, 300: 63 * DAY_S, 3600: 455 * DAY_S}
"""Buckets of so many seconds or more, kept for so many ("Metrics retention" in Amazon CloudWatch's user guide)."""


def no_longer_kept(period: int, age_s: float) -> str | None:
    """The sentence for a window that is older than what CloudWatch keeps of the period; None where it is not."""
    shortest = max(each for each in KEPT_S if each <= period)
    if age_s <= KEPT_S[shortest]:
        return None
    longer = next((each for each, kept_s in KEPT_S.items() if age_s <= kept_s), None)
    if longer is None:
        return f"CloudWatch keeps nothing longer than {_text(max(KEPT_S.values()))}"
    return f"CloudWatch keeps buckets of {period} s for {_text(KEPT_S[shortest])}: use a Period of {longer}"


def _text(seconds: float) -> str:
    return f"{seconds / DAY_S:.0f} days" if seconds >= DAY_S else f"{seconds / 3600:.0f} hours"
