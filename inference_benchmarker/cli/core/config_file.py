"""``--config FILE.toml``: the flags as keys of a file. The command line wins."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from inference_benchmarker.cli.core.flags import Flag

ALTERNATIVES = (
    ("client_rps", "concurrency"),
    ("arrivals", "concurrency"),
    ("stages", "client_rps"),
    ("stages", "obs_time"),
    ("stages", "concurrency"),
    ("replay", "client_rps"),
    ("replay", "obs_time"),
    ("replay", "stages"),
    ("replay", "concurrency"),
    ("replay", "arrivals"),
    ("interactive", "stages"),
    ("interactive", "replay"),
    ("interactive", "concurrency"),
    ("interactive", "num_requests"),
    ("factories_file", "locust_file"),
)


def with_config(options: dict[str, Any], flags: Mapping[str, Flag]) -> tuple[dict[str, Any], list[str]]:
    """The options with what the configuration file says where they are silent, and what is wrong with the file."""
    if options["config"] is None:
        return options, []
    configured, problems = read_config(Path(options["config"]), flags)
    for one, other in ALTERNATIVES:
        if options.get(one) is not None:
            configured.pop(other, None)
        if options.get(other) is not None:
            configured.pop(one, None)
    return {key: configured.get(key) if value is None else value for key, value in options.items()}, problems


def read_config(path: Path, flags: Mapping[str, Flag]) -> tuple[dict[str, Any], list[str]]:
    """The flags of a TOML file as text, and what is wrong with them."""
    from inference_benchmarker.toml_text import read_toml

    try:
        data = read_toml(path)
    except (OSError, ValueError, RecursionError) as error:
        return {}, [f"--config {path}: cannot be read ({getattr(error, 'strerror', None) or error})."]
    values: dict[str, Any] = {}
    problems = []
    for key, value in data.items():
        flag = flags.get(key.replace("-", "_"))
        if flag is None or flag.flag == "--config":
            problems.append(f"--config {path}: unknown key {key!r}.{_asked(key, flags)}")
        elif (flag.metavar is None) != isinstance(value, bool) or not _is_plain(value, several=flag.repeatable):
            wanted = "true or false" if flag.metavar is None else "a value"
            problems.append(f"--config {path}: {key} must be {wanted}, not {value!r}.")
        else:
            values[flag.name] = _as_text(value, flag)
    return values, problems


def _as_text(value: Any, flag: Flag) -> Any:
    """The value as the command line would have it: a text, true or false, or a list of texts."""
    if flag.repeatable:
        return [str(item) for item in (value if isinstance(value, list) else [value])]
    return value if isinstance(value, bool) else str(value)


def _asked(key: str, flags: Collection[str]) -> str:
    from inference_benchmarker.words.suggest import meant, question

    keys = {name.replace("_", "-") for name in flags} - {"config"}
    return question(meant(key, sorted(keys))) or " See `benchmark --help`."


def _is_plain(value: Any, *, several: bool) -> bool:
    """Tells whether a value of the file is one that a flag could have, or a list of such where a flag may repeat."""
    if several and isinstance(value, list):
        return all(isinstance(item, str) for item in value)
    return isinstance(value, (str, int, float))
