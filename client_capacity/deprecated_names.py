"""The names by which the original tool called what these searches take and give: they go on working.

An argument that has a meaning today is given to it. One that has none is accepted, and a DeprecationWarning says what
is done instead. A result is read by the old keys like the dictionary that it was; a key of which nothing true can be
said today raises a KeyError that says so.
"""

from __future__ import annotations

import statistics
import warnings
from abc import abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from client_capacity.search import Step

_GROWTH = "rates are doubled while they are held, and bisected then"
_SAMPLING = "each wave is watched once a second by itself"
_NO_REPEATS = "this search repeats nothing; find_worker_saturation repeats the rate of one worker"
_BY_STEP = "each of result.steps has worker_cpu_share, host_cpu_share and max_rss_bytes"

WORKER_ARGUMENTS = {"start_users": "start_rps", "end_users": "max_rps", "confidence_samples": "repeats"}
WORKER_ARGUMENTS_GONE = {
    "user_step": _GROWTH,
    "confidence_users_scale": "the found rate itself is tried again, up and down by 3%",
    "sample_interval_seconds": _SAMPLING,
}
RPS_ARGUMENTS = {"end_workers": "max_workers"}
RPS_ARGUMENTS_GONE = {
    "start_workers": "the search begins with one worker, of whom saturation_users says what it holds",
    "worker_step": "one worker more is tried at a time",
    "plateau_threshold": "the search ends where one worker more brings less than 5%",
    "confidence_samples": _NO_REPEATS,
    "confidence_users_scale": _NO_REPEATS,
    "sample_interval_seconds": _SAMPLING,
}
WAIT = "client_idle_max_wait_config"
"""Given to ``wait_for_client_idle``, once, before a search."""

WORKER_KEYS_GONE = {
    "hw_metrics": _BY_STEP,
    "hw_metrics_list": _BY_STEP,
    "hw_deltas": _BY_STEP,
    "baseline": "no baseline is taken; `disturbed` of each of result.steps tells of other programs",
}
RPS_KEYS_GONE = {
    **dict.fromkeys(
        ("confidence_workers", "confidence_samples", "confidence_fired", "confidence_mean", "confidence_std"),
        _NO_REPEATS,
    ),
    "confidence_hw_list": "each row of result.rows has worker_cpu_share and host_cpu_share",
}


def arguments_of_today(
    function: str, given: Mapping[str, Any], known: Mapping[str, str], gone: Mapping[str, str]
) -> dict[str, Any]:
    """Gives what came under old names those of today; TypeError for a name that nobody knows.

    ``gone``: the names without a meaning, and what is done instead.
    """
    for name in given:
        if name in gone:
            text = f"{function}: {name} has no meaning any more: {gone[name]}."
            warnings.warn(text, DeprecationWarning, stacklevel=3)
        elif name not in known and name != WAIT:
            raise TypeError(f"{function}() got an unexpected keyword argument {name!r}")
    if given.get(WAIT) is not None:
        from client_capacity.client_metrics import wait_for_client_idle

        wait_for_client_idle(given[WAIT])
    return {known[name]: value for name, value in given.items() if name in known and value is not None}


def repeats_of(samples: Any) -> Any:
    """The repeats for so many confidence samples: fewer than four make no interval."""
    from client_capacity.search import LEAST_REPEATS

    return LEAST_REPEATS if isinstance(samples, int) and 0 < samples < LEAST_REPEATS else samples


class FormerKeys(Mapping[str, Any]):
    """A result that is read by the keys of the original tool's dictionary, too."""

    __slots__ = ()
    gone: ClassVar[Mapping[str, str]] = {}

    @abstractmethod
    def former(self) -> dict[str, Any]:
        """Today's values under the old keys; None where this result has no such value."""

    def __getitem__(self, key: str) -> Any:
        """The value of an old key; KeyError, with a sentence for one that had a meaning."""
        values = self.former()
        if values.get(key) is not None:
            return values[key]
        if key in values:
            raise KeyError(f"{key}: this result has no such value")
        raise KeyError(f"{key} is not kept any more: {self.gone[key]}" if key in self.gone else key)

    def __iter__(self) -> Iterator[str]:
        """The old keys that have a value."""
        return (key for key, value in self.former().items() if value is not None)

    def __len__(self) -> int:
        """The number of these."""
        return sum(1 for _ in self)


def fired(steps: Sequence[Step]) -> dict[str, Any]:
    """The requests that each repeated step sent, in the form of the confidence samples of old."""
    counts = [step.sent for step in steps if step.phase == "repeating"]
    return {
        "confidence_samples": len(counts) or None,
        "fired_counts": counts or None,
        "mean_fired": statistics.fmean(counts) if counts else None,
        "std_fired": statistics.stdev(counts) if len(counts) > 1 else None,
        "min_fired": min(counts, default=None),
        "max_fired": max(counts, default=None),
    }
