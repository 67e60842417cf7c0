"""Temporary folders that go with the process that made them, however it ends."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

# It reads until this process is gone. What still writes into the folder then ends soon after.
_KEEPER = 'cat >/dev/null; for i in 1 2 3 4 5 6 7 8 9 10; do rm -rf -- "$1"; [ -e "$1" ] || exit 0; sleep 1; done'


@contextmanager
def scratch_folder(prefix: str, within: str | None = None) -> Iterator[Path]:
    """A folder for this block alone, in the system's temporary one or ``within`` another.

    A process beside this one removes it even after a ``kill -9``.
    """
    folder = tempfile.mkdtemp(prefix=prefix, dir=within)
    keeper = subprocess.Popen(
        ["/bin/sh", "-c", _KEEPER, "sh", folder],
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
