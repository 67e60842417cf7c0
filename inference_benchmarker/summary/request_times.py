"""The meaning of each time of one request: columns from which distributions and limits per request are made. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from inference_benchmarker.units import NS

if TYPE_CHECKING:
    from inference_benchmarker.records.columns import Floats, Int64, Mask, Records


class Times(NamedTuple):
    """One time of each request, in seconds, and which requests have it."""

    values: Floats
    has: Mask


def request_times(records: Records) -> dict[str, Times]:
    """The times of each request by name, whatever became of it; ``itl`` is the mean of its gaps.

    The response time is a user's: from when the arrival was due to the end of its last attempt, which alone has it.
    """
    sent, arrived, done = records.int("sent"), records.arrived, records.int("done")
    first, last, pieces = records.int("first_token"), records.int("last_token"), records.int("chunks")
    tokens = output_tokens(records)
    all_of_them, several = np.ones(len(records), bool), pieces >= 2  # one piece has no time between tokens
    return {
        "latency": Times((done - sent) / NS, all_of_them),
        "response_time": Times((done - arrived) / NS, records.lasts),
        "ttft": Times((first - sent) / NS, records.has("first_token")),
        "itl": Times((last - first) / (NS * np.maximum(pieces - 1, 1)), several),
        "tpot": Times((last - first) / (NS * np.maximum(tokens - 1, 1)), several & (tokens >= 2)),
    }


def output_tokens(records: Records) -> Int64:
    """Output tokens of each request: the server's usage where it can be believed, else the pieces that came."""
    return np.where(has_usage(records), records.int("tokens_out"), records.int("chunks"))


def has_usage(records: Records) -> Mask:
    """The requests of which the server told the output tokens, and can have."""
    return records.has("tokens_out") & ~impossible_usage(records)


def impossible_usage(records: Records) -> Mask:
    """The requests of which the server told fewer output tokens than pieces came, each of which has one at least."""
    return records.has("tokens_out") & (records.int("tokens_out") < records.int("chunks"))
