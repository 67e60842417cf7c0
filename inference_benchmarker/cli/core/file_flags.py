"""A factories file that is named, by its path or as a shipped example, and the settings that it gets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inference_benchmarker.cli.core.header_flags import headers_of, of_environment
from inference_benchmarker.cli.core.url_flags import ASKED, SECRET
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.plan.conversation import CACHE_SETTINGS
from inference_benchmarker.system.given import read_source
from inference_benchmarker.system.packaged import HTTP_FILE, packaged
from inference_benchmarker.words.redact import HEADERS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, MutableMapping

VARIABLE = "BENCHMARK_"
"""What stands before a setting's name in the environment."""

_NO_SETTINGS = (HEADERS, "BENCHMARK_API_KEY", "BENCHMARK_DEMO_URL")


def take_file(options: dict[str, Any], problems: list[str], environment: MutableMapping[str, str]) -> None:
    """Find the example that is named, and hand it headers where it reads them; flags of an address are problems."""
    stray = [flag.flag for flag in ASKED if options[flag.name] is not None]
    if options["factories_file"] is not None:
        before = len(problems)
        options["factories_file"] = _file_of(options["factories_file"], problems)
        if len(problems) > before:
            options["set"] = None  # nobody knows the settings of what is not there
    if options.get("cache") in CACHE_SETTINGS:
        _set_cache(options["cache"], options, problems)
    if options["header"]:
        if options["factories_file"] is not None and HEADERS in _source(options["factories_file"]):
            own = headers_of(options["header"], environment, problems)
            environment[HEADERS] = json.dumps({**of_environment(environment, problems), **own})
        else:
            stray.append("--header")
    if stray:
        instead = "" if options["factories_file"] is None else "; for a factories file, use --set"
        problems.append(f"{', '.join(stray)}: only for a URL, as in `benchmark URL`{instead}.")


def _set_cache(kind: str, options: dict[str, Any], problems: list[str]) -> None:
    """Set the constant of a file that says what the server's cache has before the wave."""
    from inference_benchmarker.engine.endpoint.settings import settings_of

    file, (name, made) = options["factories_file"], CACHE_SETTINGS[kind]
    if file is None or name not in settings_of(Path(file)):
        problems.append(f"--cache {kind}: for conversations at an address, or a file with a constant {name}.")
    else:
        options["set"] = [*(options["set"] or ()), f"{name}={made()}"]


def _file_of(text: str, problems: list[str]) -> str:
    """A file's path; the shipped example's where it is no file, but the name of one."""
    try:
        if not text.strip() or text.endswith(".py") or Path(text).expanduser().exists():
            return text
    except (OSError, ValueError, RuntimeError):  # reported as a file that is not there
        return text
    from inference_benchmarker.cli.core.examples import find, shipped

    try:
        return str(find(text, shipped()).path)
    except BenchmarkError as error:
        problems.append(f"--factories-file {text}: there is no such file, and no such example. {error.hint}")
        return str(packaged("factories", HTTP_FILE))  # in its place, so that none is missing


def _source(file: str) -> str:
    try:
        return read_source(Path(file).expanduser()).decode("utf-8", "replace")
    except (OSError, ValueError, RuntimeError):
        return ""


def settings_in(file: Path, environment: Mapping[str, str]) -> Iterator[str]:
    """The settings that the environment has for a file, as ``--set`` has them."""
    names = [name for name in environment if name.startswith(VARIABLE) and name not in _NO_SETTINGS]
    if not names:
        return
    from inference_benchmarker.engine.endpoint.settings import settings_of

    for name in settings_of(file):
        if VARIABLE + name in names and not SECRET.search(name):
            yield f"{name}={environment[VARIABLE + name]}"
