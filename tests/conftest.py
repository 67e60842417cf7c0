"""What the tests share: which of them may be skipped, runs of the command, and tests that run side by side."""

from __future__ import annotations

import os
import signal
import sys
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.bench import Bench

if TYPE_CHECKING:
    from collections.abc import Iterator

REQUIRE_ALL = "BENCHMARK_REQUIRE_ALL"
ROOT = Path(__file__).parent.parent
SIDE_BY_SIDE = 3  # of a file, and two files are tested at a time


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


@pytest.fixture(scope="session")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """Commands and endpoints as processes."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:  # so it is in a background job; the commands would inherit it
        signal.signal(signal.SIGINT, signal.default_int_handler)
    bench = Bench(tmp_path_factory.mktemp("bench"))
    yield bench
    bench.close()


@pytest.fixture
def alone() -> None:
    """For a test whose wave must not share the machine with those of other tests."""


class SideBySide:
    """Runs the tests that take nothing but ``bench`` on threads, some at a time, in the order they are collected.

    Most of a wave is waiting. The first such test of a module starts all of that module; each then reports
    its own result in its turn.
    """

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(SIDE_BY_SIDE)
        self._futures: dict[str, Future[Any]] = {}

    @pytest.hookimpl(tryfirst=True)
    def pytest_pyfunc_call(self, pyfuncitem: pytest.Function) -> bool | None:
        """Give the result of a test that runs, or ran, on a thread."""
        if not _only_needs_bench(pyfuncitem):
            return None
        if pyfuncitem.nodeid not in self._futures:
            bench = pyfuncitem.funcargs["bench"]
            for item in pyfuncitem.session.items:
                if isinstance(item, pytest.Function) and item.path == pyfuncitem.path and _only_needs_bench(item):
                    self._futures[item.nodeid] = self._pool.submit(item.obj, bench=bench, **_parameters(item))
        self._futures[pyfuncitem.nodeid].result()
        return True

    def pytest_sessionfinish(self) -> None:
        """Start nothing more."""
        self._pool.shutdown(wait=False, cancel_futures=True)


def _parameters(item: pytest.Function) -> dict[str, Any]:
    return dict(item.callspec.params) if hasattr(item, "callspec") else {}


def _only_needs_bench(item: pytest.Function) -> bool:
    fixtures = set(item.fixturenames) - set(_parameters(item))
    return "bench" in fixtures and fixtures <= {"bench", "tmp_path_factory", "request"}


def pytest_configure(config: pytest.Config) -> None:
    """Let waves run side by side."""
    config.pluginmanager.register(SideBySide(), "side_by_side")
