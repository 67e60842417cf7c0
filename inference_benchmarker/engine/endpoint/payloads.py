"""The payloads of a factories file: those made before, or the function that builds each; weights and labels."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from itertools import accumulate
from math import inf
from typing import Any

from inference_benchmarker.errors import BenchmarkError

_KEYS = {"pre_computed", "input", "weights", "label"}
_SHAPE = 'expected {"pre_computed": True, "input": [payload, ...]} or {"pre_computed": False, "input": build}'


def inputs_of(where: str, made: Any, *, with_rows: bool) -> tuple[Sequence[Any] | None, Callable[..., Any] | None]:
    """The payloads that payload_factory made before, or the function that builds each; BenchmarkError for neither."""
    if not isinstance(made, dict) or "input" not in made or "pre_computed" not in made:
        raise BenchmarkError(f"{where}: payload_factory returned {kind(made)}; {_SHAPE}.")
    if unknown := sorted(str(key) for key in set(made) - _KEYS):
        raise BenchmarkError(
            f"{where}: payload_factory returned the unknown key {', '.join(unknown)}; "
            f"known are {', '.join(sorted(_KEYS))}."
        )
    if type(made["pre_computed"]) is not bool:
        raise BenchmarkError(f'{where}: "pre_computed" must be True or False, not {made["pre_computed"]!r}.')
    value = made["input"]
    if not made["pre_computed"]:
        if not callable(value):
            raise BenchmarkError(f'{where}: with "pre_computed": False, "input" must be a function, not {kind(value)}.')
        _check_build(where, value, with_rows=with_rows)
        return None, value
    if isinstance(value, (str, bytes, bytearray, memoryview, dict)) or not isinstance(value, Sequence):
        raise BenchmarkError(f'{where}: with "pre_computed": True, "input" must be a list, not {kind(value)}.')
    if not value:
        raise BenchmarkError(f'{where}: "input" is an empty list; expected at least one payload.')
    return value, None


def _check_build(where: str, build: Any, *, with_rows: bool) -> None:
    takes_row = accepts(build, {})
    if is_async(build) or not (takes_row or accepts(build)):
        raise BenchmarkError(f'{where}: with "pre_computed": False, "input" must be a plain function build().')
    if not with_rows and not accepts(build):
        raise BenchmarkError(
            f"{where}: build takes the row of a recording, and no recording is replayed.",
            "Give --replay FILE, or make the row optional: def build(row=None).",
        )


def weights_of(where: str, made: dict[str, Any], payloads: Sequence[Any] | None) -> tuple[float, ...] | None:
    """The cumulated weights of the payloads; None where all weigh the same."""
    weights = made.get("weights")
    if weights is None:
        return None
    if payloads is None:
        raise BenchmarkError(f'{where}: "weights" needs "pre_computed": True.')
    if not isinstance(weights, Sequence) or len(weights) != len(payloads):
        count = len(weights) if isinstance(weights, Sequence) else kind(weights)
        raise BenchmarkError(f'{where}: "weights" must have one number per payload ({len(payloads)}), not {count}.')
    numbers = [_weight(weight) for weight in weights]
    if not all(number >= 0 for number in numbers) or not 0 < sum(numbers) < inf:
        raise BenchmarkError(f'{where}: "weights" must be numbers of at least 0, and not all 0.')
    return tuple(accumulate(numbers))


def _weight(weight: Any) -> float:
    try:
        return float(weight) if isinstance(weight, (int, float)) else -1.0
    except OverflowError:
        return inf


def label_of(where: str, made: dict[str, Any]) -> Callable[[Any], str] | None:
    """The function that names the label of a payload; None where there is none."""
    label = made.get("label")
    if label is not None and not callable(label):
        raise BenchmarkError(f'{where}: "label" must be a function label(payload) -> str, not {kind(label)}.')
    if label is not None and (is_async(label) or not accepts(label, None)):
        raise BenchmarkError(f'{where}: "label" must be a plain function that takes one argument, the payload.')
    return label


def parameters_of(function: Callable[..., Any]) -> list[inspect.Parameter] | None:
    """The parameters of a function; None where its signature cannot be known."""
    try:
        return list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return None


def requires_argument(function: Callable[..., Any]) -> bool:
    """Tells whether a function cannot be called without an argument."""
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = parameters_of(function) or []
    return any(p.kind in positional and p.default is p.empty for p in parameters)


def is_async(function: Callable[..., Any]) -> bool:
    """Tells whether calling it gives a coroutine or an asynchronous generator; an instance's ``__call__`` counts."""
    call = getattr(function, "__call__", None)  # noqa: B004 - what it is matters, not whether it is there
    return any(inspect.iscoroutinefunction(f) or inspect.isasyncgenfunction(f) for f in (function, call))


def accepts(function: Callable[..., Any], *arguments: Any, **named: Any) -> bool:
    """Tells whether a function can be called with these arguments."""
    try:
        inspect.signature(function).bind(*arguments, **named)
    except TypeError:
        return parameters_of(function) is None
    except ValueError:
        return True
    return True


def kind(value: Any) -> str:
    """The kind of a value in words: of a dict its keys, of all else its type."""
    if value is None:
        return "None"
    if isinstance(value, dict):
        return "a dict with the keys " + (", ".join(map(repr, value)) or "none")
    name = type(value).__name__
    return f"an {name}" if name[0] in "aeiouAEIOU" else f"a {name}"
