"""Which waves are repetitions of each other, and the names of those that are not."""

from __future__ import annotations

import csv
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from inference_benchmarker.facts.wave_facts import OF_MODULES
from inference_benchmarker.plan.load import OpenLoop
from inference_benchmarker.plan.replay import Recording, Replay
from inference_benchmarker.url import SALT_SETTING, SEED_SETTING
from inference_benchmarker.words.units import NS
from server_capacity.results.types.price import per_million
from tests.case import case
from tests.mentions import mentions
from tests.waves import chat
from visualization.pages.pareto import pareto_figures
from visualization.pareto.loads import loads_of
from visualization.pareto.points import MEDIAN, Configuration
from visualization.pareto.result import pareto_of
from visualization.pareto.text import to_csv, to_text

if TYPE_CHECKING:
    from inference_benchmarker.wave.wave import Wave

ONE = chat()


def planned(**fields: Any) -> Wave:
    return replace(ONE, plan=replace(ONE.plan, **fields))


def of_settings(**settings: str) -> Wave:
    return planned(factory_settings=settings)


def knowing(**environment: Any) -> Wave:
    return replace(ONE, environment=environment)


def texts(*waves: Wave) -> list[str]:
    return [load.text for load in loads_of(waves)]


APART: dict[str, tuple[Wave, Wave, list[str]]] = {
    "a setting": (of_settings(N="1"), of_settings(N="2"), ["2/s, N 1", "2/s, N 2"]),
    "a setting of one": (ONE, of_settings(N="2"), ["2/s, no N", "2/s, N 2"]),
    "a payload argument": (
        planned(payload_arguments={"size": 1}),
        planned(payload_arguments={"size": 2}),
        ["2/s, size 1", "2/s, size 2"],
    ),
    "a timeout": (
        ONE,
        planned(request_timeout_s=Decimal(5)),
        ["2/s, no request timeout", "2/s, a request timeout of 5 s"],
    ),
    "arrivals": (
        ONE,
        planned(load=OpenLoop(Decimal(2), arrivals="poisson")),
        ["2/s, evenly spaced arrivals", "2/s, Poisson arrivals"],
    ),
    "headers": (ONE, knowing(headers=["x-route"]), ["2/s, no header X-Route", "2/s, header X-Route"]),
    "the factories file": (
        knowing(file_sha256="a" * 64),
        knowing(file_sha256="b" * 64),
        ["2/s, factories file aaaaaaaa", "2/s, factories file bbbbbbbb"],
    ),
    "a module": (
        knowing(**{OF_MODULES: {"m.py": "a" * 64}}),
        knowing(**{OF_MODULES: {"m.py": "b" * 64}}),
        ["2/s, m.py aaaaaaaa", "2/s, m.py bbbbbbbb"],
    ),
    "a fresh cache": (ONE, of_settings(**{SALT_SETTING: "x"}), [f"2/s, no {SALT_SETTING}", f"2/s, {SALT_SETTING}"]),
}
ALIKE: dict[str, tuple[Wave, Wave]] = {
    "nothing": (ONE, chat(gap_ms=30)),
    "the length": (ONE, chat(seconds=20)),
    "the seed": (of_settings(**{SEED_SETTING: "1"}), of_settings(**{SEED_SETTING: "2"})),
    "the words of fresh caches": (of_settings(**{SALT_SETTING: "x"}), of_settings(**{SALT_SETTING: "y"})),
    "a module that an earlier version did not know": (ONE, knowing(**{OF_MODULES: {"m.py": "a"}})),
}


def test_waves_of_one_load_with_other_requests_are_no_repetitions_and_have_names_of_their_own() -> None:
    for name, (one, other, expected) in APART.items():
        with case(name):
            assert texts(one, other) == expected


def test_waves_that_differ_by_nothing_that_shapes_requests_are_repetitions() -> None:
    for name, (one, other) in ALIKE.items():
        with case(name):
            assert texts(one, other) == ["2/s"]


def test_what_tells_two_loads_apart_is_in_the_name_of_all_and_what_does_not_is_in_none() -> None:
    waves = [of_settings(N="1"), of_settings(N="2"), chat(4), chat(6)]
    other = replace(waves[2], plan=replace(waves[2].plan, factory_settings={"N": "1", "M": "5"}))
    assert texts(*waves[:2], other) == ["2/s, N 1", "2/s, N 2", "4/s, N 1"]
    assert texts(other, waves[3]) == ["4/s", "6/s"], "the loads tell them apart"


def test_loads_of_the_same_words_have_numbers() -> None:
    long = "a" * 50
    waves = [of_settings(N=f"{long}{middle}{long}") for middle in "bc"]
    first, second = texts(*waves)
    assert first.removesuffix(" (1)") == second.removesuffix(" (2)")


def test_replays_of_one_recording_are_repetitions() -> None:
    def replayed(rows: int) -> Wave:
        facts = Recording("nginx", "time", "s", "UTC", 660, rows, 5 * NS, 6 * NS, NS, 6 * NS, 20)
        return planned(load=OpenLoop(replay=Replay(Path("access.log"), recording=facts)))

    assert len(texts(replayed(120), replayed(120))) == 1
    one, other = texts(replayed(120), replayed(121))
    assert mentions(one, "120 requests")
    assert mentions(other, "121 requests")


def test_points_of_other_prompts_are_apart_in_every_file() -> None:
    short, long = of_settings(INPUT_TOKENS="200"), chat(gap_ms=40)
    long = replace(long, plan=replace(long.plan, factory_settings={"INPUT_TOKENS": "8000"}))
    found = pareto_of([Configuration("M", (short, long))], per_million)
    names = ["2/s, INPUT_TOKENS 200", "2/s, INPUT_TOKENS 8000"]
    assert [each.load for each in found.result.points] == names
    assert [each.speeds[MEDIAN].value for each in found.points] == pytest.approx([50, 25], rel=0.02)
    assert [row["load"] for row in csv.DictReader(to_csv(found).splitlines())] == names
    (table,) = next(each for each in pareto_figures(found).sections if each.key == "points").tables
    for name, row in zip(names, table.rows, strict=True):
        assert row.cells[0] == f"M, {name}"
        assert mentions(to_text(found), f"M, {name}")
