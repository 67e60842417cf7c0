"""A plan in the words of aiperf's command line. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from inference_benchmarker.plan.load import OpenLoop
from inference_benchmarker.words.suggest import meant, question

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping
    from pathlib import Path

    from inference_benchmarker.plan.plan import WavePlan

Value = str | int | float | bool | list[str | int | float]
"""What a flag may have in --aiperf-args."""

ALIASES = {
    "m": "model",
    "model-names": "model",
    "u": "url",
    "num-requests": "request-count",
    "request-rate-mode": "arrival-pattern",
    "output-artifact-dir": "artifact-dir",
    "ui-type": "ui",
    "num-warmup-requests": "warmup-request-count",
    "profile-export-level": "export-level",
    "f": "config",
    "b": "batch-size",
    "H": "header",
    "v": "verbose",
    "vv": "extra-verbose",
}
"""aiperf's other names of flags that are set or refused here, so that what is given replaces ours; and its letters."""

OURS = ("artifact-dir", "profile-export-prefix", "profile-export-file", "config", "num-profile-runs")
"""What decides where the results are."""

FAMILIAR = frozenset(
    {*ALIASES.values(), "api-key", "benchmark-duration", "concurrency", "custom-dataset-type", "endpoint-type"}
    | {"input-file", "public-dataset", "random-seed", "request-rate", "streaming", "tokenizer", "warmup-duration"}
)
"""Flags that aiperf need not be asked about."""

INPUTS = ("input-file", "public-dataset")
RAW, SESSIONS = "raw_payload", "inputs_json"
"""aiperf's forms of a file whose requests are sent as they stand: a line each, and one object of all."""

STREAM: dict[str, Any] = {"stream": True, "stream_options": {"include_usage": True}}
"""The keys of a request that asks for a stream, as our clients add them."""

_OUR_INPUT = ("input-file", "custom-dataset-type", "dataset-sampling-strategy")
_MOST_MEANT = 3
_ENDPOINT_TYPES = {"messages": "chat", "prompt": "completions", "input": "embeddings"}
_STREAMED = ("chat", "completions")
_OF_OTHER_FORMS = frozenset({"conversation_id", "data", "session_id", "text", "texts", "timestamp", "turns"})


@dataclass(frozen=True, slots=True)
class Requests:
    """The requests that aiperf sends as they stand: their file, its ``form``, and the first of them."""

    path: Path
    form: str
    body: Mapping[str, Any]

    @property
    def is_silent_on_streams(self) -> bool:
        """Tells whether they could be streamed, and do not say it."""
        return "stream" not in self.body and _endpoint_type(self.body) in _STREAMED


def named(given: Mapping[str, Value]) -> dict[str, Value]:
    """The user's flags under the names that are used here."""
    plain = {key.lstrip("-").replace("_", "-"): value for key, value in given.items()}
    return {ALIASES.get(key, key): value for key, value in plain.items()}


def brings_input(given: Mapping[str, Value]) -> bool:
    """Tells whether the user's flags say where requests come from; an input-file of false has aiperf make them up."""
    return any(name in given for name in INPUTS)


def problems_of(given: Mapping[str, Value], body: Mapping[str, Any] | None) -> list[str]:
    """The problems where aiperf needs what neither the user's flags nor the first request say."""
    found = []
    if "model" not in given and not (body and body.get("model")):
        found.append(
            "aiperf needs the model's name, for its tokenizer, and the payload has none: "
            'give --aiperf-args \'{"model": "NAME"}\'.'
        )
    if body is not None and "endpoint-type" not in given and _endpoint_type(body) is None:
        found.append(
            f"aiperf cannot detect the API: the payload has none of {', '.join(_ENDPOINT_TYPES)}. Give --aiperf-args "
            '\'{"endpoint-type": "raw"}\' and the whole URL as --url.'
        )
    return found


def strange(given: Mapping[str, Value]) -> list[str]:
    """The user's flags that may be misspelt."""
    return [name for name in given if name not in FAMILIAR]


def problems_of_names(names: Iterable[str], known: Collection[str]) -> Iterator[str]:
    """The flags that aiperf does not have; none where it is not known which it has."""
    for name in names:
        if known and name not in known:
            hint = question(meant(name, known)[:_MOST_MEANT]) or " `aiperf profile --help` lists those it has."
            yield f"--aiperf-args: aiperf has no flag {name}.{hint}"


def is_request(line: Any) -> bool:
    """Tells whether a line of a file is a request as it is sent, and in none of aiperf's other forms."""
    return isinstance(line, dict) and _endpoint_type(line) is not None and _OF_OTHER_FORMS.isdisjoint(line)


def flags(
    plan: WavePlan, url: str, given: Mapping[str, Value], requests: Requests | None, *, streamed: bool = False
) -> dict[str, Value]:
    """The wave's load and requests, replaced and added to by what is given.

    ``streamed``: the requests are made to ask for a stream.
    """
    found: dict[str, Value] = {"url": url, **dict(_load(plan)), **dict(_bounds(plan)), **_OUTPUT}
    if plan.seed is not None:
        found["random-seed"] = plan.seed
    if plan.request_timeout_s is not None:
        found["request-timeout-seconds"] = float(plan.request_timeout_s)
    if requests is not None:
        found |= dict(zip(_OUR_INPUT, (str(requests.path), requests.form, "sequential"), strict=True))
        found |= dict(_of_body(requests.body))
        found |= {"streaming": True} if streamed else {}
    opposed = {f"no-{name}" for name, value in given.items() if value is not False}
    return {**{name: value for name, value in found.items() if name not in opposed}, **given}


_OUTPUT: dict[str, Value] = {"ui": "none", "no-gpu-telemetry": True, "no-server-metrics": True}


def _load(plan: WavePlan) -> Iterator[tuple[str, Value]]:
    if isinstance(plan.load, OpenLoop):
        yield "request-rate", f"{plan.load.rate:f}"
        yield "arrival-pattern", plan.load.arrivals
    else:
        yield "concurrency", plan.load.concurrency


def _bounds(plan: WavePlan) -> Iterator[tuple[str, Value]]:
    if plan.bounds.num_requests is not None:
        yield "request-count", plan.bounds.num_requests
    if plan.bounds.duration_s is not None:
        yield "benchmark-duration", f"{plan.bounds.duration_s:f}"
        yield "benchmark-grace-period", f"{plan.drain_timeout_s:f}"
    if plan.warmup_s:
        yield "warmup-duration", f"{plan.warmup_s:f}"


def _of_body(body: Mapping[str, Any]) -> Iterator[tuple[str, Value]]:
    if model := body.get("model"):
        yield "model", str(model)
    if kind := _endpoint_type(body):
        yield "endpoint-type", kind
    yield "streaming", bool(body.get("stream"))


def _endpoint_type(body: Mapping[str, Any]) -> str | None:
    return next((kind for key, kind in _ENDPOINT_TYPES.items() if key in body), None)


def words(flags: Mapping[str, Value]) -> list[str]:
    """Flags as a command line: true is a bare switch, false leaves it out, a list repeats it."""
    found: list[str] = []
    for name, value in flags.items():
        for each in value if isinstance(value, list) else [value]:
            found += [] if each is False else [f"--{name}"] if each is True else [f"--{name}", str(each)]
    return found
