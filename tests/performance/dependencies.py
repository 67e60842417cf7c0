"""The cost of each dependency: its disk, with what nothing else brings, and the time and memory of its import.

``python -m tests.performance.dependencies [--environment VENV]``: without one it is made, as a user's would be.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import Distribution, distributions
from pathlib import Path
from statistics import median

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.performance.figures import machine
from tests.performance.measure import REPOSITORY

PROJECT = "inference-benchmarker"
REPEATS = 7
EXTRAS = {"grpc": "grpcio", "otlp": "opentelemetry-sdk"}  # those for users, and what is imported
# Where a module has another name than its package.
MODULES = {"pyzmq": "zmq", "grpcio": "grpc", "opentelemetry-sdk": "opentelemetry.sdk.metrics"}
# CPU time, which a busy machine does not lengthen much; the memory is that of the pages in use, in kB.
_IMPORT = """
import sys, time
def used():
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmRSS:"))
before, start = used(), time.process_time()
__import__(sys.argv[1])
print(time.process_time() - start, 1000 * (used() - before))
"""


@dataclass(frozen=True)
class Environment:
    """A virtual environment that holds the project and nothing beside it."""

    folder: Path

    @cached_property
    def packages(self) -> dict[str, Distribution]:
        """Everything that is installed, by name."""
        sites = [str(site) for site in self.folder.glob("lib/python3*/site-packages")]
        return {canonicalize_name(each.metadata["Name"]): each for each in distributions(path=sites)}

    def needed_by(self, name: str, extra: str = "") -> list[str]:
        """The packages that one needs itself, or for an extra of it, as far as they are installed."""
        asked = [Requirement(text) for text in self.packages[name].requires or ()]
        met = [each for each in asked if each.marker is None or each.marker.evaluate({"extra": extra})]
        names = [canonicalize_name(each.name) for each in met]
        without = self.needed_by(name) if extra else []
        return [each for each in names if each in self.packages and each not in without]

    def brought_by(self, name: str) -> set[str]:
        """A package with all that it needs, and what those need."""
        found, left = set(), {name}
        while left:
            one = left.pop()
            found.add(one)
            left |= set(self.needed_by(one)) - found
        return found

    def only_of(self, name: str) -> set[str]:
        """The packages that would go with a dependency, as no other brings them."""
        return self.brought_by(name) - self._brought_by_all([each for each in self.needed_by(PROJECT) if each != name])

    def added_by(self, extra: str) -> set[str]:
        """The packages that come with an extra."""
        return self._brought_by_all(self.needed_by(PROJECT, extra)) - self.brought_by(PROJECT)

    def _brought_by_all(self, names: list[str]) -> set[str]:
        return {each for name in names for each in self.brought_by(name)}

    def disk_bytes(self, names: set[str]) -> int:
        """The files of packages, as they were installed: with what was compiled."""
        files = [
            each.locate_file(file) for name in names for each in [self.packages[name]] for file in each.files or ()
        ]
        return sum(Path(str(file)).stat().st_size for file in files if Path(str(file)).is_file())

    def import_cost(self, name: str) -> tuple[float, float]:
        """The median CPU time of its import in a new process, in seconds, and the memory that it takes, in bytes."""
        command = [str(self.folder / "bin" / "python"), "-c", _IMPORT, MODULES.get(name, name.replace("-", "_"))]
        reported = [
            tuple(map(float, subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()))
            for _ in range(REPEATS)
        ]
        seconds, grown = zip(*reported, strict=True)
        return median(seconds), median(grown)


def make_environment(folder: Path) -> Environment:
    """An environment as ``pip install`` makes it, with the extras."""
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    subprocess.run([folder / "bin" / "pip", "install", "--quiet", f"{REPOSITORY}[{','.join(EXTRAS)}]"], check=True)
    return Environment(folder)


def rows(environment: Environment) -> list[list[str]]:
    """A row for each direct dependency, that which brings most first, and one for each extra."""
    alone = {name: environment.only_of(name) for name in environment.needed_by(PROJECT)}
    heaviest = sorted(alone, key=lambda name: environment.disk_bytes(alone[name] or {name}), reverse=True)
    found = [_row(environment, name, name, alone[name]) for name in heaviest]
    found += [_row(environment, f"`[{extra}]`", name, environment.added_by(extra)) for extra, name in EXTRAS.items()]
    return found


def _row(environment: Environment, called: str, name: str, brought: set[str]) -> list[str]:
    seconds, grown = environment.import_cost(name)
    disk, whole = (environment.disk_bytes(names) / 1e6 for names in ({name}, brought))
    beside = ", ".join(sorted(brought - {name})) if brought else "comes with others anyway"
    return [called, f"{disk:.1f} MB", f"{whole:.1f} MB", beside, f"{1000 * seconds:.0f} ms", f"{grown / 1e6:.0f} MB"]


def report(environment: Environment) -> str:
    """The table, as Markdown."""
    plain = environment.brought_by(PROJECT)
    header = ["dependency", "disk", "with what only it brings", "which is", "import, CPU", "memory of it"]
    table = [header, ["---", "---:", "---:", "---", "---:", "---:"], *rows(environment)]
    total = f"{len(plain)} packages, {environment.disk_bytes(plain) / 1e6:.0f} MB, without extras"
    return "\n".join([total, "", *(f"| {' | '.join(row)} |" for row in table)])


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.performance.dependencies", description=__doc__)
    parser.add_argument("--environment", type=Path, help="a virtual environment with the project alone")
    given = parser.parse_args().environment
    print(machine(), end="\n\n", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        print(report(Environment(given) if given else make_environment(Path(folder))))


if __name__ == "__main__":
    main()
