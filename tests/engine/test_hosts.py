"""A wave's processes belong to their host, which alone signals and samples them."""

from __future__ import annotations

import csv
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.bench import factories

if TYPE_CHECKING:
    from tests.bench import Bench

LEAST_OF_A_WORKER = 20 << 20  # bytes; of the bystander it is some hundred kilobytes
ANOTHER_HOSTS = """
os.getpid = lambda: int(os.environ["BYSTANDER"])  # as a worker of another host, whose numbers mean others here
"""


@pytest.mark.process
def test_what_a_worker_takes_for_its_process_id_is_nobodys_here(bench: Bench) -> None:
    bystander = subprocess.Popen(
        [sys.executable, "-c", "import time; time.sleep(120)"], start_new_session=True, env={}, close_fds=True
    )
    try:
        with bench.endpoint(service="none") as endpoint:
            running = bench.start(
                *("--client-rps", 50, "--obs-time", 60, "--sample-client-hw"),
                factories=factories("pass", ANOTHER_HOSTS),
                target=endpoint,
                environment={"BYSTANDER": str(bystander.pid)},
            )
            running.wait_for_arrivals(endpoint, 20)
            (run_dir,) = running.run_dirs()
            table = run_dir / "client.csv"
            running.wait_for(lambda: table.is_file() and "worker_0" in table.read_text(), "a sample of the worker")
            running.process.send_signal(signal.SIGKILL)
            running.finish(20)
        with table.open() as file:
            sizes = [int(row["memory_bytes"]) for row in csv.DictReader(file) if row["process"] == "worker_0"]
        assert min(sizes) > LEAST_OF_A_WORKER
        assert bystander.poll() is None, "it was taken for the worker and ended"
    finally:
        bystander.kill()
        bystander.wait()
