"""Memory, threads, processes and files that this host does not give: reported as that, not as a fault of ours."""

from __future__ import annotations

import errno
import resource
import subprocess
import traceback
from multiprocessing import popen_fork
from typing import TYPE_CHECKING

from inference_benchmarker.errors import LostProcessError
from inference_benchmarker.words.redact import excerpt, redact
from inference_benchmarker.words.units import MIB

if TYPE_CHECKING:
    from collections.abc import Mapping

# Of address space, as measured: 682 MiB with two cores. Python, NumPy and Arrow take it, the C library, which reserves
# 64 MiB for each of some threads, and OpenBLAS, which gives each of its threads a stack and a buffer, and ends the
# process with exit code 1 where it cannot.
_LIBRARIES = 620 * MIB
_THREAD = 40 * MIB
_OF_MEMORY = ("MemoryError", "failed to map segment", "cannot allocate memory", "Memory allocation still failed")
_OF_THREADS = ("can't start new thread", "Resource temporarily unavailable")


def space_problems(cores: int, environment: Mapping[str, str]) -> list[str]:
    """A problem where this process may not have the address space that its libraries take."""
    allowed = _allowed()
    threads = environment.get("OPENBLAS_NUM_THREADS", "")
    needed = _LIBRARIES + _THREAD * min(int(threads) if threads.isdecimal() else cores, cores)
    if allowed is None or allowed >= needed:
        return []
    return [
        f"This process may have {allowed / MIB:,.0f} MiB of address space (ulimit -v); its libraries alone take up to "
        f"{needed / MIB:,.0f} MiB. Raise the limit, as by `ulimit -v unlimited`."
    ]


def out_of_resources(error: Exception) -> str | None:
    """The sentence on an error of a host without memory, threads, processes or descriptors left; None for others."""
    text = f"{type(error).__name__}: {error}"
    number = error.errno if isinstance(error, OSError) else None
    says = text if isinstance(error, (ImportError, LostProcessError)) else ""  # in others it may be the user's word
    if isinstance(error, MemoryError) or number == errno.ENOMEM or any(part in says for part in _OF_MEMORY):
        allowed = _allowed()
        limit = "" if allowed is None else f" This process may have {allowed / MIB:,.0f} MiB (ulimit -v): raise that."
        instead = "Or use fewer --workers, --records none, or fewer runs."
        return f"There is not enough memory ({_last_line(text)}).{limit} {instead}"
    if number in (errno.EMFILE, errno.ENFILE):
        allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        few = f"There are not enough file descriptors ({_last_line(text)})."
        return f"{few} This process may have {allowed:,} (ulimit -n): raise that."
    if _starts_none(error) or any(part in says for part in _OF_THREADS):
        return (
            f"The system starts no more threads or processes ({_last_line(text)}). {_space_for_threads()}Raise the "
            "limit (ulimit -u, or the container's of processes), or use fewer --workers."
        )
    return None


def _space_for_threads() -> str:
    """The advice on a limit of address space, if there is one: a thread without room for its stack is refused alike."""
    allowed = _allowed()
    if allowed is None:
        return ""
    return (
        f"This process may have {allowed / MIB:,.0f} MiB of address space (ulimit -v), and each thread takes some of "
        "it: raise that first. "
    )


def _starts_none(error: Exception) -> bool:
    """Tells whether a thread or process was refused; a full pipe has the same number, a file has its name."""
    if isinstance(error, OSError):
        full = hasattr(error, "characters_written")
        return error.errno == errno.EAGAIN and not full and error.filename is None and _is_of_starting(error)
    return type(error) is RuntimeError and str(error) == _OF_THREADS[0]


def _is_of_starting(error: OSError) -> bool:
    """Tells whether it was raised where a process is started: a pipe that is full, or empty, has the same number."""
    files = {frame.f_code.co_filename for frame, _ in traceback.walk_tb(error.__traceback__)}
    return not files or bool(files & {subprocess.__file__, popen_fork.__file__})


def _allowed() -> int | None:
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    return None if soft == resource.RLIM_INFINITY else soft


def _last_line(text: str) -> str:
    return excerpt(redact(text).strip().splitlines()[-1].strip(), 200).rstrip(": .")
