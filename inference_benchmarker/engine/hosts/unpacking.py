"""Makes an environment of what comes on standard input: sent as text to a host that has nothing but Python.

``FOLDER`` (argument 1) is made anew from a tar of wheels and packages, and takes the place of one that is there only
once it works. A wheel is a zip file whose content belongs into site-packages (PEP 427); scripts are not needed. The
last line of standard output is MARKER (argument 2) and a line of JSON: its size in bytes, or why there is none.
"""

import contextlib
import fcntl
import json
import os
import pathlib
import platform
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from collections.abc import Iterator

_LIBRARIES = (".data/purelib/", ".data/platlib/")


def _unpack(wheel: pathlib.Path, site: pathlib.Path) -> None:
    """Put a wheel's modules into site-packages; no name in it leads out of it."""
    with zipfile.ZipFile(wheel) as archive:
        for info in archive.infolist():
            name = info.filename
            for part in _LIBRARIES:
                name = name.partition(part)[2] if part in name else name
            target = (site / name).resolve()
            if info.is_dir() or ".data/" in name:
                continue
            if not target.is_relative_to(site.resolve()):
                raise ValueError(f"{wheel.name} has a file at {name}")
            target.parent.mkdir(parents=True, exist_ok=True)
            with archive.open(info) as source, target.open("wb") as file:
                shutil.copyfileobj(source, file)


@contextlib.contextmanager
def _alone(folder: pathlib.Path) -> Iterator[None]:
    """While nobody else makes an environment in this folder: two at a time would remove each other's files."""
    folder.mkdir(parents=True, exist_ok=True)
    held = os.open(folder, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):  # a file system that knows no locks
            fcntl.flock(held, fcntl.LOCK_EX)
        yield
    finally:
        os.close(held)


def _made(folder: pathlib.Path) -> int:
    """Make the environment in a new folder; its size in bytes."""
    new = folder.with_name(folder.name + ".new")
    with _alone(folder.parent):
        shutil.rmtree(new, ignore_errors=True)
        try:
            size = _filled(new)
            shutil.rmtree(folder, ignore_errors=True)
            new.rename(folder)
        finally:
            shutil.rmtree(new, ignore_errors=True)
    return size


def _filled(new: pathlib.Path) -> int:
    """Make a folder an environment in which a worker can begin; its size in bytes."""
    new.mkdir(mode=0o700)
    with tarfile.open(fileobj=sys.stdin.buffer, mode="r|") as sent:
        for member in sent:  # which the command itself has packed; Python 3.11.2 knows no filter
            sent.extract(member, new / "sent")
    venv.create(new, symlinks=True)
    (site,) = new.glob("lib/python*/site-packages")
    for wheel in sorted((new / "sent" / "wheels").glob("*.whl")):
        _unpack(wheel, site)
    for package in (new / "sent" / "packages").iterdir():
        shutil.move(package, site / package.name)
    shutil.rmtree(new / "sent")
    (new / "machine").write_text(platform.machine())  # as ``ssh.MACHINE`` says
    check = [str(new / "bin" / "python"), "-P", "-c", "import inference_benchmarker.engine.worker.__main__"]
    done = subprocess.run(check, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ValueError("a worker cannot begin there: " + (done.stderr.strip().splitlines() or ["no words"])[-1])
    return sum(path.lstat().st_size for path in new.rglob("*"))


def main() -> None:
    """Make it, and say what came of it."""
    folder, marker = pathlib.Path(sys.argv[1]).expanduser(), sys.argv[2].replace("-", "")
    try:
        fields: dict[str, int | str] = {"bytes": _made(folder)}
    except (OSError, ValueError, tarfile.TarError, zipfile.BadZipFile) as error:
        while sys.stdin.buffer.read(1 << 20):  # or ssh would say that the pipe is broken, and nothing else
            pass
        fields = {"failed": str(error)}
    sys.stdout.write(f"\n{marker}{json.dumps(fields)}\n")


if __name__ == "__main__":
    main()
