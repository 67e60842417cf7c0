"""The flags of aiperf, and what they ask for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inference_benchmarker.cli.core.flags import Flag, parse_number, read_flags
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.system.packaged import demo_tokenizer
from inference_benchmarker.url import url_problem
from server_capacity.aiperf.arguments import OURS, brings_input, named
from server_capacity.aiperf.options import API_KEY, MOST_PAUSE_S, AiperfOptions

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from server_capacity.aiperf.arguments import Value

_OF_THE_WAVE = ("slo", "calibrate", "sample_client_hw", "ui")


def _pause(flag: str, text: str) -> float:
    pause_s = parse_number(flag, text)
    if not 0 <= pause_s <= MOST_PAUSE_S:
        raise BenchmarkError(f"{flag} must be from 0 to {MOST_PAUSE_S:,} seconds, not {text!r}.")
    return pause_s


AIPERF_FLAGS: list[Flag] = [
    Flag(
        "--aiperf",
        None,
        "after the wave, run aiperf with the same load for its token metrics; needs the endpoint's URL",
    ),
    Flag("--aiperf-only", None, "run aiperf without a wave before it"),
    Flag(
        "--aiperf-args",
        "JSON",
        'flags of `aiperf profile` to replace or add: {"model": "Qwen/Qwen2.5-0.5B", "concurrency": 50}',
    ),
    Flag(
        "--aiperf-pause",
        "S",
        "seconds between the wave and aiperf (default: until the server's metrics return to their baseline)",
        _pause,
    ),
    Flag(
        "--api-key",
        "KEY",
        f"the endpoint's key; {API_KEY} in the environment is safer, because arguments are visible to other users",
    ),
]


def take_aiperf(options: dict[str, Any], problems: list[str], environment: Mapping[str, str]) -> AiperfOptions | None:
    """Reads what is asked of aiperf; None where it is not to run. Its ``--url`` is taken away: the wave has none."""
    if not options["aiperf"] and not options["aiperf_only"]:
        stray = [name for name in ("aiperf_args", "aiperf_pause") if options[name] is not None]
        problems += [f"{_flag(name)} is for --aiperf or --aiperf-only." for name in stray]
        return None
    problems += _conflicts(options)
    given = _given(options["aiperf_args"], problems)
    if options["demo"] and not given.keys() & {"tokenizer", "model"}:
        given["tokenizer"] = str(demo_tokenizer())
    url = options["url"]
    if url is None and not options["demo"]:
        problems.append("aiperf needs the endpoint's URL: give --url URL.")
    if options["locust_file"] is None:
        options["url"] = None
        if url is not None and (problem := url_problem("--url", url)):
            problems.append(problem)
    if options["locust_file"] is not None and not brings_input(given):
        problems.append(
            "aiperf takes its requests from payload_factory, and a --locust-file has none: "
            'give --aiperf-args \'{"input-file": "FILE"}\'.'
        )
    from server_capacity.aiperf.installation import Installation

    pause_s = read_flags(AIPERF_FLAGS, options, problems).values["aiperf_pause"]
    try:
        installation = Installation.find(environment)
    except BenchmarkError as error:
        problems.append(str(error))
        return None
    return AiperfOptions(installation, url, bool(options["aiperf_only"]), given, pause_s)


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def _conflicts(options: dict[str, Any]) -> Iterator[str]:
    for name in ("stages", "replay"):
        if options[name] is not None:
            yield f"aiperf has one rate: give --client-rps instead of {_flag(name)}, or leave --aiperf out."
    if options["interactive"]:
        yield "aiperf has one constant rate: leave --interactive or --aiperf out."
    if asked := [_flag(name) for name in ("client_timeout", "client_retries") if options[name] is not None]:
        yield f"aiperf sends each request once: leave {' and '.join(asked)} out, or aiperf."
    if not options["aiperf_only"]:
        return
    if options["aiperf"]:
        yield "Give either --aiperf (after a wave) or --aiperf-only, not both."
    for name in (*_OF_THE_WAVE, "aiperf_pause"):
        if options[name]:
            yield f"{_flag(name)} is for a wave, and --aiperf-only has none."


def _given(text: str | None, problems: list[str]) -> dict[str, Value]:
    if text is None:
        return {}
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        problems.append(f'--aiperf-args is not valid JSON ({error}). Example: \'{{"model": "NAME"}}\'.')
        return {}
    if not isinstance(data, dict):
        problems.append(
            f"--aiperf-args must be a JSON object, not {type(data).__name__}. Example: '{{\"concurrency\": 50}}'."
        )
        return {}
    given = named(data)
    problems += [
        f"--aiperf-args: {name} is set by this tool, which reads the results from there."
        for name in OURS
        if name in given
    ]
    problems += [
        f"--aiperf-args: {name} must be a string, a number, true, false, or a list of those."
        for name, value in given.items()
        if not all(isinstance(each, str | int | float) for each in (value if isinstance(value, list) else [value]))
    ]
    problems += _missing(given)
    if given.get("export-level") == "summary":
        problems.append("--aiperf-args: export-level must be records or raw, because the results are read from these.")
    return given


def _missing(given: Mapping[str, Value]) -> Iterator[str]:
    from server_capacity.aiperf.tokenizer import missing_folder

    inputs, tokenizer = given.get("input-file"), given.get("tokenizer")
    if isinstance(inputs, str) and not Path(inputs).exists():
        yield f"--aiperf-args: input-file {inputs}: there is no such file."
    if isinstance(tokenizer, str) and (problem := missing_folder(tokenizer)):
        yield f"--aiperf-args: {problem}"
