"""The original tool, as far as this one promises to go on from it: its run directory."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tests.fake_aiperf import STATISTICS, record

if TYPE_CHECKING:
    from pathlib import Path


def original_run(folder: Path, *, aiperf: bool = True) -> Path:
    """A run directory as the original tool leaves it: of a wave, and of aiperf after it."""
    for name in ("locust_stats", "locust_logs", "requests_fired", "aiperf"):
        (folder / name).mkdir(parents=True)
    (folder / "find_rps.log").write_text("RESULTS\n")
    (folder / "wave_window.txt").write_text("1763900000.0\n1763900060.0\n")
    (folder / "locust_stats" / "locust_stats.csv").write_text("Type,Name,Request Count\n,Aggregated,60\n")
    (folder / "requests_fired" / "worker_0.txt").write_text("60")
    if aiperf:
        (folder / "aiperf" / "args.json").write_text("{}")
        (folder / "aiperf" / "profile_export.jsonl").write_text(json.dumps(record(100, 101)) + "\n")
        (folder / "aiperf" / "profile_export_aiperf.json").write_text(json.dumps(STATISTICS))
    return folder
