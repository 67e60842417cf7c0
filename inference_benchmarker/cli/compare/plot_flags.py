"""The flags of `benchmark --plot`, and the comparison that they describe."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inference_benchmarker.cli.core.flags import Flag, Table, read_flags
from inference_benchmarker.data.json_text import parse_json
from inference_benchmarker.errors import BenchmarkError, refuse
from inference_benchmarker.system.files import folders_in, kind_of
from inference_benchmarker.system.given import read_given, resolved
from inference_benchmarker.words.units import MIB

if TYPE_CHECKING:
    from collections.abc import Sequence

    from visualization.comparison.ab import Experiment
    from visualization.comparison.ending import Cut

_MOST_BYTES = 16 * MIB
_MOST_NAMES = 5
_OF_A_SEARCH = "capacity.json"
KINDS = ("html", "png", "svg")


def _formats(flag: str, text: str) -> tuple[str, ...]:
    formats = tuple(name.strip().lower() for name in text.split(","))
    if unknown := [name for name in formats if name not in KINDS]:
        raise BenchmarkError(f"{flag}: {', '.join(map(repr, unknown))} is not one of {', '.join(KINDS)}.")
    return formats


def _metadata(flag: str, text: str) -> dict[str, dict[str, Any]]:
    data = _json(flag, text, file=not text.lstrip().startswith("{"))
    if not isinstance(data, dict) or not all(isinstance(lines, dict) for lines in data.values()):
        example = '{"20261120T144423Z_benchmark": {"legend": "base", "instance": "ml.g5.xlarge"}}'
        raise BenchmarkError(f"{flag} must be an object with an object for each run, as {example}.")
    return data


def _fields(flag: str, text: str) -> dict[str, list[str]]:
    data = _json(flag, text, file=False)
    lists = isinstance(data, dict) and all(isinstance(names, list) for names in data.values())
    if not (lists and all(isinstance(name, str) for names in data.values() for name in names)):
        example = '{"locust": ["TTFT (ms)"]}'
        raise BenchmarkError(f"{flag} must be an object with a list of names for each source, as {example}.")
    found: dict[str, list[str]] = data
    return found


def _json(flag: str, text: str, *, file: bool) -> Any:
    """The JSON of a flag or of the file that it names."""
    where = f"{flag} {text}" if file else flag
    try:
        return parse_json(read_given(Path(text), _MOST_BYTES) if file else text.encode("utf-8", "surrogateescape"))
    except OSError as error:
        reason = error.strerror or error
        raise BenchmarkError(f"{where}: cannot be read ({reason}). Give a JSON file, or an object itself.") from None
    except ValueError as error:
        raise BenchmarkError(f"{where}: is not JSON ({error}).") from None


PLOT: Table = {
    "comparison": [
        Flag("--plot-output-dir", "DIR", "where to write the page and the images (default: the first run directory)"),
        Flag(
            "--plot-fields",
            "JSON",
            'bars to draw for waves (key "locust") and for aiperf: {"locust": ["Latency (ms)"], '
            '"aiperf": ["Server RPS"]} (default: all)',
            _fields,
        ),
        Flag(
            "--plot-metadata",
            "JSON|FILE",
            'a JSON object with one entry per run directory name: "legend" renames the run, other keys are shown on '
            "hover",
            _metadata,
        ),
        Flag("--plot-format", "LIST", "html, png or svg, comma-separated", _formats, default=KINDS),
        Flag("--quiet", None, "print no progress"),
    ],
}


@dataclass(frozen=True, slots=True)
class Plot:
    """The comparison asked for: the runs, what is said of them (by directory name), the bars wanted (None: all).

    ``output_dir`` None: the first run's. ``notes``: what of it is left out. Of the A and B that are all of it,
    ``cut``: why they lack waves, where they do; ``limits``: those on changes, of which an undecided one fails where it
    is ``strict``.
    """

    runs: tuple[Path, ...]
    output_dir: Path | None
    formats: tuple[str, ...]
    metadata: dict[str, dict[str, Any]]
    fields: dict[str, list[str]] | None
    notes: tuple[str, ...]
    quiet: bool
    cut: Cut | None = None
    limits: tuple[str, ...] = ()
    strict: bool = False


def make_plot(options: dict[str, Any], problems: list[str]) -> Plot:
    """The comparison that the flags describe, or one error with everything that is wrong with them."""
    runs = tuple(path for text in options["plot"] or () for each in _folders(text) for path in _runs_of(each))
    if not runs:
        problems.append("--plot needs one run directory or more.")
    given = read_flags(PLOT["comparison"], options, problems).values
    refuse(problems)
    metadata, names = given["plot_metadata"] or {}, {resolved(path).name for path in runs}
    strangers = ", ".join(repr(key) for key in metadata if key not in names)
    shown = ", ".join(sorted(names)[:_MOST_NAMES])
    left_out = f"--plot-metadata: left out, as no such run is plotted: {strangers}. The runs are called {shown}."
    notes = (left_out,) if strangers else ()
    one = _one_ab(options["plot"] or ())
    place = None if one is None else one.folder
    return Plot(
        runs=runs,
        output_dir=place if given["plot_output_dir"] is None else Path(given["plot_output_dir"]),
        formats=given["plot_format"],
        metadata=metadata,
        fields=given["plot_fields"],
        notes=notes,
        quiet=bool(given["quiet"]),
        cut=None if one is None else one.cut,
        limits=() if one is None else one.limits,
        strict=one is not None and one.strict,
    )


def _one_ab(given: Sequence[str]) -> Experiment | None:
    """The comparison of A and B where it is all that is plotted: its page is of none of its runs."""
    from visualization.comparison.ab import is_ab, load

    return load(Path(given[0])) if len(given) == 1 and is_ab(Path(given[0])) else None


def _runs_of(folder: Path) -> list[Path]:
    """The folder; where it is neither a run nor a search, those in it, the first one first."""
    from inference_benchmarker.wave.run_dir import RunDir

    names = (RunDir(folder).plan.name, RunDir(folder).summary.name, _OF_A_SEARCH)
    if any(kind_of(folder / name) for name in names):
        return [folder]
    inside = [each for each in folders_in(folder, links=True) if any(kind_of(each / name) for name in names)]
    return inside or _of_ab(folder) or [folder]


def _of_ab(folder: Path) -> list[Path]:
    """The runs of A and B that count, those of A first; none where the folder is no such one."""
    from visualization.comparison.ab import is_ab, load

    return sorted(folder / each.run for each in load(folder).sent if each.counts) if is_ab(folder) else []


def _folders(text: str) -> list[Path]:
    """The directories of an argument, which may be several with commas between them."""
    if "," not in text or kind_of(Path(text)):
        return [Path(text)]
    return [Path(each.strip()) for each in text.split(",") if each.strip()]
