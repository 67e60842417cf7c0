"""A host out of resources is named, whoever raised the error; a fault of ours is not."""

from __future__ import annotations

import errno
import os
import resource
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from inference_benchmarker.errors import LostProcessError
from inference_benchmarker.system.out_of_resources import out_of_resources, space_problems

if TYPE_CHECKING:
    from collections.abc import Callable

PRIMARY = "the primary process ended before the wave began"
FULL_PIPE = BlockingIOError(errno.EAGAIN, "write could not complete without blocking", 4096)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (MemoryError(), "There is not enough memory (MemoryError)."),
        (OSError(errno.ENOMEM, "Cannot allocate memory"), "There is not enough memory (OSError: [Errno 12]"),
        (ImportError("libarrow.so: failed to map segment from shared object"), "There is not enough memory (Import"),
        (LostProcessError(PRIMARY, "  File x\nMemoryError"), "There is not enough memory (MemoryError)."),
        (OSError(errno.EMFILE, "Too many open files"), "There are not enough file descriptors (OSError: [Errno 24]"),
        (RuntimeError("can't start new thread"), "The system starts no more threads or processes (RuntimeError: can't"),
        (BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable"), "The system starts no more threads"),
    ],
)
def test_a_host_out_of_resources_is_one_line_with_its_cause(error: Exception, expected: str) -> None:
    line = out_of_resources(error)
    assert line is not None
    assert line.startswith(expected)
    assert "\n" not in line


def raised(act: Callable[[], object]) -> Exception:
    with pytest.raises(OSError) as reported:  # noqa: PT011 - its number is asked for
        act()
    return reported.value


def test_a_pipe_that_is_full_or_empty_is_none() -> None:
    reader, writer = os.pipe()
    for end in (reader, writer):
        os.set_blocking(end, False)
    assert out_of_resources(raised(lambda: os.read(reader, 1))) is None
    assert out_of_resources(raised(lambda: [os.write(writer, b"x" * 65536) for _ in range(64)])) is None
    os.close(reader)
    os.close(writer)


def test_a_process_that_is_not_started_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")

    monkeypatch.setattr(subprocess, "_fork_exec", refused)
    error = raised(lambda: subprocess.run([sys.executable], check=True))
    assert "no more threads or processes" in str(out_of_resources(error))


@pytest.mark.parametrize(
    "error",
    [
        ValueError("memory"),
        ImportError("No module named 'x'"),
        OSError(errno.ENOSPC, "No space"),
        KeyError("a"),
        FULL_PIPE,
        BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable", "a-file-that-is-locked"),
        ValueError("the answer said MemoryError"),
        RuntimeError("the answer said can't start new thread"),
    ],
)
def test_anything_else_is_none(error: Exception) -> None:
    assert out_of_resources(error) is None


def test_libraries_need_space_for_each_thread_of_theirs() -> None:
    """With 720 MiB two threads fit and sixty do not, unless the environment asks for fewer."""
    looks = (
        "import resource; resource.setrlimit(resource.RLIMIT_AS, (720 << 20, resource.RLIM_INFINITY));"
        "from inference_benchmarker.system.out_of_resources import space_problems as found;"
        "print(len(found(2, {})), len(found(60, {})), len(found(60, {'OPENBLAS_NUM_THREADS': '2'})))"
    )
    done = subprocess.run([sys.executable, "-c", looks], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["0", "1", "0"]


def test_a_thread_that_finds_no_address_space_is_no_matter_of_the_number_of_processes_alone() -> None:
    looks = (
        "import resource; resource.setrlimit(resource.RLIMIT_AS, (600 << 20, resource.RLIM_INFINITY));"
        "from inference_benchmarker.system.out_of_resources import out_of_resources as found, space_problems;"
        'print(found(RuntimeError("can\'t start new thread"))); print(*space_problems(2, {}))'
    )
    done = subprocess.run([sys.executable, "-c", looks], capture_output=True, text=True, check=True)
    of_thread, before = done.stdout.splitlines()
    assert "600 MiB of address space (ulimit -v)" in of_thread
    assert of_thread.index("ulimit -v") < of_thread.index("ulimit -u")
    assert before.startswith("This process may have 600 MiB of address space (ulimit -v); its libraries alone take up")


@pytest.mark.skipif(resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY, reason="there is a limit here")
def test_without_a_limit_there_is_no_problem() -> None:
    assert space_problems(1_000, {}) == []
    assert "MiB (ulimit" not in str(out_of_resources(MemoryError()))
    assert "ulimit -v" not in str(out_of_resources(RuntimeError("can't start new thread")))
