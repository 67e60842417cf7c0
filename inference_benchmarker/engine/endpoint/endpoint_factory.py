"""Runs the third function of a factories file: it makes an endpoint, yields its name or URL, and removes it."""

from __future__ import annotations

import inspect
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from inference_benchmarker.engine.endpoint.payloads import kind
from inference_benchmarker.engine.endpoint.source import describe_error, import_file, place
from inference_benchmarker.errors import BenchmarkError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping
    from pathlib import Path

NAME = "endpoint_factory"
_YIELD = "It must create the endpoint, `yield` its name or URL once, and then remove it."


def begin(
    path: Path, arguments: Mapping[str, Any], settings: Mapping[str, str] = MappingProxyType({})
) -> Generator[Any, None, None]:
    """The file's generator with these arguments, of which nothing has run yet. BenchmarkError for what is none.

    ``settings``: texts in place of constants of the file.
    """
    function = _function(path, settings)
    try:
        inspect.signature(function).bind(**arguments)
    except TypeError as error:
        takes = f"it is {NAME}{inspect.signature(function)}"
        raise BenchmarkError(
            f"{place(path, function)}: {NAME} cannot be called with these arguments ({error}); {takes}."
        ) from None
    generator: Generator[Any, None, None] = function(**arguments)
    return generator


def make(path: Path, generator: Generator[Any, None, None]) -> str:
    """Run it up to its ``yield``, and give the endpoint's name or URL.

    BenchmarkError for what it raises but KeyboardInterrupt, and where it yields no text; it is still to be ``removed``.
    """
    where = place(path, generator)
    try:
        name = next(generator)
    except StopIteration:
        raise BenchmarkError(f"{where}: {NAME} yielded nothing; expected the endpoint's name or URL.", _YIELD) from None
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise describe_error(path, f"{NAME}()", error) from error
    if not isinstance(name, str) or not name:
        text = "an empty string" if name == "" else kind(name)
        raise BenchmarkError(f"{where}: {NAME} yielded {text}; expected a string, the endpoint's name or URL.", _YIELD)
    return name


def remove(path: Path, generator: Generator[Any, None, None]) -> None:
    """Run it to its end; one that never began, or has ended, does nothing. BenchmarkError for what it raises."""
    if inspect.getgeneratorstate(generator) != inspect.GEN_SUSPENDED:
        generator.close()
        return
    try:
        next(generator)
    except StopIteration:
        return
    except BaseException as error:
        raise describe_error(path, f"the end of {NAME}()", error) from error
    try:
        generator.close()
    except BaseException as error:
        raise describe_error(path, f"the end of {NAME}()", error) from error
    raise BenchmarkError(f"{place(path, generator)}: {NAME} yielded a second time.", _YIELD)


def _function(path: Path, settings: Mapping[str, str]) -> Callable[..., Any]:
    found = getattr(import_file(path, settings), NAME, None)
    if found is None:
        raise BenchmarkError(f"{path}: has no {NAME}.", f"Define `def {NAME}(...)` in it. {_YIELD}")
    if not inspect.isgeneratorfunction(found):
        text = "a function without `yield`" if inspect.isroutine(found) else kind(found)
        raise BenchmarkError(f"{place(path, found)}: {NAME} is {text}; expected a generator function.", _YIELD)
    function: Callable[..., Any] = found
    return function
