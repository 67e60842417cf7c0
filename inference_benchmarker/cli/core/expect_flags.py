"""The flag of expected answers, which reads the schema that it names."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from inference_benchmarker.cli.core.flags import Flag
from inference_benchmarker.data.json_text import parse_json
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.plan.expectation import Expectation, canary_share
from inference_benchmarker.system.given import read_given
from inference_benchmarker.words.text import is_utf8, one_line

if TYPE_CHECKING:
    from collections.abc import Iterable

_MOST_BYTES = 1 << 20


def _expectation(flag: str, text: str) -> Expectation:
    """An expectation that a worker can check."""
    if not is_utf8(text):
        raise BenchmarkError(f"{flag} has a byte that is not UTF-8.")
    found = Expectation.parse(text, _schema)
    if found.schema is not None:
        from inference_benchmarker.engine.endpoint.expected import AnswerCheck

        AnswerCheck((found,))
    return found


def refused_canaries(expectations: Iterable[Expectation], command: str) -> list[str]:
    """The problem of canaries for a command that sends no wave of its own choosing."""
    if not canary_share(expectations):
        return []
    return [f"--expect canary compares answers under one load with those before it: it is for a wave, not {command}."]


def _schema(name: str) -> Any:
    given = f"--expect schema:{one_line(name, 100)}"
    try:
        return parse_json(read_given(Path(name), _MOST_BYTES))
    except OSError as error:
        raise BenchmarkError(f"{given}: cannot be read ({error.strerror or one_line(str(error), 100)}).") from None
    except ValueError as error:
        raise BenchmarkError(f"{given}: this is not JSON ({one_line(str(error), 100)}).") from None


CANARY = (
    "canary[:SHARE] (for an LLM: six fixed questions are asked before the load, and again in SHARE of the requests, by "
    "default 1%; a request fails if its answer has changed)"
)
"""A kind for waves alone."""

EXPECT = Flag(
    "--expect",
    "KIND",
    "fail a request whose answer is not as expected (repeatable): json, schema:FILE (a JSON schema), text:REGEX (found "
    "in the text)",
    _expectation,
    repeatable=True,
)
