"""The files of a run directory that are no part of its wave: the client's samples, and what aiperf measured.

Each may be missing or damaged; what cannot be read is said on the page.
"""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from inference_benchmarker.data.json_file import UNREADABLE
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.system.files import is_file
from inference_benchmarker.wave.files.client_table import read_client_table
from inference_benchmarker.wave.files.identity import require_own
from inference_benchmarker.wave.reader import read_digests
from inference_benchmarker.words.text import one_line
from inference_benchmarker.words.units import NS
from inference_benchmarker.words.wording import number_text
from visualization.figures.aiperf_export import SINGLE, STATISTICS, TABLE, find_export, read_table

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from inference_benchmarker.wave.files.client_table import Table
    from inference_benchmarker.wave.wave import Wave

T = TypeVar("T")

_LONG = 200
_COLUMNS = ("mean", "median", "p90", "p95", "p99", "max")


class Extras:
    """``client``: the columns of client.csv by process. ``aiperf``: a head and a row for each of its metrics.

    ``problems``: sentences on what cannot be read.
    """

    def __init__(self, wave: Wave) -> None:
        self.problems: list[str] = []
        self.client: dict[str, Table] = {}
        self.aiperf: list[list[str]] = []
        if wave.run_dir is not None:
            start_s, run_dir = wave.window.start_unix_ns / NS, wave.run_dir
            self.client = self._read(run_dir.client_csv, partial(_client_of, wave, start_s), {})
            nothing: dict[str, Any] = {}
            path = find_export(run_dir).with_suffix(".csv")
            self.aiperf = _rows(self._read(path, partial(read_table, inside=run_dir.path), nothing).get(TABLE, {}))

    def _read(self, path: Path, reader: Callable[[Path], T], otherwise: T) -> T:
        try:
            return reader(path) if os.path.lexists(path) else otherwise
        except BenchmarkError as error:
            self.problems.append(error.message)
        except (OSError, *UNREADABLE) as error:
            reason = getattr(error, "strerror", None) or one_line(str(error), _LONG) or repr(error)
            self.problems.append(f"{path.name}: cannot be read ({reason}).")
        return otherwise


def _client_of(wave: Wave, start_s: float, path: Path) -> dict[str, Table]:
    """The table as the wave left it; BenchmarkError where it is another's."""
    if wave.run_dir is not None and is_file(wave.run_dir.summary):
        require_own(path, read_digests(wave.run_dir.summary))
    return read_client_table(path, start_s=start_s)


def _rows(metrics: dict[str, dict[str, float]]) -> list[list[str]]:
    """Aiperf's metrics by its own names; those of a single number have it in the first column."""
    rows = [[one_line(name, _LONG), *_cells(found)] for name, found in metrics.items()]
    return [["Metric", *_COLUMNS], *rows] if rows else []


def _cells(found: dict[str, float]) -> list[str]:
    values = [found.get(STATISTICS[name]) for name in _COLUMNS]
    if SINGLE in found:
        values[0] = found[SINGLE]
    return ["" if value is None else number_text(value) for value in values]
