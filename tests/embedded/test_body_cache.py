from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from inference_benchmarker.embedded.body_cache import BodyCache


def hits(cache: BodyCache, bodies: str) -> list[bool]:
    found = []
    for body in bodies:
        digest = cache.digest(body.encode())
        found.append(cache.part(digest) == 0.1)
        cache.keep(digest)
    return found


def test_the_body_that_was_seen_least_recently_goes_first() -> None:
    cache = BodyCache(2, 10)
    assert hits(cache, "abaca") == [False, False, True, False, True]
    assert hits(cache, "b") == [False]
    assert (cache.lookups, cache.hits) == (6, 2)


def test_no_cache_has_nothing_and_counts_nothing() -> None:
    cache = BodyCache(0, 10)
    assert hits(cache, "aaa") == [False, False, False]
    assert (cache.lookups, cache.hits) == (0, 0)


@given(st.text("abcdef", max_size=60), st.integers(1, 8))
def test_a_hit_is_a_body_with_fewer_others_since_than_there_is_room_for(bodies: str, size: int) -> None:
    expected = []
    for number, body in enumerate(bodies):
        last = bodies.rfind(body, 0, number)
        expected.append(last >= 0 and len(set(bodies[last:number])) <= size)
    assert hits(BodyCache(size, 10), bodies) == expected
