"""The KV cache of a language model in blocks of tokens, each known by its tokens and by all before it. Pure."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Sequence


class KvBlocks:
    """So many blocks, numbered from 0. Each is held by some texts or free; a free one keeps its tokens until taken.

    Free blocks that are not full are taken first: nobody finds their tokens. The others are taken in the order in which
    they became free, so that the least recently used go first.
    """

    def __init__(self, count: int) -> None:
        self.count = count
        # Those that were taken once and are free again; and by number, of all that were ever taken, how many hold it,
        # and its name where it is full.
        self._free: OrderedDict[int, None] = OrderedDict()
        self._holders: list[int] = []
        self._names: list[int | None] = []
        # Of each name the block that is found, and those that have the same tokens.
        self._named: dict[int, int] = {}
        self._doubles: dict[int, list[int]] = {}

    @property
    def free(self) -> int:
        """The number of blocks that nobody holds."""
        return self.count - len(self._holders) + len(self._free)

    @property
    def used(self) -> int:
        """The number of blocks that somebody holds."""
        return len(self._holders) - len(self._free)

    def find(self, chain: Sequence[int], most: int) -> list[int]:
        """The blocks with which a text begins, as far as they are there, ``most`` at most; nobody holds them yet."""
        found, named = [], self._named
        for name in chain[:most]:
            block = named.get(name)
            if block is None:
                break
            found.append(block)
        return found

    def free_among(self, blocks: Iterable[int]) -> int:
        """The number of those that nobody holds."""
        return list(map(self._holders.__getitem__, blocks)).count(0)

    def hold(self, blocks: Iterable[int]) -> None:
        """One more text holds these."""
        holders, free = self._holders, self._free
        for block in blocks:
            if not holders[block]:
                del free[block]
            holders[block] += 1

    def take(self, count: int) -> list[int]:
        """So many free blocks, for one text to hold; their tokens are forgotten. There must be as many."""
        fresh = min(count, self.count - len(self._holders))
        taken = list(range(len(self._holders), len(self._holders) + fresh))
        self._holders += [1] * fresh
        self._names += [None] * fresh
        for _ in range(count - fresh):
            block, _ = self._free.popitem(last=False)
            self._forget(block)
            self._holders[block] = 1
            taken.append(block)
        return taken

    def name(self, blocks: Iterable[int], names: Iterable[int]) -> None:
        """These are full: whoever looks for the name finds the block, or an earlier one as long as that is there."""
        for block, name in zip(blocks, names, strict=False):
            self._names[block] = name
            if self._named.setdefault(name, block) != block:
                self._doubles.setdefault(name, []).append(block)

    def release(self, blocks: Sequence[int], full: int) -> None:
        """A text no longer holds these, the first ``full`` of which are; its end goes before its beginning."""
        holders, free = self._holders, self._free
        for block in reversed(blocks):
            holders[block] -= 1
            if not holders[block]:
                free[block] = None
        for block in blocks[full:]:
            free.move_to_end(block, last=False)

    def _forget(self, block: int) -> None:
        """Nobody finds its tokens here any more."""
        name, self._names[block] = self._names[block], None
        if name is None:
            return
        doubles = self._doubles.get(name)
        if doubles is None:
            del self._named[name]
            return
        if self._named[name] == block:
            self._named[name] = doubles.pop(0)
        else:
            doubles.remove(block)
        if not doubles:
            del self._doubles[name]


def chain_of(tokens: Sequence[Hashable], block_size: int) -> list[int]:
    """The names of a text's whole blocks, each of which depends on all tokens before its end."""
    chain, before = [], 0
    for begin in range(0, len(tokens) - block_size + 1, block_size):
        before = hash((before, *tokens[begin : begin + block_size]))
        chain.append(before)
    return chain
