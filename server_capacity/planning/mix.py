"""``--mix FILE``: several endpoints, each with the load that it is to hold, as JSON or TOML."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from inference_benchmarker.data.typed import MOST_FLOAT
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.plan.replay import Replay
from inference_benchmarker.plan.stage import Stage
from inference_benchmarker.system.given import read_given
from inference_benchmarker.toml_text import read_toml
from inference_benchmarker.words.redact import excerpt, quoted
from inference_benchmarker.words.units import MIB
from server_capacity.planning.request import parse_growth

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from server_capacity.planning.request import PlanRequest

_NUMBERS = ("target_rps", "seconds_to_create")
_COUNTS = ("spare", "minimum", "maximum")
_TEXTS = ("name", "endpoint_name", "instance_type", "routing", "tier")
_OTHERS = ("capacity", "utilisation", "instances", "stages", "replay", "growth")
KEYS = (*_OTHERS[:1], *_NUMBERS, *_COUNTS, *_TEXTS, *_OTHERS[1:])


def read_mix(path: Path, usual: PlanRequest) -> list[PlanRequest]:
    """The questions of a file; ``usual`` answers what an entry does not say. Folders are relative to the file's own.

    One BenchmarkError names everything that is wrong with it.
    """
    try:
        data = read_toml(path) if path.suffix == ".toml" else json.loads(read_given(path, MIB).decode())
    except (OSError, ValueError, RecursionError) as error:
        reason = getattr(error, "strerror", None) or error
        raise BenchmarkError(f"--mix {path}: cannot be read ({reason}).", _EXPECTED) from None
    rows = data.get("endpoints") if isinstance(data, dict) else data
    if not isinstance(rows, list) or not rows or not all(isinstance(row, dict) for row in rows):
        raise BenchmarkError(f"--mix {path}: has no list of endpoints.", _EXPECTED)
    problems: list[str] = []
    found = []
    for place, row in enumerate(rows, 1):
        where = f"--mix {path}, endpoint {place}"
        try:
            asked = _entry(row, path.parent, usual)
            problems += [f"{where}: {problem.text}" for problem in asked.problems()]
            found.append(asked)
        except BenchmarkError as error:
            problems.append(f"{where}: {error}")
    if problems:
        raise BenchmarkError("\n".join(problems))
    return found


_EXPECTED = 'Expected a list such as [{"capacity": "FOLDER", "target_rps": 100}]; in TOML, [[endpoints]] tables.'


def _entry(row: dict[str, Any], beside: Path, usual: PlanRequest) -> PlanRequest:
    unknown = [key for key in row if key not in KEYS]
    if unknown:
        raise BenchmarkError(f"unknown key {unknown[0]!r}.", f"Known are {', '.join(KEYS)}.")
    return replace(usual, **dict(_values(row, beside)))


def _values(row: dict[str, Any], beside: Path) -> Iterator[tuple[str, Any]]:
    folders = row.get("capacity", [])
    yield "capacities", tuple(beside / _text("capacity", each) for each in _list(folders))
    yield from ((key, _number(key, row[key])) for key in _NUMBERS if key in row)
    if "utilisation" in row:
        yield "utilisation", _share("utilisation", row["utilisation"])
    yield from ((key, _whole(key, row[key])) for key in _COUNTS if key in row)
    yield from ((key, _text(key, row[key])) for key in _TEXTS if key in row)
    if "instances" in row:
        yield "instances", tuple(_whole("instances", each) for each in _list(row["instances"]))
    if "growth" in row:
        yield "growth_per_min", parse_growth("growth", _text("growth", row["growth"]))
    if "stages" in row:
        texts = [part for each in _list(row["stages"]) for part in _text("stages", each).split(",")]
        yield "stages", tuple(Stage.parse(text) for text in texts)
        yield "replay", None
    if "replay" in row:
        yield "replay", Replay(beside / _text("replay", row["replay"]))
        yield "stages", ()


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _text(key: str, value: Any) -> str:
    if not isinstance(value, str) or not value.strip() or "\0" in value:
        raise BenchmarkError(f"{key} must be a string, not {value!r}.")
    return value


def _share(key: str, value: Any) -> float:
    if isinstance(value, str) and value.strip().endswith("%"):
        try:
            return float(value.strip().removesuffix("%")) / 100
        except ValueError:
            raise BenchmarkError(f"{key} must be a share such as 0.7 or 70%, not {quoted(value)}.") from None
    return _number(key, value)


def _number(key: str, value: Any) -> float:
    if type(value) not in (int, float) or not abs(value) < MOST_FLOAT:
        raise BenchmarkError(f"{key} must be a number, not {_shown(value)}.")
    return float(value)


def _whole(key: str, value: Any) -> int:
    if type(value) is not int or abs(value) >= MOST_FLOAT:
        raise BenchmarkError(f"{key} must be a whole number, not {_shown(value)}.")
    return value


def _shown(value: Any) -> str:
    """A value in few characters; a whole number of thousands of digits has no text."""
    return "one so large" if isinstance(value, int) and abs(value) >= MOST_FLOAT else excerpt(repr(value), 100)
