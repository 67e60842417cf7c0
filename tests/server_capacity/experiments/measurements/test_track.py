"""The stretches of a wave are kept as what was counted comes in, also where it comes in late."""

from __future__ import annotations

from server_capacity.experiments.measurements.track import Track
from server_capacity.search.stretch import Count, Slice


def counted(start_s: float, sent: int = 1) -> Slice:
    return Slice(start_s, start_s + 1.0, sent, sent, (Count(sent, 0),))


def test_a_change_ends_the_stretch_that_ran_and_the_next_knows_its_rate() -> None:
    track = Track()
    assert track.stretches(0.0) == ()
    track.change(0, 0.0, 5.0, "grow")
    track.add(0, counted(0.0))
    track.change(1, 2.0, 10.0, "near", in_flight=3)
    first, running = track.stretches(3.5, in_flight=4)
    assert (first.end_s, first.in_flight, first.rate, first.purpose) == (2.0, 3, 5.0, "grow")
    assert (running.start_s, running.end_s, running.before, running.in_flight) == (2.0, 3.5, 5.0, 4)


def test_what_comes_in_late_is_added_in_order_to_the_stretch_it_belongs_to() -> None:
    track = Track()
    track.change(0, 0.0, 5.0, "grow")
    track.add(0, counted(1.0))
    track.change(1, 2.0, 10.0, "near")
    track.add(0, counted(0.0, 7))
    track.add(1, counted(2.0))
    first, running = track.stretches(3.0)
    assert [part.start_s for part in first.slices] == [0.0, 1.0]
    assert [part.start_s for part in running.slices] == [2.0]
    assert track.stretches(3.0)[0] == first


def test_only_the_stretch_that_runs_is_void() -> None:
    track = Track()
    track.change(0, 0.0, 5.0, "grow")
    track.change(1, 2.0, 10.0, "near")
    track.void("the client was the limit")
    assert [stretch.void for stretch in track.stretches(3.0)] == ["", "the client was the limit"]
