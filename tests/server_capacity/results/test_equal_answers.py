"""Which variants of a ranking give the same answers: by fixed questions, and by the length of all answers."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from functools import cache
from itertools import product
from statistics import fmean, pstdev
from typing import TYPE_CHECKING

import pytest

from inference_benchmarker.data.decoded import encoded
from inference_benchmarker.exit_codes import MISSED, OK
from server_capacity.results.codec import check_ranking
from server_capacity.results.equal_answers import Given, length_ratio, text_difference, with_answers
from server_capacity.results.ranking_order import ranking, require_order
from server_capacity.results.ranking_row import Aim
from server_capacity.results.text.ranking import to_text
from server_capacity.results.types.capacity import CanaryAnswer, PerRequest
from tests.rankings import row

if TYPE_CHECKING:
    from collections.abc import Sequence

    from server_capacity.results.types.ranking import RankedRow, RankingResult

LONG = "The capital of France is Paris, which lies on the Seine."
WORDS = [LONG, "one two three four five six", "a-b-c-0", "d-e-f-1", "g-h-i-2", "j-k-l-3"]


def said(text: str | None) -> CanaryAnswer:
    return CanaryAnswer(text, None if text is None else len(text))


def given(
    texts: Sequence[str | None] | None = None, output: float | None = 100.0, sd: float = 0.0, n: int = 500
) -> Given:
    lengths = None if output is None else PerRequest(n, 200.0, None, output, sd)
    return Given(tuple(map(said, texts or [])), lengths)


once = cache(row)
"""A row takes some milliseconds, and some tests compare thousands."""


def compared(*known: Given, lows: tuple[float, ...] = (100, 200, 300, 400)) -> list[RankedRow]:
    """Variants a, b, ... of which each holds more than the one before."""
    rows = [once(name, low) for name, low, _ in zip("abcd", lows, known, strict=False)]
    return with_answers(rows, known)


def ranked_of(*known: Given) -> RankingResult:
    return ranking(compared(*known), Aim())


@pytest.mark.parametrize(
    ("mine", "others", "found"),
    [
        ("a b c", "a b c", "same"),
        ("a b", "a b c", "shorter"),
        ("", "a b c", "shorter"),
        ("a b c", "a b", "longer"),
        ("x y z", "a b c", "other"),
        (LONG, LONG.replace("Seine", "river Seine"), "late"),
        (LONG, LONG.replace("capital", "largest city"), "other"),
        (None, "a", None),
        ("a", None, None),
        (None, None, None),
        ("", "", None),
        (" ", "\n", None),
        ("\n\n", "\n\n", None),
        ("\n", "a", "other"),
    ],
)
def test_two_answers_to_one_question(mine: str | None, others: str | None, found: str | None) -> None:
    assert text_difference(said(mine), said(others)) == found


def test_of_answers_that_are_cut_the_whole_length_counts() -> None:
    cut = "x" * 2000
    assert text_difference(CanaryAnswer(cut, 5000), CanaryAnswer(cut, 5000)) == "same"
    assert text_difference(CanaryAnswer(cut, 2000), CanaryAnswer(cut, 5000)) == "shorter"


SHORTER = [text[: len(text) // 2] for text in WORDS]
OTHER = [text[::-1] for text in WORDS]
ONE_OTHER = ["something else", *WORDS[1:]]
UNSTEADY: list[str | None] = [None] * 6
EMPTY = [""] * 6


@pytest.mark.parametrize(
    ("first", "second", "equal", "text"),
    [
        (given(WORDS), given(WORDS), (True, True), "the same text to 6 of 6 fixed questions; output lengths within 5%"),
        (
            given(WORDS),
            given(SHORTER, 50.0),
            (True, False),
            "answers differ from those of a: shorter to 6 of 6 fixed questions; 50 output tokens an answer, not 100",
        ),
        (given(SHORTER, 50.0), given(WORDS), (False, True), "answers differ from those of b: shorter to 6 of 6"),
        (given(WORDS), given([""] * 6, None), (True, False), "shorter to 6 of 6 fixed questions"),
        (given(WORDS), given(OTHER), (True, False), "other text to 6 of 6 fixed questions; output lengths within 5%"),
        (given(WORDS), given(ONE_OTHER), (True, None), "cannot tell by text: 1 of 6 answers"),
        (given(WORDS), given(UNSTEADY), (True, None), "cannot tell by text: no question got one text twice from both"),
        (given(WORDS), given(None), (True, None), "cannot tell by text: no question got one text twice from both"),
        (
            given(EMPTY),
            given(EMPTY),
            (None, None),
            "cannot tell by text: 6 of 6 fixed questions got an empty answer from both",
        ),
        (given(EMPTY), given(EMPTY, 50.0), (None, False), "50 output tokens an answer, not 100"),
        (given(EMPTY, None), given(EMPTY, None), (None, None), "0 of 6 fixed questions got the same text twice, 6 an "),
        (given(None), given(None), (True, None), "no fixed questions were asked; output lengths within 5%"),
        (given(WORDS), given(UNSTEADY, None), (True, None), "undecided whether answers are equal to those of a: "),
        (given(WORDS), given(UNSTEADY, 80.0), (True, False), "80 output tokens an answer, not 100"),
        (given(None), given(None, 130.0), (False, True), "answers differ from those of b: no fixed questions"),
        (given(WORDS), given(WORDS, 97.0, sd=20, n=50), (True, True), "cannot tell by length: 0.88"),
        (given(None), given(None, 97.0, sd=20, n=49), (True, None), "too few answers"),
        (given(None, 0.0), given(None), (False, True), "0 output tokens an answer, not 100"),
    ],
)
def test_of_two_variants_one_is_the_reference(
    first: Given, second: Given, equal: tuple[bool | None, bool | None], text: str
) -> None:
    rows = compared(first, second)
    found = [each.answers for each in rows]
    assert all(found)
    assert tuple(each.equal for each in found if each) == equal
    assert any(text in each.text for each in found if each), [each.text for each in found if each]


def test_the_reference_is_what_most_variants_agree_on() -> None:
    rows = compared(given(OTHER), given(WORDS), given(WORDS), given(ONE_OTHER))
    assert [each.answers and each.answers.equal for each in rows] == [False, True, True, None]
    assert {each.answers and each.answers.reference for each in rows} == {"b"}


def unsteady(texts: Sequence[str | None], *places: int) -> list[str | None]:
    """The same texts, but two different ones to the questions at these places."""
    return [None if place in places else text for place, text in enumerate(texts)]


def ending_late(place: int) -> list[str | None]:
    """Texts of which one differs in its end: rounding may be the cause."""
    return [*WORDS[:place], f"{WORDS[place][:-1]}!", *WORDS[place + 1 :]]


FEW = unsteady(WORDS, 1, 2, 3, 4, 5)
MOSTLY_EMPTY = [WORDS[0], *[""] * 5]
REFERENCES: dict[str, tuple[list[Given], str]] = {
    "three share the one answer that is steady": ([given(OTHER), given(FEW), given(FEW), given(FEW)], "b"),
    "three differ by rounding alone": (
        [given(OTHER), *(given(unsteady(ending_late(place), place - 1)) for place in (1, 2, 3))],
        "b",
    ),
    "the steadier of two is cut": ([given(SHORTER, 25.0), given(unsteady(WORDS, 0))], "b"),
    "the steadier of two is cut, of unknown lengths": ([given(SHORTER, None), given(unsteady(WORDS, 0), None)], "b"),
    "the steadier of two is other": ([given(unsteady(WORDS, 0)), given(OTHER)], "a"),
    "the steadier of three is cut": (
        [given(SHORTER, 25.0), given(unsteady(ending_late(1), 0)), given(unsteady(ending_late(2), 3))],
        "b",
    ),
    "known to be equal is more than not known to differ": (
        [given(ending_late(place)) for place in (1, 2)] + [given(OTHER), given(OTHER)],
        "c",
    ),
    "silent ones are more": ([given(EMPTY), given(EMPTY), given(OTHER)], "c"),
    "silent beside unsteady": ([given(EMPTY), given(EMPTY), given(UNSTEADY)], "c"),
    "mostly empty ones are more": ([given(MOSTLY_EMPTY), given(MOSTLY_EMPTY), given(WORDS)], "c"),
    "mostly empty beside unsteady": ([given(UNSTEADY), given(MOSTLY_EMPTY)], "b"),
    "unsteady ones are more": ([given(UNSTEADY), given(UNSTEADY), given(OTHER, 130.0)], "c"),
    "nothing is known of more": ([Given(), Given(), given(FEW)], "c"),
    "only lengths are known of one": ([Given(), given(None)], "b"),
    "too few answers to know lengths": ([given(None, n=49), given(None, 130.0)], "b"),
    "most have one length": ([given(None, 130.0), given(None), given(None)], "b"),
    "of two lengths the longer": ([given(None), given(None, 130.0)], "b"),
    "all the same": ([given(WORDS), given(WORDS)], "a"),
}


@pytest.mark.parametrize("name", REFERENCES)
def test_who_is_the_reference(name: str) -> None:
    known, reference = REFERENCES[name]
    others = {each.answers.reference for each in compared(*known) if each.answers}
    assert others == {reference}


def test_no_variant_with_text_agrees_with_more_others_than_the_reference_does() -> None:
    source = random.Random(7)
    kinds: tuple[Sequence[str | None], ...] = (WORDS, ending_late(0), ending_late(2), SHORTER, OTHER, EMPTY, UNSTEADY)
    for _ in range(100):
        texts = [unsteady(source.choice(kinds), *source.sample(range(6), source.randrange(4))) for _ in range(4)]
        known = [given(each, source.choice((None, 100.0, 25.0))) for each in texts]
        first = compared(*known)[0].answers
        agreeing = [sum(alike(one, two) for two in known if two is not one) for one in known if one.has_text]
        if first is not None and agreeing:
            reference = known["abcd".index(first.reference)]
            assert sum(alike(reference, two) for two in known if two is not reference) == max(agreeing)


def alike(one: Given, two: Given) -> bool:
    """Tells whether two variants are known to give the same answers."""
    return all(each.answers is not None and each.answers.equal is True for each in compared(one, two))


@pytest.mark.parametrize("unknown", [UNSTEADY, [None] * 6])
def test_what_nobody_knows_is_no_reference_between_two_that_differ(unknown: Sequence[str | None]) -> None:
    rows = compared(given(WORDS), given(WORDS), given(OTHER), given(unknown))
    assert [each.answers and each.answers.equal for each in rows] == [True, True, False, None]


def test_two_that_answer_one_question_do_not_outvote_one_that_answers_all() -> None:
    rows = compared(given(WORDS), given(MOSTLY_EMPTY), given(MOSTLY_EMPTY))
    assert [each.answers and each.answers.equal for each in rows] == [True, False, False]


@pytest.mark.parametrize("output", [None, 100.0])
def test_what_answers_nothing_has_no_rank_beside_what_answers(output: float | None) -> None:
    """However many answer nothing: they are no majority."""
    kinds: tuple[Sequence[str | None], ...] = (WORDS, OTHER, SHORTER, UNSTEADY, EMPTY)
    for texts in product(kinds, repeat=4):
        answers = [each.answers for each in compared(*(given(each, output) for each in texts))]
        equal = {each.equal for each, own in zip(answers, texts, strict=True) if each and own is EMPTY}
        assert equal <= ({False} if any(any(own) for own in texts) else {None}), texts
        assert {texts["abcd".index(each.reference)] is EMPTY for each in answers if each} == {
            all(own is EMPTY for own in texts)
        }


def test_two_that_generate_no_token_are_no_majority() -> None:
    rows = compared(given(None, 0.0), given(None, 0.0), given(None))
    assert [each.answers and each.answers.equal for each in rows] == [False, False, True]


def test_where_nothing_is_known_nothing_is_said() -> None:
    assert [each.answers for each in compared(Given(), Given())] == [None, None]
    assert [each.answers for each in compared(given(WORDS))] == [None]


def test_what_has_no_capacity_is_no_reference() -> None:
    early = replace(row("a", 100), ended="early")
    rows = with_answers([early, row("b", 100), row("c", 100)], [given(OTHER), given(WORDS), given(WORDS)])
    assert [each.answers and each.answers.equal for each in rows] == [None, True, True]


def test_traffics_are_compared_each_with_its_own() -> None:
    rows = [
        replace(row(name, 100), variant={"instance_type": name, "payload.size": size}) for name in "ab" for size in "12"
    ]
    found = with_answers(rows, [given(WORDS, 10), given(WORDS, 90), given(WORDS, 10), given(WORDS, 40)])
    assert [each.answers and each.answers.equal for each in found] == [True, True, True, False]


def test_a_faster_variant_that_answers_worse_is_not_called_better() -> None:
    found = ranked_of(given(WORDS), given(SHORTER, 50.0))
    first, second = found.rows
    assert (first.label, first.rank, second.label, second.rank) == ("a", 1, "b", None)
    assert second.rate is not None
    assert second.rate > (first.rate or 0)
    assert found.headline == (
        "a has the highest capacity: 103/s. b has no rank: answers differ from those of a: shorter to 6 of 6 fixed "
        "questions; 50 output tokens an answer, not 100."
    )
    assert found.exit_code == MISSED
    text = to_text(found)
    assert text.startswith(found.headline)
    assert "✗ b: answers differ from those of a" in text
    kept = check_ranking(json.loads(json.dumps(encoded(found))))
    require_order(kept)
    assert kept == found


def test_equal_answers_are_said_and_change_no_order() -> None:
    found = ranked_of(given(WORDS), given(WORDS))
    assert [each.label for each in found.rows] == ["b", "a"]
    assert found.exit_code == OK
    text = " ".join(to_text(found).split())
    assert "b: answers equal to those of a: the same text to 6 of 6 fixed questions; output lengths within 5%." in text


def test_a_verdict_that_contradicts_what_it_follows_from_is_refused() -> None:
    rows = compared(given(WORDS), given(SHORTER, 50.0))
    answers = rows[1].answers
    assert answers is not None
    forged = ranking([rows[0], replace(rows[1], answers=replace(answers, equal=True), warnings=[])], Aim())
    assert forged.rows[0].label == "b"
    with pytest.raises(ValueError, match="whether the answers of row 1 differ does not follow from"):
        check_ranking(json.loads(json.dumps(encoded(forged))))


def test_answers_that_nobody_compared_are_said_to_be_so() -> None:
    text = " ".join(to_text(ranked_of(Given(), Given())).split())
    assert "The answers of the variants were not compared: " in text


def test_the_interval_of_a_ratio_of_lengths_holds() -> None:
    """2,000 pairs of the fewest answers, of widely spread lengths with one mean: 1 is missed in about 0.1% of them."""
    source, missed, called = random.Random(5), 0, 0
    for _ in range(2000):
        one, other = (_lengths([source.lognormvariate(5, 0.8) for _ in range(50)]) for _ in range(2))
        found = length_ratio(one, other)
        assert found is not None
        missed += not found.low <= 1 <= found.high
        called += found.high < 0.95 or found.low > 1.05
    assert missed <= 6
    assert called <= 3


def _lengths(values: list[float]) -> PerRequest:
    return PerRequest(len(values), None, None, fmean(values), pstdev(values))
