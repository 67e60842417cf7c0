"""The meaning of each time of one request: columns from which distributions and limits per request are made. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from inference_benchmarker.records.columns import ROW_KEY
from inference_benchmarker.records.response import MOST_TOKENS
from inference_benchmarker.words.units import NS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from inference_benchmarker.records.columns import Floats, Int64, Mask, Records


class Times(NamedTuple):
    """One time of each request, in seconds, and which requests have it."""

    values: Floats
    has: Mask


class RequestTimes(Mapping[str, Times]):
    """The times of each request by name, whatever became of it; ``itl`` is the mean of its gaps.

    The response time is a user's: from when the arrival was due to the end of its last attempt, which alone has it.
    Each is computed when it is asked for, so that those of a large wave are not in memory at once.
    """

    def __init__(self, records: Records) -> None:
        self._records = records

    def __getitem__(self, name: str) -> Times:
        return _TIMES[name](self._records)

    def __iter__(self) -> Iterator[str]:
        return iter(_TIMES)

    def __len__(self) -> int:
        return len(_TIMES)


def request_times(records: Records) -> RequestTimes:
    """The times of some records."""
    return RequestTimes(records)


def _latency(records: Records) -> Times:
    return Times((records.int("done") - records.int("sent")) / NS, np.ones(len(records), bool))


def _response_time(records: Records) -> Times:
    return Times((records.int("done") - records.arrived) / NS, records.lasts)


def _ttft(records: Records) -> Times:
    return Times((records.int("first_token") - records.int("sent")) / NS, records.has("first_token"))


def _itl(records: Records) -> Times:
    pieces = records.int("chunks")
    return Times(_streaming(records) / (NS * np.maximum(pieces - 1, 1)), pieces >= 2)


def _tpot(records: Records) -> Times:
    tokens = output_tokens(records)
    several = records.int("chunks") >= 2  # one piece has no time between tokens
    return Times(_streaming(records) / (NS * np.maximum(tokens - 1, 1)), several & (tokens >= 2))


def _streaming(records: Records) -> Int64:
    """From the first piece to the last, in ns."""
    return records.int("last_token") - records.int("first_token")


_TIMES: dict[str, Callable[[Records], Times]] = {
    "latency": _latency,
    "response_time": _response_time,
    "ttft": _ttft,
    "itl": _itl,
    "tpot": _tpot,
}

TIME_COLUMNS = {
    "latency": ("sent", "done"),
    "response_time": (*ROW_KEY, "due", "done"),
    "ttft": ("sent", "first_token"),
    "itl": ("first_token", "last_token", "chunks"),
    "tpot": ("first_token", "last_token", "chunks", "tokens_out"),
}
"""The columns that each is computed from."""


def output_tokens(records: Records) -> Int64:
    """Output tokens of each request: the server's usage where it can be believed, else the pieces that came."""
    return np.where(has_usage(records), records.int("tokens_out"), records.int("chunks"))


def has_usage(records: Records) -> Mask:
    """The requests of which the server reported output tokens that can be true."""
    return records.has("tokens_out") & ~impossible_usage(records)


def impossible_usage(records: Records) -> Mask:
    """The requests of which the server reported output tokens that cannot be true.

    Those are fewer than the pieces that came, each of which has one at least, or more than any model generates.
    """
    stated = records.int("tokens_out")
    return records.has("tokens_out") & ((stated < records.int("chunks")) | (stated > MOST_TOKENS))
