"""The shipped examples in ``factories/``: which there are, and one of them by its name.

Each is one file that needs nothing beside it, so that a copy of it works anywhere.
"""

from __future__ import annotations

import ast
import textwrap
from difflib import get_close_matches
from typing import TYPE_CHECKING, NamedTuple

from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.system.packaged import packaged
from inference_benchmarker.words.wording import INDENT

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from inference_benchmarker.engine.endpoint.settings import Setting

FACTORY_DESCRIPTION = """\
Lists the examples, or prints one for you to change into your own endpoint:

  benchmark factory demo/factories_demo > my_endpoint.py
  benchmark factory demo/factories_demo --help            list its constants, which --set changes
"""
_PREFIX = "factories_"
_WIDTH = 80
_MOST_NAMED = 4


class Example(NamedTuple):
    """One shipped file: its path below ``factories/`` without the ending, and its first line on itself."""

    name: str
    path: Path
    about: str

    @property
    def short_names(self) -> tuple[str, str, str]:
        """The names it may be called by where no other one is."""
        stem = self.path.stem
        return _short(self.name), stem, _short(stem)


def shipped(folder: Path | None = None) -> list[Example]:
    """The examples below a folder, by name; without one, those that came with this tool."""
    folder = packaged("factories") if folder is None else folder
    sources = {path: path.read_text(encoding="utf-8") for path in sorted(folder.rglob("*.py"))}
    return [
        Example(path.relative_to(folder).with_suffix("").as_posix(), path, _about(source))
        for path, source in sources.items()
        if "def payload_factory" in source or "def session_factory" in source
    ]


def find(name: str, examples: list[Example]) -> Example:
    """The example of a name, with or without its folder, its ending and ``factories_``."""
    wanted = name.removeprefix("./").removeprefix("factories/").removesuffix(".py")
    exact = [example for example in examples if example.name == wanted]
    found = exact or [example for example in examples if wanted in example.short_names]
    if len(found) > 1:
        raise BenchmarkError(f"There are several examples {name!r}.", f"Give one of {_listed(found)}.")
    if not found:
        raise BenchmarkError(f"There is no example {name!r}.", _nearest(wanted, examples))
    return found[0]


def listing(examples: list[Example]) -> str:
    """The name of each, and below it what it is: names are too long to stand beside that on a terminal."""
    lines = (line for each in examples for line in (INDENT + each.name, *_wrapped(each.about)))
    return "".join(f"{line}\n" for line in lines)


def settings_page(example: Example) -> str:
    """An example's text on itself, and its settings: the default of each, and what it means."""
    from inference_benchmarker.engine.endpoint.settings import settings_of

    settings = [setting for setting in settings_of(example.path).values() if setting.about]
    tree = ast.parse(example.path.read_text(encoding="utf-8"))
    docstring = ast.get_docstring(tree) or ""
    lines = [*_paragraphs(docstring), "settings (--set NAME=VALUE, or BENCHMARK_NAME in the environment):"]
    for each in settings:
        lines += [f"{INDENT}{each.name}{_default(each)}", *_wrapped(each.about)]
    if not settings:
        lines[-1] = "It has no settings: copy it, and change what you need."
    given = "".join(f"{flag} " for flag in (*_address(settings), *_endpoint_name(tree)))
    lines += ["", f"{INDENT}benchmark --factories-file {example.name} \\"]
    lines += [f"{2 * INDENT}{given}--client-rps 10 --obs-time 60"]
    lines += [f"{INDENT}benchmark factory {example.name} > my_endpoint.py"]
    return "".join(f"{line}\n" for line in lines)


def _address(settings: Sequence[Setting]) -> Iterator[str]:
    """The flag of the setting that is an address, with its default."""
    for each in settings:
        if str(each.default).startswith("http://"):
            yield f"--set {each.name}={each.default}"


def _endpoint_name(tree: ast.Module) -> Iterator[str]:
    """The flag of the name that an invoke_factory cannot do without."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name == "invoke_factory" and node.args.args:
            yield from [] if node.args.defaults else ["--endpoint-name NAME"]


def _paragraphs(docstring: str) -> Iterator[str]:
    for paragraph in docstring.split("\n\n"):
        yield from textwrap.wrap(paragraph, _WIDTH)
        yield ""


def _default(setting: Setting) -> str:
    """The default as ``--set`` would say it; that of a variable of the environment where it is taken from there."""
    if setting.default is None:
        return f" = ${setting.variable}" if setting.variable else " = (none)"
    if isinstance(setting.default, bool):
        return f" = {str(setting.default).lower()}"
    return f" = {setting.default}" if setting.default != "" else " = (empty)"


def _wrapped(about: str) -> list[str]:
    return textwrap.wrap(about, _WIDTH, initial_indent=2 * INDENT, subsequent_indent=2 * INDENT)


def _about(source: str) -> str:
    docstring = ast.get_docstring(ast.parse(source)) or ""
    return docstring.partition("\n")[0]


def _short(name: str) -> str:
    return name.replace(_PREFIX, "")  # as all have it, it would make all names alike


def _nearest(wanted: str, examples: list[Example]) -> str:
    known = {name: example for example in examples for name in map(_short, (example.path.stem, example.name))}
    parts = [example for example in examples if len(wanted) > 2 and _short(wanted) in _short(example.name)]
    near = parts or list({known[name].name: known[name] for name in get_close_matches(_short(wanted), known)}.values())
    if len(near) > _MOST_NAMED:
        some = ", ".join(example.name for example in near[:_MOST_NAMED])
        return f"{len(near)} have that in their names: {some}, and others; `benchmark factory` lists all."
    return f"Did you mean {_listed(near)}?" if near else "`benchmark factory` lists those there are."


def _listed(examples: list[Example]) -> str:
    return " or ".join(example.name for example in examples)
