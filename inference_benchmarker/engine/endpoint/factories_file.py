"""Loads a factories file: the two plain functions in which a user describes an endpoint.

Every way such a file can be wrong becomes one BenchmarkError that names the file, the line where there is
one, and what was expected. The checks here run in each worker before any load is sent.
"""

from __future__ import annotations

import inspect
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from math import inf
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol

from inference_benchmarker.engine.endpoint.source import DEFINE, SESSIONS, describe_error, import_file, place
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.plan.numbers import uniform
from inference_benchmarker.system.packaged import shown_path

if TYPE_CHECKING:
    from pathlib import Path
    from types import ModuleType

CANARIES = "canary_factory"
_KEYS = {"pre_computed", "input", "weights", "label"}
_SHAPE = 'expected {"pre_computed": True, "input": [payload, ...]} or {"pre_computed": False, "input": build}'


class Invoke(Protocol):
    """Sends one request: returns when it is done, yields tokens as they come, or raises."""

    def __call__(self, payload: Any, /) -> Any:
        """Send ``payload``."""


class InvokeFactory(Protocol):
    """Called once in each worker process; returns the ``invoke`` that the worker's requests share."""

    def __call__(self, endpoint_name: str | None = None, /) -> Invoke:
        """Make clients, pools and sessions, and return ``invoke``."""


class PayloadFactory(Protocol):
    """Called once in each worker process; returns the payloads, ready made or to be built for each request."""

    def __call__(self, **arguments: Any) -> dict[str, Any]:
        """Return ``{"pre_computed": True, "input": [...]}`` or ``{"pre_computed": False, "input": build}``."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A loaded factories file. Exactly one of ``payloads``, ``build`` and ``session`` is set.

    ``build`` may take a recorded row, and the arrival's ``number``. ``first``: the place of the payload that arrival 0
    sends. ``session`` makes the generator of a session by its number, and a recorded conversation if it takes one.
    ``canaries``: payloads whose answers are asked for before the load.
    """

    invoke: Callable[[Any], Any]
    payloads: Sequence[Any] | None = None
    build: Callable[..., Any] | None = None
    label: Callable[[Any], str] | None = None
    cumulative_weights: tuple[float, ...] | None = None
    first: int = 0
    session: Callable[..., Any] | None = None
    canaries: tuple[Any, ...] = ()

    @property
    def takes_row(self) -> bool:
        """Tells whether ``build`` takes a parameter, or ``session`` a second one: the row of a recording."""
        if self.session is not None:
            return _accepts(self.session, 0, {})
        return self.build is not None and _accepts(self.build, {})

    @property
    def takes_number(self) -> bool:
        """Tells whether ``build`` takes the arrival's number, by this name alone."""
        parameters = [] if self.build is None else _parameters(self.build) or []
        return any(each.name == "number" and each.kind is each.KEYWORD_ONLY for each in parameters)

    def choose(self, seed: int, index: int) -> int:
        """Which pre-computed payload arrival ``index`` sends: ``first + index mod n``, or drawn by weight."""
        assert self.payloads is not None
        if self.cumulative_weights is None:
            return (self.first + index) % len(self.payloads)
        total = self.cumulative_weights[-1]
        return bisect_right(self.cumulative_weights, uniform(seed, index) * total, hi=len(self.payloads) - 1)


def load(
    path: Path,
    endpoint_name: str | None = None,
    *,
    with_rows: bool = False,
    payload_arguments: Mapping[str, Any] | None = None,
    settings: Mapping[str, str] = MappingProxyType({}),
    canary_seed: int | None = None,
) -> Endpoint:
    """Import a factories file, call both factories and check what they return.

    ``with_rows``: a recording is replayed, so there is a row for a ``build`` that takes one.
    ``payload_arguments``: what payload_factory is called with. ``settings``: texts in place of constants of the file.
    ``canary_seed``: what its canaries are drawn with; without it, none are.
    """
    module = import_file(path, settings)
    invoke = _make_invoke(path, _function(module, path, "invoke_factory"), endpoint_name)
    endpoint = _loaded(module, path, invoke, with_rows=with_rows, arguments=payload_arguments or {})
    return endpoint if canary_seed is None else replace(endpoint, canaries=_canaries(module, path, canary_seed))


def _loaded(
    module: ModuleType, path: Path, invoke: Callable[[Any], Any], *, with_rows: bool, arguments: Mapping[str, Any]
) -> Endpoint:
    if hasattr(module, SESSIONS):
        return Endpoint(invoke=invoke, session=_make_session(path, _function(module, path, SESSIONS), with_rows))
    return _endpoint(module, path, invoke, with_rows=with_rows, arguments=arguments)


def load_payloads(path: Path) -> Sequence[Any] | None:
    """The pre-computed payloads of a factories file, without making what would send them; None where there are none."""
    return _endpoint(import_file(path), path, invoke=print).payloads


def _endpoint(
    module: ModuleType,
    path: Path,
    invoke: Callable[[Any], Any],
    *,
    with_rows: bool = False,
    arguments: Mapping[str, Any] = MappingProxyType({}),
) -> Endpoint:
    factory = _function(module, path, "payload_factory")
    where = place(path, factory)
    if arguments and not _accepts(factory, **arguments):
        takes = ", ".join(p.name for p in _parameters(factory) or []) or "none"
        raise BenchmarkError(
            f"{where}: payload_factory cannot be called with {', '.join(f'{name}=' for name in arguments)}; its "
            f"arguments: {takes}."
        )
    made = _call(path, "payload_factory", factory, **arguments)
    payloads, build = _inputs(where, made, with_rows=with_rows)
    return Endpoint(
        invoke=invoke,
        payloads=payloads,
        build=build,
        label=_label(where, made),
        cumulative_weights=_weights(where, made, payloads),
    )


def _function(module: ModuleType, path: Path, name: str) -> Callable[..., Any]:
    found = getattr(module, name, None)
    if found is None:
        raise BenchmarkError(f"{path}: has no {name}.", DEFINE.format(name))
    if not callable(found):
        raise BenchmarkError(f"{path}: {name} is {kind(found)}, not a function.")
    function: Callable[..., Any] = found
    return function


def _make_invoke(path: Path, factory: Callable[..., Any], endpoint_name: str | None) -> Callable[[Any], Any]:
    arguments = (endpoint_name,) if endpoint_name is not None or _requires_argument(factory) else ()
    invoke = _call(path, "invoke_factory", factory, *arguments)
    if not callable(invoke):
        raise BenchmarkError(
            f"{place(path, factory)}: invoke_factory returned {kind(invoke)}; expected a function invoke(payload).",
            "End invoke_factory with `return invoke`.",
        )
    if _is_async(invoke):
        raise BenchmarkError(
            f"{place(path, invoke)}: invoke is an async function; expected a plain one.",
            "Workers run requests in greenlets: write it with an ordinary blocking client.",
        )
    if not _accepts(invoke, None):
        raise BenchmarkError(f"{place(path, invoke)}: invoke must take one argument, the payload.")
    called: Callable[[Any], Any] = invoke
    return called


def _make_session(path: Path, factory: Callable[..., Any], with_rows: bool) -> Callable[..., Any]:
    session = _call(path, SESSIONS, factory)
    if not callable(session):
        raise BenchmarkError(
            f"{place(path, factory)}: session_factory returned {kind(session)}; expected a function session(number).",
            "End session_factory with `return session`.",
        )
    if _is_async(session) or not any(map(inspect.isgeneratorfunction, (session, getattr(session, "__call__", None)))):  # noqa: B004
        raise BenchmarkError(
            f"{place(path, session)}: session is not a plain generator function.",
            "It must yield each turn: answer = yield Turn(payload).",
        )
    takes_row = _accepts(session, 0, {})
    if not takes_row and not _accepts(session, 0):
        raise BenchmarkError(f"{place(path, session)}: session must take one argument, the number of its arrival.")
    if not with_rows and not _accepts(session, 0):
        raise BenchmarkError(
            f"{place(path, session)}: session takes a recorded conversation, and there is no file of them.",
            "Give --conversations FILE, or make it optional: def session(number, recorded=None).",
        )
    made: Callable[..., Any] = session
    return made


def _canaries(module: ModuleType, path: Path, seed: int) -> tuple[Any, ...]:
    if not hasattr(module, CANARIES):
        raise BenchmarkError(
            f"{shown_path(path)}: has no {CANARIES}, which --expect canary needs.",
            "Define `def canary_factory(seed)` in it, which returns a list of payloads; or give a URL of OpenAI's"
            " chats or completions.",
        )
    made = _call(path, CANARIES, _function(module, path, CANARIES), seed)
    if not isinstance(made, (list, tuple)) or not made:
        raise BenchmarkError(f"{shown_path(path)}: {CANARIES} returned {kind(made)}; expected a list of payloads.")
    return tuple(made)


def _inputs(where: str, made: Any, *, with_rows: bool) -> tuple[Sequence[Any] | None, Callable[..., Any] | None]:
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
    takes_row = _accepts(build, {})
    if _is_async(build) or not (takes_row or _accepts(build)):
        raise BenchmarkError(f'{where}: with "pre_computed": False, "input" must be a plain function build().')
    if not with_rows and not _accepts(build):
        raise BenchmarkError(
            f"{where}: build takes the row of a recording, and no recording is replayed.",
            "Give --replay FILE, or make the row optional: def build(row=None).",
        )


def _weights(where: str, made: dict[str, Any], payloads: Sequence[Any] | None) -> tuple[float, ...] | None:
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


def _label(where: str, made: dict[str, Any]) -> Callable[[Any], str] | None:
    label = made.get("label")
    if label is not None and not callable(label):
        raise BenchmarkError(f'{where}: "label" must be a function label(payload) -> str, not {kind(label)}.')
    if label is not None and (_is_async(label) or not _accepts(label, None)):
        raise BenchmarkError(f'{where}: "label" must be a plain function that takes one argument, the payload.')
    return label


def _call(path: Path, name: str, function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    try:
        return function(*arguments, **named)
    except BaseException as error:
        raise describe_error(path, f"{name}()", error) from error


def _parameters(function: Callable[..., Any]) -> list[inspect.Parameter] | None:
    try:
        return list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return None


def _requires_argument(function: Callable[..., Any]) -> bool:
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = _parameters(function) or []
    return any(p.kind in positional and p.default is p.empty for p in parameters)


def _is_async(function: Callable[..., Any]) -> bool:
    """Tells whether calling it gives a coroutine or an asynchronous generator; an instance's ``__call__`` counts."""
    call = getattr(function, "__call__", None)  # noqa: B004 - what it is matters, not whether it is there
    return any(inspect.iscoroutinefunction(f) or inspect.isasyncgenfunction(f) for f in (function, call))


def _accepts(function: Callable[..., Any], *arguments: Any, **named: Any) -> bool:
    try:
        inspect.signature(function).bind(*arguments, **named)
    except TypeError:
        return _parameters(function) is None
    except ValueError:
        return True
    return True


def kind(value: Any) -> str:
    """The kind of a value in words: of a dict its keys, of all else its type."""
    if value is None:
        return "None"
    if isinstance(value, dict):
        return "a dict with the keys " + (", ".join(map(repr, value)) or "none")
    return f"a {type(value).__name__}"
