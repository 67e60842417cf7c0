"""What a shell completes with the script of ``benchmark completion``, asked of real shells."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from inference_benchmarker.cli.completion import SHELLS, completion_parser, whole_parser
from inference_benchmarker.cli.dispatch import COMMANDS, main

if TYPE_CHECKING:
    from pathlib import Path

_ASK = """\
source "$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=()
_shtab_benchmark benchmark "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}" 2>/dev/null
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    import shtab

    path = tmp_path_factory.mktemp("completion") / "benchmark.bash"
    path.write_text(shtab.complete(whole_parser(), shell="bash"))  # noqa: S604 - a shell's name
    return path


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["cap"], {"capacity"}),
        (["--client-r"], {"--client-rps", "--client-retries"}),
        (["--arrivals", "p"], {"poisson"}),
        (["capacity", "--max-r"], {"--max-rps"}),
        (["client", "rps"], {"rps-saturation"}),
        (["client", "rps-saturation", "--quie"], {"--quiet"}),
        (["endpoints", "c"], {"clean"}),
        (["factory", "demo/"], {"demo/factories_demo", "demo/factories_demo_endpoint"}),
        (["completion", ""], set(SHELLS)),
        (["report", "--format", "mark"], {"markdown"}),
        (["ab", "--client-r"], {"--client-rps", "--client-retries"}),
        (["ab", "a.py", "b.py", "--set-"], {"--set-a", "--set-b"}),
        (["ab", "--max-reg"], {"--max-regression"}),
        (["pareto", "runs", "--tok"], {"--token-weights"}),
        (["http://127.0.0.1:8080", "--client-r"], {"--client-rps", "--client-retries"}),
    ],
)
def test_bash_completes(script: Path, words: list[str], expected: set[str]) -> None:
    command = ["bash", "-c", _ASK, "ask", str(script), "benchmark", *words]
    found = set(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split())
    assert expected <= found
    assert all(each.startswith(words[-1]) for each in found)


def test_bash_completes_files(script: Path, tmp_path: Path) -> None:
    (tmp_path / "my_endpoint.py").touch()
    command = ["bash", "-c", _ASK, "ask", str(script), "benchmark", "--factories-file", "my"]
    found = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path).stdout
    assert found.split() == ["my_endpoint.py"]


def test_bash_completes_the_folders_of_runs(script: Path, tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    command = ["bash", "-c", _ASK, "ask", str(script), "benchmark", "plot", "r"]
    found = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path).stdout
    assert found.split() == ["runs"]


@pytest.mark.skipif(shutil.which("zsh") is None, reason="zsh is not installed")
def test_zsh_takes_the_script(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "zsh"]) == 0
    command = ["zsh", "-f", "-c", 'autoload -U compinit; compinit -u -D; eval "$(cat)"; print ${_comps[benchmark]}']
    done = subprocess.run(command, input=capsys.readouterr().out, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "_shtab_benchmark", "")


def test_every_command_is_completed() -> None:
    words = next(action.choices for action in whole_parser()._actions if isinstance(action.choices, dict))
    assert set(COMMANDS) <= set(words)
    assert completion_parser().prog == "benchmark completion"
