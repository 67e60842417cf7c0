"""No two sentences of a report contradict each other, whatever was found."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from server_capacity.results.text.capacity import to_text
from server_capacity.results.text.headline import headline
from tests.capacities import as_read, found, searched

VERDICTS = ("holds", "fails", "cannot_tell")
PREDICTED = {"seconds": 60.0, "windows": 0, "kept": 0, "share": 1 - 2**-52, "interval": None}
COUNTED = {"seconds": 60.0, "windows": 3, "kept": 1, "share": 1 / 3, "interval": None}
MODELS = ({"low": 172.1, "high": 175.0}, {"low": 100.0, "high": 120.0}, {"low": 230.0, "high": 260.0}, None)
CLIENT_REASONS = ("the client was the limit", "the client was the limit: schedule lag", "schedule lag", "")


def reports() -> list[tuple[dict[str, Any], str]]:
    """Every pair of a wave's verdict and a windows' share, a model's interval, islands, spoilt or not."""
    made = []
    for verdict, windows, model, spoilt, at, islands in product(
        VERDICTS,
        (PREDICTED, COUNTED, None),
        MODELS,
        ("", "schedule lag"),
        (168.2, None),
        ([], [{"low": 2e2, "high": 3e2}]),
    ):
        wave = {"rate": 168.2, "seconds": 60.0, "verdict": "cannot_tell" if spoilt else verdict, "spoilt": spoilt}
        twin = {**found()["twin"], "interval": model, "confirmed_at": at}
        data = found(confirmation=[wave], windows=windows, twin=twin, islands=islands)
        made.append((data, " ".join(to_text(as_read(data)).split())))
    return made


def test_no_sentence_contradicts_another() -> None:
    made = reports()
    assert len(made) > 200
    for data, text in made:
        (wave,) = data["confirmation"]
        undecided = wave["verdict"] != "holds" and not wave["spoilt"]
        predicted = data["windows"] == PREDICTED
        assert not ("not confirmed" in text and ", confirmed at" in text)
        assert not (undecided and predicted and "of windows of" in text), (
            "a forecast beside a wave that did not keep it"
        )
        assert "more load is better" not in text
        assert ("measurement and the model disagree" in text) == _apart(data)
        read = as_read(data)
        answer = headline(read)
        assert max(len(line) for line in to_text(read).splitlines() if line != answer) <= 80


def _apart(data: dict[str, Any]) -> bool:
    count, model = data["interval"], data["twin"]["interval"]
    return model is not None and (model["high"] < count["low"] or count["high"] < model["low"])


@pytest.mark.parametrize(
    ("verdict", "expected"), [("holds", "Plan with 168/s, the lower end"), ("fails", "plan with neither")]
)
def test_one_number_to_plan_with_where_count_and_model_disagree(verdict: str, expected: str) -> None:
    wave = {"rate": 168.2, "seconds": 60.0, "verdict": verdict}
    twin = {**found()["twin"], "interval": MODELS[1]}
    assert expected in " ".join(to_text(searched(confirmation=[wave], twin=twin)).split())


@pytest.mark.parametrize("reason", CLIENT_REASONS)
def test_nothing_is_said_twice_of_the_client(reason: str) -> None:
    line = headline(searched(outcome="client_limited", at_least=None, reason=reason))
    assert line.lower().count("the client was the limit") == 1
    assert not line.endswith(": ")
