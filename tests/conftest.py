"""What the tests share: which of them may be skipped, and runs of the command."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings
from pyarrow import parquet

from tests.bench import Bench
from tests.hosts.errors import LabError
from tests.hosts.lab import Lab

if TYPE_CHECKING:
    from collections.abc import Iterator

REQUIRE_ALL = "BENCHMARK_REQUIRE_ALL"
ROOT = Path(__file__).parent.parent

settings.register_profile("suite", deadline=None)  # a busy machine is no fault of an example
settings.load_profile("suite")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):  # type: ignore[no-untyped-def]
    """In CI a skip for a missing program is a failure: a machine without it would prove nothing."""
    outcome = yield
    report = outcome.get_result()
    if report.skipped and os.environ.get(REQUIRE_ALL) and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid} was skipped, but {REQUIRE_ALL} is set: {report.longrepr}"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes longest begins first: else one process goes on with it when the others have nothing left to do."""
    items.sort(key=lambda item: item.get_closest_marker("long") is None)


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Bytes are called by their parameter: gzip's hold the second, and all processes must call a test alike."""
    return argname if isinstance(val, bytes) else None


@pytest.fixture(scope="session", autouse=True)
def _reports_have_no_width() -> None:
    """pytest-xdist gives its processes COLUMNS; the commands would inherit it, and fold what they print."""
    os.environ.pop("COLUMNS", None)


@pytest.fixture
def command() -> list[str]:
    """The command line of this tool."""
    return [sys.executable, "-m", "inference_benchmarker.cli"]


@pytest.fixture
def parquet_sources(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """From what parquet was read: a Python file in a thread of Arrow aborts the program that ends meanwhile."""
    sources: list[object] = []
    whole = parquet.ParquetFile

    def opened(source: object) -> parquet.ParquetFile:
        sources.append(source)
        return whole(source)

    monkeypatch.setattr(parquet, "ParquetFile", opened)
    return sources


@pytest.fixture(scope="session", autouse=True)
def _signals_are_heard() -> None:
    """In a background job and under nohup some are ignored; the commands would inherit it."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.fixture(scope="session")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """Commands and endpoints as processes."""
    bench = Bench(tmp_path_factory.mktemp("bench"))
    yield bench
    bench.close()


@pytest.fixture(scope="session")
def laboratory() -> Iterator[Lab]:
    """Separate hosts on this machine; their network stays for the session."""
    try:
        laboratory = Lab()
    except LabError as error:
        pytest.skip(str(error))
    with laboratory:
        yield laboratory


@pytest.fixture
def lab(laboratory: Lab) -> Iterator[Lab]:
    """The laboratory without a host; those that a test starts end with it."""
    before = {*laboratory.hosts}
    yield laboratory
    laboratory.stop(*(host for name, host in laboratory.hosts.items() if name not in before))
