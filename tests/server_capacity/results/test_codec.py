from __future__ import annotations

import json
from contextlib import suppress
from copy import deepcopy
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference_benchmarker.data.decoded import encoded
from inference_benchmarker.data.digest import digest_of
from inference_benchmarker.data.json_file import FOREIGN
from inference_benchmarker.errors import BenchmarkError
from server_capacity.results import capacity_folder
from server_capacity.results.codec import check_capacity, check_ranking
from tests.capacities import found
from tests.rankings import ranked

if TYPE_CHECKING:
    from pathlib import Path


SLOWER: dict[str, Any] = {
    "before": {"rate": 174.0, "start_s": 10.0, "share": 0.0},
    "after": {"rate": 170.0, "start_s": 90.0, "share": 0.9},
    "until_s": 50.0,
    "early": {"rate": 340.0, "interval": {"low": 330.0, "high": 350.0}},
}


def search(**more: Any) -> dict[str, Any]:
    return found(schema_version=1, headline="Meets p99<100ms up to 174/s", **more)


@pytest.mark.parametrize(
    "forged",
    [
        {"rate": -5.0, "interval": {"low": -9.0, "high": -1.0}},
        {"rate": 50.0, "interval": {"low": 90.0, "high": 10.0}},
        {"rate": 99_999.0, "interval": {"low": 99_000.0, "high": 99_999.5}, "stretches": found()["stretches"]},
        {
            "limits": [{"expression": "p99<100ms", "allowed": 0.01}],
            "stretches": [{**each, "share_over": [1.0, 0.0]} for each in found()["stretches"]],
        },
        {"rate": 10.0},
        {"rate": True},
        {"rate": 1e300},
        {"schema_version": -1},
        {"schema_version": 0},
        {"schema_version": 1.0},
        {"schema_version": True},
        {"exit_code": 7},
        {"exit_code": 130},
        {"outcome": "not_kept"},
        {"outcome": "splendid"},
        {"rate": None},
        {"endpoint": {"instances": -3}},
        {"confirmation": [{"rate": 1.0, "verdict": "perhaps"}]},
    ],
)
def test_a_forged_search_is_refused_in_a_sentence(tmp_path: Path, forged: dict[str, Any]) -> None:
    (tmp_path / "capacity.json").write_text(json.dumps({**search(), **forged}))
    with pytest.raises(BenchmarkError, match=rf"capacity\.json: {FOREIGN}") as error:
        capacity_folder.load(tmp_path)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("expected", "said"),
    [
        ({"windows": {"seconds": 60.0, "windows": 3, "kept": 0, "share": 1.0}}, "0 of 3 windows"),
        ({"windows": {"seconds": 60.0, "windows": 60, "kept": 59, "share": 0.99999}}, "59 of 60 windows"),
        ({"windows": {"seconds": 60.0, "windows": 0, "kept": 1, "share": 1.0}}, "1 of 0 windows"),
        (
            {"windows": {"seconds": 60.0, "windows": 2, "kept": 1, "share": 0.5, "interval": {"low": 0.6, "high": 1}}},
            "share of windows is 0.5, outside of its interval",
        ),
        ({"slower": {**SLOWER, "after": {**SLOWER["after"], "start_s": 5.0}}}, "slower at 5 s than later, at 10 s"),
        (
            {"slower": {**SLOWER, "after": {**SLOWER["after"], "share": 0.0}}},
            "slower, but the share over the limit did not rise",
        ),
        (
            {"slower": {**SLOWER, **{name: {**SLOWER[name], "mean_s": 0.02} for name in ("before", "after")}}},
            "slower, but answers took no longer",
        ),
        ({"slower": {**SLOWER, "early": {**SLOWER["early"], "rate": 300.0}}}, "early rate is 300, outside"),
        ({"memory": {"below": {"rate": 1.0, "interval": {"low": 2.0, "high": 3.0}}, "above": {}}}, "from below is 1"),
    ],
)
def test_parts_of_a_search_that_contradict_each_other_are_refused(expected: dict[str, Any], said: str) -> None:
    check_capacity(search(slower=SLOWER))
    with pytest.raises(ValueError, match=said):
        check_capacity(search(**expected))


def test_a_file_without_a_digest_loads_and_one_that_was_changed_is_refused(tmp_path: Path) -> None:
    (tmp_path / "capacity.json").write_text(json.dumps(search()))
    assert capacity_folder.load(tmp_path).found.rate == 174.13
    capacity_folder.save(tmp_path, check_capacity(search()))
    stored = json.loads((tmp_path / "capacity.json").read_text())
    assert stored["digest"] == digest_of(stored)
    (tmp_path / "capacity.json").write_text(json.dumps({**stored, "load_s": 61.0}))
    with pytest.raises(BenchmarkError, match="it was changed after it was stored"):
        capacity_folder.load(tmp_path)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path of every value within a JSON object."""
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(each for key, part in parts for each in places(part, (*path, key)))]


STORED = {**search(), "digest": digest_of(search())}
EVERY = [path for path in places(STORED) if path]


@given(st.sampled_from(EVERY), st.one_of(st.none(), st.booleans(), st.floats(-1e9, 1e9), st.just("x"), st.just([])))
def test_any_one_value_that_is_changed_is_noticed(path: tuple[Any, ...], value: Any) -> None:
    changed = deepcopy(STORED)
    at = changed
    for key in path[:-1]:
        at = at[key]
    same = at[path[-1]] == value and type(at[path[-1]]) is type(value)
    at[path[-1]] = value
    assert same or path == ("digest",) or digest_of(changed) != STORED["digest"]


@given(st.sampled_from(EVERY), st.floats(-1e9, 1e9))
def test_no_value_breaks_the_codec(path: tuple[Any, ...], value: float) -> None:
    changed = deepcopy(STORED)
    at = changed
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    with suppress(ValueError):
        check_capacity(changed)


@pytest.mark.parametrize(
    "forged", [{"rank": 3}, {"rank": -1}, {"cost_hour": 0.0}, {"tied_with": [9]}, {"instances": 0}, {"score": None}]
)
def test_a_forged_ranking_is_refused(forged: dict[str, Any]) -> None:
    data = encoded(ranked(1000, ("m5", 300, 0.32), ("c5", 250, 0.204)))
    check_ranking(data)
    data["rows"][0] |= forged
    with pytest.raises(ValueError, match=r"\w"):
        check_ranking(data)
