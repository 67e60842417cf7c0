"""No word that a run directory is made of is hidden as a secret: whoever has such a key could not read his runs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from inference_benchmarker import Wave
from inference_benchmarker.data.decoded import encoded
from inference_benchmarker.words.redact import HEADERS, secret_values
from tests.capacities import found
from tests.hostile import honest_runs
from tests.waves import drawn, make_run, wave
from visualization.comparison.comparison import compare
from visualization.comparison.result import result_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FOREIGN = ("dimensions", "factory_settings", "packages", "platform", "environment")


def keys_of(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, each in value.items():
            yield key
            yield from () if key in FOREIGN else keys_of(each)
    elif isinstance(value, list):
        for each in value:
            yield from keys_of(each)


def heads_of(run: Path) -> Iterator[str]:
    for table in (*run.glob("*.csv"), *run.glob("locust_stats/none")):
        yield from table.read_text(encoding="utf-8").splitlines()[0].split(",")


def hidden(value: str) -> list[str]:
    """What would be hidden of a header that has this value."""
    return secret_values({HEADERS: json.dumps({"X-Api-Key": value})})


def test_no_key_and_no_column_is_hidden(tmp_path: Path) -> None:
    runs = [run for run in honest_runs(tmp_path) if (run / "plan.json").exists()]
    documents = [json.loads(file.read_text(encoding="utf-8")) for run in runs for file in run.glob("*.json")]
    documents += [found(), json.loads(json.dumps(encoded(result_of(compare(wave(drawn(1)), wave(drawn(2)))))))]
    words = {key for document in documents for key in keys_of(document)} | {
        key for run in runs for key in heads_of(run)
    }
    assert len(words) > 200
    assert {word: reported for word in words if (reported := hidden(word))} == {}


@pytest.mark.parametrize("word", ["open", "closed", "constant", "poisson", "none", "VALID", "true", "null"])
def test_no_word_for_a_kind_is_hidden(word: str) -> None:
    assert hidden(word) == []


@pytest.mark.parametrize("secret", ["demo", "test", "hunter2", "sup3r-s3cret", "a mean rate of secrets"])
def test_what_is_none_of_ours_is(secret: str) -> None:
    assert secret in hidden(secret)


@pytest.mark.parametrize("word", ["constant", "scheduled", "open", "true", "0.95", "1e-05", "1700000000"])
def test_a_run_can_be_read_whatever_word_the_key_is(word: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(HEADERS, json.dumps({"X-Api-Key": word}))
    make_run(tmp_path / "run", 50)
    assert len(Wave.load(tmp_path / "run").records) == 50
