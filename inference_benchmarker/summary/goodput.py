"""Goodput: the requests that met every limit on a request, as a rate and as a share of what was sent. Pure.

Where clients try again it is the users': an arrival is good if its last attempt met every limit, its response time
counted from the arrival; ``sent`` is the number of arrivals.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from inference_benchmarker.summary.completed_rate import completed_requests
from inference_benchmarker.summary.request_times import request_times

if TYPE_CHECKING:
    from collections.abc import Sequence

    from inference_benchmarker.facts.wave_facts import Window
    from inference_benchmarker.plan.slo import RequestLimit
    from inference_benchmarker.records.columns import Mask, Records


@dataclass(frozen=True, slots=True)
class LimitShare:
    """One limit, and the share of the sent requests that met it; None where no answered request has its metric."""

    limit: RequestLimit
    share: float | None

    def to_json(self) -> dict[str, Any]:
        """The limit as it was given, and its share."""
        return {"limit": self.limit.expression, "share": self.share}


@dataclass(frozen=True, slots=True)
class Goodput:
    """Requests that met every limit: ``rate`` a second, ``share`` of the sent; None where a limit was not measured."""

    rate: float | None
    share: float | None
    limits: tuple[LimitShare, ...]

    @classmethod
    def of(cls, records: Records, limits: Sequence[RequestLimit], window: Window, *, sent: int) -> Goodput | None:
        """The goodput under some limits: the completed rate of the good requests alone, their share of ``sent``."""
        if not limits or not sent:
            return None
        shares = tuple(LimitShare(limit, _share(records, limit, sent)) for limit in limits)
        if any(each.share is None for each in shares):
            return cls(None, None, shares)
        good = meets(records, limits)
        completed, seconds = completed_requests(records, good, window)
        rate = int(np.count_nonzero(completed)) / seconds if seconds else 0.0
        return cls(rate, int(np.count_nonzero(good)) / sent, shares)

    def to_json(self) -> dict[str, Any]:
        """Rate, share, and the share of each limit."""
        return {"rate": self.rate, "share": self.share, "limits": [each.to_json() for each in self.limits]}


def meets(records: Records, limits: Sequence[RequestLimit]) -> Mask:
    """Which requests were ok and met every limit.

    A stream of a single piece has no gap that could break a limit on ``itl`` or ``tpot``; what is no stream has
    not met a limit on its tokens.
    """
    times, good = request_times(records), records.outcome("ok")
    for limit in limits:
        values, has = times[limit.metric]
        good = good & np.where(has, limit.met(values), records.has("first_token"))
    return good


def _share(records: Records, limit: RequestLimit, sent: int) -> float | None:
    """None where requests were answered, and none of them has the metric."""
    ok = records.outcome("ok")
    measured = request_times(records)[limit.metric].has | records.has("first_token")
    if ok.any() and not (ok & measured).any():
        return None
    return int(np.count_nonzero(meets(records, [limit]))) / sent
