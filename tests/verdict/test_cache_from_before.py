"""Cached tokens that the wave itself cannot have brought into the cache."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from inference_benchmarker.plan.load import Bounds, OpenLoop
from inference_benchmarker.plan.plan import WavePlan
from inference_benchmarker.records.record import RequestRecord
from inference_benchmarker.verdict import cache_from_before
from inference_benchmarker.verdict.cache_from_before import cache_findings
from inference_benchmarker.words.units import NS
from tests.waves import observe


def request(index: int, cached: int | None, tokens: int | None = 100, **more: Any) -> RequestRecord:
    """Sent in the order of their indices, unless ``sent`` tells another tenth of a second."""
    due = index * NS // 10
    sent = max(more.pop("sent", index) * NS // 10, due)
    fields = None if cached is None else {"cached_tokens": float(cached)}
    base = {"worker": 0, "due": due, "sent": sent, "done": sent + NS, "tokens_in": tokens, "tokens_out": 20}
    return RequestRecord(index=index, metrics=fields, **{**base, **more})


def found(*records: RequestRecord) -> list[str]:
    plan = WavePlan(OpenLoop(Decimal(10)), Bounds(Decimal(10)))
    return [finding.measured for finding in cache_findings(observe(plan, records))]


@pytest.mark.parametrize(
    ("records", "count"),
    [
        ([request(0, 0), request(1, 96)], 0),  # the first one may have brought them
        ([request(0, 96), request(1, 0)], 1),
        ([request(0, 8), request(1, 0)], 0),  # what a template alone begins with
        ([request(0, 0, 40), request(1, 64)], 1),  # 40 + 20 tokens were sent before, not 64
        ([request(0, 0, 50), request(1, 64)], 0),
        ([request(0, 0), request(1, None), request(2, 0)], 0),
        ([request(0, None, None, outcome="failed", tokens_out=None), request(1, 96)], 0),  # nobody knows its length
        ([request(0, 96, sent=5), request(1, 96), request(2, 96)], 1),  # in the order in which they were sent
        ([request(-1, 0), request(0, 96)], 0),  # the warm-up brought them
        ([request(-1, 96), request(0, 96)], 1),
        ([request(0, 0, 20, turn=1, session=0), request(0, 64, turn=2, session=0, sent=3)], 0),  # a later turn's own
        ([request(0, None), request(1, None)], 0),
        ([request(0, 100), request(1, 0)], 1),
        ([request(0, 101), request(1, 0)], 0),  # no prompt of 100 tokens has 101 in the cache
        ([request(0, 500, None), request(1, 0)], 0),
        ([request(0, 500, 0), request(1, 0)], 0),
    ],
)
def test_only_what_nothing_of_the_wave_explains_is_from_before(records: list[RequestRecord], count: int) -> None:
    reported = found(*records)
    assert len(reported) == (count > 0)
    assert all(f"{count} first turn" in text for text in reported)


def test_of_a_long_wave_only_the_beginning_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache_from_before, "_LOOKED_AT", 3)
    assert found(request(0, 96), *(request(number, 0) for number in range(1, 9)))
    assert not found(*(request(number, 96 * (number == 2), 100 if number == 2 else 10) for number in range(9))), (
        "a longer one may be before it"
    )
