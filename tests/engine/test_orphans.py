"""What left its parent, its session and its environment is still found by the process that adopts orphans."""

from __future__ import annotations

import subprocess
import sys

import psutil
import pytest

from tests.bench import ROOT

LEAVE = """
import os, sys, time
if os.fork():
    os._exit(0)
os.setsid()
if os.fork():
    os._exit(0)
print(os.getpid(), flush=True)
os.close(1)
time.sleep(60)
"""
PROGRAM = """
import subprocess, sys
from inference_benchmarker.engine.leftovers import Orphans
from inference_benchmarker.system.host import adopt_orphans, adopts_orphans

if sys.argv[1] == "adopts":
    adopt_orphans()
own = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
orphans = Orphans()
later = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
left = subprocess.run([sys.executable, "-c", sys.argv[2]], env={}, stdout=subprocess.PIPE, text=True)
names = orphans.end({later.pid})
print(left.stdout.strip(), adopts_orphans(), len(names), own.poll() is None, later.poll() is None)
for each in (own, later):
    each.kill()
    each.wait()
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux lets a process adopt orphans")
@pytest.mark.parametrize("adopts", [True, False])
def test_orphans_are_ended_and_nobody_else(adopts: bool) -> None:
    how = "adopts" if adopts else "leaves"
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, how, LEAVE], cwd=ROOT, capture_output=True, text=True, check=True
    )
    pid, *found = done.stdout.split()
    alive = psutil.pid_exists(int(pid))
    if alive:
        psutil.Process(int(pid)).kill()
    assert found == [str(adopts), "1" if adopts else "0", "True", "True"]
    assert alive != adopts
