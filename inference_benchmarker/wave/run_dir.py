"""The run directory: every file of a wave by its name. What stands in them, ``reader`` and ``writer`` know."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from inference_benchmarker.data.json_file import cannot_read
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.system.files import folders_in, is_file, is_folder, kind_of

if TYPE_CHECKING:
    from pathlib import Path

OWNER_ONLY = 0o700

_OF_THE_ORIGINAL = ("find_rps.log", "wave_window.txt", "requests_fired", "locust_logs", "aiperf/args.json")
"""The files and folders that only the original tool leaves; what both leave shows nothing."""

_ANSWERS = {
    "capacity": ("search", "capacity.json"),
    "ranking": ("ranking", "ranking.json"),
    "tiers": ("search", "tiers.json"),
    "surface": ("search", "surface.json"),
    "proof": ("proof", "proof.json"),
    "plan": ("plan", "fleet_plan.json"),
    "ab": ("comparison", "ab.json"),
}
"""The folders of answers by the end of their names: of what they are, and the file that is written last."""
STAMP = "%Y%m%dT%H%M%SZ"
STAMPED = re.compile(r"\d{8}T\d{6}Z_[a-z]+(?:-\d+)?", re.ASCII)
"""The names that runs and folders of answers are made with."""
MADE_AS = "run"
"""The key of the environment below which a run's own name stands: another folder of this run is a copy."""
_ANSWER_OF = re.compile(rf"\d{{8}}.*_(?P<kind>{'|'.join(_ANSWERS)})(?:-\d+)?", re.ASCII)

ORIGIN = "is a run of the original InferenceBenchmarker: it has no plan.json and no record of each request."
_SEND_AGAIN = (
    "Its numbers are in locust_stats/locust_stats.csv. To compare with it, send the wave again. If aiperf ran in "
    "it, `benchmark report` and --plot show what aiperf measured."
)


@dataclass(frozen=True, slots=True)
class RunDir:
    """One wave's directory. The properties are its files, whether they exist or not."""

    path: Path

    @classmethod
    def create(cls, parent: Path) -> RunDir:
        """Make ``<UTC timestamp>_benchmark/`` below ``parent``."""
        run_dir = cls(make_stamped_folder(parent, "benchmark"))
        try:
            run_dir.logs.mkdir(mode=OWNER_ONLY)
        except OSError as error:
            raise cannot_write(parent, error) from None
        return run_dir

    @classmethod
    def find(cls, path: Path) -> RunDir:
        """An existing run directory."""
        run_dir = cls(path)
        try:
            if is_file(run_dir.plan):
                return run_dir
            with suppress(FileNotFoundError, NotADirectoryError):
                run_dir.plan.lstat()
                raise cannot_read(run_dir.plan, "is not a regular file")
            _refuse_answer(path)
            cut = _cut_off(path)
            sides = [*folders_in(path / "A"), *folders_in(path / "B")] if cut else []
            if runs := [each for each in [*folders_in(path), *sides] if is_file(cls(each).plan)]:
                if cut is not None:
                    raise BenchmarkError(f"{path}: {cut}", f"`benchmark report` prints each of its waves: {runs[-1]}.")
                number = "a run" if len(runs) == 1 else f"{len(runs)} runs"
                raise BenchmarkError(f"{path}: is a directory of {number}.", f"Give one: {runs[-1]}.")
            if run_dir.is_of_the_original:
                raise of_the_original(path)
            if cut is not None and kind_of(path) == "folder":
                parts = [str(each) for each in folders_in(path)]
                nothing = "Nothing was measured: start it again."
                raise BenchmarkError(f"{path}: {cut}", f"Give one of these in it: {parts[-1]}." if parts else nothing)
            absent = "is not a directory" if kind_of(path) else "does not exist"
            what = "is not a run directory (it has no plan.json)" if kind_of(path) == "folder" else absent
        except PermissionError:
            raise
        except (OSError, ValueError) as error:
            what = f"cannot be read ({error})"
        raise BenchmarkError(f"{path}: {what}.", "Give a run directory: a wave names its own in its last line.")

    @property
    def is_of_the_original(self) -> bool:
        """Tells whether the original tool left it: files of that one are there, and no wave of ours."""
        if self.has_wave or is_file(self.plan) or is_file(self.summary):
            return False
        own = [self.path / name for name in _OF_THE_ORIGINAL]
        return any(is_file(each, self.path) or is_folder(each, self.path) for each in own)

    @property
    def plan(self) -> Path:
        """The file of the plan."""
        return self.path / "plan.json"

    @property
    def spool(self) -> Path:
        """The file of all reports so far; gone when ``requests.parquet`` is there."""
        return self.path / "spool.bin"

    @property
    def arrivals(self) -> Path:
        """When each arrival of a recording is due: whole ns after wave start, eight bytes each."""
        return self.path / "arrivals.bin"

    @property
    def recorded_rows(self) -> Path:
        """The rows of a recording, as long as its wave runs: they may hold what nobody should keep."""
        return self.path / "recorded_rows"

    @property
    def requests(self) -> Path:
        """A row for each request."""
        return self.path / "requests.parquet"

    @property
    def counts(self) -> Path:
        """The counts of requests of which no record was kept."""
        return self.path / "counts.parquet"

    @property
    def timeline(self) -> Path:
        """A row for each second."""
        return self.path / "timeline.csv"

    @property
    def summary(self) -> Path:
        """Every number of the report."""
        return self.path / "summary.json"

    @property
    def report(self) -> Path:
        """The report as it was printed."""
        return self.path / "summary.txt"

    @property
    def kept(self) -> tuple[Path, ...]:
        """The files that are as they stay when summary.json is written, which then has their digests."""
        of_requests = (self.plan, self.requests, self.counts, self.timeline, self.report)
        return (*of_requests, self.client_csv, self.server_metrics, self.instances, self.aiperf_summary)

    @property
    def client_csv(self) -> Path:
        """CPU, memory and network of this client, a row a second and process."""
        return self.path / "client.csv"

    @property
    def server_metrics(self) -> Path:
        """The file of the server's own metrics of the wave's window."""
        return self.path / "server_metrics.json"

    @property
    def instances(self) -> Path:
        """The server's instances as they were followed, a line as it came."""
        return self.path / "instances.jsonl"

    @property
    def locust_stats(self) -> Path:
        """Locust's own CSV files."""
        return self.path / "locust_stats"

    @property
    def has_wave(self) -> bool:
        """Tells whether a wave was begun in it; aiperf may have run alone."""
        return is_file(self.requests) or is_file(self.spool)

    @property
    def aiperf_alone(self) -> bool:
        """Tells whether aiperf ran in it without a wave."""
        left = (self.summary, self.timeline, self.report)
        return is_folder(self.aiperf) and not self.has_wave and not any(map(is_file, left))

    @property
    def aiperf(self) -> Path:
        """The files of aiperf, and what was read from them."""
        return self.path / "aiperf"

    @property
    def aiperf_summary(self) -> Path:
        """The values that were read from aiperf's own files."""
        return self.aiperf / "summary.json"

    @property
    def logs(self) -> Path:
        """The processes' logs."""
        return self.path / "logs"

    @property
    def primary_log(self) -> Path:
        """The output of the primary process."""
        return self.logs / "primary.log"

    def worker_log(self, number: int) -> Path:
        """The output of a worker process, with what the user's code printed in it."""
        return self.logs / f"worker_{number}.log"


def _cut_off(path: Path) -> str | None:
    """The clause on a folder whose command was ended before it stored its answer; None for one of another name."""
    name = _ANSWER_OF.fullmatch(path.absolute().name)
    if name is None:
        return None
    what, file = _ANSWERS[name["kind"]]
    return f"is the folder of a {what} that ended before it stored its result (it has no {file})."


def _refuse_answer(path: Path) -> None:
    """Refuse the folder of an answer that was stored, where a run directory is asked for."""
    name = _ANSWER_OF.fullmatch(path.absolute().name)
    if name is None:
        return
    what, file = _ANSWERS[name["kind"]]
    if is_file(path / file):
        raise BenchmarkError(f"{path}: is the folder of a {what}, not of a wave.", f"Print it: benchmark report {path}")


def make_stamped_folder(parent: Path, kind: str) -> Path:
    """Make ``<UTC timestamp>_<kind>/`` below ``parent``, for its owner alone; a second one of a second gets ``-2``."""
    stamp = f"{datetime.now(UTC):{STAMP}}_{kind}"
    try:
        parent.mkdir(parents=True, exist_ok=True)
        for number in range(1, 1000):
            path = parent / (stamp if number == 1 else f"{stamp}-{number}")
            with suppress(FileExistsError):
                path.mkdir(mode=OWNER_ONLY)
                return path
    except OSError as error:
        raise cannot_write(parent, error) from None
    raise BenchmarkError(f"{parent}: no name is left for a run directory of this second.")


def of_the_original(path: Path) -> BenchmarkError:
    """The error of a run directory of the original tool, where one of today is needed."""
    return BenchmarkError(f"{path} {ORIGIN}", _SEND_AGAIN)


def cannot_write(path: Path, error: OSError) -> BenchmarkError:
    """The error of a place that cannot be written to."""
    reason = error.strerror or str(error)
    return BenchmarkError(f"{path}: cannot be written ({reason}).", "Give another place with --output-dir.")
