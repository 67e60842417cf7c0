"""The embedded model's prefix cache, against a list of all the texts that it was given."""

from __future__ import annotations

import random
from itertools import takewhile

from inference_benchmarker.embedded.prefix_cache import BLOCK, PrefixCache


def shared(one: list[str], other: list[str]) -> int:
    return len(list(takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False))))


def test_the_longest_common_beginning_is_there_in_whole_blocks() -> None:
    chosen, cache = random.Random(3), PrefixCache(1 << 20)
    before: list[list[str]] = []
    for _ in range(300):
        base = chosen.choice(before) if before and chosen.random() < 0.7 else []
        prompt = [*base[: chosen.randrange(len(base) + 1)], *chosen.choices("abcdefgh", k=chosen.randrange(1, 60))]
        answer = chosen.choices("xyz", k=chosen.randrange(20))
        longest = max((shared(prompt, text) for text in before), default=0)
        assert cache.take(prompt, answer) == min(longest // BLOCK, (len(prompt) - 1) // BLOCK) * BLOCK
        before.append([*prompt, *answer])


def test_the_least_recently_used_blocks_go_first() -> None:
    cache = PrefixCache(3 * BLOCK)
    one, other = ["a"] * 33, ["b"] * 33
    assert [cache.take(one, []), cache.take(one, []), cache.take(other, []), cache.take(one, [])] == [0, 32, 0, 16]
    assert PrefixCache(0).take(one, []) is None
