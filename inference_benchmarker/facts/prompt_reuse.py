"""The part of a wave's prompts that a prefix cache could have had: how much of each came before it. Pure.

The cache that is held up to the server forgets nothing: it has a block as soon as a request with it was sent, and an
answer's blocks when that was there, from whichever session and worker. One server in place of several.
"""

from __future__ import annotations

from array import array
from base64 import b64decode
from collections import Counter
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import accumulate, islice
from typing import TYPE_CHECKING, Any, NamedTuple

from inference_benchmarker.data.typed import require
from inference_benchmarker.records.prompts import BLOCK_BYTES, MOST_BYTES, MOST_REQUESTS, ROW, TOO_LONG
from inference_benchmarker.records.record import MOST_TURN

if TYPE_CHECKING:
    from collections.abc import Iterator

MOST_KNOWN = 1 << 20  # blocks that the cache has at a time; beyond, they are made twice as long
_SUM = (1 << 32) - 1
_MOST = 1 << 62


@dataclass(frozen=True, slots=True)
class TurnReuse:
    """The answered requests of one turn: bytes of their prompts, and of those what was there before.

    The tokens are those of requests whose usage had both input and cached tokens, ``reusable_tokens`` as large a part
    of each prompt's as its bytes that were there before.
    """

    turn: int
    requests: int
    prompt_bytes: int
    reusable_bytes: int
    tokens: int
    reusable_tokens: int
    cached_tokens: int


@dataclass(frozen=True, slots=True)
class PromptReuse:
    """The input that could have been cached, by turn. ``block_bytes``: the longest of the blocks it is reckoned in."""

    block_bytes: int
    requests: int
    by_turn: tuple[TurnReuse, ...]

    def __post_init__(self) -> None:
        """ValueError for more than there is: it may be read from anybody's file."""
        for row in self.by_turn:
            counts = (row.reusable_bytes, row.prompt_bytes), (row.reusable_tokens, row.tokens)
            if not all(0 <= part <= whole < _MOST for part, whole in counts) or not 0 <= row.cached_tokens < _MOST:
                raise ValueError(f"turn {row.turn} has more to reuse than its prompts have")

    @property
    def share(self) -> float | None:
        """The share of the input that was there before; None without any."""
        return self.share_of(1, MOST_TURN)

    def share_of(self, first: int, last: int) -> float | None:
        """The same of some turns: of tokens, where the server reported them, else of bytes."""
        rows = [row for row in self.by_turn if first <= row.turn <= last]
        if tokens := sum(row.tokens for row in rows):
            return sum(row.reusable_tokens for row in rows) / tokens
        whole = sum(row.prompt_bytes for row in rows)
        return sum(row.reusable_bytes for row in rows) / whole if whole else None


class _Row(NamedTuple):
    """A turn that was answered: its prompt has ``known`` blocks of a ``stem`` and then ``new`` ones, which have sums.

    The stem -1 is the turn before with its answer. ``answer``: the sums of the blocks that its own adds.
    """

    sent: int
    done: int
    session: int
    turn: int
    size: int
    tokens: int | None
    cached: int | None
    stem: int
    known: int
    new: array[int]
    answer: array[int]


def _rows(text: str, reported_sums: str) -> Iterator[_Row]:
    """The rows as a worker reports them; ValueError for what are none, for they may be anybody's."""
    rows, sums, place = b64decode(text, validate=True), _sums(reported_sums), 0
    if len(rows) % ROW.size:
        raise ValueError("a prompt with other members")
    for session, turn, sent, done, size, tokens, cached, stem, known, new, answer in ROW.iter_unpack(rows):
        if not (0 < turn <= MOST_TURN and 0 <= size < TOO_LONG and stem >= -1 and min(known, new, answer) >= 0):
            raise ValueError("a prompt with a number out of bounds")
        prompt_end, end = place + new, place + new + answer
        if end > len(sums):
            raise ValueError("a prompt with more blocks than there are sums")
        is_stated = 0 <= tokens < TOO_LONG
        yield _Row(
            *(sent, done, session, turn, size, tokens if is_stated else None),
            *(cached if is_stated and 0 <= cached <= tokens else None, stem, known),
            *(sums[place:prompt_end], sums[prompt_end:end]),
        )
        place = end


def _sums(text: str) -> array[int]:
    sums = array("I")
    sums.frombytes(b64decode(text, validate=True))
    return sums


class PromptsSent:
    """The prompts of all workers, as they report them."""

    def __init__(self) -> None:
        self._rows: list[tuple[_Row, int]] = []
        self._stems: dict[int, list[array[int]]] = {}
        self._bytes = 0

    def take(self, worker: int, rows: Any, sums: Any, stems: Any) -> None:
        """Take in what a worker reported; ValueError where it is nothing of the kind."""
        require(rows, str, "prompt_rows")
        require(sums, str, "prompt_sums")
        require(stems, list[str], "stems")
        if self._is_full:
            return
        own = self._stems.setdefault(worker, [])
        for stem in stems:
            begin = _sums(stem)
            self._hold(begin)
            own.append(_chained(begin, array("I")))
        for row in _rows(rows, sums):
            if self._is_full:
                return
            if row.stem >= len(own):
                raise ValueError("a prompt that begins as none does")
            self._hold(row.new, row.answer)
            self._rows.append((row, worker))

    def reuse(self) -> PromptReuse | None:
        """The part of each that was there before it; None where no prompt was reported."""
        if not self._rows:
            return None
        cache, turns = _Cache(), dict[int, Counter[str]]()
        left = Counter(row.session for row, _ in self._rows)
        chains: dict[int, array[int]] = {}
        for row, worker in sorted(self._rows, key=lambda each: each[0][:4]):
            chain = self._chain(row, worker, chains.get(row.session))
            answer = _chained(row.answer, chain)
            reusable = min(cache.send(row, chain, answer) * BLOCK_BYTES, row.size)
            left[row.session] -= 1
            if left[row.session]:
                chains[row.session] = chain + answer
            else:
                chains.pop(row.session, None)
            if row.session >= 0:
                turns.setdefault(row.turn, Counter()).update(_counts(row, reusable))
        by_turn = tuple(_turn(turn, counts) for turn, counts in sorted(turns.items()))
        return PromptReuse(BLOCK_BYTES * cache.stride, sum(row.requests for row in by_turn), by_turn)

    @property
    def _is_full(self) -> bool:
        return len(self._rows) >= MOST_REQUESTS or self._bytes >= MOST_BYTES

    def _chain(self, row: _Row, worker: int, before: array[int] | None) -> array[int]:
        """The blocks of a prompt, each known by itself and all before it."""
        begin = self._stems[worker][row.stem] if row.stem >= 0 else before or array("I")
        chain = begin[: row.known]
        return chain + _chained(row.new, chain)

    def _hold(self, *several: array[int]) -> None:
        self._bytes += BLOCK_BYTES * sum(map(len, several))


def _chained(sums: array[int], before: array[int]) -> array[int]:
    """Sums of blocks that come after others, each with all before it in it."""
    begin = before[-1] if before else 0
    return array("I", islice(accumulate(sums, _with, initial=begin), 1, None))


def _with(before: int, checksum: int) -> int:
    return hash((before, checksum)) & _SUM


class _Cache:
    """Knows every ``stride``-th block of all that was sent, by its place and its sum."""

    def __init__(self) -> None:
        self.stride = 1
        self._known: set[int] = set()
        self._answers: list[tuple[int, int, int, array[int]]] = []
        self._number = 0

    def send(self, row: _Row, chain: array[int], answer: array[int]) -> int:
        """The blocks that a prompt begins with and that are there; then all of them are, and soon its answer's."""
        while self._answers and self._answers[0][0] <= row.sent:
            _, _, place, sums = heappop(self._answers)
            self._keep(place, sums)
        found = self._begins(chain)
        self._keep(found, chain[found:])
        if answer:
            self._number += 1
            heappush(self._answers, (row.done, self._number, len(chain), answer))
        at_most = max(row.size - 1, 0) // BLOCK_BYTES  # the last token of a prompt is always computed
        return min(found, at_most // self.stride * self.stride)

    def _begins(self, chain: array[int]) -> int:
        """The number of blocks that a chain begins with and that are there: where one is, all before it are."""
        low, high = 0, len(chain) // self.stride
        while low < high:
            middle = (low + high + 1) // 2
            place = middle * self.stride
            if _key(place, chain[place - 1]) in self._known:
                low = middle
            else:
                high = middle - 1
        return low * self.stride

    def _keep(self, before: int, sums: array[int]) -> None:
        """Have these blocks, which come after so many others."""
        places = enumerate(sums, before + 1)
        self._known.update(_key(place, each) for place, each in places if not place % self.stride)
        while len(self._known) > MOST_KNOWN:
            self.stride *= 2
            self._known = {key for key in self._known if not (key >> 32) % self.stride}


def _key(place: int, checksum: int) -> int:
    return place << 32 | checksum


def _counts(row: _Row, reusable: int) -> dict[str, int]:
    counts = {"requests": 1, "prompt_bytes": row.size, "reusable_bytes": reusable}
    if row.tokens is None or row.cached is None:
        return counts
    tokens = row.tokens * reusable // row.size if row.size else 0
    return counts | {"tokens": row.tokens, "reusable_tokens": tokens, "cached_tokens": row.cached}


def _turn(turn: int, counts: Counter[str]) -> TurnReuse:
    names = ("requests", "prompt_bytes", "reusable_bytes", "tokens", "reusable_tokens", "cached_tokens")
    return TurnReuse(turn, *(counts[name] for name in names))
