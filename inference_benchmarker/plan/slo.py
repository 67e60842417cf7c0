"""Limits on a wave and on each of its requests, as users write them."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TYPE_CHECKING

from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.records.record import MOST_TURN

if TYPE_CHECKING:
    from inference_benchmarker.records.columns import Floats, Mask

_NAME = (
    r"\s*(?:(?P<metric>latency|response_time|ttft|itl|tpot|lag)\.)?"
    r"(?P<stat>mean|min|max|median|p\d{1,2}(?:\.\d{1,3})?|success|rate|goodput)\s*"
)
SLO_PATTERN = re.compile(_NAME + r"(?P<op><=|>=|<|>)\s*(?P<value>\d+(?:\.\d+)?)\s*(?P<unit>us|ms|s|%)?\s*")
REGRESSION_PATTERN = re.compile(_NAME + r"=\s*(?P<value>\d+(?:\.\d+)?)\s*%\s*")
_METRIC_PATTERN = re.compile(
    r"\s*(?P<metric>metric\.[A-Za-z_][A-Za-z0-9_]{0,63})(?:\.(?P<stat>mean|min|max|median|p\d{1,2}(?:\.\d{1,3})?))?"
    r"\s*(?P<op><=|>=|<|>)\s*(?P<value>[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d{1,2})?)\s*(?P<unit>us|ms|s|%)?\s*"
)
REQUEST_PATTERN = re.compile(
    r"\s*(?P<metric>latency|e2e|response_time|ttft|itl|tpot)\s*(?P<op><=|<)\s*"
    r"(?P<value>\d+(?:\.\d+)?)\s*(?P<unit>us|ms|s)\s*"
)
_USER_METRIC = "metric."
_TURNS = re.compile(r"\s*turn(?P<first>\d{1,6})(?:(?P<more>\+)|-(?P<last>\d{1,6}))?\.(?P<rest>.*)", re.DOTALL)
_SESSION = re.compile(r"\s*session\.(?P<rest>.*)", re.DOTALL)
_ALONE = ("success", "rate", "goodput")
_OF_A_TURN = ("default", "latency", "response_time", "ttft", "itl", "tpot")
_SESSIONS = "session"
SESSION_SUCCESS = "session.success"
"""The metric of a comparison; that of a limit on one wave is ``session_success``."""
_UNITS_PER_SECOND = {"us": 1_000_000, "ms": 1_000, "s": 1}


@dataclass(frozen=True, slots=True)
class Turns:
    """Some turns of each session: from the ``first`` to the ``last``, both from 1 on."""

    first: int
    last: int

    @property
    def text(self) -> str:
        """As a limit names them: ``turn1``, or ``turn2+`` of all from there on."""
        if self.last == MOST_TURN:
            return f"turn{self.first}+"
        return f"turn{self.first}" + ("" if self.first == self.last else f"-{self.last}")


FIRST_TURN, LATER_TURNS = Turns(1, 1), Turns(2, MOST_TURN)


@dataclass(frozen=True, slots=True)
class Slo:
    """One limit on the wave, e.g. ``latency.p99 <= 0.5`` (seconds) or ``success >= 0.99`` (a share).

    On a metric of the user's own (``metric.cache_hit.mean>0.8``) it has the unit of that metric. ``turns`` restricts it
    to these turns of each session. The metric ``session`` is the duration of whole sessions, and ``session_success``
    the share of them that were completed.
    """

    expression: str
    metric: str
    stat: str
    op: str
    limit: float
    stage: str = ""
    turns: Turns | None = None

    @classmethod
    def parse(cls, text: str) -> Slo:
        """Read ``p99<200ms``, ``ttft.p90<1s``, ``success>=0.99``, ``rate>=99%``, ``spike:p99<500ms`` of a stage.

        Of sessions ``session.success>=0.99``, ``session.p95<60s``, ``turn1.ttft.p95<1s``, ``turn2+.ttft.p95<400ms``. A
        bare percentile is that of response time, or in the closed loop that of latency.
        """
        stage, colon, of_stage = text.rpartition(":")
        if colon:
            return replace(cls.parse(of_stage), stage=stage.strip(), expression=text.strip())
        if (match := _TURNS.fullmatch(text)) is not None and text.isascii():
            return cls._of_turns(match)
        if (match := _SESSION.fullmatch(text)) is not None:
            return cls._of_sessions(match)
        if text.strip().startswith(_USER_METRIC):
            return cls._of_user_metric(text)
        found = cls.read(text)
        if isinstance(found, str):
            raise BenchmarkError(
                f"--slo {text!r} is not a limit{found}.",
                "Write e.g. p99<200ms, latency.p95<=0.5s, ttft.p90<1s, success>=0.99, rate>=0.99, goodput>=0.9.",
            )
        return found

    @classmethod
    def read(cls, text: str) -> Slo | str:
        """The limit without a stage that a text is, or in parentheses why it is none, where that is known."""
        match = SLO_PATTERN.fullmatch(text) if text.isascii() else None
        if match is None or (problem := _slo_problem(match)):
            return "" if match is None else f" ({problem})"
        stat, unit = match["stat"], match["unit"]
        value = Decimal(match["value"])  # float(0.999) is not float(99.9) / 100: a limit that is just met must be met
        if stat in _ALONE:
            return cls(text.strip(), *_named(match), match["op"], float(value / 100 if unit == "%" else value))
        limit = float(value / _UNITS_PER_SECOND[unit])
        return cls(text.strip(), *_named(match), match["op"], limit)

    @classmethod
    def _of_sessions(cls, match: re.Match[str]) -> Slo:
        """The limit on sessions as units."""
        limit, text = cls.parse(match["rest"]), match.string.strip()
        if limit.metric not in ("default", "success") or limit.is_on_sessions:
            raise BenchmarkError(
                f"--slo {text!r} is not a limit on sessions: they have a duration, and a share that succeeds.",
                "Write e.g. session.p95<60s or session.success>=0.99; of turns turn1.ttft.p95<1s or turn2+.p95<2s.",
            )
        return replace(limit, metric="session_success" if limit.metric == "success" else "session", expression=text)

    @classmethod
    def _of_turns(cls, match: re.Match[str]) -> Slo:
        """The limit on some turns alone; they have no rate of their own."""
        first, found = int(match["first"]), cls.parse(match["rest"])
        last = MOST_TURN if match["more"] else int(match["last"] or first)
        text = match.string.strip()
        if not 1 <= first <= last <= MOST_TURN:
            raise BenchmarkError(f"--slo {text!r}: turns count from 1 to {MOST_TURN:,}.")
        if found.metric == "rate" or found.is_on_sessions:
            raise BenchmarkError(
                f"--slo {text!r} is not a limit on turns.",
                "Write e.g. turn1.ttft.p95<1s, turn2+.p99<2s or turn3.success>=0.99.",
            )
        return replace(found, turns=Turns(first, last), expression=text)

    @classmethod
    def _of_user_metric(cls, text: str) -> Slo:
        match = _METRIC_PATTERN.fullmatch(text) if text.isascii() else None
        if match is None or (problem := _metric_problem(match)):
            reason = "" if match is None else f" ({problem})"
            raise BenchmarkError(
                f"--slo {text!r} is not a limit on a metric of your own{reason}.",
                "Write metric.NAME.STATISTIC and a number without a unit, e.g. metric.cache_hit.mean>0.8, with mean, "
                "median, min, max or a percentile such as p99.9.",
            )
        stat = "p50" if match["stat"] == "median" else match["stat"]
        return cls(text.strip(), match["metric"], stat, match["op"], float(match["value"]))

    @property
    def is_on_sessions(self) -> bool:
        """Tells whether it limits whole sessions, or some of their turns."""
        return self.turns is not None or self.metric in ("session", "session_success")

    @property
    def is_on_user_metric(self) -> bool:
        """Tells whether it limits what the user's code reported of requests."""
        return self.metric.startswith(_USER_METRIC)

    def met(self, measured: float | None) -> bool:
        """Tells whether a measured value keeps the limit; what was not measured does not."""
        if measured is None:
            return False
        comparisons = {
            "<": measured < self.limit,
            "<=": measured <= self.limit,
            ">": measured > self.limit,
            ">=": measured >= self.limit,
        }
        return comparisons[self.op]


@dataclass(frozen=True, slots=True)
class RequestLimit:
    """One limit on a request, e.g. ``ttft < 1`` (seconds); a good request meets all that are given."""

    expression: str
    metric: str
    op: str
    limit: float

    @classmethod
    def parse(cls, text: str) -> RequestLimit:
        """Read ``ttft<1s``; ``e2e`` is another name of latency."""
        match = REQUEST_PATTERN.fullmatch(text) if text.isascii() else None
        if match is None:
            raise BenchmarkError(
                f"--goodput {text!r} is not a limit on a request.",
                "Write METRIC<TIME, e.g. ttft<1s,itl<50ms, where METRIC is latency, response_time, ttft, itl or tpot "
                "and TIME has its unit: us, ms or s.",
            )
        metric = "latency" if match["metric"] == "e2e" else match["metric"]
        limit = float(Decimal(match["value"]) / _UNITS_PER_SECOND[match["unit"]])
        return cls(text.strip(), metric, match["op"], limit)

    def met(self, seconds: Floats) -> Mask:
        """Which of these times keep the limit."""
        met: Mask = seconds < self.limit if self.op == "<" else seconds <= self.limit
        return met


@dataclass(frozen=True, slots=True)
class MaxRegression:
    """The most that a metric may be worse than in the base run, as a share of its value there: ``p99=10%``.

    Of sessions the metric is ``session`` or ``session.success``, of their turns as ``turn1.ttft``.
    """

    expression: str
    metric: str
    stat: str
    most: float

    @classmethod
    def parse(cls, text: str) -> MaxRegression:
        """Read ``p99=10%``, ``latency.mean=5%``, ``rate=2%``; what a bare percentile is of, ``Slo`` says.

        Of sessions ``session.success=1%``, ``session.p95=10%``, ``turn1.ttft.p95=10%``, ``turn2+.p99=10%``.
        """
        found = cls._read(text)
        if isinstance(found, str):
            raise BenchmarkError(
                f"--max-regression {text!r} is not a limit{f' ({found})' if found else ''}.",
                "Write METRIC=PERCENT%, e.g. p99=10%, where METRIC is success, rate, or mean, median or a percentile "
                "such as p99.9, alone or of latency, response_time, ttft, itl, tpot or lag: ttft.p90. Of sessions: "
                "session.success, session.p95, turn1.ttft.p95, turn2+.p99.",
            )
        return found

    @classmethod
    def _read(cls, text: str) -> MaxRegression | str:
        """The limit that a text is, or why it is none; nothing where that is unknown."""
        part, dot, rest = text.strip().partition(".")
        if dot and (part == _SESSIONS or part.startswith("turn")):
            found = cls._read(rest)
            return found if isinstance(found, str) else _on_sessions(found, part, text.strip())
        match = REGRESSION_PATTERN.fullmatch(text) if text.isascii() else None
        problem = "" if match is None else _name_problem(match)
        if match is not None and match["stat"] == "goodput":
            problem = "each run's goodput has its own limits"
        if match is not None and match["stat"] in ("min", "max"):
            problem = f"{match['stat']} is one request's time, which has no interval"
        if match is None and text.isascii() and REGRESSION_PATTERN.fullmatch(f"{text}%"):
            problem = "the % after the number is missing"
        if match is None or problem:
            return problem
        return cls(text.strip(), *_named(match), float(Decimal(match["value"]) / 100))


def _on_sessions(limit: MaxRegression, part: str, text: str) -> MaxRegression | str:
    """The same limit on sessions, or on their first or later turns; or why there is none."""
    if part != _SESSIONS:
        if part not in (FIRST_TURN.text, LATER_TURNS.text):
            return f"the first turns are compared, and all later ones: {FIRST_TURN.text} or {LATER_TURNS.text}"
        if limit.metric not in _OF_A_TURN:
            return f"turns have times, such as {part}.ttft.p95 and {part}.p99"
        return replace(limit, metric=f"{part}.{limit.metric}", expression=text)
    if limit.metric == "success":
        return replace(limit, metric=SESSION_SUCCESS, stat=SESSION_SUCCESS, expression=text)
    if limit.metric != "default" or limit.stat == "mean":
        return "sessions have success and percentiles of their duration: session.p95"
    return replace(limit, metric=_SESSIONS, expression=text)


def _named(match: re.Match[str]) -> tuple[str, str]:
    """Metric and statistic: ("default", "p99") of ``p99``, ("rate", "rate") of ``rate``."""
    stat = "p50" if match["stat"] == "median" else match["stat"]
    return (stat if stat in _ALONE else match["metric"] or "default"), stat


def _name_problem(match: re.Match[str]) -> str:
    if match["stat"] in _ALONE and match["metric"]:
        return f"{match['stat']} belongs to the whole wave, not to {match['metric']}"
    if match["stat"][1].isdigit() and not float(match["stat"][1:]):
        return "percentiles start above 0"
    return ""


def _metric_problem(match: re.Match[str]) -> str:
    if match["stat"] is None:
        return f"say which statistic, e.g. {match['metric']}.mean"
    if match["unit"]:
        return f"it has the unit that your code gave it: leave out {match['unit']}"
    return _name_problem(match)


def _slo_problem(match: re.Match[str]) -> str:
    if problem := _name_problem(match):
        return problem
    share = match["stat"] in _ALONE
    if share and match["unit"] not in (None, "%"):
        return f"{match['stat']} is a share between 0 and 1, or a percentage"
    if share and float(match["value"]) > (100 if match["unit"] == "%" else 1):
        return f"{match['stat']} is a share between 0 and 1, or a percentage"
    if not share and match["unit"] not in _UNITS_PER_SECOND:
        return "a time needs its unit: us, ms or s"
    return ""
