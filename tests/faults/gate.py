"""The gate of the GitHub Action: benchmarks and steps that die, and files that are called like modules."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

from tests.bench import ROOT, Finished
from tests.faults.fault import Ending, Fault

if TYPE_CHECKING:
    from pathlib import Path

    from tests.faults.fault import Stage

SCRIPT = ROOT / "delivery" / "action.sh"
WAVES = {"INPUT_NAME": "benchmark", "INPUT_WAVES": "1", "INPUT_URL": "http://127.0.0.1:9", "INPUT_SLO": ""}
SHADOWING = 'open("shadowed", "w")\n\n\ndef split(text):\n    return []\n'


def step(stage: Stage, name: str, **variables: str) -> Finished:
    """A step of the Action, in a checkout; what it prints counts as standard error."""
    given = {"INPUT_FACTORIES_FILE": "", "INPUT_FLAGS": "--obs-time 1", "GITHUB_OUTPUT": str(outputs_file(stage))}
    done = subprocess.run(
        ["bash", SCRIPT, name],
        env={"PATH": os.environ["PATH"], "RUNNER_TEMP": str(stage.folder / "runner"), **WAVES, **given, **variables},
        cwd=stage.folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return Finished(done.returncode, "", done.stdout, None)


def waves(stage: Stage, program: str) -> Finished:
    """The step that sends the waves, with a benchmark that is this shell script."""
    benchmark = stage.folder / "runner" / "inference-benchmarker" / "environment" / "bin" / "benchmark"
    benchmark.parent.mkdir(parents=True)
    benchmark.write_text(f"#!/bin/sh\n{program}\n")
    benchmark.chmod(0o755)
    outputs_file(stage).touch()
    return step(stage, "waves")


def outputs_file(stage: Stage) -> Path:
    """The file in which steps leave their outputs."""
    return stage.folder / "outputs"


def code_of(stage: Stage) -> str:
    """The exit code that the last step left."""
    lines = (stage.folder / "outputs").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines)["exit-code"]


def benchmark_killed(stage: Stage) -> Ending:
    """The kernel kills the benchmark; the gate has its code."""
    waves(stage, "kill -9 $$")
    return Ending(step(stage, "gate", OF_WAVES=code_of(stage), OF_COMPARISON="", OF_REPORT="0"), None, stored=False)


def benchmark_never_began(stage: Stage) -> Ending:
    """The benchmark's Python ends before its first line, with the code of a missed limit."""
    waves(stage, "exit 1")
    return Ending(step(stage, "gate", OF_WAVES=code_of(stage), OF_COMPARISON="", OF_REPORT="0"), None, stored=False)


def step_died(stage: Stage) -> Ending:
    """The step of the reports left no code."""
    return Ending(step(stage, "gate", OF_WAVES="0", OF_COMPARISON="", OF_REPORT=""), None, stored=False)


def shadowed(stage: Stage) -> Ending:
    """The checkout has files that are called like modules of Python."""
    for name in ("shlex", "os", "venv", "pip"):
        (stage.folder / f"{name}.py").write_text(SHADOWING)
    ended = waves(stage, "exit 0")
    assert not (stage.folder / "shadowed").exists(), "a file of the checkout ran"
    return Ending(ended, None, stored=False)


GATE = (
    Fault(
        "gate-benchmark-killed",
        "the benchmark is killed for lack of memory in a job of the Action",
        "the job fails with the code of the kill",
        "nothing",
        137,
        benchmark_killed,
        says="unknown exit code 137",
    ),
    Fault(
        "gate-never-began",
        "the Python of the benchmark cannot start in a job of the Action, which ends with the code of a missed limit",
        "the job fails as INVALID, because no run was stored",
        "nothing",
        3,
        benchmark_never_began,
        says="cannot be relied on (exit code 3)",
    ),
    Fault(
        "gate-step-died",
        "a step of the Action ends before it writes its exit code",
        "the job fails as INVALID",
        "nothing",
        3,
        step_died,
        says="cannot be relied on (exit code 3)",
    ),
    Fault(
        "gate-shadowed-module",
        "the checkout has a shlex.py when a job of the Action reads its flags",
        "Python's own module is used; no file of the checkout runs",
        "nothing",
        0,
        shadowed,
    ),
)
