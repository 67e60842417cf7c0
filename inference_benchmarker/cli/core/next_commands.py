"""The commands that a report on a terminal proposes."""

from __future__ import annotations

import shlex
import sys
from typing import TYPE_CHECKING, Any

from inference_benchmarker.cli.core.output_flags import OUTPUT_DIR
from inference_benchmarker.cli.core.url_flags import URL_FLAGS
from inference_benchmarker.exit_codes import OK
from inference_benchmarker.words.redact import redact

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from inference_benchmarker.wave.wave import Wave
    from server_capacity.results.types.capacity import CapacityResult
    from server_capacity.results.types.tiers import TiersResult

_PAGE = "benchmark report --format html --output report.html"
_LIMIT, _MODEL_LIMIT = "p99<200ms", "ttft.p99<1s"
_SHAPES_THE_LOAD = (
    *("own_set", "api_key", "locust_file", "expect", "model_mix", "conversations", "hosts", "hosts_file"),
    *("request_timeout", "client_timeout", "client_retries", "max_answer_size", "max_in_flight", "success_threshold"),
)
"""Options without which the proposed command would send something else"""
_OF_A_URL = tuple(flag.name for flag in URL_FLAGS if flag.name != "set")
_LONG = 40  # characters of a value that is still worth repeating


def next_commands(wave: Wave, options: Mapping[str, Any]) -> list[str] | None:
    """Those of a short report: the page of the run, and the search for what its endpoint can take.

    Where no request succeeded, a check of one comes first, and there is nothing to search.

    None where the report is whole: for ``--verbose``, and where it goes to a file or a pipe.
    """
    if options.get("verbose") or not sys.stdout.isatty():
        return None
    return [each for each in (*_check(wave, options), *_page(wave), *_search(wave, options)) if redact(each) == each]


def after_a_search(found: CapacityResult, folder: Path, code: int) -> str | None:
    """The plan for some rate; None without a confirmed answer in requests per second."""
    if code != OK or found.rate is None or found.in_ != "rps":
        return None
    return f"benchmark plan {shlex.quote(str(folder))} --target-rps 1000"


def after_tiers(found: TiersResult, folder: Path) -> str | None:
    """The plan for the first tier that has a confirmed answer in requests per second; None where none has."""
    if found.in_ != "rps":
        return None
    tier = next((row.tier for row in found.rows if row.exit_code == OK and row.interval is not None), None)
    return tier and f"benchmark plan {shlex.quote(str(folder))} --tier {tier} --target-rps 1000"


def _page(wave: Wave) -> Iterator[str]:
    if wave.run_dir is not None:
        path = wave.run_dir.path
        yield _PAGE if path.parent == OUTPUT_DIR else f"{_PAGE} {shlex.quote(str(path))}"


def _check(wave: Wave, options: Mapping[str, Any]) -> Iterator[str]:
    """One request, looked at closely, where none was answered well."""
    endpoint = _endpoint(wave, options)
    if endpoint and wave.summary.ledger.sent and not wave.summary.ledger.ok:
        yield f"benchmark check {endpoint}"


def _search(wave: Wave, options: Mapping[str, Any]) -> Iterator[str]:
    """The search, where few words say what it needs."""
    from inference_benchmarker.plan.load import OpenLoop
    from inference_benchmarker.verdict.missed_limits import least_of_an_idle_endpoint

    plan = wave.plan
    steady = isinstance(plan.load, OpenLoop) and not plan.load.is_steered and wave.summary.sessions is None
    endpoint = _endpoint(wave, options)
    if not (endpoint and wave.verdict.valid and steady and wave.summary.ledger.ok) or plan.server_limits:
        return
    if any(least_of_an_idle_endpoint(wave, slo, wave.summary) is not None for slo in plan.slos):
        return  # which no rate keeps
    usual = [] if options.get("demo") else [_MODEL_LIMIT if wave.summary.ttft is not None else _LIMIT]
    limits = [slo.expression for slo in plan.slos] or usual
    yield f"benchmark capacity {endpoint}{''.join(f' --slo {shlex.quote(limit)}' for limit in limits)}"


def _endpoint(wave: Wave, options: Mapping[str, Any]) -> str | None:
    """The endpoint as it was given; None where that takes many words, or the command has none for it."""
    of_url = {name: options[name] for name in _OF_A_URL if options.get(name)}
    many = any(not isinstance(value, str) or len(value) > _LONG for value in of_url.values())
    if many or any(options.get(name) for name in _SHAPES_THE_LOAD):
        return None
    address, file = options.get("address"), options.get("factories_file")
    if options.get("demo"):
        words = ["--demo"]
    elif address:
        words = [address, *(word for name, value in of_url.items() for word in (f"--{name.replace('_', '-')}", value))]
    elif file and not of_url:
        words = ["--factories-file", str(file)]
    else:
        return None
    if wave.plan.endpoint_name:
        words += ["--endpoint-name", wave.plan.endpoint_name]
    return shlex.join(words)
