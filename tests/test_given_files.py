"""Files that the user names for a result: devices and pipes stay what they are, whoever the user is."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from inference_benchmarker.system.files import is_stream, write_given


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
