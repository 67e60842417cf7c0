"""The queueing model of a search in its text. Pure."""

from __future__ import annotations

from textwrap import wrap
from typing import TYPE_CHECKING

from inference_benchmarker.words.wording import (
    INDENT,
    duration_text,
    pluralize,
)
from server_capacity.results.text.agreement import to_plan_with
from server_capacity.results.text.headline import between, rate_text, unit_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from server_capacity.results.types.capacity import CapacityResult
    from server_capacity.results.types.twin import Extrapolations


def disagreement(found: CapacityResult) -> list[str]:
    """A sentence on which number to plan with, where the model and the measurement disagree."""
    sentence = to_plan_with(found)
    return folded_sentence(sentence) if sentence else []


def model_lines(found: CapacityResult) -> Iterator[str]:
    """Its prediction, how far that is confirmed, and its answers to what was not measured."""
    twin, unit = found.twin, unit_of(found)
    if not twin:
        return
    if not twin.fits:
        yield from folded_sentence(f"No queueing model: {twin.reason or 'nothing was tried'}.")
        return
    rate = rate_text(twin.rate, twin.interval, unit)
    around = f" (95%: {between(twin.interval, unit)})" if twin.interval else ""
    at = twin.confirmed_at
    where = f"a later wave at {rate_text(at, None, unit)} confirms it" if at else "no later wave tested it"
    yield from folded_sentence(f"The queueing model predicts {rate}{around}; {where}.")
    yield from disagreement(found)
    service = twin.service
    if service is None or twin.servers is None:
        return
    kind = f" ({service.kind}, CV {service.cv:.2g})" if service.kind else ""
    beside = f", plus {duration_text(twin.overhead_s)} of overhead" if twin.overhead_s else ""
    servers = pluralize(twin.servers, "server", "servers")
    yield from folded_sentence(f"Model: {servers} with a service time of {duration_text(service.mean)}{kind}{beside}.")
    yield from (f"{INDENT}  {line}" for line in _what_if(twin.what_if, unit))


def folded_sentence(sentence: str) -> list[str]:
    """A sentence within 80 columns."""
    return wrap(sentence, 80, initial_indent=INDENT, subsequent_indent=2 * INDENT, break_long_words=False)


def _what_if(what_if: Extrapolations | None, unit: str) -> Iterator[str]:
    if what_if is None:
        return
    single = (("Evenly spaced arrivals", what_if.even_arrivals), ("20% shorter service", what_if.service_20_shorter))
    for name, rate in single:
        if rate is not None:
            yield f"{name}: {rate_text(rate, None, unit)}."
    for row in what_if.instances:
        instances, routing = pluralize(row.count, "instance", "instances"), row.routing.replace("_", " ")
        yield f"{instances}, {routing} routing: {rate_text(row.rate, None, unit)}."
