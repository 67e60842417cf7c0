"""The flags of `benchmark --compare`."""

from __future__ import annotations

COMPARE_DESCRIPTION = """\
Holds the run directory NEW against BASE: each metric of both, the change with its interval, and whether it is
worse, improved, unchanged, or cannot be told from noise.
"""
COMPARE_EPILOG = """\
A limit is broken where the metric got worse by more than it allows, and beyond noise.
exit codes: 0 no limit is broken, 1 one is, 2 bad input, 3 either run is INVALID
"""
MAX_REGRESSION_HELP = (
    "how much worse a metric may be, repeatable: p99=10%%, latency.mean=5%%, ttft.p90=10%%, rate=3%%, success=1%%"
)
FILES = (
    ("--markdown", "write the comparison as Markdown, for a pull request"),
    ("--junit", "write it as JUnit XML: a test case for each limit and each metric"),
)
