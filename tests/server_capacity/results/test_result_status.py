from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from server_capacity.planning.measured import Measured, measured
from server_capacity.results.ranking_order import inherited_code, of_today, ranking, require_order
from server_capacity.results.ranking_row import Aim, failed_row
from server_capacity.results.ranking_traffics import traffics
from server_capacity.results.text.ranking import to_text
from server_capacity.results.text.ranking_headline import left_open_beside
from server_capacity.results.types.result_status import NOT_REMOVED, repeated_waves, standing, warnings_of
from tests.capacities import searched
from tests.mentions import mentions
from tests.rankings import row, traffic

KILLED = "The search ended early: the primary was killed (SIGKILL)."


def waves(verdict: str) -> list[dict[str, Any]]:
    return [{"rate": 168.2, "verdict": verdict, "limits": []}]


@pytest.mark.parametrize(
    ("spoilt", "repeated"),
    [(["it stalled", ""], {"wave-0": "it stalled"}), (["", ""], {}), (["it stalled", "it stalled"], {}), ([], {})],
)
def test_a_wave_at_the_answer_that_was_spoilt_does_not_count_once_another_does(
    spoilt: list[str], repeated: dict[str, str]
) -> None:
    sent = [{**waves("holds")[0], "directory": f"wave-{place}", "spoilt": why} for place, why in enumerate(spoilt)]
    assert repeated_waves(searched(confirmation=sent)) == repeated


@pytest.mark.parametrize(
    ("more", "ended", "confirmed", "code", "said"),
    [
        ({}, "complete", "holds", 0, []),
        ({"confirmation": waves("cannot_tell")}, "complete", "cannot_tell", 1, ["no wave confirmed it"]),
        ({"confirmation": waves("fails")}, "complete", "fails", 1, ["the confirming wave failed"]),
        ({"confirmation": []}, "complete", None, 1, ["no wave confirmed it"]),
        (
            {"failures": [KILLED], "exit_code": 0},
            "early",
            "holds",
            3,
            ["its search ended early: the primary was killed (SIGKILL)"],
        ),
        (
            {"clean_up": "failed"},
            "complete",
            "holds",
            3,
            [f"its search: something that was created for it {NOT_REMOVED}"],
        ),
        ({"suspended": {"put_back": True}}, "complete", "holds", 0, []),
        (
            {"suspended": {"put_back": False}},
            "complete",
            "holds",
            3,
            ["its search: scaling that was suspended for it is not restored"],
        ),
        (
            {"suspended": {"put_back": None}},
            "complete",
            "holds",
            3,
            ["its search: scaling that was suspended for it is not restored"],
        ),
        (
            {"outcome": "interrupted", "exit_code": 130},
            "interrupted",
            "holds",
            130,
            ["its search was interrupted"],
        ),
    ],
)
def test_a_search_carries_how_it_ended_what_confirmed_it_and_its_exit_code(
    more: dict[str, Any], ended: str, confirmed: str | None, code: int, said: list[str]
) -> None:
    data = searched(**more)
    assert standing(data) == (ended, confirmed, code)
    assert list(warnings_of(data)) == said


def test_a_value_that_violates_its_limit_is_a_warning() -> None:
    limit = {"expression": "p99<100ms", "allowed": 0.01, "bound": 0.1, "unit": "s", "at_low": 0.106}
    assert list(warnings_of(searched(limits=[limit]))) == ["106 ms at the lower end violates p99<100ms"]


def test_a_broken_search_neither_ties_nor_wins() -> None:
    best = row("a", 300, 500, failures=[KILLED], exit_code=3)
    data = ranking([best, row("b", 250, 400)], Aim())

    first, last = data.rows
    assert (first.label, first.rank, first.tied_with, last.rank) == ("b", 1, [], None)
    assert data.exit_code == 3
    assert data.headline.endswith("a has no rank: its search ended early: the primary was killed (SIGKILL).")
    assert "✗ a: its search ended early: the primary was killed" in " ".join(to_text(data).split())


def test_a_row_that_no_wave_confirmed_is_marked_and_its_exit_code_inherited() -> None:
    data = ranking([row("a", 300, confirmation=waves("cannot_tell")), row("b", 250)], Aim())

    text = " ".join(to_text(data).split())
    assert "a 1? " in text
    assert "? a: no wave confirmed it; so the exit code is 1." in text
    assert data.exit_code == 1


def test_a_plan_inherits_from_its_search() -> None:
    search = measured(searched(failures=[KILLED], exit_code=3), "a_capacity")
    assert isinstance(search, Measured)
    assert search.exit_code == 3
    assert search.warnings == ["its search ended early: the primary was killed (SIGKILL)"]


@pytest.mark.parametrize(("outcome", "code"), [("not_kept", 1), ("client_limited", 3)])
def test_what_a_search_without_a_rank_left_behind_is_the_rankings_exit_code(outcome: str, code: int) -> None:
    left = row("c5", 250, outcome=outcome, exit_code=code, clean_up="failed")
    left = replace(left, rate=None, interval=None)
    assert left.exit_code == 3
    for data in (ranking([row("m5", 300), left], Aim()), ranking([left], Aim())):
        assert data.exit_code == 3
        assert "c5 has no rank: its search: something that was created for it was not removed" in data.headline


def test_what_a_search_with_a_rank_left_behind_stands_in_the_headline() -> None:
    for outcome in ("found", "client_limited"):
        data = ranking([row("m5", 300, outcome=outcome, clean_up="failed"), row("c5", 250)], Aim())
        assert (data.rows[0].rank, data.exit_code) == (1, 3)
        assert "m5: its search: something that was created for it was not removed" in data.headline


@pytest.mark.parametrize(
    ("code", "why"),
    [
        (1, "f.py, line 3: endpoint_factory() raised OSError."),
        (3, "The process that ran the search was ended by signal 9."),
    ],
)
def test_a_ranking_takes_the_exit_code_of_a_variant_that_was_not_searched(code: int, why: str) -> None:
    failed = failed_row({"instance_type": "p5"}, why, code=code)
    data = ranking([row("m5", 300), failed], Aim())
    assert (data.exit_code, data.rows[1].exit_code) == (code, code)
    assert data.headline.endswith(f"p5 has no rank: {why}")
    alone = ranking([failed], Aim())
    assert (alone.exit_code, alone.headline) == (code, f"No variant has a capacity: {why}")


def test_a_ranking_of_an_earlier_version_keeps_its_exit_code() -> None:
    failed = failed_row({"instance_type": "p5"}, "f.py: no.")
    require_order(replace(ranking([row("m5", 300), failed], Aim()), exit_code=0))


@pytest.mark.parametrize(("outcome", "code"), [("client_limited", 3), ("cannot_tell", 1)])
def test_a_search_that_could_not_tell_its_rate_may_be_the_better_one(outcome: str, code: int) -> None:
    unknown = replace(row("c5", 250, outcome=outcome, exit_code=code), rate=None, interval=None, warnings=[])
    unknown = replace(unknown, headline="Nobody knows: why")
    data = ranking([row("m5", 300), unknown], Aim())
    assert (data.rows[0].rank, data.exit_code) == (1, code)
    assert data.headline.endswith("c5 has no rank: Nobody knows: why.")
    earlier = replace(data, exit_code=0)
    require_order(earlier)
    assert (inherited_code(data), inherited_code(earlier)) == (code, code)
    with pytest.raises(ValueError, match="exit_code"):
        require_order(replace(data, exit_code=130))


def test_a_search_that_meets_its_limits_at_no_rate_is_not_the_better_one() -> None:
    none = replace(row("c5", 250, outcome="not_kept", exit_code=1), rate=None, interval=None)
    assert ranking([row("m5", 300), none], Aim()).exit_code == 0


def test_an_earlier_version_did_not_count_what_a_limited_search_left_behind() -> None:
    left = replace(row("c5", 250, outcome="client_limited", exit_code=3, clean_up="failed"), rate=None, interval=None)
    data = ranking([row("m5", 300), left], Aim())
    earlier = replace(data, exit_code=0)
    require_order(earlier)
    assert (data.exit_code, inherited_code(earlier)) == (3, 3)
    with pytest.raises(ValueError, match="exit_code"):
        require_order(replace(ranking([row("m5", 300, confirmation=waves("fails"))], Aim()), exit_code=0))


def test_an_earlier_version_counted_early_searches_among_the_traffic_patterns() -> None:
    early = replace(traffic("hot", 50, 53), ended="early", exit_code=3)
    data = ranking([traffic("even", 100, 106), early], Aim())
    earlier = replace(data, payload_variants=traffics(data.rows))
    assert earlier.payload_variants is not None
    assert earlier.payload_variants.equivalent is False
    require_order(earlier)
    assert of_today(earlier) == data
    with pytest.raises(ValueError, match="payload_variants"):
        require_order(replace(data, payload_variants=replace(earlier.payload_variants, equivalent=True)))


def test_a_variant_whose_search_somebody_ended_stands_in_the_headline() -> None:
    ended = row("c5", 250, outcome="interrupted", exit_code=130)
    data = ranking([row("m5", 300), ended], Aim())
    assert (data.interrupted, data.exit_code) == (False, 130)
    assert data.headline.endswith("c5: its search was interrupted.")
    whole = ranking([row("m5", 300), ended], Aim(), interrupted=True)
    assert "its search was interrupted" not in whole.headline


def test_each_clause_on_a_variant_is_reported_however_many_there_are() -> None:
    """The last of them is what the exit code is of."""
    left: dict[str, Any] = {"clean_up": "failed", "suspended": {"put_back": False}}
    data = ranking([row("m5", 300), row("c5", 250, outcome="interrupted", exit_code=130, **left)], Aim())
    assert data.exit_code == 130
    for reported in (data.headline, *left_open_beside(data, data.rows[0])):
        assert mentions(reported, "(cleanup.json has what became of it)", "scaling", "its search was interrupted")
