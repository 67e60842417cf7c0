"""``benchmark metrics``: the server's metrics for a past window, without a wave."""

from __future__ import annotations

import json
import time
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING

from inference_benchmarker.cli.core.arguments import Parser, command_parser
from inference_benchmarker.cli.core.terminal import print_report, say, say_nothing
from inference_benchmarker.cli.wave.metrics_flags import (
    METRICS_DESCRIPTION,
    METRICS_EPILOG,
    METRICS_FLAGS,
    read_options,
)
from inference_benchmarker.cli.wave.server_metrics import sources_of
from inference_benchmarker.exit_codes import INTERRUPTED, MISSED, OK
from inference_benchmarker.version import SCHEMA_VERSION

if TYPE_CHECKING:
    from collections.abc import Sequence

    from inference_benchmarker.cli.wave.metrics_flags import PastWindow
    from inference_benchmarker.facts.server_metric import ServerMetric


def run(arguments: list[str]) -> int:
    """The command, and its exit code."""
    options, problems = metrics_parser().parsed(arguments)
    window = read_options(options, problems, time.time())
    found, interrupted = _read(options["endpoint_config"], window, quiet=options["quiet"])
    if options["json"]:
        print(_json(window, found), end="", flush=True)
    else:
        print_report(_text(window, found))
    if interrupted:
        return INTERRUPTED
    return MISSED if any(not (row.has_values or row.complete) for row in found) else OK


def metrics_parser() -> Parser:
    """Its flags, and its help."""
    return command_parser(
        "benchmark metrics",
        METRICS_FLAGS,
        usage="benchmark metrics --endpoint-config FILE --window FROM..TO [options]",
        description=METRICS_DESCRIPTION,
        epilog=METRICS_EPILOG,
    )


def _read(config: str, window: PastWindow, *, quiet: bool | None) -> tuple[list[ServerMetric], bool]:
    """The rows that each source has of the window, and whether Ctrl-C ended the waiting with what there is."""
    from inference_benchmarker.engine.processes.interrupts import counting_interrupts, until_interrupted
    from inference_benchmarker.facts.server_metric import Interval, collected

    sources = sources_of(config)
    tell = say_nothing if quiet else say
    for source in () if quiet else sources:
        for warning in source.warnings(None, ahead=False):  # the row itself reports a window too short for it
            say(f"{config}: {warning}")
    interval = Interval.past(window.start, window.end)
    with counting_interrupts() as interrupts:
        rows = [until_interrupted(partial(collected, source, interval, tell), interrupts) for source in sources]
    return [row for row in chain.from_iterable(rows) if row.asked], bool(interrupts.count)


def _text(window: PastWindow, rows: Sequence[ServerMetric]) -> str:
    from inference_benchmarker.report.server_metrics import metric_lines
    from inference_benchmarker.report.text import joined

    return joined(iter([f"Server metrics, {window}"]), metric_lines(rows))


def _json(window: PastWindow, rows: Sequence[ServerMetric]) -> str:
    from inference_benchmarker.data.decoded import encoded

    found = {
        "schema_version": SCHEMA_VERSION,
        "window": {"start_unix_s": window.start, "end_unix_s": window.end},
        "server_metrics": [encoded(row) for row in rows],
    }
    return json.dumps(found, indent=2) + "\n"
