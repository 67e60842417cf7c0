"""What the tests share: which of them may be skipped, and a run of the command as users run it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

REQUIRE_ALL = "BENCHMARK_REQUIRE_ALL"
ROOT = Path(__file__).parent.parent


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):  # type: ignore[no-untyped-def]
    """In CI a skip for a missing program is a failure: a machine without it would prove nothing."""
    outcome = yield
    report = outcome.get_result()
    if report.skipped and os.environ.get(REQUIRE_ALL) and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid} was skipped, but {REQUIRE_ALL} is set: {report.longrepr}"


@pytest.fixture
def command() -> list[str]:
    """The command line of this tool."""
    return [sys.executable, "-m", "inference_benchmarker.cli"]
