"""The GitHub Action: action.yml's steps are run as a runner does, with a ``gh`` that answers from a folder."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from itertools import product
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from inference_benchmarker.wave.run_folders import runs_of
from tests.conftest import ROOT
from tests.github import TOKEN, GitHub, Job
from tests.waves import make_run

if TYPE_CHECKING:
    from pathlib import Path

    from tests.bench import Bench

ACTION = ROOT / "action.yml"
SCRIPT = ROOT / "delivery" / "action.sh"
DESCRIBED: dict[str, Any] = yaml.safe_load(ACTION.read_text())
STEPS = DESCRIBED["runs"]["steps"]
SCRIPTS = [ROOT / name for name in ("benchmark", ".ci/coverage", ".ci/run", "delivery/action.sh", "delivery/image.sh")]
SCRIPTS += sorted(ROOT.glob("tests/hosts/*.sh"))
MEASURED = (0, 3)  # a busy machine makes waves INVALID
# Every program of the action, but the environment that `install` makes.
BENCHMARK = f'#!/bin/sh\nexec {sys.executable} -P -m inference_benchmarker.cli "$@"\n'


@pytest.fixture
def github(tmp_path: Path) -> GitHub:
    folder = tmp_path / "github"
    folder.mkdir()
    return GitHub(folder)


def job(github: GitHub, number: int, inputs: dict[str, str], *, push: bool = False, **environment: str) -> Job:
    """A job that is ready to run, on a machine of its own, where the action is installed already."""
    folder = github.folder.parent / f"job_{number}"
    program = folder / "temp" / "inference-benchmarker" / "environment" / "bin" / "benchmark"
    program.parent.mkdir(parents=True)
    program.write_text(BENCHMARK)
    program.chmod(0o755)
    gh = github.make_gh(folder / "bin")
    path = {"PATH": f"{gh}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    return Job(ROOT, github, folder, inputs, number, None if push else 7, {**path, **environment})


def run_with_waves_of(job: Job, runs: Path, code: int = 0) -> Job:
    """Run the job; its waves were sent before."""
    measured = DESCRIBED | {"runs": {"steps": [_made(step, runs, code) for step in STEPS]}}
    job.run(measured)
    return job


def _made(step: dict[str, Any], runs: Path, code: int) -> dict[str, Any]:
    if step.get("id") != "waves":
        return step
    place = '"$RUNNER_TEMP/inference-benchmarker/$INPUT_NAME"'
    copied = f"mkdir -p {place}; cp -r '{runs}' {place}/new"
    text = f'echo exit-code={code} >>"$GITHUB_OUTPUT"; echo runs={place}/new >>"$GITHUB_OUTPUT"'
    return step | {"run": f"{copied}; {text}"}


def made_runs(folder: Path, *middles_ms: float, **more: Any) -> Path:
    """Run directories of waves whose latency is about so long."""
    for number, middle_ms in enumerate(middles_ms):
        make_run(folder / f"2026112{number}T120000Z_benchmark", middle_ms=middle_ms, **more)
    return folder


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_shellcheck_has_nothing_to_say(script: Path) -> None:
    if shutil.which("shellcheck") is None:
        pytest.skip("shellcheck is not installed")
    done = subprocess.run(["shellcheck", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


def test_nothing_that_a_workflow_says_is_shell_text() -> None:
    """It comes by the environment, so that a branch's or a limit's name is never executed."""
    runs = [step["run"] for step in STEPS if "run" in step]
    assert len(runs) == len(STEPS) - 1
    for run in runs:
        assert re.fullmatch(r'"\$GITHUB_ACTION_PATH/delivery/action\.sh" [a-z]+', run)
    assert all(step["shell"] == "bash" for step in STEPS if "run" in step)


def test_every_step_has_what_the_script_takes() -> None:
    functions = dict(re.findall(r"^(\w+)\(\) \{\n(.*?)^\}", SCRIPT.read_text(), re.MULTILINE | re.DOTALL))
    given = {step["run"].split()[-1]: set(step.get("env", {})) for step in STEPS if "run" in step}
    for name, variables in given.items():
        text = functions[name] + (functions["words_of_flags"] if "words_of_flags" in functions[name] else "")
        wanted = set(re.findall(r"\bINPUT_\w+|\bBASE_URL|PULL_REQUEST|OF_[A-Z]+", text))
        wanted |= {"GH_TOKEN"} if re.search(r"\bgh (run|api)", text) else set()
        assert variables - {"INPUT_NAME"} == wanted, name
    assert given["install"] == set()
    assert {inputs for step in STEPS for inputs in re.findall(r"inputs\.([\w-]+)", str(step))} == set(
        DESCRIBED["inputs"]
    )


def test_the_page_on_pipelines_has_every_input() -> None:
    page = (ROOT / "docs" / "tutorials" / "ci.md").read_text()
    table = dict(re.findall(r"^\| `([\w-]+)` \| .* \| (.*?) \|$", page, re.MULTILINE))
    assert set(table) == set(DESCRIBED["inputs"])
    for name, each in DESCRIBED["inputs"].items():
        assert table[name] == (f"`{each['default']}`" if each["default"] else "none"), name


@pytest.mark.process
def test_a_pull_request_is_held_against_the_base_and_its_comment_renewed(github: GitHub, tmp_path: Path) -> None:
    fast, slow = made_runs(tmp_path / "fast", 20, 20.4), made_runs(tmp_path / "slow", 30)
    others: list[dict[str, Any]] = [{}, {"event": "pull_request"}, {"conclusion": "failure"}]
    for number, runs, how in zip((1, 2, 3), (fast, slow, slow), others, strict=True):
        shutil.copytree(runs, github.artifact(number, "benchmark"))
        github.finish_run(number, branch="main", **how)
    github.save(comments=[{"id": 1, "user": {"type": "User"}, "body": "<!-- inference-benchmarker: benchmark -->"}])

    limits = {"max-regression": "p50=10%\n\n  success=1%\n"}
    worse = run_with_waves_of(job(github, 11, limits), slow)
    assert "The base is what run 1 of main measured." in worse.log
    assert (worse.code, worse.outputs["exit-code"]) == (1, "1")
    assert "✗ p50=10%" in worse.log
    assert "::error::A limit is missed" in worse.log
    person, comment = github.load("comments")
    assert person["id"] == 1
    assert "### Benchmark comparison" in comment["body"]
    assert "[this run](https://github.com/somebody/something/actions/runs/1)" in comment["body"]
    assert str(tmp_path) not in comment["body"]
    assert comment["body"].count("<details>") == 1
    assert comment["body"] == worse.summary
    assert [run.name for run in runs_of(github.artifact(11, "benchmark"))] == [run.name for run in runs_of(slow)]

    same = run_with_waves_of(job(github, 12, limits, PYTHONINSPECT="1"), made_runs(tmp_path / "same", 20.2))
    assert (same.code, same.outputs["exit-code"]) == (0, "0")
    assert [each["id"] for each in github.load("comments")] == [1, comment["id"]]
    assert github.load("comments")[1]["body"] == same.summary != comment["body"]
    assert TOKEN not in worse.log + same.log


@pytest.mark.process
def test_a_fork_without_a_base_has_its_report_in_the_summary(github: GitHub, tmp_path: Path) -> None:
    github.may_write = False
    runs = made_runs(tmp_path / "runs", 20, requests=300, dropped=100)
    forked = run_with_waves_of(job(github, 11, {}), runs, code=3)
    assert "::notice::No push to main has an artifact 'benchmark' yet" in forked.log
    assert "::warning::The comment cannot be written" in forked.log
    assert "There is no run of the base branch to compare with yet." in forked.summary
    assert "<details open><summary>Wave 1: INVALID</summary>\n\n### INVALID" in forked.summary
    assert (forked.code, forked.outputs["exit-code"]) == (3, "3")
    assert github.load("comments") == []


@pytest.mark.parametrize(
    ("inputs", "expected"),
    [
        ({}, "Give url, which begins with http:// or https://, or factories-file."),
        ({"url": "http://127.0.0.1:9", "factories-file": "f.py"}, "Give url, "),
        ({"url": "report"}, "Give url, "),
        ({"url": "http://127.0.0.1:9", "waves": "0"}, "waves: a whole number from 1 to 99, not '0'."),
        ({"url": "http://127.0.0.1:9", "strict": "True"}, "strict: true or false, not 'True'."),
        ({"url": "http://127.0.0.1:9", "comment": "no"}, "comment: true or false, not 'no'."),
        (
            {"url": "http://127.0.0.1:9", "name": "../up"},
            "name: letters, digits, dots, hyphens and underscores, not '../up'.",
        ),
        ({"url": "http://127.0.0.1:9", "flags": "--body 'open"}, "flags: a quote is not closed."),
        ({"url": "http://127.0.0.1:9", "flags": "--clinet-rps 10"}, "The inputs are not good; see above."),
    ],
)
def test_bad_inputs_end_the_job_before_anything_is_sent(github: GitHub, inputs: dict[str, str], expected: str) -> None:
    refused = job(github, 11, inputs)
    refused.run(DESCRIBED)
    assert (refused.code, refused.outputs["runs"]) == (2, "")
    assert f"::error::{expected}" in refused.log
    assert refused.summary == ""


def test_a_job_that_may_not_list_runs_says_so(github: GitHub, tmp_path: Path) -> None:
    """A gate that compares with nothing, as nobody gave it the right to, would pass for ever."""
    github.may_list = False
    refused = run_with_waves_of(job(github, 11, {}), made_runs(tmp_path / "runs", 20, requests=30))
    assert refused.code == 2
    assert "the job needs the permission 'actions: read'." in refused.log


@pytest.mark.parametrize(
    ("fails", "code", "said"),
    [
        ("HTTP 503: Service Unavailable", 2, "::error::The artifact of run 10 cannot be downloaded: HTTP 503: Service"),
        (
            "HTTP 403: API rate limit exceeded\n::warning::x",
            2,
            "cannot be downloaded: HTTP 403: API rate limit exceeded",
        ),
        ("no valid artifacts found to download", 0, "::notice::No push to main has an artifact"),  # it is too old
    ],
)
def test_a_base_that_cannot_be_had_is_no_base_that_is_not_there(
    github: GitHub, tmp_path: Path, fails: str, code: int, said: str
) -> None:
    """A gate that compares with nothing, since GitHub was down, would let a regression pass."""
    github.finish_run(10, branch="main")
    made_runs(github.artifact(10, "benchmark"), 20, requests=30)
    github.download_fails = fails
    judged = run_with_waves_of(job(github, 11, {}), made_runs(tmp_path / "runs", 20, requests=30))
    assert judged.code == code
    assert said in judged.log
    assert "::warning::x" not in judged.log
    assert not (judged.folder / "temp" / "inference-benchmarker" / "benchmark" / "base").exists()


KNOWN = ("2", "130", "3", "1", "0")


def test_an_unknown_exit_code_is_the_worst_of_every_pair(tmp_path: Path) -> None:
    """Killed for memory (137), crashed (139), or none at all: never a pass."""
    codes = (*KNOWN, "137", "139", "143", "4", "255", "-9", "")
    pairs = list(product(codes, repeat=2))
    asked = "; ".join(f"worse '{one}' '{other}'" for one, other in pairs)
    lines = script(tmp_path, f"source '{SCRIPT}' :; {asked}").stdout.splitlines()
    for (one, other), worst in zip(pairs, lines, strict=True):
        named = (one or "3", other or "3")
        unknown = [code for code in named if code not in KNOWN]
        assert worst == (unknown[0] if unknown else min(named, key=KNOWN.index)), (one, other)


@pytest.mark.parametrize(
    ("of", "code"),
    [
        (("0", "0", "0"), 0),
        (("137", "0", "0"), 137),
        (("0", "139", "1"), 139),
        (("0", "0", "137"), 137),
        (("", "0", "0"), 3),
        (("0", "", "0"), 3),
        (("0", "0", ""), 3),
        (("0 ", "0", "0"), 3),
        (("0", "00", "0"), 3),
        (("0", "0", "256"), 3),
        (("0", "x", "0"), 3),
    ],
)
def test_a_step_that_died_never_passes_the_gate(tmp_path: Path, of: tuple[str, str, str], code: int) -> None:
    variables = dict(zip(("OF_WAVES", "OF_COMPARISON", "OF_REPORT"), of, strict=True))
    done = script(tmp_path, f"'{SCRIPT}' gate", GITHUB_BASE_REF="main", **variables)
    assert done.returncode == code
    assert ("No limit is missed." in done.stdout) == (code == 0)


def test_a_push_is_compared_with_nothing(tmp_path: Path) -> None:
    done = script(tmp_path, f"'{SCRIPT}' gate", OF_WAVES="0", OF_COMPARISON="", OF_REPORT="0")
    assert (done.returncode, done.stdout) == (0, "No limit is missed.\n")


@pytest.mark.parametrize("killed", ["report", "compare"])
def test_a_report_that_is_killed_fails_the_job(github: GitHub, tmp_path: Path, killed: str) -> None:
    runs = made_runs(tmp_path / "runs", 20, requests=30)
    shutil.copytree(runs, github.artifact(1, "benchmark"))
    github.finish_run(1, branch="main")
    dying = job(github, 11, {})
    program = dying.folder / "temp" / "inference-benchmarker" / "environment" / "bin" / "benchmark"
    program.write_text(f'#!/bin/sh\nif [ "$1" = {killed} ]; then kill -9 $$; fi\nexit 0\n')
    run_with_waves_of(dying, runs)
    assert dying.code == 137
    assert "No limit is missed." not in dying.log
    assert {"report": "The report of this wave failed", "compare": "The comparison with the base branch failed"}[
        killed
    ] in dying.summary


def test_no_file_of_the_checkout_runs_in_place_of_a_module(github: GitHub) -> None:
    """Python puts the folder it starts in before its own modules, unless it is isolated."""
    refused = job(github, 11, {"url": "http://127.0.0.1:9", "flags": "--body 'open"})
    for name in ("shlex", "venv", "pip"):
        (refused.folder / f"{name}.py").write_text(f"open('{name}-was-here', 'w')\ndef split(text): return []\n")
    refused.run(DESCRIBED)
    assert (refused.code, list(refused.folder.glob("*-was-here"))) == (2, [])
    started = re.findall(r"(?:python3|/python\")(?: -\w+)+", SCRIPT.read_text())
    assert len(started) == 3
    assert all(" -I" in line for line in started)


def script(folder: Path, text: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """A line of bash, with what a runner gives."""
    outputs = folder / "outputs"
    variables = {"PATH": os.environ["PATH"], "RUNNER_TEMP": str(folder), "GITHUB_OUTPUT": str(outputs), **environment}
    return subprocess.run(["bash", "-c", text], env=variables, cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.process
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_from_the_first_push_to_the_pull_request(github: GitHub, bench: Bench, tmp_path: Path) -> None:
    """The waves are real, and so is the environment that the action makes."""
    flags = """--client-rps 50 --obs-time 2
        --header 'X-Key: $KEY' --body '{"inputs": "a b; $(touch was-here)"}'"""
    with bench.endpoint() as endpoint:
        inputs = {"url": f"{endpoint.url}/invocations", "flags": flags, "waves": "2", "slo": "p99<10s\nsuccess>=0.5"}
        first = job(github, 1, inputs, push=True, KEY="the-key-0123")
        shutil.rmtree(first.folder / "temp")
        first.run(DESCRIBED)
        assert first.code in MEASURED, first.log
        assert "comment" not in first.log
        github.finish_run(1, branch="main")

        second = job(github, 2, inputs | {"max-regression": "success=50%"}, KEY="the-key-0123")
        made, taken = (each.folder / "temp" / "inference-benchmarker" / "environment" for each in (first, second))
        shutil.rmtree(taken)
        taken.symlink_to(made)
        second.run(DESCRIBED)
        log = endpoint.arrivals()
    assert second.code in MEASURED, second.log
    assert len(log["id"]) == 4 * 100
    (comment,) = github.load("comments")
    assert "- base: `base (benchmark), 2 runs`" in comment["body"]
    assert "success=50%" in comment["body"]
    assert "`success>=0.5`" in comment["body"]
    assert not list(tmp_path.rglob("was-here"))
    for text in (first.log, second.log, *(path.read_text(errors="replace") for path in _kept(github))):
        assert "the-key-0123" not in text
        assert TOKEN not in text


def _kept(github: GitHub) -> list[Path]:
    return [path for path in (github.folder / "artifacts").rglob("*") if path.is_file()]
