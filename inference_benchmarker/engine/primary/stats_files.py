"""Locust's own CSV files in the run directory, whole at the end of the wave."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import gevent
from locust.stats import PERCENTILES_TO_REPORT, StatsCSVFileWriter

from inference_benchmarker.engine.primary.locust_memory_limits import BoundedHistory
from inference_benchmarker.words.csv_cells import CleanRows
from inference_benchmarker.words.redact import own_secrets

if TYPE_CHECKING:
    from pathlib import Path

    from locust.env import Environment

logger = logging.getLogger("inference_benchmarker.engine.primary")


class StatsFiles:
    """Has Locust write its files while the wave runs. A full disk is logged: it must not keep us from measuring."""

    def __init__(self, environment: Environment, folder: Path) -> None:
        try:
            folder.mkdir(exist_ok=True)
            prefix = str(folder / "locust")
            self._writer = StatsCSVFileWriter(environment, PERCENTILES_TO_REPORT, prefix, full_history=True)
            self._clean_rows()
        except OSError:
            logger.exception("Locust's statistics cannot be written")
            self._writer = None
        else:
            self._updates = gevent.spawn(self._writer)

    def finish(self) -> None:
        """Write the files once more: Locust itself ends without a last update."""
        if self._writer is None:
            return
        self._updates.kill()
        try:
            self._rewrite()
            self._writer.close_files()
        except OSError:
            logger.exception("Locust's statistics cannot be written")

    def _clean_rows(self) -> None:
        """Let no row reach a file but clean: names, errors and tracebacks in them are the user's and the endpoint's."""
        secrets = own_secrets(with_numbers=True)
        for name in ("requests", "stats_history", "failures", "exceptions"):
            rows = f"{name}_csv_writer"
            setattr(self._writer, rows, CleanRows(getattr(self._writer, rows), secrets))
        self._writer.stats_history_csv_writer = BoundedHistory(self._writer.stats_history_csv_writer)

    def _rewrite(self) -> None:
        writer = self._writer
        for file, write, rows in (
            (writer.requests_csv_filehandle, writer.requests_csv, writer.requests_csv_writer),
            (writer.failures_csv_filehandle, writer.failures_csv, writer.failures_csv_writer),
            (writer.exceptions_csv_filehandle, writer.exceptions_csv, writer.exceptions_csv_writer),
        ):
            file.seek(0)
            file.truncate()
            write(rows)
