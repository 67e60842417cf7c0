"""The commands that a report on a terminal proposes."""

from __future__ import annotations

import shlex
import sys
from typing import TYPE_CHECKING, Any

from inference_benchmarker.cli.core.output_flags import OUTPUT_DIR
from inference_benchmarker.cli.core.url_flags import URL_FLAGS
from inference_benchmarker.words.redact import redact

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from inference_benchmarker.wave.wave import Wave

_PAGE = "benchmark report --format html --output report.html"
_LIMIT, _MODEL_LIMIT = "p99<200ms", "ttft.p99<1s"
_SHAPES_THE_LOAD = (
    *("set", "locust_file", "expect", "model_mix", "conversations", "hosts", "hosts_file", "request_timeout"),
    *("client_timeout", "client_retries", "max_answer_size", "max_in_flight", "success_threshold"),
)
_OF_A_URL = tuple(flag.name for flag in URL_FLAGS)
"""Options without which the proposed search would measure something else"""


def next_commands(wave: Wave, options: Mapping[str, Any]) -> list[str] | None:
    """Those of a short report: the page of the run, and the search for what its endpoint can take.

    None where the report is whole: for ``--verbose``, and where it goes to a file or a pipe.
    """
    if options.get("verbose") or not sys.stdout.isatty():
        return None
    return [each for each in (*_page(wave), *_search(wave, options)) if redact(each) == each]


def _page(wave: Wave) -> Iterator[str]:
    if wave.run_dir is not None:
        path = wave.run_dir.path
        yield _PAGE if path.parent == OUTPUT_DIR else f"{_PAGE} {shlex.quote(str(path))}"


def _search(wave: Wave, options: Mapping[str, Any]) -> Iterator[str]:
    """The search, where few words say what it needs."""
    from inference_benchmarker.plan.load import OpenLoop

    plan = wave.plan
    steady = isinstance(plan.load, OpenLoop) and not plan.load.is_steered and wave.summary.sessions is None
    if (
        not (wave.verdict.valid and steady)
        or plan.server_limits
        or any(options.get(name) for name in (*_SHAPES_THE_LOAD, *_OF_A_URL))
    ):
        return
    if options.get("demo"):
        yield "benchmark capacity --demo"
        return
    address, file = options.get("address"), options.get("factories_file")
    if not (address or file):
        return
    endpoint = shlex.quote(address) if address else f"--factories-file {shlex.quote(str(file))}"
    name = f" --endpoint-name {shlex.quote(plan.endpoint_name)}" if plan.endpoint_name else ""
    usual = _MODEL_LIMIT if wave.summary.ttft is not None else _LIMIT
    limits = [slo.expression for slo in plan.slos] or [usual]
    yield f"benchmark capacity {endpoint}{name}{''.join(f' --slo {shlex.quote(limit)}' for limit in limits)}"
