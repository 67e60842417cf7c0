"""The files and variables that the workers on other hosts need: they are there for the wave, and gone after it."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from inference_benchmarker.engine.hosts.shipping import Cargo, cargo_of
from inference_benchmarker.engine.launch import run_wave
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.plan.load import Bounds, OpenLoop
from inference_benchmarker.plan.replay import Replay
from inference_benchmarker.system.imported import imported
from tests.engine.hosts.plans import a_plan, once_it_runs
from tests.hosts.host import Spec
from tests.recordings import csv_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.hosts.host import Host
    from tests.hosts.lab import Lab
    from tests.performance.stamp_server import StampServer

FILES = {
    "endpoint.py": "import json\nimport os\nimport beside\nfrom pack.inner import NAME\nfrom pack import deeper\n",
    "beside.py": "import further\nfrom . import nothing\n",
    "further.py": "",
    "unused.py": "",
    "pack/__init__.py": "",
    "pack/inner.py": "from .sibling import THING\nfrom .. import further\nNAME = THING\n",
    "pack/sibling.py": "THING = 1\n",
    "pack/deeper/__init__.py": "from ..last import x\n",
    "pack/last.py": "x = 1\n",
    "pack/unused.py": "",
}
FACTORY = """
import os
import subprocess
from pathlib import Path

import requests_of
from words.of_it import WORD

SERVER = ""
print("the key is", os.environ["UPSTREAM_TOKEN"])
subprocess.Popen(["setsid", "sleep", "1000"], env={})


def invoke_factory(endpoint_name=None):
    from inference_benchmarker.clients import HttpClient

    client = HttpClient(SERVER)

    def invoke(payload):
        return client.request("POST", "/", payload).body

    return invoke


def payload_factory():
    text = Path("data/body.txt").read_text()
    return {"pre_computed": False, "input": lambda *row: requests_of.body(text, WORD, *row)}
"""
MODULES = {
    "requests_of.py": "def body(text, word, row=None):\n    return f'{text} {word} {row}'.encode()\n",
    "words/__init__.py": "",
    "words/of_it.py": "WORD = 'hello'\n",
    "data/body.txt": "of a file",
}
STRANGE = """
import socket, sys
stranger = socket.socket(socket.AF_UNIX)
stranger.connect(sys.argv[1])
stranger.sendall(b"\\xff" + bytes(8) + b"\\x7f\\x03\\x00NULL" + bytes(1000))
print("connected")
"""
SECRET = "tok-8f14e45fceea167a5a36dedd4bea2543"


def written(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def test_the_modules_beside_a_file_that_it_imports_go_with_it(tmp_path: Path) -> None:
    written(tmp_path, FILES)
    found = [str(path.relative_to(tmp_path)) for path in imported(tmp_path / "endpoint.py")]
    assert found == sorted({*FILES} - {"endpoint.py", "unused.py", "pack/unused.py"})


def test_a_variable_that_is_not_there_is_named(tmp_path: Path) -> None:
    plan = a_plan(tmp_path, "http://x", "load1*1", of_hosts={"pass_env": ("NOT_HERE_AT_ALL",)})
    with pytest.raises(BenchmarkError, match="--pass-env NOT_HERE_AT_ALL"):
        cargo_of(plan)


def test_a_data_file_does_not_take_the_place_of_a_file_that_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The hosts would run another file than was given, and nobody would know."""
    written(
        tmp_path, {"here/f.py": "x = 1\n", "here/beside.py": "", "there/f.py": "import beside\n", "there/beside.py": ""}
    )
    monkeypatch.chdir(tmp_path / "here")

    def cargo(factories_file: Path, *data: str) -> Cargo:
        plan = a_plan(tmp_path, "http://x", "a*1", of_hosts={"with_files": tuple(map(Path, data))})
        return cargo_of(replace(plan, factories_file=factories_file))

    for name in ("f.py", "./beside.py"):
        with pytest.raises(
            BenchmarkError, match=rf"--with-file {Path(name)}: .*there/{Path(name)} gets the same place"
        ):
            cargo(tmp_path / "there" / "f.py", name)
    assert dict(cargo(tmp_path / "here" / "f.py", "f.py").files) == {"files/f.py": Path("f.py")}


def test_a_file_that_was_not_sent_is_suggested_where_it_is_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(tmp_path, {"data/a.txt": "", "data/b.txt": "", "f.py": ""})
    monkeypatch.chdir(tmp_path)
    plan = replace(
        a_plan(tmp_path, "http://x", "a*1", of_hosts={"with_files": (Path("data/b.txt"),)}), factories_file=None
    )
    cargo = cargo_of(plan)
    text = "f.py, line 2: invoke_factory() raised FileNotFoundError: [Errno 2] No such file or directory: '{}'."
    assert (
        cargo.lacking_file(text.format("data/a.txt")) == " It is here, and was not sent: give --with-file data/a.txt."
    )
    for name in ("data/b.txt", "data/c.txt", "/etc/passwd", "../secret", str(tmp_path / "data/a.txt")):
        assert cargo.lacking_file(text.format(name)) == ""


@pytest.fixture(scope="module")
def host(laboratory: Lab) -> Iterator[Host]:
    (host,) = laboratory.start(Spec("away"))
    yield host
    laboratory.stop(host)


@pytest.mark.process
@pytest.mark.usefixtures("users_ssh")
def test_a_wave_elsewhere_has_its_modules_data_secrets_and_recording_and_leaves_none(
    stamps: StampServer, host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The secret is nowhere on the host but in the environment of the workers, and in no log here."""
    written(tmp_path / "mine", {"my_endpoint.py": FACTORY, **MODULES})
    monkeypatch.chdir(tmp_path / "mine")
    monkeypatch.setenv("UPSTREAM_TOKEN", SECRET)
    recording = csv_of(tmp_path / "trace.csv", [f"{number / 100:.2f}" for number in range(150)])
    of_hosts = {"pass_env": ("UPSTREAM_TOKEN",), "with_files": (Path("data/body.txt"),)}
    plan = replace(
        a_plan(tmp_path, stamps.url, "away*2", of_hosts=of_hosts),
        load=OpenLoop(replay=Replay(recording)),
        bounds=Bounds(),
        factories_file=tmp_path / "mine/my_endpoint.py",
    )
    places: list[str] = []
    strangers: list[str] = []

    def look() -> None:
        places.extend(host.grep(SECRET))
        (socket,) = [name for name in host.files() if name.endswith("/primary")]
        for user in ("load", "other"):
            done = host.run(sys.executable, "-c", STRANGE, socket, user=user)
            strangers.append(done.stdout + done.stderr[-60:])

    with once_it_runs(stamps, look):
        wave = run_wave(plan)
    assert wave.ledger.ok == 150 == len(stamps.log())
    assert {place.partition(" of ")[0] for place in places} == {"environment"}
    assert all("engine.worker" in place for place in places)
    assert strangers[0] == "connected\n"  # the user's own process, which has no key
    assert "Permission denied" in strangers[1]
    assert wave.left_behind == ("sleep", "sleep")
    assert (host.left(), host.grep(SECRET)) == ([], [])
    assert wave.run_dir is not None
    logs = [wave.run_dir.worker_log(number).read_text() for number in (0, 1)]
    assert all("the key is" in log and SECRET not in log for log in logs)


@pytest.mark.process
@pytest.mark.usefixtures("users_ssh")
def test_an_error_of_a_file_elsewhere_names_it_as_it_is_called_here(
    stamps: StampServer, host: Host, tmp_path: Path
) -> None:
    broken = "import further_away\n\ndef invoke_factory(): 1\ndef payload_factory(): 1\n"
    file = written(tmp_path, {"mine/broken.py": broken}) / "mine/broken.py"
    plan = replace(a_plan(tmp_path, stamps.url, "away*1"), factories_file=file, factory_settings={})
    with pytest.raises(BenchmarkError) as caught:
        run_wave(plan)
    assert f"{file}, line 1: importing it raised ModuleNotFoundError" in str(caught.value)
    assert host.left() == []
