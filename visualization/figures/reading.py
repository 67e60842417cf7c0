"""Run directories -> runs, read for comparison and reduced at once; of a damaged one as much as can be read."""

from __future__ import annotations

import json
import os
from collections import Counter
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from inference_benchmarker.data.json_file import UNREADABLE
from inference_benchmarker.errors import BenchmarkError, refuse
from inference_benchmarker.records.user_metrics import PREFIX
from inference_benchmarker.report.headline import outcome
from inference_benchmarker.report.summary_json import summary_of
from inference_benchmarker.system.files import is_file
from inference_benchmarker.system.given import resolved
from inference_benchmarker.wave import reader
from inference_benchmarker.wave.files.client_table import Table, read_client_table
from inference_benchmarker.wave.files.identity import require_own, require_unchanged
from inference_benchmarker.wave.files.timeline_file import check_timeline, read_timeline
from inference_benchmarker.wave.run_dir import ORIGIN, STAMPED, RunDir
from inference_benchmarker.words.text import one_line, plain
from inference_benchmarker.words.units import NS
from visualization.comparison.changes import TIMES
from visualization.comparison.intervals import Estimates, interval
from visualization.figures.aiperf_export import find_export, read_export, read_table
from visualization.figures.runs import ALONE, LEGEND, STATISTICS, Interval, Run

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from inference_benchmarker.facts.server_metric import ServerMetric
    from inference_benchmarker.summary.statistics.distribution import Distribution
    from inference_benchmarker.wave.wave import Wave
    from visualization.figures.figures import Points


T = TypeVar("T")
_LONG = 200
_MOST_NINES, _A_NINE = 4, 50


def runs_among(paths: Sequence[Path]) -> tuple[tuple[Path, ...], tuple[str, ...]]:
    """Those that are run directories, and a sentence on each that is none; BenchmarkError where none of them is."""
    found, problems = [], []
    for path in paths:
        try:
            _check(path)
            found.append(path)
        except BenchmarkError as error:
            problems.append(str(error))
    if not found:
        refuse(problems)
    return tuple(found), tuple(problems)


def read_runs(
    paths: Sequence[Path],
    metadata: Mapping[str, Mapping[str, Any]],
    load: Callable[[Path], Wave],
    say: Callable[[str], None],
) -> tuple[Run, ...]:
    """The runs, one at a time; ``metadata`` is keyed by the directories' basenames. Raises for what is no run.

    ``load`` is ``Wave.load``: what a wave's verdict is made of is no business of these figures.
    """
    called = [_check(path) for path in paths]
    given = [metadata.get(resolved(path).name, {}) for path in paths]
    names = [str(data.get(LEGEND) or name) for data, name in zip(given, called, strict=True)]
    labels = tell_apart([one_line(name, _LONG) for name in names], paths)
    runs = []
    for number_, (path, label, data) in enumerate(zip(paths, labels, given, strict=True), 1):
        say(f"Reading {label} ({number_} of {len(paths)})")
        hover = tuple(f"{key}: {_one_line(value)}" for key, value in data.items() if key != LEGEND)
        runs.append(_read(RunDir(path), label, hover, load))
    return tuple(runs)


def tell_apart(names: Sequence[str], paths: Sequence[Path]) -> list[str]:
    """A label for each run: its name, else where it lies; where that is another's too, more of the path, a number."""
    whole = [resolved(path) for path in paths]
    places = _places(whole)
    labels = [name or place for name, place in zip(names, places, strict=True)]
    for wheres in (places, [path.name for path in whole], [f"{path.parent.name}/{path.name}" for path in whole]):
        doubles = {label for label in labels if labels.count(label) > 1}
        for index, where in enumerate(map(plain, wheres)):
            if labels[index] in doubles:
                labels[index] = f"{names[index]} ({where})" if names[index] else where
    return [
        label if labels.count(label) == 1 else f"{label} #{labels[: index + 1].count(label)}"
        for index, label in enumerate(labels)
    ]


def _places(paths: Sequence[Path]) -> list[str]:
    """The directory of each run, or the folder it lies in: base and new of ``runs/base`` and ``runs/new``.

    The folder says more where the directory's name is just the time, and the runs lie in several; those of one folder
    are numbered.
    """
    folders = [path.parent for path in paths if STAMPED.fullmatch(path.name)]
    if len({folder.name for folder in folders}) < 2 or len(set(folders)) > len({folder.name for folder in folders}):
        return [plain(path.name.removesuffix("_benchmark")) for path in paths]
    seen: Counter[Path] = Counter()
    places = []
    for path in paths:
        folder = path.parent
        if not STAMPED.fullmatch(path.name):
            places.append(plain(path.name))
            continue
        seen[folder] += 1
        places.append(plain(f"{folder.name} {seen[folder]}" if folders.count(folder) > 1 else folder.name))
    return places


def _check(path: Path) -> str:
    """Its name, where its plan has one; an error where this is no run directory, whatever its state."""
    run_dir = RunDir(path)
    if run_dir.is_of_the_original and is_file(find_export(run_dir), path):
        return ""
    if not any(map(os.path.lexists, (run_dir.summary, run_dir.requests, run_dir.spool, run_dir.plan))):
        RunDir.find(path)
    try:
        return str(reader.read_facts(run_dir.plan).get("name") or "")
    except BenchmarkError:
        return ""


class _Attempts:
    """Reads one part after the other; what is damaged becomes a sentence, and something empty stands in for it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.problems: list[str] = []

    @property
    def sentences(self) -> tuple[str, ...]:
        """The sentences, each once."""
        return tuple(dict.fromkeys(self.problems))

    @property
    def failed(self) -> bool:
        """Tells whether something was damaged."""
        return bool(self.problems)

    def read(self, path: Path, reader: Callable[[Path], T], otherwise: T, *, expected: bool = True) -> T:
        """The reader's outcome for a file. ``expected``: its absence is a damage."""
        try:
            return reader(path) if expected or os.path.lexists(path) else otherwise
        except BenchmarkError as error:
            self.problems.append(error.message.removeprefix(f"{self._folder}: ").replace(f"{self._folder}/", ""))
        except (OSError, *UNREADABLE) as error:
            what = getattr(error, "strerror", None) or one_line(str(error), _LONG) or repr(error)
            self.problems.append(f"{path.name}: cannot be read ({what}).")
        return otherwise


def _read(run_dir: RunDir, label: str, hover: tuple[str, ...], load: Callable[[Path], Wave | None]) -> Run:
    """Its files one by one. Loading the wave comes first: it puts one that was cut off together."""
    attempts = _Attempts(run_dir.path)
    if run_dir.is_of_the_original:
        export = _read_aiperf(run_dir, attempts, expected=True)
        problems = (f"This {ORIGIN} The results of its aiperf run are shown.", *attempts.sentences)
        return Run(
            run_dir.path, label, hover, aiperf=export, problems=problems, has_wave=False, is_damaged=attempts.failed
        )
    if run_dir.aiperf_alone:
        plan = attempts.read(run_dir.plan, lambda _: reader.read_plan(run_dir), None)
        export = _read_aiperf(run_dir, attempts, expected=True)
        sentences, failed = attempts.sentences, attempts.failed
        return Run(
            run_dir.path, label, hover, plan=plan, aiperf=export, problems=sentences, has_wave=False, is_damaged=failed
        )
    wave = attempts.read(run_dir.path, load, None)
    digests: dict[str, str] = attempts.read(run_dir.summary, reader.read_digests, {})
    unchanged = partial(_unchanged, digests)
    client = partial(read_client_table, start_s=0.0 if wave is None else wave.window.start_unix_ns / NS)
    return Run(
        path=run_dir.path,
        label=label,
        hover=hover,
        summary=None if wave is None else summary_of(wave, wave.summary, wave.verdict),
        plan=attempts.read(run_dir.plan, lambda _: reader.read_plan(run_dir), None),
        timeline=attempts.read(run_dir.timeline, unchanged(partial(_timeline, wave=wave, digests=digests)), {}),
        client=attempts.read(
            run_dir.client_csv, unchanged(client, require_own), {}, expected=run_dir.client_csv.name in digests
        ),
        server=attempts.read(
            run_dir.server_metrics, unchanged(_read_server), (), expected=run_dir.server_metrics.name in digests
        ),
        aiperf=_read_aiperf(run_dir, attempts, expected=False),
        tails={} if wave is None else _tails(wave),
        intervals={} if wave is None else _intervals(wave),
        problems=attempts.sentences,
        is_damaged=attempts.failed,
        outcome="" if wave is None else outcome(wave.summary, wave.verdict),
        reservations=() if wave is None else tuple(reader.reservations(wave)),
    )


def _unchanged(
    digests: Mapping[str, str],
    reader: Callable[[Path], T],
    check: Callable[[Path, Mapping[str, str]], None] = require_unchanged,
) -> Callable[[Path], T]:
    """The reader of a file that must be as it was when its wave was stored."""

    def read(path: Path) -> T:
        found = reader(path)
        check(path, digests)
        return found

    return read


def _timeline(path: Path, wave: Wave | None, digests: Mapping[str, str]) -> Table:
    """Of an earlier version, which stored no digest, it is compared with the requests."""
    if wave is not None and path.name not in digests:
        check_timeline(path, wave)
    return read_timeline(path)


def _read_aiperf(run_dir: RunDir, attempts: _Attempts, *, expected: bool) -> dict[str, Any]:
    path, nothing = find_export(run_dir), dict[str, Any]()
    export = attempts.read(path, partial(read_export, inside=run_dir.path), nothing, expected=expected)
    table = attempts.read(path.with_suffix(".csv"), partial(read_table, inside=run_dir.path), nothing, expected=False)
    return {**export, **table}


def _read_server(path: Path) -> tuple[ServerMetric, ...]:
    """The metrics that were asked for."""
    rows = [row for row in reader.read_server_metrics(path) if row.asked and row.statistics]
    return tuple(replace(row, name=plain(row.name)) for row in rows)


def _tails(wave: Wave) -> dict[str, Points]:
    """The distribution of each time, as far as p99.99 where there are so many."""
    found = ((name, wave.summary.distribution(name)) for name in TIMES)
    return {name: tail(distribution) for name, distribution in found if distribution is not None}


def _intervals(wave: Wave) -> dict[str, Interval]:
    """The confidence intervals of what the records bound, by the name it has in an SLO."""
    own = (PREFIX + name for name in wave.summary.metrics)
    wanted = [(name, name) for name in ALONE] + [(name, stat) for name in (*TIMES, "lag", *own) for stat in STATISTICS]
    estimates = Estimates(wave, wanted)
    found = ((f"{metric}.{stat}", estimates.of(metric, stat)) for metric, stat in wanted)
    known = ((name, interval(estimate)) for name, estimate in found if estimate is not None)
    return {name: ends for name, ends in known if ends is not None and ends[0] < ends[1]}


def tail(distribution: Distribution) -> Points:
    """(nines, seconds) in equal steps of nines, to the last of which the sample has a value of its own."""
    most = min(_MOST_NINES, float(np.log10(distribution.count)))
    nines = np.append(np.arange(0, most, 1 / _A_NINE), most)
    return tuple((float(x), distribution.percentile(100 * (1 - 10.0**-x))) for x in nines)


def _one_line(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
