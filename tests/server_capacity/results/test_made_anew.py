"""A stored text that its numbers do not give is not believed, whatever its digest says."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any

import pytest

from inference_benchmarker.data.digest import KEY, digest_of
from inference_benchmarker.data.json_file import FOREIGN
from inference_benchmarker.errors import BenchmarkError
from server_capacity.experiments.proof import folder as proofs
from server_capacity.planning import folder as plans
from server_capacity.planning.totals import content
from server_capacity.results import ranking_folder as rankings
from tests.plans import planned
from tests.proofs import proof, ran
from tests.rankings import ranked

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ROWS = ("m5", 300, 0.32), ("c5", 250, 0.204), ("g4", 280, 0.9)
PLAN = content([planned(target_rps=1000)], [], created="2026-11-23T10:00:00Z", utilisation=0.7, spare=1)
LIE = "1 instance holds 9999/s"


def forge(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change a stored object, with the digest that it then has."""
    data = json.loads(path.read_text())
    change(data)
    path.write_text(json.dumps({**data, KEY: digest_of({name: data[name] for name in data if name != KEY})}))


def lie(data: dict[str, Any]) -> None:
    data["headline"] = LIE


@pytest.mark.parametrize(
    ("stored", "data"), [(rankings, ranked(1000, *ROWS)), (plans, PLAN), (proofs, proof(ran(0.001)))]
)
def test_a_headline_is_made_anew_of_the_numbers(tmp_path: Path, stored: Any, data: Any) -> None:
    stored.save(tmp_path, data, *([{}] if stored is plans else []))
    before = stored.load(tmp_path).text
    forge(tmp_path / stored.FILE, lie)
    assert stored.load(tmp_path).text == before
    assert LIE not in before


def reverse(data: dict[str, Any]) -> None:
    data["rows"].reverse()
    for place, row in enumerate(data["rows"], 1):
        row |= {"rank": place, "tied_with": []}


def empty(data: dict[str, Any]) -> None:
    data["rows"] = []


def cheap(data: dict[str, Any]) -> None:
    data["rows"][1]["score"] = {"best": 0.01, "worst": 0.01}


def alone(data: dict[str, Any]) -> None:
    data["rows"][0]["tied_with"] = [2]


@pytest.mark.parametrize("change", [reverse, empty, cheap, alone])
@pytest.mark.parametrize("target", [None, 1000])
def test_an_order_that_the_rows_do_not_give_is_refused(
    tmp_path: Path, target: float | None, change: Callable[[dict[str, Any]], None]
) -> None:
    rankings.save(tmp_path, ranked(target, *ROWS))
    forge(tmp_path / rankings.FILE, change)
    with pytest.raises(BenchmarkError, match=rf"ranking\.json: {FOREIGN}"):
        rankings.load(tmp_path)


@pytest.mark.parametrize("seed", range(40))
def test_every_ranking_that_is_made_is_read(tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    price = draw.random() < 0.7
    rows = [
        (f"t{n}", draw.uniform(1, 400), draw.choice([0.0, draw.uniform(0.1, 3)]) if price else None)
        for n in range(draw.randint(1, 6))
    ]
    data = ranked(draw.choice([None, draw.uniform(1, 5000)]), *rows, interrupted=draw.random() < 0.2)
    rankings.save(tmp_path, data)
    assert rankings.read(tmp_path).rows == data.rows
