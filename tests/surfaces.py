"""Surfaces as they stand in surface.json, for those that show them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from inference_benchmarker.version import SCHEMA_VERSION
from server_capacity.results import surface_folder
from server_capacity.results.capacity_folder import save
from server_capacity.results.surface_checks import searched_point
from server_capacity.results.types.bounds import Interval
from server_capacity.results.types.result_status import settled
from server_capacity.results.types.surface import (
    Doubled,
    FittedConstant,
    FittedEngine,
    PredictedPoint,
    SearchedPoint,
    SurfaceResult,
)
from tests.capacities import searched

if TYPE_CHECKING:
    from pathlib import Path

ENGINE = FittedEngine(
    constants=[FittedConstant(name="prefill B", value=0.25, low=0.24, high=0.26)],
    streams=4000,
    idle=45,
    decodes=60,
    context=30_000.0,
)


def row(prompt: int, answer: int, predicted: Interval | None = None, **more: Any) -> SearchedPoint:
    """A search at these lengths; held out where it is predicted. ``more``: of its search."""
    found = searched_point(prompt, answer, "held_out" if predicted else "fit", f"{prompt}x{answer}", _found(**more))
    return SearchedPoint(**{name: getattr(found, name) for name in found.__slots__} | {"predicted": predicted})


def _found(**more: Any) -> Any:
    return settled(searched(**more))


def surface(**more: Any) -> SurfaceResult:
    """A surface that is given; ``more`` replaces."""
    held_out = row(200, 40, Interval(170.0, 178.0))
    grid = [
        PredictedPoint(input_tokens=100, output_tokens=20, rate=250.0, interval=Interval(240.0, 260.0)),
        PredictedPoint(input_tokens=100, output_tokens=80, rate=61.0, interval=Interval(60.0, 62.0)),
        PredictedPoint(input_tokens=400, output_tokens=20, rate=50.0, interval=Interval(48.0, 52.0)),
        PredictedPoint(input_tokens=400, output_tokens=80, beyond="80 answers at a time, and at most 60 were measured"),
    ]
    changed = Doubled(what="answers", input_tokens=200, output_tokens=40, share=0.39, interval=Interval(0.30, 0.48))
    values: dict[str, Any] = {
        "created": "2026-11-27T12:00:00Z",
        "name": "x",
        "limits": ["p99<100ms"],
        "stage": "given",
        "exit_code": 0,
        "searches": [row(100, 80), row(400, 20), held_out],
        "engine": ENGINE,
        "grid": grid,
        "what_if": [changed],
        **more,
    }
    found: SurfaceResult = surface_folder.with_headline(SurfaceResult(schema_version=SCHEMA_VERSION, **values))
    return found


def stored(folder: Path, **more: Any) -> Path:
    """The folder of a surface and of its searches."""
    found = surface(**more)
    for each in found.searches:
        (folder / f"{each.capacity}").mkdir(parents=True)
        save(folder / f"{each.capacity}", _found())
    surface_folder.save(folder, found)
    return folder
