"""The container image: what its description says, and that what it makes in a bare Debian root works there."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import time
import tomllib
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.containers import Image, build, context, instructions, size_bytes

MOST_BYTES = 450_000_000
MEASURED = (0, 3)  # a busy machine makes a wave INVALID
DEMO = ("--demo", "--client-rps", "20", "--obs-time", "2", "--workers", "1")


def test_the_last_stage_has_a_small_python_and_nobody_is_root() -> None:
    said = instructions()
    bases = {rest.split()[0] for name, rest in said if name == "FROM"}
    assert len(bases) == 1
    assert re.fullmatch(r"python:3\.\d+-slim-[a-z]+", bases.pop())
    last = said[[name for name, _ in said].index("FROM", 1) :]
    assert [name for name, _ in last] == ["FROM", "COPY", "ENV", "WORKDIR", "USER", "ENTRYPOINT"]
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", dict(last)["USER"])


def test_the_build_is_given_what_is_installed_and_nothing_else() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    packages = project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    files = {"LICENSE", "README.md", "delivery/image.sh", "pyproject.toml"}
    given = {str(path) for path in context()}
    assert {name for name in given if not name.startswith(tuple(f"{package}/" for package in packages))} == files
    assert {name.split("/")[0] for name in given - files} == set(packages)


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Image:
    if os.geteuid() or not all(map(shutil.which, ("mmdebstrap", "unshare", "chroot"))):
        pytest.skip("needs root, mmdebstrap, unshare and chroot")
    return build(tmp_path_factory.mktemp("containers"))


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_image_holds_what_is_needed(image: Image) -> None:
    assert size_bytes(image.added) < MOST_BYTES
    assert {path.name for path in image.added.iterdir()} == {"opt", "runs"}
    libraries = {path.name for path in image.added.glob("opt/benchmark/lib/python3*/site-packages/*")}
    assert "inference_benchmarker" in libraries
    assert not {"pip", "setuptools", "hatchling"} & libraries
    assert not [path for path in (image.root / "root").rglob("*") if path.name in (".cache", "pip")]
    assert not (image.root / "source").exists()


@pytest.mark.slow
def test_without_arguments_it_says_what_it_can_do(image: Image) -> None:
    done = image.run()
    assert (done.returncode, done.stderr) == (0, "")
    assert "benchmark --demo" in done.stdout


@pytest.mark.slow
def test_any_user_sends_a_wave_and_has_its_run_in_the_volume(image: Image, tmp_path: Path) -> None:
    os.chown(tmp_path, 4321, 4321)
    for folder in tmp_path.parents[:3]:
        folder.chmod(0o755)
    done = image.run(*DEMO, user="4321:4321", volume=tmp_path)
    assert done.returncode in MEASURED, done.stdout + done.stderr
    assert "Total requests fired: 40" in done.stdout
    (run,) = (tmp_path / ".tmp").iterdir()
    assert {path.stat().st_uid for path in run.rglob("*")} == {4321}
    drawn = image.run("plot", user="4321:4321", volume=tmp_path)
    assert drawn.returncode == 0, drawn.stdout + drawn.stderr
    assert list(run.glob("*.png"))


@pytest.mark.slow
def test_a_stop_ends_the_wave_with_its_report(image: Image) -> None:
    """The command is the container's first process, which hears no signal that it does not handle."""
    command = image.command("--demo", "--client-rps", "20", "--obs-time", "60", "--workers", "1")
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        runs = image.root / "runs" / ".tmp"
        while not list(runs.glob("*/spool.bin")):
            assert running.poll() is None
            time.sleep(0.2)
        time.sleep(2)
        children = Path(f"/proc/{running.pid}/task/{running.pid}/children").read_text().split()
        os.kill(int(children[0]), signal.SIGTERM)
        out, err = running.communicate(timeout=60)
    assert running.returncode == 130, out + err
    assert "Total requests fired" in out
