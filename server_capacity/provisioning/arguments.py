"""The arguments of the factories in a factories file, as they stand in its source, and values of them from texts."""

from __future__ import annotations

import ast
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from inference_benchmarker.engine.endpoint.endpoint_factory import NAME
from inference_benchmarker.engine.endpoint.source import check_source
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.system.given import read_source
from inference_benchmarker.words.suggest import meant, question

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

_TRUTH = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


@dataclass(frozen=True, slots=True)
class Parameter:
    """One that a factory takes: its ``annotation`` as it is written, and its ``default``, where that is a literal.

    ``required``: it has no default, literal or not.
    """

    name: str
    annotation: str | None = None
    default: Any = None
    required: bool = False


@dataclass(frozen=True, slots=True)
class Signature:
    """The parameters of a factory, in their order; ``takes_any``: others too, by ``**``."""

    parameters: tuple[Parameter, ...]
    takes_any: bool = False

    def value(self, name: str, text: str, function: str = NAME) -> Any:
        """A parameter's value of a text. BenchmarkError where there is none of that name, or the text is no value."""
        found = {each.name: each for each in self.parameters}
        if name not in found and not self.takes_any:
            names = ", ".join(found) or "none"
            raise BenchmarkError(
                f"{function} takes no argument {name!r}; it takes {names}.{question(meant(name, found))}"
            )
        try:
            return value_of(found[name].annotation if name in found else None, text)
        except ValueError as error:
            raise BenchmarkError(f"{function}'s {name}: {error}.") from None


@dataclass(frozen=True, slots=True)
class FactoryArguments:
    """The signatures of a file's ``endpoint_factory`` and ``payload_factory``.

    None: the file has no such function, or imports it from a module that does not lie beside it.
    """

    endpoint: Signature | None
    payload: Signature | None


def factory_arguments(factories_file: Path) -> FactoryArguments:
    """The signatures in the source; nothing of the user's is run. BenchmarkError for what is no Python."""
    endpoint, payload = (_signature(factories_file, name) for name in (NAME, "payload_factory"))
    return FactoryArguments(endpoint, payload)


def value_of(annotation: str | None, text: str) -> Any:
    """A value of a text: by the annotation where that is int, float, str or bool, else as JSON, else the text.

    ``None`` among the annotation's alternatives is given as ``none``. ValueError where the annotation cannot be met.
    """
    kinds = [kind.strip() for kind in (annotation or "").removeprefix("Optional[").rstrip("]").split("|")]
    optional = "None" in kinds or (annotation or "").startswith("Optional[")
    if optional and text.lower() in ("none", "null"):
        return None
    errors = []
    for kind in kinds:
        if kind in _KINDS:
            try:
                return _KINDS[kind](text)
            except ValueError:
                errors.append(kind)
    if errors:
        raise ValueError(f"expected {' or '.join(errors)}, not {text!r}")
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _truth(text: str) -> bool:
    if text.lower() not in _TRUTH:
        raise ValueError(text)
    return _TRUTH[text.lower()]


_KINDS: dict[str, Callable[[str], Any]] = {"int": int, "float": float, "bool": _truth, "str": str}


def _signature(path: Path, name: str, depth: int = 8) -> Signature | None:
    """That of a function in a file, or in the modules beside it that it imports it from."""
    check_source(path)
    statements = list(_statements(ast.parse(read_source(path))))
    found = [node for node in statements if isinstance(node, ast.FunctionDef) and node.name == name]
    if found:
        return _of(found[-1].args)
    for module, there in filter(None, (_imported(node, name) for node in statements)):
        beside = path.parent / f"{module.replace('.', '/')}.py"
        if depth and beside.is_file() and (signature := _signature(beside, there, depth - 1)):
            return signature
    return None


def _statements(tree: ast.Module) -> Iterator[ast.stmt]:
    """Those at the module's top, and in an ``if``, ``try`` or ``with`` there."""
    waiting = list(tree.body)
    while waiting:
        statement = waiting.pop(0)
        yield statement
        if isinstance(statement, ast.If | ast.Try | ast.With):
            waiting += statement.body


def _imported(statement: ast.stmt, name: str) -> tuple[str, str] | None:
    """The module that a name comes from, and its name there."""
    if isinstance(statement, ast.ImportFrom) and statement.module:
        for alias in statement.names:
            if (alias.asname or alias.name) in (name, "*"):
                return statement.module, name if alias.name == "*" else alias.name
    return None


def _of(arguments: ast.arguments) -> Signature:
    by_place = [*arguments.posonlyargs, *arguments.args]
    defaults = [None] * (len(by_place) - len(arguments.defaults)) + list(arguments.defaults)
    pairs = [*zip(by_place, defaults, strict=True), *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)]
    return Signature(tuple(_parameter(*pair) for pair in pairs), arguments.kwarg is not None)


def _parameter(argument: ast.arg, default: ast.expr | None) -> Parameter:
    annotation = None if argument.annotation is None else ast.unparse(argument.annotation).strip("'\"")
    try:
        value = None if default is None else ast.literal_eval(default)
    except ValueError:
        value = None
    return Parameter(argument.arg, annotation, value, default is None)
