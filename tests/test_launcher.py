"""The launcher, run for real; only the Python it finds is a stand-in that makes small environments.

The launcher sees a PATH with the few programs it needs and the stand-in, so that no Python of this machine
and no network plays a part. The stand-in writes what it was asked for to a journal.
"""

from __future__ import annotations

import os
import pty
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import dedent

import pytest

LAUNCHER = Path(__file__).parents[1] / "benchmark"
TOOLS = ["sh", "cat", "grep", "mkdir", "mv", "readlink", "rm", "rmdir", "sleep", "tail"]

STAND_IN = """\
#!/bin/sh
journal() { printf '%s\\n' "$*" >>"$JOURNAL"; }
case "$*" in
    "-m venv "*)
        if [ -n "${VENV_FAILS-}" ]; then echo "$VENV_FAILS"; exit 1; fi
        journal "venv $3"
        mkdir -p "$3/bin"
        cat "$0" >"$3/bin/python"
        chmod +x "$3/bin/python"
        ;;
    *"-m pip --version") exit "${NO_PIP:-0}" ;;
    *"-m pip install"*)
        for last in "$@"; do :; done
        journal "pip begins $last"
        echo "${PIP_TELLS-}"
        sleep "${PIP_TAKES:-0}"
        if [ -n "${PIP_SAYS-}" ]; then printf '%s\\n' "$PIP_SAYS"; exit 1; fi
        cp "$0" "${0%/*}/ruff" && cp "$0" "${0%/*}/mypy" && cp "$0" "${0%/*}/lint-imports"
        journal "pip ends"
        ;;
    *"-m pytest"* | "check"* | "format"*)
        journal "${0##*/} $*"
        if [ "${0##*/}" = "${FAILS-}" ]; then exit 1; fi
        ;;
    *)
        case "${0##*/}" in
            mypy | lint-imports) journal "${0##*/}"; test "${0##*/}" != "${FAILS-}"; exit ;;
        esac
        export PYTHONPATH="$SHADOWS"
        exec "$REAL_PYTHON" "$@"
        ;;
esac
"""

CLI = """\
import os, queue, sys
print([os.getcwd(), os.environ.get("PYTHONHOME"), *sys.argv[1:]])
sys.exit(int(os.environ.get("EXIT", "0")))
"""


@dataclass
class Clone:
    """A clone of the project as far as the launcher looks at it, and the machine it is on."""

    root: Path
    bin: Path
    journal: Path
    settings: dict[str, str] = field(default_factory=dict)

    @property
    def launcher(self) -> Path:
        return self.root / "benchmark"

    @property
    def environment(self) -> dict[str, str]:
        return {
            "PATH": str(self.bin),
            "HOME": str(self.root.parent),
            "JOURNAL": str(self.journal),
            "REAL_PYTHON": sys.executable,
            "SHADOWS": str(self.root),
            **self.settings,
        }

    def start(self, *args: str, program: str | None = None, cwd: Path | None = None) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [program or self.launcher, *args],
            cwd=cwd or self.root,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def run(self, *args: str, program: str | None = None, cwd: Path | None = None) -> Result:
        process = self.start(*args, program=program, cwd=cwd)
        out, err = process.communicate(timeout=20)
        return Result(process.returncode, out, err)

    def did(self) -> list[str]:
        return self.journal.read_text().splitlines() if self.journal.exists() else []

    def await_journal(self, entry: str) -> None:
        deadline = time.monotonic() + 10
        while not any(entry in line for line in self.did()):
            assert time.monotonic() < deadline, f"{entry!r} never came: {self.did()}"
            time.sleep(0.01)

    def locks(self) -> list[str]:
        return [path.name for path in self.root.glob(".venvIB-lock*")]

    def environment_elsewhere(self, folder: Path) -> Path:
        """An environment that was there before, with the stand-in as its Python."""
        (folder / "bin").mkdir(parents=True)
        shutil.copy(self.bin / "python3", folder / "bin" / "python")
        return folder


@dataclass
class Result:
    code: int
    out: str
    err: str


@pytest.fixture
def clone(tmp_path: Path) -> Clone:
    root = tmp_path / "a folder with spaces"
    package = root / "inference_benchmarker"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "cli.py").write_text(CLI)
    (root / "pyproject.toml").write_text("[project]\nname = 'inference-benchmarker'\n")
    shutil.copy(LAUNCHER, root / "benchmark")
    programs = tmp_path / "bin"
    programs.mkdir()
    for tool in [*TOOLS, "chmod", "cp"]:
        found = shutil.which(tool)
        assert found, f"{tool} is needed to run the launcher"
        (programs / tool).symlink_to(found)
    stand_in = programs / "python3"
    stand_in.write_text(STAND_IN)
    stand_in.chmod(0o755)
    return Clone(root, programs, tmp_path / "journal")


def printed(clone: Clone, *args: str, cwd: Path | None = None, home: str | None = None) -> str:
    return f"{[str(cwd or clone.root), home, *args]}\n"


ODD = ["--rate", "a b", "", "'", '"', "$HOME", "*", "back\\slash", "-n", "line\nbreak", "é"]


def test_first_call_sets_up_and_hands_every_argument_over(clone: Clone) -> None:
    result = clone.run(*ODD)
    assert result.code == 0, result.err
    assert result.out == printed(clone, *ODD)
    assert clone.did() == [f"venv {clone.root}/.venvIB", "pip begins .", "pip ends"]
    assert clone.locks() == []


@pytest.mark.parametrize("args", [[], ["--help"], ["--version"], ["--demo", "--init"], ["report", "--self-test"]])
def test_only_the_first_argument_can_be_the_launchers(clone: Clone, args: list[str]) -> None:
    assert clone.run(*args).out == printed(clone, *args)


def test_second_call_only_hands_over(clone: Clone) -> None:
    clone.run()
    before = clone.did()
    result = clone.run("x")
    assert (result.out, result.err) == (printed(clone, "x"), "")
    assert clone.did() == before


def test_exit_code_is_passed_on(clone: Clone) -> None:
    clone.settings["EXIT"] = "3"
    assert clone.run().code == 3


def test_symlinks_and_other_working_directories(clone: Clone, tmp_path: Path) -> None:
    elsewhere = tmp_path / "else where"
    elsewhere.mkdir()
    (elsewhere / "absolute").symlink_to(clone.launcher)
    (elsewhere / "ib").symlink_to("absolute")
    (elsewhere / "queue.py").write_text("raise RuntimeError('a file of the user stood in for the standard library')")
    for program in (f"{elsewhere}/ib", "./ib", "../a folder with spaces/benchmark"):
        result = clone.run("x", program=program, cwd=elsewhere)
        assert result.out == printed(clone, "x", cwd=elsewhere), result.err
    assert not list(elsewhere.glob(".venv*"))


def test_pythonhome_does_not_reach_the_environment(clone: Clone) -> None:
    clone.settings["PYTHONHOME"] = "/nonexistent"
    assert clone.run().out == printed(clone)


def test_changed_metadata_is_installed_again_into_the_same_environment(clone: Clone) -> None:
    clone.run()
    with (clone.root / "pyproject.toml").open("a") as metadata:
        metadata.write("version = '2'\n")
    assert clone.run("x").out == printed(clone, "x")
    assert clone.did()[3:] == ["pip begins .", "pip ends"]


def test_moved_folder_is_set_up_again(clone: Clone) -> None:
    clone.run()
    clone.root = clone.root.rename(clone.root.with_name("moved"))
    assert clone.run("x").out == printed(clone, "x")
    assert f"venv {clone.root}/.venvIB" in clone.did()


def test_version_manager_shim_that_does_not_work_is_passed_over(clone: Clone) -> None:
    shim = clone.bin / "python3.13"
    shim.write_text("#!/bin/sh\necho 'command not found' >&2\nexit 127\n")
    shim.chmod(0o755)
    assert clone.run("x").out == printed(clone, "x")


def one_sentence(result: Result, *words: str) -> None:
    """What a user meets whose machine lacks something: exit 2, what it is, what to try."""
    assert (result.code, result.out) == (2, "")
    lines = [line for line in result.err.splitlines() if not line.endswith("...")]
    assert len(lines) == 1, result.err
    assert lines[0].startswith("benchmark: ")
    for word in words:
        assert word in lines[0]
    assert "\x1b" not in result.err


def pretend_version(folder: Path, version: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "sitecustomize.py").write_text(f"import sys\nsys.version_info = ({version.replace('.', ', ')}, 1)\n")


def test_python_too_old(clone: Clone, tmp_path: Path) -> None:
    pretend_version(tmp_path / "old", "3.9")
    clone.settings["SHADOWS"] = str(tmp_path / "old")
    one_sentence(clone.run("--demo"), "Python 3.9", "3.11 or newer", "install", "--venv PATH")
    assert not (clone.root / ".venvIB").exists()
    assert clone.locks() == []


@pytest.mark.parametrize("version", ["3.11", "3.14", "3.20"])
def test_python_new_enough(clone: Clone, tmp_path: Path, version: str) -> None:
    pretend_version(tmp_path / "new", version)
    clone.settings["SHADOWS"] = str(tmp_path / "new")
    assert clone.run("--init").code == 0


def test_no_python(clone: Clone) -> None:
    (clone.bin / "python3").unlink()
    one_sentence(clone.run("--demo"), "no Python", "3.11 or newer")


def test_no_venv_module(clone: Clone, tmp_path: Path) -> None:
    shadows = tmp_path / "debian"
    pretend_version(shadows, "3.12")
    (shadows / "ensurepip.py").write_text("raise ImportError")
    clone.settings["SHADOWS"] = str(shadows)
    one_sentence(clone.run("--demo"), "venv module", "python3.12-venv")


def test_no_network(clone: Clone) -> None:
    clone.settings["PIP_SAYS"] = dedent("""\
        WARNING: Retrying after connection broken by 'Failed to establish a new connection'
        ERROR: No matching distribution found for hatchling>=1.24""")
    one_sentence(clone.run("--demo"), "network", "pip config list", "benchmark-setup.log")
    del clone.settings["PIP_SAYS"]
    assert clone.run("x").out == printed(clone, "x")


def test_failing_pip_shows_the_end_of_its_log(clone: Clone) -> None:
    clone.settings["PIP_SAYS"] = "\n".join(f"line {n}" for n in range(100))
    result = clone.run("--demo")
    assert (result.code, result.out) == (2, "")
    assert "line 99\n" in result.err
    assert "line 5\n" not in result.err
    assert "benchmark-setup.log" in result.err.splitlines()[-1]


def test_failing_venv_shows_why(clone: Clone) -> None:
    clone.settings["VENV_FAILS"] = "Error: no space"
    result = clone.run("--demo")
    assert result.code == 2
    assert "Error: no space\n" in result.err


def test_failed_update_is_tried_again_and_keeps_the_environment(clone: Clone) -> None:
    clone.run()
    (clone.root / "pyproject.toml").write_text("[project]\n")
    clone.settings["PIP_SAYS"] = "broken"
    assert clone.run("x").code == 2
    del clone.settings["PIP_SAYS"]
    assert clone.run("x").out == printed(clone, "x")
    assert [line for line in clone.did() if line.startswith("venv")] == [f"venv {clone.root}/.venvIB"]


def test_two_first_calls_set_up_once(clone: Clone) -> None:
    clone.settings["PIP_TAKES"] = "0.5"
    both = [clone.start(str(n)) for n in range(2)]
    said = ""
    for n, process in enumerate(both):
        out, err = process.communicate(timeout=20)
        assert (process.returncode, out) == (0, printed(clone, str(n))), err
        said += err
    assert clone.did() == [f"venv {clone.root}/.venvIB", "pip begins .", "pip ends"]
    assert "Waiting for another set-up" in said
    assert clone.locks() == []


@pytest.mark.parametrize("reaped", [True, False])
def test_lock_of_a_dead_process_is_taken_over(clone: Clone, reaped: bool) -> None:
    with subprocess.Popen(["true"], stdout=subprocess.PIPE) as dead:
        dead.communicate() if reaped else time.sleep(0.2)
        (clone.root / f".venvIB-lock.{dead.pid}").mkdir()
        result = clone.run("x")
    assert result.out == printed(clone, "x")
    assert "Waiting" not in result.err
    assert clone.locks() == []


def test_interrupted_set_up_is_made_again(clone: Clone) -> None:
    clone.settings["PIP_TAKES"] = "30"
    first = clone.start("x")
    clone.await_journal("pip begins")
    os.killpg(first.pid, signal.SIGKILL)
    first.communicate()
    assert clone.locks() != []
    (clone.root / ".venvIB" / "remains").touch()
    clone.settings["PIP_TAKES"] = "0"
    assert clone.run("x").out == printed(clone, "x")
    assert not (clone.root / ".venvIB" / "remains").exists()
    assert clone.locks() == []


def test_interrupted_update_is_made_again(clone: Clone) -> None:
    clone.run()
    metadata = (clone.root / "pyproject.toml").read_text()
    (clone.root / "pyproject.toml").write_text("[project]\n")
    clone.settings["PIP_TAKES"] = "30"
    update = clone.start("x")
    clone.await_journal("pip begins")
    while clone.did()[-1] == "pip ends":
        time.sleep(0.01)
    os.killpg(update.pid, signal.SIGKILL)
    update.communicate()
    # The old metadata is back, but the environment is no longer what it was made as.
    (clone.root / "pyproject.toml").write_text(metadata)
    clone.settings["PIP_TAKES"] = "0"
    assert clone.run("x").out == printed(clone, "x")
    assert clone.did()[-3:] == [f"venv {clone.root}/.venvIB", "pip begins .", "pip ends"]


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signal_ends_the_set_up_and_its_pip(clone: Clone, number: signal.Signals, code: int) -> None:
    clone.settings["PIP_TAKES"] = "0.6"
    process = clone.start("x")
    clone.await_journal("pip begins")
    process.send_signal(number)
    process.communicate(timeout=10)
    assert process.returncode == code
    assert clone.locks() == []
    time.sleep(0.8)  # longer than pip would have taken
    assert "pip ends" not in clone.did()


def test_pip_that_outlives_its_launcher_is_waited_for(clone: Clone) -> None:
    clone.settings["PIP_TAKES"] = "1"
    first = clone.start("x")
    clone.await_journal("pip begins")
    first.kill()
    first.wait()
    clone.settings["PIP_TAKES"] = "0"
    result = clone.run("x")
    assert result.out == printed(clone, "x")
    assert "Waiting" in result.err
    venv = f"venv {clone.root}/.venvIB"
    assert clone.did() == [venv, "pip begins .", "pip ends", venv, "pip begins .", "pip ends"]
    first.communicate()


def test_init_sets_up_alone_and_prints_the_path_line(clone: Clone) -> None:
    result = clone.run("--init")
    assert result.code == 0, result.err
    assert f'export PATH="{clone.root}:$PATH"' in result.out
    assert "Path of an existing environment" not in result.out + result.err
    assert "aiperf" not in result.out
    assert clone.did()[-1] == "pip ends"


@pytest.mark.parametrize("form", ["--venv {}", "--venv={}"])
def test_named_environment_is_remembered(clone: Clone, tmp_path: Path, form: str) -> None:
    named = clone.environment_elsewhere(tmp_path / "my" / "environment")
    assert clone.run("--init", *form.format("../my/environment").split()).code == 0
    assert clone.run("x", cwd=tmp_path).out == printed(clone, "x", cwd=tmp_path)
    assert not (clone.root / ".venvIB").exists()
    assert clone.did() == ["pip begins .", "pip ends"]
    assert (named / "benchmark-stamp").exists()
    shutil.rmtree(named)
    one_sentence(clone.run("x"), str(named), "choose again")


def test_two_clones_do_not_share_an_environment_unnoticed(clone: Clone, tmp_path: Path) -> None:
    named = clone.environment_elsewhere(tmp_path / "shared")
    clone.run("--init", "--venv", str(named))
    other = Clone(tmp_path / "other", clone.bin, clone.journal)
    shutil.copytree(clone.root, other.root)
    assert other.run("x").out == printed(other, "x")
    assert clone.did() == ["pip begins .", "pip ends"] * 2


def test_interrupted_set_up_leaves_a_named_environment_in_place(clone: Clone, tmp_path: Path) -> None:
    named = clone.environment_elsewhere(tmp_path / "mine")
    (named / "keepsake").touch()
    clone.settings["PIP_SAYS"] = "broken"
    assert clone.run("--init", "--venv", str(named)).code == 2
    del clone.settings["PIP_SAYS"]
    assert clone.run("x").out == printed(clone, "x")
    assert (named / "keepsake").exists()


def test_named_environment_that_does_not_serve(clone: Clone, tmp_path: Path) -> None:
    named = str(clone.environment_elsewhere(tmp_path / "mine"))
    one_sentence(clone.run("--init", "--venv", str(tmp_path / "none")), "no environment", "-m venv")
    one_sentence(clone.run("--init", "--venv"), "--venv needs the path")
    one_sentence(clone.run("--init", "--vnev", named), "--vnev")
    clone.settings["NO_PIP"] = "1"
    one_sentence(clone.run("--init", "--venv", named), "no pip", "ensurepip")
    pretend_version(tmp_path / "old", "3.10")
    clone.settings["SHADOWS"] = str(tmp_path / "old")
    one_sentence(clone.run("--init", "--venv", named), named, "Python 3.10", "3.11 or newer")
    assert not (clone.root / ".venvIB-path").exists()
    assert clone.did() == []


def test_aiperf_gets_an_environment_of_its_own(clone: Clone) -> None:
    clone.run()
    clone.settings["PIP_TAKES"] = "0.2"
    both = [clone.start("--init", "--with-aiperf") for _ in range(2)]
    for process in both:
        process.communicate(timeout=20)
        assert process.returncode == 0
    again = clone.run("--init", "--with-aiperf")
    assert again.code == 0
    assert f"aiperf is ready: {clone.root}/.venvIB-aiperf/bin/aiperf" in again.out
    assert clone.did() == [
        f"venv {clone.root}/.venvIB",
        "pip begins .",
        "pip ends",
        f"venv {clone.root}/.venvIB-aiperf",
        "pip begins aiperf>=0.13,<0.14",
        "pip ends",
    ]


def test_aiperf_needs_a_python_it_runs_on(clone: Clone, tmp_path: Path) -> None:
    clone.run()
    pretend_version(tmp_path / "new", "3.14")
    clone.settings["SHADOWS"] = str(tmp_path / "new")
    one_sentence(clone.run("--init", "--with-aiperf"), "aiperf", "Python 3.14", "3.11 to 3.13")


def on_a_terminal(clone: Clone, answer: str) -> tuple[int, str]:
    """Runs ``--init`` on a pseudo-terminal and answers its question; exit code and all that was shown."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [clone.launcher, "--init"],
        cwd=clone.root,
        env=clone.environment,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    shown = b""
    answered = False
    while True:
        try:
            part = os.read(ours, 4096)
        except OSError:  # Linux's way to say that the other side is closed
            break
        if not part:
            break
        shown += part
        if not answered and b"Enter for" in shown:
            os.write(ours, answer.encode() + b"\n")
            answered = True
    os.close(ours)
    assert answered, shown
    return process.wait(timeout=10), shown.decode()


def test_init_asks_on_a_terminal(clone: Clone, tmp_path: Path) -> None:
    named = clone.environment_elsewhere(tmp_path / "my environment")
    code, shown = on_a_terminal(clone, "~/my environment")
    assert code == 0, shown
    assert clone.did() == ["pip begins .", "pip ends"]
    assert clone.run("x").err == ""
    code, shown = on_a_terminal(clone, "")
    assert code == 0, shown
    assert f"The environment is ready: {clone.root}/.venvIB" in shown
    assert clone.did()[2:] == [f"venv {clone.root}/.venvIB", "pip begins .", "pip ends"]
    shutil.rmtree(named)
    assert clone.run("x").out == printed(clone, "x")


def test_a_long_set_up_counts_its_seconds_on_a_terminal(clone: Clone) -> None:
    clone.settings["PIP_TAKES"] = "2.3"
    _, shown = on_a_terminal(clone, "")
    assert "Setting up (once, about a minute): downloading packages ... 2 s" in shown


def test_each_step_of_a_set_up_is_told(clone: Clone) -> None:
    clone.settings |= {"PIP_TAKES": "2.3", "PIP_TELLS": "Installing collected packages: a, b"}
    _, shown = on_a_terminal(clone, "")
    assert "Setting up (once, about a minute): installing packages ... 2 s" in shown
    shutil.rmtree(clone.root / ".venvIB")
    steps = [line for line in clone.run("x").err.splitlines() if line.endswith("...")]
    assert [step.partition(": ")[2] for step in steps] == ["making the environment ...", "downloading packages ..."]


def test_self_test_runs_the_linters_and_pytest_last(clone: Clone) -> None:
    with (clone.root / "pyproject.toml").open("a") as metadata:
        metadata.write("[tool.importlinter]\n")
    assert clone.run("--self-test", "-k", "a b", cwd=clone.root.parent).code == 0
    assert "pip begins .[test]" in clone.did()
    did = clone.did()[3:]
    assert [line for line in did if line != "mypy"] == [
        "ruff check",
        "ruff format --check",
        "lint-imports",
        "python -m pytest --collect-only -k a b",
        "python -m pytest -n 4 --dist worksteal -k a b",
    ]
    assert "mypy" in did[:-1], "it runs beside the others"


@pytest.mark.parametrize("fails", ["ruff", "mypy", "python"])
def test_self_test_fails_if_any_part_fails_and_runs_them_all(clone: Clone, fails: str) -> None:
    clone.settings["FAILS"] = fails
    assert clone.run("--self-test").code == 1
    assert clone.did()[-1] == "python -m pytest -n 4 --dist worksteal"


def test_the_test_extra_comes_once_and_stays(clone: Clone) -> None:
    clone.run()
    clone.run("--self-test")
    assert clone.did()[3:5] == ["pip begins .[test]", "pip ends"]
    installed = len([line for line in clone.did() if "pip" in line])
    clone.run("x")
    clone.run("--self-test")
    assert len([line for line in clone.did() if "pip" in line]) == installed
    (clone.root / "pyproject.toml").write_text("[project]\n")
    clone.run("x")
    assert clone.did()[-2:] == ["pip begins .[test]", "pip ends"]
