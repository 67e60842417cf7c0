"""The ranking by the cost of a million output tokens, and the price of a variant without an instance type."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from inference_benchmarker.data.decoded import encoded
from inference_benchmarker.words import secret_values
from server_capacity.experiments.ranking.children import Result
from server_capacity.experiments.ranking.collecting import Collector
from server_capacity.experiments.ranking.jobs import Job
from server_capacity.planning.costs.prices import Prices
from server_capacity.results.capacity_folder import save
from server_capacity.results.codec import check_ranking
from server_capacity.results.ranking_folder import load as load_ranking
from server_capacity.results.ranking_folder import save as save_ranking
from server_capacity.results.ranking_order import ranking, require_order
from server_capacity.results.ranking_row import Aim
from server_capacity.results.text.ranking import WIDTH, to_text
from server_capacity.results.text.ranking_csv import COLUMNS, to_csv
from server_capacity.results.types.axes import Variant
from server_capacity.results.types.capacity import CanaryAnswer
from server_capacity.results.types.result_status import settled
from tests.capacities import searched
from tests.rankings import drawn, row

if TYPE_CHECKING:
    from pathlib import Path

    from server_capacity.results.types.ranking import RankedRow, RankingResult

PER_REQUEST = {"requests": 900, "input": 400.0, "cached": 100.0, "output": 50.0, "output_sd": 5.0}


def generating(name: str, low: float, *, price: float | None = 3.6, output: float = 50.0, **more: Any) -> RankedRow:
    tokens = {"per_request": {**PER_REQUEST, "output": output}}
    return row(name, low, price=price, tokens=tokens, **more)


def test_the_cost_of_each_kind_is_the_whole_cost_over_its_tokens_at_the_lower_end() -> None:
    costs = generating("a", 10.0).token_costs
    assert costs is not None
    assert costs.output == pytest.approx(3.6 / (3600 * 10 * 50) * 1e6)
    assert costs.input == pytest.approx(3.6 / (3600 * 10 * 300) * 1e6), "what was not cached"
    assert costs.cached == pytest.approx(3.6 / (3600 * 10 * 100) * 1e6)


def test_of_several_instances_each_pays_for_its_share() -> None:
    costs = generating("a", 40.0, endpoint={"instances": 4}).token_costs
    assert costs is not None
    assert costs.output == pytest.approx(2)


def test_of_sessions_the_tokens_are_those_of_all_turns() -> None:
    found = generating("a", 1.0, sessions={"turns": 5.0})
    assert found.tokens_each is not None
    assert (found.tokens_each.input, found.tokens_each.output) == (2000, 250)
    pieces = {"tokens_per_s": 250.0, "requests_per_s": 5.0}
    kinds: list[dict[str, Any]] = [{}, {"sessions": {"turns": 5.0}}]
    costs = [row("a", 1.0, price=3.6, tokens=pieces, **more) for more in kinds]
    of_requests, of_sessions = (each.cost_per_million_tokens or 0.0 for each in costs)
    assert of_sessions == pytest.approx(of_requests / 5)


@pytest.mark.parametrize(
    ("rows", "aim", "by"),
    [
        ([generating("a", 10), generating("b", 20)], Aim(), "cost_per_million_output"),
        ([generating("a", 10), row("b", 20, price=1.0)], Aim(), "cost_per_million"),
        ([generating("a", 10), generating("b", 20, price=None)], Aim(), "rate"),
        ([generating("a", 10), generating("b", 20)], Aim(100), "cost_hour"),
        ([generating("a", 10, output=0.0), generating("b", 20)], Aim(), "cost_per_million"),
    ],
)
def test_it_ranks_by_output_tokens_where_all_generate_and_have_a_price(
    rows: list[RankedRow], aim: Aim, by: str
) -> None:
    assert ranking(rows, aim).ranked_by == by


def by_tokens() -> RankingResult:
    """The faster one costs twice as much an hour, and the third generates fewer tokens with each answer."""
    rows = [generating("a", 10), generating("b", 15, price=7.2), generating("c", 12, output=30.0)]
    return ranking(rows, Aim())


def test_the_cheapest_tokens_are_first_with_both_ends_of_the_interval() -> None:
    found = by_tokens()
    assert [each.label for each in found.rows] == ["a", "b", "c"]
    assert found.headline == (
        "a is cheapest: $2.00 per million output tokens at the lower end of its capacity's interval, $1.89 at its "
        "upper end (us-east-1, given); next b, 33% more."
    )
    score = found.rows[0].score
    assert score is not None
    assert score.best is not None
    assert score.worst == pytest.approx(2)
    assert score.best == pytest.approx(2 / 1.06)
    kept = check_ranking(json.loads(json.dumps(encoded(found))))
    require_order(kept)
    assert kept == found


def test_a_cost_that_does_not_follow_from_the_rate_is_refused() -> None:
    data = encoded(by_tokens())
    data["rows"][0]["token_costs"]["output"] = 0.5
    with pytest.raises(ValueError, match="row 1 costs 0\\.5 per million output tokens"):
        check_ranking(data)


def test_the_table_shows_the_cost_and_a_note_the_other_kinds() -> None:
    text = to_text(by_tokens())
    assert max(map(len, text.split("\n\n")[1].splitlines())) <= WIDTH
    assert "$1.89 to $2.00" in text
    assert "a: input $0.33, cached $1.00, output $2.00" in " ".join(text.split())


def test_the_table_for_spreadsheets_has_a_row_for_each_variant() -> None:
    head, *rows = csv.reader(io.StringIO(to_csv(by_tokens())))
    assert tuple(head) == COLUMNS
    first = dict(zip(head, rows[0], strict=True))
    assert [first[key] for key in ("variant", "rank", "ranked_by")] == ["a", "1", "cost_per_million_output"]
    assert float(first["cost_per_million_output"]) == pytest.approx(2)
    assert (first["answers_equal"], first["currency"]) == ("", "USD")


def test_the_page_shows_the_cost_of_each_kind(tmp_path: Path) -> None:
    figures = drawn(tmp_path, by_tokens())
    (table,) = figures.answer
    place = table.head.index("per 1M output")
    assert [each.cells[place] for each in table.rows] == ["$2.00", "$2.67", "$2.78"]
    (section,) = (each for each in figures.sections if each.key == "cost")
    assert section.charts[0].title == "Cost per million output tokens"


@pytest.mark.parametrize(
    ("given", "known", "priced"),
    [
        ({"gpu": 2.5}, {}, ("gpu", 2.5)),
        ({"gpu": 2.5}, {"gpus": 4}, ("4 x gpu", 10.0)),
        ({"gpu": 2.5, "seqs=64": 1.0}, {}, ("seqs=64", 1.0)),
        ({"gpu": 2.5, "ml.g5.xlarge": 1.4}, {"instance_type": "ml.g5.xlarge"}, ("ml.g5.xlarge", 1.4)),
        ({"gpu": 2.5}, {"gpus": True}, ("gpu", 2.5)),
        ({"other": 2.5}, {}, None),
    ],
)
def test_a_variant_costs_what_was_given_for_it_for_its_type_or_for_its_gpus(
    tmp_path: Path, given: dict[str, float], known: dict[str, Any], priced: tuple[str, float] | None
) -> None:
    save_search(tmp_path / "x_capacity")
    job = Job((Variant(arguments=(("seqs", "64"),)),), {"seqs": 64}, known, (None,))
    collector = Collector(tmp_path, [job], Aim(), Prices(given))
    found = collector.ranking({(0, 0): Result(0, 0, "x_capacity", None)}, interrupted=False, created="")
    price = found.rows[0].price
    assert (None if price is None else (price.instance_type, price.per_hour)) == priced


def test_traffics_with_two_secrets_are_two_traffics(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their answers are to other requests, so they are not compared."""
    words = ("alpha11beta22", "gamma33delta44")
    monkeypatch.setattr(secret_values, "_environments", [{"FIRST_KEY": words[0], "SECOND_KEY": words[1]}])
    variants = tuple(Variant(payload=(("tag", word),)) for word in words)
    for name, answer in zip("xy", words, strict=True):
        save_search(tmp_path / f"{name}_capacity", canaries=[CanaryAnswer(answer[::-1], 13)] * 6)
    collector = Collector(tmp_path, [Job(variants, None, {}, (None, None))], Aim(), Prices({}))
    results = {(0, place): Result(0, place, f"{name}_capacity", None) for place, name in enumerate("xy")}
    found = collector.ranking(results, interrupted=False, created="")
    assert [(each.variant, each.answers) for each in found.rows] == [
        ({"payload.tag": f"[hidden] #{number}"}, None) for number in (1, 2)
    ]
    assert found.payload_variants is not None


def test_a_ranking_of_two_secret_arguments_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ("alpha11beta22", "gamma33delta44")
    monkeypatch.setattr(secret_values, "_environments", [{"FIRST_KEY": words[0], "SECOND_KEY": words[1]}])
    jobs = [Job((Variant(arguments=(("key", word),)),), {"key": word}, {}, (None,)) for word in words]
    for name, word in zip("xy", words, strict=True):
        save_search(tmp_path / f"{name}_capacity", endpoint={"arguments": {"key": word}})
    results = {(place, 0): Result(place, 0, f"{name}_capacity", None) for place, name in enumerate("xy")}
    found = Collector(tmp_path, jobs, Aim(), Prices({})).ranking(results, interrupted=False, created="")
    save_ranking(tmp_path, found)
    assert [each.variant["key"] for each in load_ranking(tmp_path).found.rows] == ["[hidden] #1", "[hidden] #2"]


def save_search(folder: Path, **more: Any) -> None:
    folder.mkdir()
    made = searched(confirmation=[{"rate": 168.2, "seconds": 10.0, "verdict": "holds", "limits": []}], **more)
    save(folder, settled(made if "endpoint" in more else replace(made, endpoint=None)))
