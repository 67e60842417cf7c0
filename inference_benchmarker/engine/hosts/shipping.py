"""The files and variables that the workers on another host need: they travel on the agent's pipe and go with it."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from inference_benchmarker.engine.hosts.protocol import FILES
from inference_benchmarker.errors import refuse
from inference_benchmarker.system.files import is_file
from inference_benchmarker.system.imported import imported
from inference_benchmarker.words.redact import ADDRESSES, ASKED_FOR, HEADERS
from inference_benchmarker.words.secret_values import asked_for

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from inference_benchmarker.plan.plan import WavePlan

_NO_FILE = re.compile(r"FileNotFoundError: \[Errno 2\] [^:]*: '([^']+)'")


@dataclass(frozen=True, slots=True)
class Cargo:
    """Everything that is sent to a host before its workers start.

    ``environment``: variables by name. ``files``: the place of each in the agent's folder, and where it is here.
    ``places``: of the plan's own files below ``FILES`` there, by the plan's field. ``base``: the folder here that
    ``FILES`` stands for. ``asked``: variables that the Python files read and this environment has, but for those sent.
    """

    environment: Mapping[str, str] = field(repr=False)
    files: tuple[tuple[str, Path], ...]
    places: Mapping[str, str]
    base: Path
    asked: tuple[str, ...] = ()

    def lacking_file(self, text: str) -> str:
        """The hint, after a blank, where an error from there is of a file that is here and was not sent."""
        for name in _NO_FILE.findall(text):
            path = Path(os.path.normpath(name))
            is_below = not path.is_absolute() and ".." not in path.parts
            if is_below and is_file(self.base / path) and f"{FILES}/{path}" not in dict(self.files):
                return f" It is here, and was not sent: give --with-file {path}."
        return ""

    def lacking(self, there: Collection[str]) -> str | None:
        """The sentence, without its end, on variables that nobody has there; None where there are all."""
        missing = [name for name in self.asked if name not in there]
        if not missing:
            return None
        flags = " ".join(f"--pass-env {name}" for name in missing)
        return f"it lacks {', '.join(missing)}, which the factories file reads and this environment has: give {flags}"


def cargo_of(plan: WavePlan) -> Cargo:
    """Everything that the workers of a plan need elsewhere. BenchmarkError names every variable that is not there."""
    here = Path.cwd()
    refuse(_variable_problems(plan.hosts.pass_env))
    main = plan.factories_file or plan.locust_file
    base = here if main is None or main.is_relative_to(here) else main.parent
    files: dict[str, Path] = {}
    places = {}
    for key in ("factories_file", "locust_file"):
        if (path := getattr(plan, key)) is not None:
            places[key] = str(path.relative_to(base))
            files |= {str(each.relative_to(base)): each for each in (path, *imported(path))}
    data = {os.path.normpath(path): path for path in plan.hosts.with_files}
    refuse(_same_place_problems(files, data))
    files |= data
    names = (*plan.hosts.pass_env, ADDRESSES, ASKED_FOR, HEADERS)
    environment = {name: os.environ[name] for name in names if name in os.environ}
    sources = [path.read_text(errors="replace") for path in files.values() if path.suffix == ".py"]
    return Cargo(
        environment=environment,
        asked=tuple(
            name for name in asked_for("\n".join(sources), os.environ).split(",") if name not in {*environment, ""}
        ),
        files=tuple((f"{FILES}/{place}", path) for place, path in files.items()),
        places=places,
        base=base,
    )


def _same_place_problems(files: Mapping[str, Path], data: Mapping[str, Path]) -> list[str]:
    """A problem for each data file that would lie there where another file of this wave does."""
    return [
        f"--with-file {path}: {files[place]} gets the same place on each host, and is another file: rename one of them."
        for place, path in data.items()
        if place in files and not path.samefile(files[place])
    ]


def _variable_problems(names: Iterable[str]) -> list[str]:
    return [f"--pass-env {name}: there is no such variable here." for name in names if name not in os.environ]
