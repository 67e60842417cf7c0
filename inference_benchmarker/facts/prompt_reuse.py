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
from typing import Any, NamedTuple, Self

from inference_benchmarker.data.typed import require
from inference_benchmarker.records.prompts import BLOCK_BYTES
from inference_benchmarker.records.record import MOST_TURN

MOST_REQUESTS, MOST_BYTES = 200_000, 1 << 26
"""Of those that are looked at, the first ones, and of their blocks as they are held."""
MOST_KNOWN = 1 << 20  # blocks that the cache has at a time; beyond, they are made twice as long
_SUM_BYTES = 4
_MOST = 1 << 62
TOO_LONG = 1 << 32
"""Above all bytes and tokens of a prompt: of more nobody is believed, and so no sum of ours is refused."""


@dataclass(frozen=True, slots=True)
class TurnReuse:
    """The answered requests of one turn: bytes of their prompts, and of those what was there before.

    The tokens are those of requests whose usage told both input and cached tokens, ``reusable_tokens`` as large a part
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
        """The same of some turns: of tokens, where the server told them, else of bytes."""
        rows = [row for row in self.by_turn if first <= row.turn <= last]
        if tokens := sum(row.tokens for row in rows):
            return sum(row.reusable_tokens for row in rows) / tokens
        whole = sum(row.prompt_bytes for row in rows)
        return sum(row.reusable_bytes for row in rows) / whole if whole else None


class _Row(NamedTuple):
    """A turn that was answered: its prompt has ``known`` blocks of a ``stem`` and ``new`` ones.

    The stem -1 is the turn before with its answer. ``answer``: the blocks of its own.
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
    new: bytes
    answer: bytes

    @classmethod
    def of(cls, told: Any) -> Self:
        """A row as a worker reports it; ValueError for what is none, for it may be anybody's."""
        if type(told) is not list or len(told) != len(cls._fields):
            raise ValueError("a prompt with other members")
        session, turn, sent, done, size, tokens, cached, stem, known, new, answer = told
        if {*map(type, (session, turn, sent, done, size, stem, known))} != {int} or not type(new) is type(
            answer
        ) is str:
            raise ValueError("a prompt with a member of another type")
        if not (0 < turn <= MOST_TURN and 0 <= size < TOO_LONG and stem >= -1 and known >= 0):
            raise ValueError("a prompt with a number out of bounds")
        tokens = tokens if type(tokens) is int and 0 <= tokens < TOO_LONG else None
        cached = cached if type(cached) is int and tokens is not None and 0 <= cached <= tokens else None
        return cls(sent, done, session, turn, size, tokens, cached, stem, known, _sums(new), _sums(answer))


def _sums(told: str) -> bytes:
    sums = b64decode(told, validate=True)
    if len(sums) % _SUM_BYTES:
        raise ValueError("a prompt with a part of a block")
    return sums


class PromptsSent:
    """The prompts of all workers, as they report them."""

    def __init__(self) -> None:
        self._rows: list[tuple[_Row, int]] = []
        self._stems: dict[int, list[bytes]] = {}
        self._bytes = 0

    def take(self, worker: int, prompts: Any, stems: Any) -> None:
        """Take in what a worker reported; ValueError where it is nothing of the kind."""
        require(prompts, list[Any], "prompts")
        require(stems, list[str], "stems")
        if self._is_full:
            return
        own = self._stems.setdefault(worker, [])
        for told in stems:
            self._hold(sums := _sums(told))
            own.append(sums)
        for told in prompts:
            if self._is_full:
                return
            row = _Row.of(told)
            if row.stem >= len(own):
                raise ValueError("a prompt that begins as none does")
            self._hold(row.new, row.answer)
            self._rows.append((row, worker))

    def reuse(self) -> PromptReuse | None:
        """The part of each that was there before it; None where no prompt was told."""
        if not self._rows:
            return None
        cache, turns = _Cache(), dict[int, Counter[str]]()
        left = Counter(row.session for row, _ in self._rows)
        chains: dict[int, array[int]] = {}
        for row, worker in sorted(self._rows, key=lambda each: each[0][:4]):
            chain = self._chain(row, worker, chains.get(row.session))
            reusable = min(cache.send(row, chain) * BLOCK_BYTES, row.size)
            left[row.session] -= 1
            if left[row.session]:
                chain.frombytes(row.answer)
                chains[row.session] = chain
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
        """The blocks of a prompt."""
        chain = array("I", self._stems[worker][row.stem] if row.stem >= 0 else before or b"")[: row.known]
        chain.frombytes(row.new)
        return chain

    def _hold(self, *several: bytes) -> None:
        self._bytes += sum(map(len, several))


class _Cache:
    """Knows every ``stride``-th block of all that was sent, by its place and its sum."""

    def __init__(self) -> None:
        self.stride = 1
        self._known: set[int] = set()
        self._answers: list[tuple[int, int, int, array[int]]] = []
        self._number = 0

    def send(self, row: _Row, chain: array[int]) -> int:
        """The blocks that a prompt begins with and that are there; then all of them are, and soon its answer's."""
        while self._answers and self._answers[0][0] <= row.sent:
            _, _, place, sums = heappop(self._answers)
            self._keep(place, sums)
        found = self._begins(chain)
        self._keep(found, chain[found:])
        if row.answer:
            self._number += 1
            heappush(self._answers, (row.done, self._number, len(chain), array("I", row.answer)))
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
