"""Standard streams that break, stand still, are closed, or are given foreign text."""

from __future__ import annotations

import errno
import io
import os
import subprocess
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from inference_benchmarker.cli.core.redacting_stream import RedactingStream, redacted_streams
from inference_benchmarker.words.text import plain_lines
from tests.bench import ROOT

if TYPE_CHECKING:
    from pathlib import Path

SECRET = "hunter2-hunter2-hunter2"


class Broken(io.StringIO):
    def __init__(self, code: int) -> None:
        super().__init__()
        self.code = code
        self.asked = 0

    def write(self, _: str) -> int:
        self.asked += 1
        raise OSError(self.code, os.strerror(self.code))


def command(shell: str, *arguments: str, environment: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """The command line below a shell that redirects; ``$BENCHMARK`` stands for it."""
    line = f'set -o pipefail; benchmark() {{ "{sys.executable}" -P -m inference_benchmarker.cli "$@"; }}; {shell}'
    variables = {**os.environ, "PYTHONPATH": str(ROOT), **(environment or {})}
    return subprocess.run(
        ["bash", "-c", line, "bash", *arguments], env=variables, capture_output=True, text=True, check=False, timeout=60
    )


@pytest.mark.parametrize("code", [errno.EPIPE, errno.EIO, errno.ENOSPC])
def test_a_stream_that_breaks_is_left_after_its_first_error(code: int) -> None:
    stream = Broken(code)
    outlet = RedactingStream(stream, str)
    for _ in range(3):
        assert outlet.write("text") == 4
        outlet.flush()
    assert outlet.error is not None
    assert outlet.error.errno == code
    assert stream.asked == 1


def test_foreign_text_is_plain_and_a_view_of_ours_may_move_the_cursor() -> None:
    stream = io.StringIO()
    outlet = RedactingStream(stream, plain_lines)
    outlet.write("\x1b[2J\nVALID\t\u202e\n")
    outlet.styled().write("\x1b[K")
    assert stream.getvalue() == " [2J\nVALID\t \n\x1b[K"


def test_secrets_are_hidden_in_what_is_printed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MY_API_KEY", SECRET)
    monkeypatch.setenv("PIN_PASSWORD", "12345678")
    with redacted_streams():
        print(f'{{"a": "{SECRET}", "n": 0.12345678}}')  # noqa: T201
        print(f"failed: {SECRET}", file=sys.stderr)  # noqa: T201
    printed = capsys.readouterr()
    assert printed.out == '{"a": "[hidden]", "n": 0.12345678}\n'  # a number of the result is no password
    assert printed.err == "failed: [hidden]\n"


def test_a_reader_that_stands_still_is_not_waited_for() -> None:
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    with suppress(BlockingIOError):
        while os.write(writer, b"x" * 4096):
            pass
    os.set_blocking(writer, True)
    outlet = RedactingStream(os.fdopen(writer, "w"), str, patience_s=0.01)
    outlet.write("left out\n")
    outlet.flush()
    os.read(reader, 1 << 20)
    outlet.write("there again\n")
    outlet.flush()
    assert os.read(reader, 100) == b"there again\n"
    os.close(reader)


@pytest.mark.parametrize(
    ("shell", "code", "expected"),
    [
        ("benchmark factory >/dev/full", 3, "could not be written to standard output (No space left on device)"),
        ("benchmark factory demo >/dev/full", 3, "could not be written to standard output"),
        ("benchmark factory | true", 0, ""),
        ("benchmark --no-such-flag 2>/dev/full", 2, ""),
        ("benchmark --no-such-flag 2>&-", 2, ""),
        ("benchmark factory >&-", 0, ""),
        ("benchmark factory <&- >/dev/null", 0, ""),
        ("benchmark --version 2>&- | cat", 0, ""),
    ],
)
def test_redirections_change_no_exit_code_but_where_the_result_is_lost(shell: str, code: int, expected: str) -> None:
    finished = command(shell)
    assert finished.returncode == code
    assert expected in finished.stderr
    assert "Traceback" not in finished.stderr
    assert "Exception ignored" not in finished.stderr


def test_a_file_that_is_opened_first_does_not_become_standard_error(tmp_path: Path) -> None:
    (tmp_path / "f.py").write_text("def invoke_factory():\n    return 1\n")
    finished = command('benchmark check --factories-file "$1/f.py" 2>&-', str(tmp_path))
    assert finished.returncode == 2
    assert (tmp_path / "f.py").read_text().startswith("def invoke_factory")


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_result_is_written_whole_or_its_loss_is_reported(tmp_path: Path, unbuffered: str) -> None:
    code = f"""
import os, resource, signal, sys
sys.path.insert(0, {str(ROOT)!r})
from inference_benchmarker.cli.core.redacting_stream import redacted_streams
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))
with redacted_streams() as (out, _):
    print("x" * 100_000)
    sys.exit(0 if out.error is None else out.error.errno)
"""
    with (tmp_path / "out").open("wb") as file:
        done = subprocess.run(
            [sys.executable, "-c", code], stdout=file, env={**os.environ, "PYTHONUNBUFFERED": unbuffered}, check=False
        )
    assert done.returncode == errno.EFBIG


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_slow_reader_of_a_pipe_that_does_not_block_gets_all(unbuffered: str) -> None:
    code = f"""
import os, sys
sys.path.insert(0, {str(ROOT)!r})
from inference_benchmarker.cli.core.redacting_stream import redacted_streams
os.set_blocking(1, False)
with redacted_streams():
    print("x" * 1_000_000)
"""
    variables = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, env=variables) as process:
        assert process.stdout is not None
        time.sleep(0.2)
        assert len(process.stdout.read()) == 1_000_001
