"""Files that the user names: a result's devices and pipes stay what they are; what is read is a file, and bounded."""

from __future__ import annotations

import os
import re
import threading
from pathlib import Path

import pytest

from inference_benchmarker.cli.core.file_flags import take_file
from inference_benchmarker.cli.core.url_flags import ASKED
from inference_benchmarker.engine.endpoint.settings import settings_of
from inference_benchmarker.engine.endpoint.source import check_source, has_sessions, ignores_name
from inference_benchmarker.engine.processes.children import note_asked_for
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.plan.endpoint_problems import instead_of_a_file
from inference_benchmarker.system.files import is_stream, write_given
from inference_benchmarker.system.given import MOST_SOURCE, read_source, resolved
from inference_benchmarker.system.imported import imported
from tests.bench import ROOT

RESOLVES = {"inference_benchmarker/system/given.py", "inference_benchmarker/engine/hosts/unpacking.py"}


def made(folder: Path, kind: str) -> Path:
    """What has the name of a Python file and is none."""
    path = folder / "f.py"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "sparse":
        path.touch()
        os.truncate(path, MOST_SOURCE + 1)
    elif kind == "folder":
        path.mkdir()
    elif kind != "none":
        path.symlink_to("/dev/zero" if kind == "device" else path)
    return path


@pytest.mark.parametrize("path", ["/dev/null", "/dev/stdout", "/dev/stderr", "/dev/fd/1"])
def test_a_device_is_written_to_and_never_replaced(path: str) -> None:
    assert is_stream(Path(path))


def test_a_file_a_folder_and_nothing_are_no_streams(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("a")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    assert not any(is_stream(tmp_path / name) for name in (".", "file", "link", "none", "file/below", "a\0"))


def test_a_pipe_gets_the_text_and_stays_one(tmp_path: Path) -> None:
    pipe, read = tmp_path / "pipe", list[str]()
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()))
    reader.start()
    write_given(pipe, "a result\n")
    reader.join()
    assert read == ["a result\n"]
    assert pipe.is_fifo()


def test_a_file_is_replaced_and_no_secret_is_in_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_TOKEN", "sup3r-s3cret")
    for text in ("a longer one", "sup3r-s3cret"):
        write_given(tmp_path / "file", text)
    assert (tmp_path / "file").read_text() == "[hidden]"


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        ("pipe", "is a named pipe, not a file"),
        ("device", "is a device, not a file"),
        ("sparse", "is larger than 16 MiB"),
    ],
)
def test_a_file_of_python_that_has_no_end_or_is_huge_is_read_nowhere(tmp_path: Path, kind: str, says: str) -> None:
    path = made(tmp_path, kind)
    with pytest.raises(BenchmarkError, match=says):
        check_source(path)
    assert not has_sessions(path)
    assert not ignores_name(path)
    assert settings_of(path) == {}
    assert imported(path) == []
    note_asked_for(path)
    options = {"factories_file": str(path), "header": ["a: b"], "set": None}
    take_file({**dict.fromkeys(flag.name for flag in ASKED), **options}, [], {})


def test_a_link_to_a_file_of_python_is_read(tmp_path: Path) -> None:
    (tmp_path / "there.py").write_text("A = 1\n")
    (tmp_path / "f.py").symlink_to("there.py")
    assert read_source(tmp_path / "f.py") == b"A = 1\n"


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        ("none", "there is no such file"),
        ("folder", "this is a folder"),
        ("pipe", "this is a pipe or a device"),
        ("device", "this is a pipe or a device"),
        ("circle", "this is a link that leads back to itself"),
    ],
)
def test_what_is_no_file_is_named_as_what_it_is(tmp_path: Path, kind: str, says: str) -> None:
    assert instead_of_a_file(made(tmp_path, kind)).startswith(says)


def test_a_link_that_leads_to_itself_stays_as_it_stands(tmp_path: Path) -> None:
    path = made(tmp_path, "circle")
    assert resolved(path) == path
    (tmp_path / "link").symlink_to("there")
    assert resolved(tmp_path / "link") == (tmp_path / "there").resolve()


def test_a_path_that_somebody_gave_is_resolved_in_one_way() -> None:
    """``Path.resolve`` raises RuntimeError for a link that leads to itself; only of our own ``__file__`` it may not."""
    rooms = ("inference_benchmarker", "server_capacity", "client_capacity", "visualization")
    resolving = re.compile(r"^(?!.*__file__).*\.resolve\(\)", re.MULTILINE)
    files = [path for room in rooms for path in (ROOT / room).rglob("*.py")]
    assert {str(path.relative_to(ROOT)) for path in files if resolving.search(path.read_text())} == RESOLVES
