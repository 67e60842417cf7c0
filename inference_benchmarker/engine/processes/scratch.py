"""Temporary folders that go with the process that made them, however it ends."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from inference_benchmarker.engine.processes.children import child_environment

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

# It reads until this process is gone. Where the folder is still there then, this process was killed, and the rest of
# the keeper's arguments is what to run. What still writes into the folder ends soon after.
_KEEPER = """
cat >/dev/null; folder=$1; shift
[ $# -gt 0 ] && [ -e "$folder" ] && "$@"
for i in 1 2 3 4 5 6 7 8 9 10; do rm -rf -- "$folder"; [ -e "$folder" ] || exit 0; sleep 1; done
"""

# Room is left for our names, and for what ssh adds to that of its control socket: such paths end at 104 or 108 bytes.
_PLACE_OF_SOCKETS = re.compile(r"[\w./+-]{1,56}", re.ASCII)


def place_of_sockets() -> str | None:
    """The folder in which one of Unix sockets can be made; None for the system's temporary one.

    That one is not for them where its path is too long, or has a sign that ssh reads in a way of its own.
    """
    return None if _PLACE_OF_SOCKETS.fullmatch(tempfile.gettempdir()) else "/tmp"  # noqa: S108 - a folder is made in it


@contextmanager
def scratch_folder(prefix: str, within: str | None = None, if_killed: Sequence[str] = ()) -> Iterator[Path]:
    """A folder for this block alone, in the system's temporary one or ``within`` another.

    A process beside this one removes it even after a ``kill -9``; it runs the line ``if_killed`` before.
    """
    folder = tempfile.mkdtemp(prefix=prefix, dir=within)
    keeper = subprocess.Popen(
        ["/bin/sh", "-c", _KEEPER, "sh", folder, *if_killed],
        env=child_environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    assert keeper.stdin is not None
    try:
        yield Path(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        with suppress(OSError):
            keeper.stdin.close()
        keeper.wait()
