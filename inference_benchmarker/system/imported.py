"""Finds the modules beside a Python file that it imports, without running any."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from inference_benchmarker.system.given import read_source

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def imported(path: Path) -> list[Path]:
    """The modules beside a Python file that it imports, and that those import, in the order of their paths."""
    folder = path.parent
    found: set[Path] = set()
    unread = [path]
    while unread:
        source = unread.pop()
        new = {each for name in _names(source, folder) for each in _modules(folder, name)} - found - {path}
        found |= new
        unread += new
    return sorted(found)


def _names(path: Path, folder: Path) -> Iterator[str]:
    """The dotted names that a file imports, as they are from the folder; [] of a file that is no Python."""
    try:
        tree = ast.parse(read_source(path))
    except (OSError, SyntaxError, ValueError):
        return
    package = path.parent.relative_to(folder).parts
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            start = package[: len(package) - node.level + 1] if node.level else ()
            module = ".".join((*start, *filter(None, [node.module])))
            yield from (f"{module}.{alias.name}" if module else alias.name for alias in node.names)


def _modules(folder: Path, name: str) -> Iterator[Path]:
    """The files beside that a dotted name leads to: each package on the way, and the module."""
    place = folder
    for part in name.split("."):
        place = place / part
        if (module := place.with_suffix(".py")).is_file():
            yield module
            return
        if (package := place / "__init__.py").is_file():
            yield package
        elif not place.is_dir():
            return
