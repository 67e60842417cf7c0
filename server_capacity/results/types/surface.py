"""Capacities over lengths of prompts and answers, by an engine fitted to searches: ``surface.json``. Pure.

Rates in requests/s. Lengths are those that were asked for, in tokens.
"""

from dataclasses import dataclass, field
from typing import Annotated, Literal

from msgspec import Meta

from inference_benchmarker.data.decoded import OMITTED
from server_capacity.results.types.bounds import (
    Amount,
    Count,
    ExitCode,
    Extrapolated,
    Interval,
    Number,
    Rate,
    Verdict,
    Version,
)

Tokens = Annotated[int, Meta(ge=1, le=10_000_000)]
Use = Literal["fit", "held_out"]
Stage = Literal["searching", "given", "refused"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchedPoint:
    """A search at some lengths; ``capacity``: its folder, None where there is none, and ``headline`` says why.

    ``predicted``: for one that was held out, what the fit of the others says of it. ``confirmed``: the verdict of the
    last wave at its answer.
    """

    input_tokens: Tokens
    output_tokens: Tokens
    use: Use
    capacity: str | None = None
    outcome: str = ""
    headline: str = ""
    rate: Rate | None = None
    interval: Interval | None = None
    predicted: Interval | None = None
    exit_code: ExitCode
    warnings: list[str] = field(default_factory=list)
    confirmed: Verdict | None = field(default=None, metadata=OMITTED)


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictedPoint:
    """A point of the grid; ``beyond``: the reason why it has no capacity, "" where it has one."""

    input_tokens: Tokens
    output_tokens: Tokens
    rate: Extrapolated | None = None
    interval: Interval | None = None
    beyond: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedConstant:
    """A constant of the engine's steps, in ms, with its 95% interval: of a context for a million tokens of it."""

    name: str
    value: Number
    low: Number
    high: Number


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedEngine:
    """The engine that was fitted; ``decodes``, ``context``: the most of a step that were measured."""

    constants: list[FittedConstant]
    streams: Count
    idle: Count
    decodes: Count
    context: Amount


@dataclass(frozen=True, slots=True, kw_only=True)
class Doubled:
    """The rate with ``what`` twice as long, in those at the lengths that are named: its share and 95% interval."""

    what: Literal["answers", "prompts"]
    input_tokens: Tokens
    output_tokens: Tokens
    share: Amount
    interval: Interval


@dataclass(frozen=True, slots=True, kw_only=True)
class SurfaceResult:
    """Searches at some lengths, and the grid that they give; ``refused``: why they give none, with what to try."""

    schema_version: Version
    created: str | None = None
    name: str | None = None
    limits: list[str]
    stage: Stage
    refused: str | None = None
    exit_code: ExitCode
    searches: list[SearchedPoint]
    engine: FittedEngine | None = None
    grid: list[PredictedPoint] = field(default_factory=list)
    what_if: list[Doubled] = field(default_factory=list)
    headline: str = ""
    built_on: dict[str, str] | None = field(default=None, metadata=OMITTED)
    digest: str | None = field(default=None, metadata=OMITTED)
