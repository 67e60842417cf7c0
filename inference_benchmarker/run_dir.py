"""The run directory: every file of a wave by its name, and how JSON gets there without ever being half written."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from inference_benchmarker.errors import BenchmarkError

if TYPE_CHECKING:
    from pathlib import Path

SCHEMA_VERSION = 1


@dataclass(frozen=True, slots=True)
class RunDir:
    """One wave's directory. The properties are its files, whether they exist or not."""

    path: Path

    @classmethod
    def create(cls, parent: Path) -> RunDir:
        """Make ``<UTC timestamp>_benchmark/`` below ``parent``."""
        run_dir = cls(make_stamped_folder(parent, "benchmark"))
        try:
            run_dir.logs.mkdir()
        except OSError as error:
            raise cannot_write(parent, error) from None
        return run_dir

    @classmethod
    def find(cls, path: Path) -> RunDir:
        """An existing run directory."""
        run_dir = cls(path)
        try:
            if run_dir.plan.is_file():
                return run_dir
            if runs := sorted(path.glob("*/plan.json")):
                raise BenchmarkError(f"{path}: is a directory of {len(runs)} runs.", f"Give one: {runs[-1].parent}.")
            what = "is not a run directory (it has no plan.json)" if path.is_dir() else "does not exist"
        except (OSError, ValueError) as error:
            what = f"cannot be read ({error})"
        raise BenchmarkError(f"{path}: {what}.", "Give a directory named <timestamp>_benchmark.")

    @property
    def plan(self) -> Path:
        """What was asked for."""
        return self.path / "plan.json"

    @property
    def spool(self) -> Path:
        """What has been reported so far; gone when ``requests.parquet`` is there."""
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
        """What the server's own metrics say of the wave's window."""
        return self.path / "server_metrics.json"

    @property
    def locust_stats(self) -> Path:
        """Locust's own CSV files."""
        return self.path / "locust_stats"

    @property
    def has_wave(self) -> bool:
        """Whether a wave was begun in it; aiperf may have run alone."""
        return self.requests.is_file() or self.spool.is_file()

    @property
    def aiperf_alone(self) -> bool:
        """Whether aiperf ran in it without a wave."""
        return self.aiperf.is_dir() and not self.has_wave and not self.summary.is_file()

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
        """What the primary process said."""
        return self.logs / "primary.log"

    def worker_log(self, number: int) -> Path:
        """What a worker process said, and what the user's code printed in it."""
        return self.logs / f"worker_{number}.log"


def make_stamped_folder(parent: Path, kind: str) -> Path:
    """Make ``<UTC timestamp>_<kind>/`` below ``parent``; a second one in the same second gets ``-2``."""
    stamp = f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}_{kind}"
    try:
        parent.mkdir(parents=True, exist_ok=True)
        for number in range(1, 1000):
            path = parent / (stamp if number == 1 else f"{stamp}-{number}")
            with suppress(FileExistsError):
                path.mkdir()
                return path
    except OSError as error:
        raise cannot_write(parent, error) from None
    raise BenchmarkError(f"{parent}: no name is left for a run directory of this second.")


def write_json(path: Path, data: dict[str, Any]) -> None:
    """Write a JSON object so that a reader sees the old file or the whole new one."""
    replace_file(path, json.dumps(data, indent=2, allow_nan=False) + "\n")


def replace_file(path: Path, text: str) -> None:
    """Write a text so that a reader sees the old file or the whole new one."""
    draft = path.with_name(path.name + ".part")
    try:
        with draft.open("w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except OSError:
        draft.unlink(missing_ok=True)
        raise


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object of ours; a newer schema or a damaged file is said."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        version = int(data["schema_version"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BenchmarkError(f"{path}: cannot be read as a file of this tool ({error!r}).") from None
    if version > SCHEMA_VERSION:
        raise BenchmarkError(
            f"{path}: has schema version {version}; this tool knows {SCHEMA_VERSION}.", "Update the tool."
        )
    return dict(data)


def cannot_write(path: Path, error: OSError) -> BenchmarkError:
    """The error of a place that cannot be written to."""
    reason = error.strerror or str(error)
    return BenchmarkError(f"{path}: cannot be written ({reason}).", "Give another place with --output-dir.")
