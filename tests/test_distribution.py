"""The wheel and the source distribution: what they hold, and that an empty environment with the wheel runs the demo."""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from typing import TYPE_CHECKING

import pytest

from inference_benchmarker.version import __version__
from tests.conftest import ROOT

if TYPE_CHECKING:
    from pathlib import Path

_NAME = f"inference_benchmarker-{__version__}"
_PACKAGES = ("inference_benchmarker", "factories", "server_capacity", "client_capacity", "visualization")
_SOURCES = (*_PACKAGES, "delivery", "tests", "docs", ".ci")


def test_the_page_on_dependencies_has_each_of_them() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    page = (ROOT / "docs" / "reference" / "dependencies.md").read_text()
    needed = [re.split(r"[<>=\[]", text)[0] for text in project["dependencies"]]
    reported = re.findall(r"^\| ([\w-]+) \|", page, re.MULTILINE)
    assert sorted(reported) == sorted([*needed, "package", "extra"])
    assert set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)) == set(project["optional-dependencies"]) - {
        "docs",
        "test",
    }


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with both, made as for an index."""
    folder = tmp_path_factory.mktemp("dist")
    made = folder / "venv"
    _run(sys.executable, "-m", "venv", str(made))
    _run(str(made / "bin" / "pip"), "install", "--quiet", "hatchling>=1.24")
    _run(str(made / "bin" / "hatchling"), "build", "-d", str(folder), cwd=ROOT)
    return folder


def _run(*command: str, cwd: Path | None = None) -> str:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def _tracked(*folders: str) -> set[str]:
    return set(_run("git", "-C", str(ROOT), "ls-files", *folders).split())


@pytest.mark.slow
def test_the_wheel_holds_the_packages_and_nothing_else(built: Path) -> None:
    with zipfile.ZipFile(built / f"{_NAME}-py3-none-any.whl") as wheel:
        held = {name for name in wheel.namelist() if not name.startswith(f"{_NAME}.dist-info/")}
    assert held == _tracked(*_PACKAGES)
    assert {f"{package}/py.typed" for package in _PACKAGES if package != "factories"} <= held


@pytest.mark.slow
def test_the_source_holds_what_its_tests_need(built: Path) -> None:
    with tarfile.open(built / f"{_NAME}.tar.gz") as source:
        held = {name.partition("/")[2] for name in source.getnames()}
    assert _tracked(*_SOURCES) <= held
    assert {
        ".dockerignore",
        "Dockerfile",
        "action.yml",
        "benchmark",
        "README.md",
        "CHANGELOG.md",
        "LICENSE",
        "pyproject.toml",
        "mkdocs.yml",
    } <= held


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["py3-none-any.whl", "tar.gz"])
def test_an_empty_environment_runs_the_demo(built: Path, tmp_path: Path, kind: str) -> None:
    file = built / f"{_NAME}{'-' if kind.endswith('whl') else '.'}{kind}"
    _run(sys.executable, "-m", "venv", str(tmp_path / "venv"))
    _run(str(tmp_path / "venv" / "bin" / "pip"), "install", "--quiet", str(file))
    command = str(tmp_path / "venv" / "bin" / "benchmark")
    assert _run(command, "--version", cwd=tmp_path) == f"benchmark {__version__}\n"
    reported = _run(command, "--demo", "--client-rps", "20", "--obs-time", "3", "--workers", "1", cwd=tmp_path)
    assert "Total requests fired: 60" in reported
    assert reported.splitlines()[-2] == "VALID"
