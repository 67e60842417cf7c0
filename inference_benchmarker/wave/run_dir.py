"""The run directory: every file of a wave by its name, and how JSON gets there and is read back.

Whose run directory it is, is not known: what is read from it is held against bounds, and what is written stays in it
(``files``).
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.files import is_file, is_folder, read_bytes, replace_file
from inference_benchmarker.json_text import MOST_BYTES, parse_json
from inference_benchmarker.plan.plan import WavePlan
from inference_benchmarker.text import one_line
from inference_benchmarker.typed import require
from inference_benchmarker.version import SCHEMA_VERSION

if TYPE_CHECKING:
    from pathlib import Path

OWNER_ONLY = 0o700
UNREADABLE = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""What reading values of another shape than ours raises."""


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
                raise cannot_read(run_dir.plan, "is no regular file")
            if runs := sorted(path.glob("*/plan.json")):
                raise BenchmarkError(f"{path}: is a directory of {len(runs)} runs.", f"Give one: {runs[-1].parent}.")
            what = "is not a run directory (it has no plan.json)" if path.is_dir() else "does not exist"
        except (OSError, ValueError) as error:
            what = f"cannot be read ({error})"
        raise BenchmarkError(f"{path}: {what}.", "Give a directory named <timestamp>_benchmark.")

    @property
    def plan(self) -> Path:
        """The file of the plan."""
        return self.path / "plan.json"

    @property
    def spool(self) -> Path:
        """The file of all reports so far; gone when ``requests.parquet`` is there."""
        return self.path / "spool.bin"

    @property
    def requests(self) -> Path:
        """A row for each request."""
        return self.path / "requests.parquet"

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
    def client_csv(self) -> Path:
        """CPU, memory and network of this client, a row a second and process."""
        return self.path / "client.csv"

    @property
    def server_metrics(self) -> Path:
        """The file of the server's own metrics of the wave's window."""
        return self.path / "server_metrics.json"

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
        return is_folder(self.aiperf) and not self.has_wave and not is_file(self.summary)

    @property
    def aiperf(self) -> Path:
        """The files of aiperf, and what was read from them."""
        return self.path / "aiperf"

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


def make_stamped_folder(parent: Path, kind: str) -> Path:
    """Make ``<UTC timestamp>_<kind>/`` below ``parent``, for its owner alone; a second one of a second gets ``-2``."""
    stamp = f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}_{kind}"
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


def write_json(path: Path, data: dict[str, Any], inside: Path | None = None) -> None:
    """Write a JSON object so that a reader sees the old file or the whole new one."""
    replace_file(path, json.dumps(data, indent=2, allow_nan=False) + "\n", inside)


def read_json(path: Path, inside: Path | None = None) -> dict[str, Any]:
    """Read a JSON object of ours; a newer schema or a damaged file is said. ``inside``: see ``files.opened``."""
    try:
        data = parse_json(read_bytes(path, MOST_BYTES, inside))
        version = int(data["schema_version"])
    except (OSError, *UNREADABLE) as error:
        raise foreign(path, error) from None
    if version > SCHEMA_VERSION:
        raise BenchmarkError(
            f"{path}: has schema version {version}; this tool knows {SCHEMA_VERSION}.", "Update the tool."
        )
    return dict(data)


def read_plan(run_dir: RunDir) -> WavePlan:
    """The plan of a run directory; BenchmarkError for what is none, or none that a wave could have."""
    data = read_json(run_dir.plan)
    try:
        plan = WavePlan.from_json(data)
        require(plan, WavePlan, "plan")
        problems = plan.problems_of_values()
    except (BenchmarkError, *UNREADABLE) as error:
        raise foreign(run_dir.plan, error) from None
    if problems:
        raise foreign(run_dir.plan, ValueError(problems[0].text))
    return plan


def foreign(path: Path, error: Exception) -> BenchmarkError:
    """The error of a file whose content is not what this tool writes, in one sentence."""
    if isinstance(error, KeyError):
        reason = f"{one_line(str(error), 40)} is missing"
    elif isinstance(error, OSError):
        reason = error.strerror or one_line(str(error), 200)
    elif isinstance(error, (AttributeError, TypeError)):
        reason = f"a value is of another type than it writes: {one_line(str(error), 100)}"
    else:
        reason = one_line(str(error), 200) or type(error).__name__
    return cannot_read(path, f"cannot be read as a file of this tool ({reason})")


def cannot_read(path: Path, what: str) -> BenchmarkError:
    """The error of a file that ``what`` is told of."""
    return BenchmarkError(f"{path}: {what}.", "Give a run directory as this tool left it.")


def cannot_write(path: Path, error: OSError) -> BenchmarkError:
    """The error of a place that cannot be written to."""
    reason = error.strerror or str(error)
    return BenchmarkError(f"{path}: cannot be written ({reason}).", "Give another place with --output-dir.")
