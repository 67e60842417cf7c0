"""Everything that may be wrong with a block of the stream "prometheus". Pure.

Either ``url`` (a Prometheus server) with ``queries``, or ``scrape_url`` (a metrics page) with ``metrics``: names, or
name to statistics. A ``preset`` does for either.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, TypeGuard, cast

from inference_benchmarker.url import http_address
from inference_benchmarker.verdict.server.known_metrics import nearest
from server_capacity.metrics.prometheus.block import STATISTICS, WINDOW, percent_of
from server_capacity.metrics.prometheus.exposition import ExpositionError, parse_selector
from server_capacity.metrics.prometheus.presets import PRESETS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

COMMON = ("stream", "preset", "labels", "bearer_token_env", "username", "password_env")
OF_SERVER = ("url", "queries", "replicas", "step", "lag", "sigv4", "region", "service")
OF_PAGE = ("scrape_url", "metrics", "interval")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SCOPE = re.compile(r"[a-z0-9-]+")
_GRAFANA = re.compile(r"\$(__\w+|\{?__\w+\}?)")


def check_block(block: Mapping[str, object], where: str) -> list[str]:
    """Everything wrong with the block, each sentence beginning with ``where``."""
    return [
        f"{where}: {problem}"
        for check in (_keys, _address, _values, _asked, _credentials, _signature)
        for problem in check(block)
    ]


def _keys(block: Mapping[str, object]) -> Iterator[str]:
    known = (*COMMON, *OF_SERVER, *OF_PAGE)
    for key in block:
        if key not in known:
            yield f'"{key}" is not a key of this stream.{nearest(key, known) or " Keys are " + ", ".join(known) + "."}'
    if "url" in block and "scrape_url" not in block:
        for key in OF_PAGE[1:]:
            if key in block:
                instead = ' Beside "url" give "queries" or a "preset".' if key == "metrics" else ""
                yield f'"{key}" goes with "scrape_url", not with "url".{instead}'
    if "scrape_url" in block and "url" not in block:
        for key in OF_SERVER[1:]:
            if key in block:
                instead = (
                    ' A metrics page does not answer queries: give "metrics" or a "preset".' if key == "queries" else ""
                )
                yield f'"{key}" goes with "url", not with "scrape_url".{instead}'


def _address(block: Mapping[str, object]) -> Iterator[str]:
    given = [key for key in ("url", "scrape_url") if key in block]
    if len(given) != 1:
        which = "both are" if given else "neither is"
        yield f'give either "url" (a Prometheus server) or "scrape_url" (a metrics page); {which} here.'
    for key in given:
        yield from (f'"{key}" {problem}' for problem in _wrong_url(key, block[key]))


def _wrong_url(key: str, url: object) -> Iterator[str]:
    example = "http://127.0.0.1:9090" if key == "url" else "http://127.0.0.1:8000/metrics"
    parts = http_address(url)
    if parts is None:
        yield f"is {url!r}: it must be a URL that begins with http:// or https://, such as {example}."
    elif parts.username is not None or parts.password is not None:
        yield 'holds credentials: leave them out, and give "bearer_token_env", or "username" and "password_env".'
    elif key == "url" and (parts.query or parts.fragment or "/api/v1" in parts.path):
        yield f"is {url!r}: give only the server's URL, without /api/v1 and what follows it."


def _values(block: Mapping[str, object]) -> Iterator[str]:
    ranges = {"interval": (0.1, 60.0), "step": (1.0, 86400.0), "lag": (0.0, 3600.0)}
    for key, (low, high) in ranges.items():
        value = block.get(key, low)
        if type(value) not in (int, float) or not low <= cast("float", value) <= high:
            yield f'"{key}" is {value!r}: it must be a number of seconds from {low:g} to {high:g}.'
    labels = block.get("labels", {})
    if not _is_texts(labels):
        yield '"labels" must be an object of label names and values, as {"job": "vllm"}.'
    elif "labels" in block and "preset" not in block and "metrics" not in block:
        yield '"labels" narrows "metrics" and "preset"; in "queries" write them into the PromQL.'


def _asked(block: Mapping[str, object]) -> Iterator[str]:
    if not any(key in block for key in ("queries", "metrics", "preset", "replicas")):
        wanted = '"metrics"' if "scrape_url" in block else '"queries"'
        yield f'requests nothing: give {wanted} or a "preset" ({", ".join(PRESETS)}).'
    checks: dict[str, Callable[[object], Iterator[str]]] = {
        "queries": _wrong_queries,
        "replicas": _wrong_replicas,
        "metrics": _wrong_metrics,
        "preset": _wrong_presets,
    }
    for key, check in checks.items():
        if key in block:
            yield from check(block[key])


def _wrong_queries(queries: object) -> Iterator[str]:
    if not _is_texts(queries) or not queries:
        yield f'"queries" must be an object of names and PromQL, as {{"rate": "sum(rate(requests_total[{WINDOW}]))"}}.'
        return
    for name, query in queries.items():
        if not query.strip():
            yield f'"queries": {name!r} is empty.'
        if found := _GRAFANA.search(query):
            yield f"\"queries\": {name!r} has {found[0]}, which is Grafana's; write {WINDOW} for the wave's length."


def _wrong_replicas(query: object) -> Iterator[str]:
    if not isinstance(query, str) or not query.strip():
        yield '"replicas" must be the PromQL that counts the server\'s replicas, as "count(up{job=\\"vllm\\"} == 1)".'
    elif found := _GRAFANA.search(query):
        yield f'"replicas" has {found[0]}, which is Grafana\'s; write {WINDOW} for a minute.'


def _wrong_metrics(metrics: object) -> Iterator[str]:
    listed = metrics if isinstance(metrics, list) else list(metrics) if isinstance(metrics, dict) else None
    if not listed or not all(isinstance(name, str) for name in listed):
        yield '"metrics" must be a list of names, or an object of names and statistics, as {"queue_size": ["Maximum"]}.'
        return
    for name in dict.fromkeys(listed):
        if listed.count(name) > 1:
            yield f'"metrics" names {name!r} twice.'
        try:
            parse_selector(name)
        except ExpositionError as error:
            yield f'"metrics": {error}.'
    if isinstance(metrics, dict):
        for name, statistics in metrics.items():
            yield from _wrong_statistics(name, statistics)


def _wrong_statistics(name: str, statistics: object) -> Iterator[str]:
    if not isinstance(statistics, list) or not statistics:
        yield f'"metrics": {name!r} must have a list of statistics, not {statistics!r}.'
        return
    for statistic in statistics:
        if not isinstance(statistic, str) or not (statistic in STATISTICS or percent_of(statistic) is not None):
            names = f"{', '.join(STATISTICS)} and percentiles as p99"
            close = nearest(statistic, STATISTICS) if isinstance(statistic, str) else ""
            yield f'"metrics": {name!r} has the statistic {statistic!r}; statistics are {names}.{close}'
    if len({str(each) for each in statistics}) < len(statistics):
        yield f'"metrics": {name!r} has a statistic twice.'


def _wrong_presets(preset: object) -> Iterator[str]:
    names = preset if isinstance(preset, list) else [preset]
    if not names:
        yield f'"preset" is empty; presets are {", ".join(PRESETS)}.'
    for name in names:
        if not isinstance(name, str) or name not in PRESETS:
            close = nearest(name, PRESETS) if isinstance(name, str) else ""
            yield f'"preset" is {name!r}; presets are {", ".join(PRESETS)}.{close}'
    if len({str(name) for name in names}) < len(names):
        yield '"preset" names one twice.'


def _credentials(block: Mapping[str, object]) -> Iterator[str]:
    for key in ("bearer_token_env", "password_env"):
        value = block.get(key)
        if key in block and not (isinstance(value, str) and _VARIABLE.fullmatch(value)):
            yield f'"{key}" must be the name of an environment variable; the secret itself stays out of this file.'
    user = block.get("username")
    if "username" in block and not (isinstance(user, str) and user and ":" not in user):
        yield '"username" must be a string without a colon.'
    if ("username" in block) != ("password_env" in block):
        yield 'give "username" and "password_env" together.'
    if "bearer_token_env" in block and "password_env" in block:
        yield 'give "bearer_token_env" or "password_env", not both.'


def _signature(block: Mapping[str, object]) -> Iterator[str]:
    if block.get("sigv4") and ("bearer_token_env" in block or "password_env" in block):
        yield 'give "sigv4", which signs with AWS credentials, or a token or password, not both.'
    if type(block.get("sigv4", False)) is not bool:
        yield f'"sigv4" is {block["sigv4"]!r}: it must be true or false.'
    for key in ("region", "service"):
        given = block.get(key)
        if key in block and not (isinstance(given, str) and _SCOPE.fullmatch(given)):
            yield f'"{key}" is {given!r}: it must be a name as AWS has it, such as us-east-1 or aps.'
        elif key in block and not block.get("sigv4"):
            yield f'"{key}" goes with "sigv4": true.'


def _is_texts(value: object) -> TypeGuard[dict[str, str]]:
    return isinstance(value, dict) and all(isinstance(each, str) for each in value.values())
