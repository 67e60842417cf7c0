"""The settings of a factories file: constants of it that ``--set NAME=VALUE`` gives another value for a wave.

The file stays plain Python that works without this. An assignment at its top level to a name in capitals, of a value
that is written there, is a setting; the comment beside it, or else above it, says what it means::

    MODEL = "demo"  # a name that the server lists
    URL = os.environ.get("MY_URL", "http://127.0.0.1:8080")  # a setting, too: a text
"""

from __future__ import annotations

import ast
import io
import json
import re
import tokenize
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.system.given import read_source
from inference_benchmarker.system.packaged import shown_path
from inference_benchmarker.words.redact import quoted
from inference_benchmarker.words.suggest import question

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path
    from types import CodeType

_NAME = re.compile(r"[A-Z][A-Z0-9_]*")
_TRUTH = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}
_NUMBERS = (int, float)
_SEVERAL = (tuple, list, set, dict)


@dataclass(frozen=True, slots=True)
class Setting:
    """One of a file: its name, what it is without ``--set``, and what it means.

    ``variable``: of the environment, from which the file itself takes it.
    """

    name: str
    default: Any
    about: str = ""
    variable: str = ""

    def value(self, text: str) -> Any:
        """The value that a text means, of the default's type. Raises BenchmarkError where it is none."""
        kind = type(self.default)
        try:
            if kind is bool:
                return _TRUTH[text.strip().lower()]
            if kind in _NUMBERS:
                return kind(text.strip())
            return _several(kind, text) if kind in _SEVERAL else text
        except (ValueError, KeyError, SyntaxError, TypeError, RecursionError, MemoryError):
            expected = _EXPECTED.get(kind, f"something like {self.default!r}")
            raise BenchmarkError(f"--set {self.name} must be {expected}, not {quoted(text)}.") from None


_EXPECTED: dict[type, str] = {bool: "true or false", int: "a whole number", float: "a number"}


def settings_of(path: Path) -> dict[str, Setting]:
    """The settings of a file, by name, in its order; nothing of it is run. A file that is no Python has none."""
    try:
        source = read_source(path)
        tree, comments = ast.parse(source), _comments(source)
    except (OSError, SyntaxError, ValueError, RecursionError):  # which is reported elsewhere
        return {}
    return {setting.name: setting for node in tree.body for setting in _settings_at(node, comments)}


def shown(settings: Mapping[str, Setting]) -> list[str]:
    """The names of those whose meaning is documented; of all, where none is."""
    return [name for name, setting in settings.items() if setting.about] or list(settings)


def settings_problems(path: Path, given: Mapping[str, str]) -> list[str]:
    """The problems of the settings that are given for a file."""
    if not given:
        return []
    known = settings_of(path)
    problems = [_unknown(path, name, known) for name in given if name not in known]
    for name in given.keys() & known.keys():
        try:
            known[name].value(given[name])
        except BenchmarkError as error:
            problems.append(str(error))
    return problems


def code_of(path: Path, given: Mapping[str, str]) -> CodeType:
    """The file's code with the given settings in place of its own. Raises BenchmarkError for one that it has not."""
    known = settings_of(path)
    tree = ast.parse(read_source(path), str(path))
    for name, text in given.items():
        if name not in known:
            raise BenchmarkError(_unknown(path, name, known))
        value = ast.parse(repr(known[name].value(text)), mode="eval").body
        for node in tree.body:
            if isinstance(node, (ast.Assign, ast.AnnAssign)) and _name(node) == name and node.value is not None:
                for part in ast.walk(value):
                    ast.copy_location(part, node.value)
                node.value = value
    return compile(tree, str(path), "exec", dont_inherit=True)


def _unknown(path: Path, name: str, known: Mapping[str, Setting]) -> str:
    if not known:
        return (
            f"--set {name}: {shown_path(path)} has no settings. A setting is a constant in capitals at its top level, "
            f'as in {name if _NAME.fullmatch(name) else "MODEL"} = "a value".'
        )
    near = question(get_close_matches(name.upper(), known, n=1))
    return f"--set {name}: {shown_path(path)} has no such setting; it has {', '.join(shown(known))}.{near}"


def _several(kind: type, text: str) -> Any:
    """A value of several: as JSON or Python writes it, or texts with commas between them."""
    value = _literal(text)
    if kind is dict:
        if not isinstance(value, dict):
            raise ValueError(text)
        return value
    if value is None or isinstance(value, dict):
        value = [part.strip() for part in text.split(",")]
    return kind(value if isinstance(value, (list, tuple, set)) else [value])


def _literal(text: str) -> Any:
    for read in (json.loads, ast.literal_eval):
        try:
            return read(text)
        except (ValueError, SyntaxError, RecursionError, MemoryError):  # of ast, which has a stack of its own
            continue
    return None


def _settings_at(node: ast.stmt, comments: Mapping[int, tuple[str, bool]]) -> Iterator[Setting]:
    if not isinstance(node, (ast.Assign, ast.AnnAssign)) or not (name := _name(node)):
        return
    try:
        default, variable = _default(node.value)
    except ValueError:
        return
    yield Setting(name, default, _about(node, comments), variable)


def _name(node: ast.Assign | ast.AnnAssign) -> str:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    named = [target.id for target in targets if isinstance(target, ast.Name) and _NAME.fullmatch(target.id)]
    return named[0] if len(named) == len(targets) == 1 else ""


def _default(value: ast.expr | None) -> tuple[Any, str]:
    """The value that stands there, and the variable of the environment that it is taken from. ValueError: neither."""
    if value is None:
        raise ValueError
    if isinstance(value, ast.Call) and ast.unparse(value.func) in ("os.environ.get", "os.getenv") and value.args:
        variable, *default = map(ast.literal_eval, value.args)
        return (default[0] if default else None), variable
    literal = ast.literal_eval(value)
    if not isinstance(literal, (str, bool, *_NUMBERS, *_SEVERAL, type(None))) or "\n" in str(literal):
        raise ValueError  # a text of several lines is part of the code
    return literal, ""


def _about(node: ast.stmt, comments: Mapping[int, tuple[str, bool]]) -> str:
    """The comment on the statement's last or first line, else the lines of comment just above it."""
    for line in (node.end_lineno or node.lineno, node.lineno):
        text, is_alone = comments.get(line, ("", True))
        if not is_alone:
            return text
    return " ".join(reversed(list(_above(node.lineno, comments))))


def _above(line: int, comments: Mapping[int, tuple[str, bool]]) -> Iterable[str]:
    while (line := line - 1) in comments and comments[line][1]:
        yield comments[line][0]


def _comments(source: bytes) -> dict[int, tuple[str, bool]]:
    """The comments by line, and whether each stands alone there."""
    found = tokenize.tokenize(io.BytesIO(source).readline)
    return {
        token.start[0]: (token.string.lstrip("# ").rstrip(), not token.line[: token.start[1]].strip())
        for token in found
        if token.type == tokenize.COMMENT
    }
