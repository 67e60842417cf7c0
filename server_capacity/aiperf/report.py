"""aiperf's results in words: a block like the wave's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inference_benchmarker.exit_codes import OK
from inference_benchmarker.report.server_metrics import metric_lines
from inference_benchmarker.report.text import all_ended, joined, success_line
from inference_benchmarker.words.text import one_line
from inference_benchmarker.words.wording import INDENT, aligned, duration_text, percent_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from server_capacity.aiperf.export import AiperfResult

_TITLE = "RESULTS — aiperf"
_TIMES = {"latency": "Latency", "ttft": "TTFT", "itl": "ITL", "tpot": "TPOT"}
_COLUMNS = ("mean", "p50", "p90", "p95", "p99", "max")


def aiperf_text(result: AiperfResult, width: int | None = None) -> str:
    """The whole block; ``width``: the columns into which its tables are fitted."""
    sections = (
        _block(result),
        _times(result, width),
        _tokens(result),
        _errors(result, width),
        _server(result),
        _end(result),
    )
    return joined(*sections)


def shortfall(result: AiperfResult) -> str:
    """The reason for which it does not end with 0, in a line; empty where it does."""
    if result.exit_code == OK:
        return ""
    if result.interrupted:
        return f"aiperf: interrupted, {result.ok:,} of {result.fired:,} requests answered by then"
    most, target = "at most " if result.gave_up else "", result.success_threshold
    rate = f"{most}{percent_text(result.success_rate, target)}"
    return f"aiperf: LIMIT MISSED: success rate {rate} (limit {100 * target:g}%)"


def _block(result: AiperfResult) -> Iterator[str]:
    yield _TITLE
    yield "-" * len(_TITLE)
    unknown = result.interrupted or result.gave_up  # there may be requests that it has not written
    ended = "" if unknown else all_ended(result.fired, result.ok, result.requests - result.ok)
    yield f"{INDENT}Total requests fired: {result.fired}{ended}"
    yield ""
    yield f"{INDENT}Duration:         {result.duration_s:.1f}s"
    yield f"{INDENT}Server RPS:       {result.server_rps:.1f} req/s"
    if not ended:
        yield f"{INDENT}Total requests:   {result.requests}"
    yield success_line(result.success_rate, result.success_threshold, at_most=result.gave_up)


def _times(result: AiperfResult, width: int | None) -> Iterator[str]:
    rows = [
        [_TIMES[name], *(_cell(values.get(column)) for column in _COLUMNS)] for name, values in result.times.items()
    ]
    if rows:
        yield from aligned([["", *_COLUMNS], *rows], width)


def _cell(seconds: float | None) -> str:
    return "-" if seconds is None else duration_text(seconds)


def _tokens(result: AiperfResult) -> Iterator[str]:
    if result.tokens_in is not None:
        yield f"{INDENT}Input tokens:     {result.tokens_in:,}"
    if result.tokens_out is not None:
        rate = "" if result.tokens_out_per_s is None else f", {result.tokens_out_per_s:,.1f} tokens/s"
        yield f"{INDENT}Output tokens:    {result.tokens_out:,} (aiperf's count{rate})"


def _errors(result: AiperfResult, width: int | None) -> Iterator[str]:
    if result.errors:
        rows = [[one_line(key), f"{count:,}"] for key, count in result.errors.items()]
        yield from aligned([["Errors", "count"], *rows], width)


def _server(result: AiperfResult) -> Iterator[str]:
    yield from metric_lines(result.server_metrics or ())


def _end(result: AiperfResult) -> Iterator[str]:
    if result.unanswered or result.gave_up:
        yield f"{INDENT}! aiperf gave up on {_given_up(result)} without an answer when its grace period was over."
    if result.interrupted:
        yield f"{INDENT}Interrupted: these are the requests that were done by then."
    yield f"{INDENT}aiperf's own files: {result.folder}"


def _given_up(result: AiperfResult) -> str:
    """It says nothing of those sent after the last one that was answered."""
    if not result.unanswered:
        return "an unknown number of requests"
    return f"{result.unanswered:,} requests{' or more' if result.gave_up else ''}"
