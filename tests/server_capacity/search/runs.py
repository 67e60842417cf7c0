"""Courses of a search that are made up: stretches one after the other, as even as can be."""

from __future__ import annotations

from server_capacity.search.stretch import Count, Slice, Stretch


def run(*parts: tuple[str, float, float, float]) -> list[Stretch]:
    """Stretches of a purpose, at a rate, so many seconds long, with a share over."""
    made: list[Stretch] = []
    for number, (purpose, rate, seconds, share) in enumerate(parts):
        start_s = made[-1].end_s if made else 0.0
        of = [round(rate * (place + 1)) - round(rate * place) for place in range(round(seconds))]
        over = [round(sum(of[: place + 1]) * share) - round(sum(of[:place]) * share) for place in range(len(of))]
        slices = tuple(
            Slice(start_s + place, start_s + place + 1, sent, sent, (Count(sent, above),))
            for place, (sent, above) in enumerate(zip(of, over, strict=True))
        )
        before = made[-1].rate if made else 0.0
        made.append(Stretch(number, rate, start_s, start_s + round(seconds), slices, purpose, before))
    return made
