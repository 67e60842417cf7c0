"""The source of a factories file: its cheap checks, its import with its settings, and the place where it went wrong.

The cheap checks need no import and run before any process starts.
"""

from __future__ import annotations

import ast
import os
import sys
import traceback
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from inference_benchmarker.engine.endpoint.packages import pip_line
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.records.error_key import class_name, error_text
from inference_benchmarker.system.given import read_source, resolved
from inference_benchmarker.system.packaged import shown_path
from inference_benchmarker.words.redact import excerpt

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from types import CodeType, ModuleType

SESSIONS, CANARIES = "session_factory", "canary_factory"
NO_PYTHON = (SyntaxError, ValueError, RecursionError, MemoryError)  # as of what is nested too deeply
_MAX_ERROR_LENGTH = 20_000
# What to try where an exception's own words do not say it, by its class.
DEFINE = "Define `def {}(...)` in it; see docs/reference/factories.md."
_HINTS = {
    "NoRegionError": "Set AWS_DEFAULT_REGION, for example to us-east-1.",
    "MemoryError": "Make fewer or smaller payloads, or give its process more memory (`ulimit -v` shows the limit).",
}


def check_source(path: Path, *, functions: Iterable[str] = ()) -> None:
    """The checks that need no import: the file can be read, is Python, and mentions what it must define.

    Of ``functions`` that are parted by a bar it mentions one.
    """
    try:
        source = read_source(path)  # Python itself reads what it says of its encoding
    except OSError as error:
        raise BenchmarkError(
            f"{path}: cannot be read ({error.strerror or error}).", "Give the path of a Python file."
        ) from None
    try:
        compile(source, str(path), "exec", dont_inherit=True)
    except NO_PYTHON as error:
        number = error.lineno if isinstance(error, SyntaxError) else None  # it may be unknown
        line = "" if number is None else f", line {number}"
        reason = error.msg if isinstance(error, SyntaxError) else str(error) or "it is nested too deeply"
        raise BenchmarkError(f"{path}{line}: not valid Python ({reason}).") from None
    for names in functions:
        first, *others = names.split("|")
        if not any(name.encode() in source for name in (first, *others)) and b"import *" not in source:
            raise BenchmarkError(f"{path}: has no {first}.", DEFINE.format(first))


def has_sessions(path: Path) -> bool:
    """Tells whether a file defines or imports ``session_factory`` by name at its top; of what is no Python, no."""
    return _defines(path, SESSIONS)


def has_canaries(path: Path) -> bool:
    """Tells the same of ``canary_factory``."""
    return _defines(path, CANARIES)


def _defines(path: Path, name: str) -> bool:
    try:
        body = ast.parse(read_source(path)).body
    except (OSError, *NO_PYTHON):
        return False
    return any(name in _names(statement) for statement in body)


def ignores_name(path: Path) -> bool:
    """Tells whether a file's ``invoke_factory`` never uses the endpoint's name, as far as its own text shows."""
    try:
        body = ast.parse(read_source(path)).body
    except (OSError, *NO_PYTHON):
        return False
    made = next((each for each in body if isinstance(each, ast.FunctionDef) and each.name == "invoke_factory"), None)
    if made is None or made.args.vararg or made.args.kwarg:
        return False
    taken = {each.arg for each in (*made.args.posonlyargs, *made.args.args)}
    used = {node.id for statement in made.body for node in ast.walk(statement) if isinstance(node, ast.Name)}
    return not used & {*taken, "locals"}


def refused_sessions(path: Path | None, command: str) -> list[str]:
    """The problem of a file with sessions for a command whose numbers are of single requests."""
    if path is None or not has_sessions(path):
        return []
    return [f"{path}: its arrivals are sessions, and {command} measures single requests: give it a payload_factory."]


def _names(statement: ast.stmt) -> set[str]:
    """The names that a statement defines."""
    match statement:
        case ast.FunctionDef(name=name):
            return {name}
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            return {alias.asname or alias.name for alias in names}
        case ast.Assign(targets=targets):
            return {target.id for target in targets if isinstance(target, ast.Name)}
    return set()


def source_problems(
    factories_file: Path | None, locust_file: Path | None, settings: Mapping[str, str] = MappingProxyType({})
) -> list[str]:
    """The problems that cheap checks find in the files of a plan, and in the settings that it gives the first one.

    A file that is not there is the plan's to tell.
    """
    problems = []
    files = ((factories_file, ("invoke_factory", "payload_factory|session_factory")), (locust_file, ()))
    for path, functions in files:
        if path is not None and os.path.isfile(path):  # noqa: PTH113 - a path too long is no file, not an error
            try:
                check_source(path, functions=functions)
            except BenchmarkError as error:
                problems.append(str(error))
    if settings and not problems and factories_file is not None and os.path.isfile(factories_file):  # noqa: PTH113
        from inference_benchmarker.engine.endpoint.settings import settings_problems

        problems += settings_problems(factories_file, settings)
    return problems


def import_file(path: Path, settings: Mapping[str, str] = MappingProxyType({})) -> ModuleType:
    """Import one file by its path, its constants set; modules beside it can be imported by it."""
    folder = str(resolved(path).parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    name = path.stem if path.stem.isidentifier() and path.stem not in sys.modules else f"endpoint_{path.stem}"
    spec = spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise BenchmarkError(f"{path}: is not a Python file (its name must end in .py).")
    module = module_from_spec(spec)
    sys.modules[name] = module
    code = _code(path, settings) if settings else None
    try:
        if code is None:
            spec.loader.exec_module(module)
        else:
            exec(code, module.__dict__)  # noqa: S102 - the user's file, as it is imported without settings
    except BaseException as error:
        raise describe_error(path, "importing it", error) from error
    return module


def _code(path: Path, settings: Mapping[str, str]) -> CodeType:
    from inference_benchmarker.engine.endpoint.settings import code_of

    check_source(path)
    return code_of(path, settings)


def describe_error(path: Path, doing: str, error: BaseException) -> BenchmarkError:
    """The error that the user's own code raised, with the line of their file it came from."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if resolved(Path(f.filename)) == resolved(path)]
    line = frames[-1].lineno if frames else getattr(error, "lineno", None)
    where = f"{shown_path(path)}, line {line}" if line else shown_path(path)
    name, text = class_name(type(error)), excerpt(error_text(error), _MAX_ERROR_LENGTH)
    return BenchmarkError(
        f"{where}: {doing} raised {name}: {text}".rstrip(":. \r\n") + ".", _HINTS.get(name) or pip_line(error)
    )


def place(path: Path, function: Any) -> str:
    """The file and line of a function or generator; it may have been imported from a module beside the file."""
    code = getattr(function, "__code__", getattr(function, "gi_code", None))
    if code is None:
        return str(path)
    home = Path(code.co_filename)
    return f"{path if resolved(home) == resolved(path) else home}, line {code.co_firstlineno}"
