"""What left its parent, its session and its environment is still found, and nothing else of the process that looks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import psutil
import pytest

from tests.bench import ROOT, SENDER, factories

if TYPE_CHECKING:
    from tests.bench import Bench

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux lets a process adopt orphans")
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
STARTS = """
import json, os, subprocess, sys, time
from contextlib import nullcontext
from inference_benchmarker.system.host import adopting_orphans, adopts_orphans, brand

QUIET = subprocess.DEVNULL  # no pipe of the test's is held open

def sleeper(**how):
    return subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], stdout=QUIET, stderr=QUIET, **how)

def leave(mark=None):
    preexec = (lambda: brand(mark)) if mark else None
    done = subprocess.run(
        [sys.executable, "-c", LEAVE], env={}, stdout=subprocess.PIPE, stderr=QUIET, text=True,
        preexec_fn=preexec, check=True,
    )
    return int(done.stdout)
"""
PROGRAM = """
from inference_benchmarker.engine.processes.leftovers import Orphans, new_mark

with adopting_orphans() if sys.argv[1] == "adopts" else nullcontext():
    mark, adopts = new_mark(), adopts_orphans()
    orphans = Orphans(mark)
    own = [sleeper(), sleeper(preexec_fn=lambda: brand(mark))]
    left, anothers, nobodys = leave(mark), leave(new_mark()), leave()
    ended = subprocess.Popen([sys.executable, "-c", "raise SystemExit(5)"])
    os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)
    names = orphans.end({own[1].pid})
print(json.dumps({
    "left": left, "others": [anothers, nobodys, *(each.pid for each in own)], "ended": len(names),
    "adopts": [adopts, adopts_orphans()], "codes": [*(each.poll() for each in own), ended.wait()],
}))
"""
KILLED = """
from inference_benchmarker.engine.processes.leftovers import line_to_end_leftovers, new_mark

mark = new_mark()
own = [sleeper(preexec_fn=lambda: brand(mark), env={"BENCHMARK_WAVE": "another's"})]
left, others = leave(mark), [leave(new_mark()), leave(), *(each.pid for each in own)]
subprocess.run(line_to_end_leftovers(mark), check=True)
print(json.dumps({"left": left, "others": others}))
"""
WAVE = """
from pathlib import Path
from threading import Timer
from inference_benchmarker import Bounds, OpenLoop, WavePlan, run_wave

others = []
Timer(2, lambda: others.extend([sleeper().pid, leave()])).start()
plan = WavePlan(
    factories_file=Path("f.py"), load=OpenLoop(rate=20), bounds=Bounds(duration_s=3), workers=1,
    output_dir=Path("runs"),
)
found = [each.measured for each in run_wave(plan).verdict.findings if each.code == "processes_left"]
print(json.dumps({
    "left": int(Path("left").read_text()), "others": others, "named": found, "adopts": adopts_orphans(),
}))
"""


def alive(pid: int) -> bool:
    """Tells whether a process runs, which ends now."""
    try:
        process = psutil.Process(pid)
        runs = process.status() != psutil.STATUS_ZOMBIE
        process.kill()
    except psutil.NoSuchProcess:
        return False
    return runs


@pytest.mark.parametrize("adopts", [True, False])
def test_orphans_of_a_mark_are_ended_and_nobody_else(adopts: bool) -> None:
    program = f"LEAVE = {LEAVE!r}\n{STARTS}{PROGRAM}"
    how = "adopts" if adopts else "leaves"
    done = subprocess.run([sys.executable, "-c", program, how], cwd=ROOT, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    assert found["adopts"] == [adopts, False], "the process is as it was before"
    assert found["codes"] == [None, None, 5]
    assert found["ended"] == int(adopts)
    assert alive(found["left"]) != adopts
    assert [pid for pid in found["others"] if not alive(pid)] == []


def test_those_that_nobody_adopted_are_found_by_their_brand_when_their_command_was_killed() -> None:
    program = f"LEAVE = {LEAVE!r}\n{STARTS}{KILLED}"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    assert not alive(found["left"])
    assert [pid for pid in found["others"] if not alive(pid)] == []


@pytest.mark.process
def test_a_wave_of_a_users_own_process_ends_what_its_code_left_and_nothing_of_that_process(bench: Bench) -> None:
    folder = bench.folder()
    leaves = f"""
import subprocess, sys

def leave():
    with open("left", "w") as told:
        subprocess.Popen([sys.executable, "-c", {LEAVE!r}], env={{}}, start_new_session=True, stdout=told)
"""
    (folder / "sender.py").write_text(SENDER)
    (folder / "f.py").write_text(factories("if payload == 3:\n    leave()", leaves))
    with bench.endpoint(service="none") as endpoint:
        done = subprocess.run(
            [sys.executable, "-c", f"LEAVE = {LEAVE!r}\n{STARTS}{WAVE}"],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(ROOT), "TARGET": endpoint.url},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert not alive(found["left"])
    assert [each.partition(":")[0] for each in found["named"]] == ["1 process outlived the wave"]
    assert not found["adopts"]
    assert len(found["others"]) == 2
    assert [pid for pid in found["others"] if not alive(pid)] == []
