"""Loads a factories file: the two plain functions in which a user describes an endpoint.

Every way such a file can be wrong becomes one BenchmarkError that names the file, the line where there is
one, and what was expected. The checks here run in each worker before any load is sent.
"""

from __future__ import annotations

import inspect
from bisect import bisect_right
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol

from inference_benchmarker.engine.endpoint.payloads import (
    accepts,
    inputs_of,
    is_async,
    kind,
    label_of,
    parameters_of,
    requires_argument,
    weights_of,
)
from inference_benchmarker.engine.endpoint.source import CANARIES, DEFINE, SESSIONS, describe_error, import_file, place
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.plan.numbers import uniform
from inference_benchmarker.system.packaged import shown_path

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path
    from types import ModuleType

WARMING = "warm_factory"


class Invoke(Protocol):
    """Sends one request: returns when it is done, yields tokens as they come, or raises."""

    def __call__(self, payload: Any, /) -> Any:
        """Send ``payload``."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A loaded factories file. Exactly one of ``payloads``, ``build`` and ``session`` is set.

    ``build`` may take a recorded row, and the arrival's ``number``. ``first``: the place of the payload that arrival 0
    sends. ``session`` makes the generator of a session by its number, and a recorded conversation if it takes one.
    ``canaries``: payloads whose answers are asked for before the load. ``warming``: gives those sent once then.
    """

    invoke: Callable[[Any], Any]
    payloads: Sequence[Any] | None = None
    build: Callable[..., Any] | None = None
    label: Callable[[Any], str] | None = None
    cumulative_weights: tuple[float, ...] | None = None
    first: int = 0
    session: Callable[..., Any] | None = None
    canaries: tuple[Any, ...] = ()
    warming: Callable[[], Sequence[Any]] | None = None

    @property
    def takes_row(self) -> bool:
        """Tells whether ``build`` takes a parameter, or ``session`` a second one: the row of a recording."""
        if self.session is not None:
            return accepts(self.session, 0, {})
        return self.build is not None and accepts(self.build, {})

    @property
    def takes_number(self) -> bool:
        """Tells whether ``build`` takes the arrival's number, by this name alone."""
        parameters = [] if self.build is None else parameters_of(self.build) or []
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
    if hasattr(module, WARMING):
        endpoint = replace(endpoint, warming=partial(_warming, module, path))
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
    if arguments and not accepts(factory, **arguments):
        takes = ", ".join(p.name for p in parameters_of(factory) or []) or "none"
        raise BenchmarkError(
            f"{where}: payload_factory cannot be called with {', '.join(f'{name}=' for name in arguments)}; its "
            f"arguments: {takes}."
        )
    made = _call(path, "payload_factory", factory, **arguments)
    payloads, build = inputs_of(where, made, with_rows=with_rows)
    return Endpoint(
        invoke=invoke,
        payloads=payloads,
        build=build,
        label=label_of(where, made),
        cumulative_weights=weights_of(where, made, payloads),
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
    arguments = (endpoint_name,) if endpoint_name is not None or requires_argument(factory) else ()
    invoke = _call(path, "invoke_factory", factory, *arguments)
    if not callable(invoke):
        raise BenchmarkError(
            f"{place(path, factory)}: invoke_factory returned {kind(invoke)}; expected a function invoke(payload).",
            "End invoke_factory with `return invoke`.",
        )
    if is_async(invoke):
        raise BenchmarkError(
            f"{place(path, invoke)}: invoke is an async function; expected a plain one.",
            "Workers run requests in greenlets: write it with an ordinary blocking client.",
        )
    if not accepts(invoke, None):
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
    if is_async(session) or not any(map(inspect.isgeneratorfunction, (session, getattr(session, "__call__", None)))):  # noqa: B004
        raise BenchmarkError(
            f"{place(path, session)}: session is not a plain generator function.",
            "It must yield each turn: answer = yield Turn(payload).",
        )
    takes_row = accepts(session, 0, {})
    if not takes_row and not accepts(session, 0):
        raise BenchmarkError(f"{place(path, session)}: session must take one argument, the number of its arrival.")
    if not with_rows and not accepts(session, 0):
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


def _warming(module: ModuleType, path: Path) -> Sequence[Any]:
    made = _call(path, WARMING, _function(module, path, WARMING))
    if not isinstance(made, (list, tuple)):
        raise BenchmarkError(f"{shown_path(path)}: {WARMING} returned {kind(made)}; expected a list of payloads.")
    return made


def _call(path: Path, name: str, function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    try:
        return function(*arguments, **named)
    except BaseException as error:
        raise describe_error(path, f"{name}()", error) from error
