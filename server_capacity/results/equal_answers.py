"""Compares the answers of variants, so that a faster one that answers worse is not called better. Pure.

By text: fixed questions that each variant answered before its search, each twice; only what it answers the same way
both times tells anything. By length: the output tokens of the requests at the interval's lower end.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import zip_longest
from statistics import NormalDist
from typing import TYPE_CHECKING, Literal

from inference_benchmarker.words.wording import number_text
from server_capacity.results.ranking_row import is_ranked
from server_capacity.results.types.axes import PAYLOAD, label_of
from server_capacity.results.types.capacity import CanaryAnswer
from server_capacity.results.types.ranking import Answers, LengthRatio

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from server_capacity.results.types.capacity import PerRequest
    from server_capacity.results.types.ranking import RankedRow

    Pairs = tuple[tuple[str, str], ...]
    Difference = Literal["same", "late", "shorter", "longer", "other"]

LATE = 0.5
"""From this share of two texts on, where they differ first, rounding may be the cause: that tells nothing."""
LEAST_DIFFERING = 1 / 3
"""Of the comparable questions those that must get another answer: rounding alone may change one of six."""
BAND = 0.05
"""Lengths that differ by no more than this share are as good as the same."""
ALPHA = 0.001
"""The chance that the interval of the ratio of lengths misses the true one, of each pair of variants."""
FEWEST = 50
"""Answers of a variant, for the interval of their mean length to be believed."""
NOT_COMPARED = (
    "The answers of the variants were not compared: that takes a canary_factory in the factories file, or answers "
    "that report their output tokens."
)
_NAMES: dict[Difference, str] = {"shorter": "shorter", "longer": "longer", "other": "other text"}


@dataclass(frozen=True, slots=True)
class Given:
    """The known facts on the answers of a variant: to the fixed questions, and how long all of them are."""

    canaries: tuple[CanaryAnswer, ...] = ()
    lengths: PerRequest | None = None

    @property
    def is_known(self) -> bool:
        """Tells whether there is anything to compare."""
        return bool(self.canaries) or self.lengths is not None

    @property
    def has_text(self) -> bool:
        """Tells whether a fixed question got the same text twice."""
        return self._texts > 0

    @property
    def _texts(self) -> int:
        return sum(each.text is not None and not _is_blank(each) for each in self.canaries)

    @property
    def little_known(self) -> int:
        """0 of one with text, 1 where more answers are empty, 2 where only lengths are known, 3 where nothing is."""
        if self.has_text:
            return int(sum(map(_is_blank, self.canaries)) > self._texts)
        return 2 if self._has_lengths else 3

    @property
    def _has_lengths(self) -> bool:
        return self.lengths is not None and self.lengths.requests >= FEWEST and self.lengths.output is not None

    @property
    def is_silent(self) -> bool:
        """Tells whether fixed questions got empty answers and no text, or no answer had a token."""
        return (any(map(_is_blank, self.canaries)) and not self.has_text) or self.generates_nothing

    @property
    def generates_nothing(self) -> bool:
        """Tells whether it never generates a token."""
        return self.lengths is not None and self.lengths.requests >= FEWEST and self.lengths.output == 0


def with_answers(rows: Sequence[RankedRow], given: Sequence[Given]) -> list[RankedRow]:
    """The rows, each of which that has a capacity compared with the reference of those that got the same requests.

    The reference is the variant to which most others are known to be equal; then one that fewest are known to differ
    from; then one whose answers are not the shorter ones; then the first. One that answers nothing is none while
    another answers, and is compared with one that has texts. Nor does one qualify that leaves more questions empty
    than it answers, or of which no text is known, or no lengths either, while there are others.
    """
    found = list(rows)
    groups: dict[Pairs, list[int]] = {}
    for place, row in enumerate(rows):
        if is_ranked(row):
            groups.setdefault(_traffic(row), []).append(place)
    for places in groups.values():
        if len(places) > 1 and any(given[place].is_known for place in places):
            with_text = [place for place in places if given[place].has_text]
            references = {False: _reference(places, given), True: _reference(with_text or places, given)}
            for place in places:
                reference = references[given[place].is_silent]
                found[place] = _compared(rows[place], given[place], rows[reference], given[reference])
    return found


def remarks_on_answers(rows: Sequence[RankedRow]) -> Iterator[str]:
    """Sentences on the comparison of the variants that have a rank, or on that there was none."""
    texts: dict[str, list[str]] = {}
    for row in rows:
        if row.answers is not None:
            texts.setdefault(row.answers.text, []).append(label_of(row.variant))
    if not texts and len({_endpoint(row) for row in rows}) > 1:
        yield NOT_COMPARED
    yield from (f"{', '.join(labels)}: {text}." for text, labels in texts.items())


def text_difference(mine: CanaryAnswer, other: CanaryAnswer) -> Difference | None:
    """The way in which one answer differs from another; None where one of them is not known, or not steady.

    Nor do two answers without text tell anything: a model that thinks until its last token has none, whatever it
    thinks.
    """
    if mine.text is None or other.text is None or (_is_blank(mine) and _is_blank(other)):
        return None
    if mine == other:
        return "same"
    if mine.text.startswith(other.text) or other.text.startswith(mine.text):
        return "shorter" if (mine.characters or 0) < (other.characters or 0) else "longer"
    alike = next(place for place, (one, two) in enumerate(zip(mine.text, other.text, strict=False)) if one != two)
    return "late" if alike >= LATE * max(len(mine.text), len(other.text)) else "other"


def _is_blank(answer: CanaryAnswer) -> bool:
    """Tells whether there was an answer without text."""
    return answer.text is not None and not answer.text.strip()


def length_ratio(mine: PerRequest, other: PerRequest) -> LengthRatio | None:
    """The mean output of the one over that of the other, with the interval by the logarithm's normal law."""
    if min(mine.requests, other.requests) < FEWEST or not mine.output or not other.output:
        return None
    error = math.hypot(_error(mine), _error(other))
    ratio, factor = mine.output / other.output, math.exp(NormalDist().inv_cdf(1 - ALPHA / 2) * error)
    return LengthRatio(ratio, ratio / factor, ratio * factor)


def _error(lengths: PerRequest) -> float:
    """The standard error of a mean as a share of it."""
    return (lengths.output_sd or 0.0) / (lengths.output or math.inf) / math.sqrt(lengths.requests)


class _Pair:
    """Two variants beside each other: the kinds of differences between their texts, and the ratio of lengths."""

    def __init__(self, mine: Given, other: Given) -> None:
        self.mine, self.other = mine, other

    @cached_property
    def kinds(self) -> Counter[Difference]:
        pairs = zip_longest(self.mine.canaries, self.other.canaries, fillvalue=CanaryAnswer())
        return Counter(kind for pair in pairs if (kind := text_difference(*pair)) is not None)

    @cached_property
    def ratio(self) -> LengthRatio | None:
        mine, other = self.mine.lengths, self.other.lengths
        return None if mine is None or other is None else length_ratio(mine, other)

    @cached_property
    def by_text(self) -> bool | None:
        kinds, differing = self.kinds, self.differing
        if not kinds:
            return None
        if differing and differing >= LEAST_DIFFERING * kinds.total():
            return False
        return True if kinds["same"] == kinds.total() else None

    @cached_property
    def empty(self) -> int:
        """The number of questions that both answered with nothing."""
        pairs = zip(self.mine.canaries, self.other.canaries, strict=False)
        return sum(_is_blank(mine) and _is_blank(other) for mine, other in pairs)

    @property
    def differing(self) -> int:
        return sum(self.kinds[kind] for kind in _NAMES)

    @property
    def by_length(self) -> bool | None:
        ratio = self.ratio
        if ratio is None:
            return False if self._only_one_generates else None
        if ratio.high < 1 - BAND or ratio.low > 1 + BAND:
            return False
        return True if ratio.low >= 1 - BAND and ratio.high <= 1 + BAND else None

    @property
    def _only_one_generates(self) -> bool:
        """Tells whether one of the two never generates a token, and the other does."""
        both = (self.mine, self.other)
        enough = all(each.lengths is not None and each.lengths.requests >= FEWEST for each in both)
        return enough and self.mine.generates_nothing != self.other.generates_nothing

    @property
    def equal(self) -> bool | None:
        """Answers of one length may be of any quality: without their texts nobody knows."""
        return False if False in (self.by_text, self.by_length) else self.by_text

    @property
    def is_shorter(self) -> bool:
        """Tells whether the first one's answers are surely the shorter ones."""
        kinds, mine, other = self.kinds, self.mine.lengths, self.other.lengths
        by_length = mine is not None and other is not None and (mine.output or 0.0) < (other.output or 0.0)
        by_text = self.by_text is False and kinds["shorter"] > kinds["longer"] + kinds["other"]
        return by_text or (self.by_length is False and by_length)


def _reference(places: Sequence[int], given: Sequence[Given]) -> int:
    def order(place: int) -> tuple[bool, int, int, int, bool]:
        mine = given[place]
        others = (given[other] for other in places if other != place)
        pairs = [_Pair(mine, other) for other in others if other.is_silent == mine.is_silent]
        agreeing = sum(pair.equal is True for pair in pairs)
        differing = sum(pair.equal is False for pair in pairs)
        return mine.is_silent, mine.little_known, -agreeing, differing, any(pair.is_shorter for pair in pairs)

    return min(places, key=order)


def _compared(row: RankedRow, mine: Given, reference: RankedRow, other: Given) -> RankedRow:
    """The row with the answer; one whose answers differ says why it has no rank."""
    pair, name = _Pair(mine, other), label_of(reference.variant)
    kinds = pair.kinds
    answers = Answers(
        reference=name,
        equal=_of_itself(mine) if row is reference else pair.equal,
        text="; ".join(_parts(pair)),
        asked=len(mine.canaries),
        comparable=kinds.total(),
        differing=pair.differing,
        by_text=pair.by_text,
        by_length=pair.by_length,
        length=pair.ratio,
    )
    if row is reference:
        return replace(row, answers=replace(answers, text=_of_reference(pair)))
    found = replace(answers, text=f"{_BEGINNINGS[answers.equal].format(name)}{answers.text}")
    return replace(row, answers=found, warnings=[found.text, *row.warnings] if found.equal is False else row.warnings)


_BEGINNINGS = {
    True: "answers equal to those of {}: ",
    False: "answers differ from those of {}: ",
    None: "undecided whether answers are equal to those of {}: ",
}


def _of_itself(reference: Given) -> bool | None:
    """Tells whether the reference has answers that others can be equal to."""
    return None if reference.is_silent else True


def _of_reference(pair: _Pair) -> str:
    asked = len(pair.mine.canaries)
    empty = f", {pair.empty} an empty answer" if pair.empty else ""
    text = f"; {pair.kinds.total()} of {asked} fixed questions got the same text twice{empty}" if asked else ""
    return f"the reference that the other answers are compared with{text}"


def _parts(pair: _Pair) -> Iterator[str]:
    yield _on_text(pair)
    yield _on_length(pair)


def _on_text(pair: _Pair) -> str:
    kinds, asked, number = pair.kinds, max(len(pair.mine.canaries), len(pair.other.canaries)), pair.kinds.total()
    if not asked:
        return "no fixed questions were asked"
    if not number and pair.empty:
        return f"cannot tell by text: {pair.empty} of {asked} fixed questions got an empty answer from both"
    if not number:
        return "cannot tell by text: no question got one text twice from both"
    if pair.by_text:
        return f"the same text to {number} of {asked} fixed questions"
    if pair.by_text is False:
        names = " or ".join(name for kind, name in _NAMES.items() if kind in kinds)
        return f"{names} to {pair.differing} of {number} fixed questions"
    only_late = ", none before its middle" if not pair.differing else ""
    return f"cannot tell by text: {number - kinds['same']} of {number} answers differ{only_late}"


def _on_length(pair: _Pair) -> str:
    mine, other = pair.mine.lengths, pair.other.lengths
    if mine is None or other is None:
        return "output tokens were not reported"
    if pair.by_length is False:
        return f"{number_text(mine.output or 0.0)} output tokens an answer, not {number_text(other.output or 0.0)}"
    if pair.by_length:
        return f"output lengths within {BAND:.0%}"
    if pair.ratio is None:
        return "too few answers to compare their lengths"
    span = f"{pair.ratio.low:.2f} to {pair.ratio.high:.2f}"
    return f"cannot tell by length: {span} times as many output tokens ({1 - ALPHA:.1%} interval)"


def _traffic(row: RankedRow) -> Pairs:
    return tuple(sorted(pair for pair in row.variant.items() if pair[0].startswith(PAYLOAD)))


def _endpoint(row: RankedRow) -> Pairs:
    return tuple(sorted(pair for pair in row.variant.items() if not pair[0].startswith(PAYLOAD)))
