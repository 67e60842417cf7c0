"""The flags of `benchmark --plot`, and the comparison that they describe."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.files import MIB, read_given
from inference_benchmarker.json_text import parse_json

if TYPE_CHECKING:
    from inference_benchmarker.cli.flags import Flag

_MOST_BYTES = 16 * MIB
KINDS = ("html", "png", "svg")
PLOT: dict[str, list[Flag]] = {
    "comparison": [
        ("--plot-output-dir", "DIR", "where page and pictures go (default: the first run directory)"),
        (
            "--plot-fields",
            "JSON",
            'the bars to draw, by source: {"locust": ["Latency (ms)"], "aiperf": ["Server RPS"]} (default: all)',
        ),
        (
            "--plot-metadata",
            "JSON|FILE",
            "an object keyed by run directory name: legend renames the run, other keys are lines shown on hover",
        ),
        ("--plot-format", "LIST", "html, png, svg, with commas between them (default html,png)"),
        ("--quiet", None, "no progress"),
    ],
}


@dataclass(frozen=True, slots=True)
class Plot:
    """What is to be compared: the runs, what is said of them (by directory name), the bars wanted (None: all)."""

    runs: tuple[Path, ...]
    output_dir: Path
    formats: tuple[str, ...]
    metadata: dict[str, dict[str, Any]]
    fields: dict[str, list[str]] | None


def make_plot(options: dict[str, Any], problems: list[str]) -> Plot:
    """The comparison that the flags describe, or one error with everything that is wrong with them."""
    runs = tuple(Path(text) for text in options["plot"] or ())
    if not runs:
        problems.append("--plot needs one run directory or more.")
    metadata = _metadata(options["plot_metadata"], problems)
    names = {path.resolve().name for path in runs}
    known = ", ".join(sorted(names))
    strangers = [key for key in metadata if key not in names]
    problems += [f"--plot-metadata: {key!r} is none of the runs, which are {known}." for key in strangers]
    formats = tuple(text.strip().lower() for text in (options["plot_format"] or "html,png").split(","))
    if unknown := [name for name in formats if name not in KINDS]:
        problems.append(f"--plot-format: {', '.join(map(repr, unknown))} is none of {', '.join(KINDS)}.")
    fields = _fields(options["plot_fields"], problems)
    if problems:
        raise BenchmarkError("\n".join(problems))
    return Plot(runs, Path(options["plot_output_dir"] or runs[0]), formats, metadata, fields)


def _metadata(text: str | None, problems: list[str]) -> dict[str, dict[str, Any]]:
    if text is None:
        return {}
    data = _json("--plot-metadata", text, problems, file=not text.lstrip().startswith("{"))
    if data is None:
        return {}
    if not isinstance(data, dict) or not all(isinstance(lines, dict) for lines in data.values()):
        example = '{"20261120T144423Z_benchmark": {"legend": "base", "instance": "ml.g5.xlarge"}}'
        problems.append(f"--plot-metadata must be an object with an object for each run, as {example}.")
        return {}
    return data


def _fields(text: str | None, problems: list[str]) -> dict[str, list[str]] | None:
    if text is None:
        return None
    data = _json("--plot-fields", text, problems, file=False)
    lists = isinstance(data, dict) and all(isinstance(names, list) for names in data.values())
    if data is not None and not (lists and all(isinstance(name, str) for names in data.values() for name in names)):
        example = '{"locust": ["TTFT (ms)"]}'
        problems.append(f"--plot-fields must be an object with a list of names for each source, as {example}.")
    return data if lists else None


def _json(flag: str, text: str, problems: list[str], *, file: bool) -> Any:
    """The JSON of a flag or of the file that it names; None, and a problem, where there is none."""
    where = f"{flag} {text}" if file else flag
    try:
        return parse_json(read_given(Path(text), _MOST_BYTES) if file else text.encode("utf-8", "surrogateescape"))
    except OSError as error:
        problems.append(f"{where}: cannot be read ({error.strerror or error}). Give a JSON file, or an object itself.")
    except ValueError as error:
        problems.append(f"{where}: is not JSON ({error}).")
    return None
