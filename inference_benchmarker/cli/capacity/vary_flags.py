"""The flags of `benchmark capacity` that make endpoints and compare them, and what they ask for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from inference_benchmarker.cli.core.flags import Flag, parse_int, parse_number, parse_share, read_flags
from inference_benchmarker.engine.processes.children import note_addresses
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.plan.stage import MAX_RATE
from inference_benchmarker.system.host import usable_cores
from inference_benchmarker.words.redact import excerpt, hidden
from server_capacity.planning.costs.prices import Prices, prices_of
from server_capacity.results.ranking_row import Aim
from server_capacity.results.types.axes import Axis, Variant, parse_axis, variants_of

if TYPE_CHECKING:
    from collections.abc import Iterator

_ONLY_RANKED = ("parallel", "target_rps", "utilisation", "recommender")

_OF_A_SEARCH = ("vary", "in", "arrivals", "precision", "max_rps", "start_rps", "soak", "cache")


def _utilisation(flag: str, text: str) -> float:
    """A share above 0 and at most 1."""
    value = parse_share(flag, text)
    if not 0 < value <= 1:
        raise BenchmarkError(f"{flag} must be above 0% and at most 100%, not {excerpt(text, 100)}.")
    return value


PRICE_FLAGS = [
    Flag(
        "--price",
        "TYPE=USD",
        "hourly price of an instance of this type (repeatable; default: AWS's price list, if there are credentials)",
        repeatable=True,
    ),
    Flag(
        "--price-file",
        "FILE",
        "prices as JSON, {TYPE: USD} or {REGION: {TYPE: USD}}, or the index.json of SageMaker prices that AWS "
        "publishes",
    ),
]
"""The flags of every command with a price."""

UTILISATION_ABOUT = "load each instance to at most this share of the lower end of its capacity's interval (default 70%)"
VARY_FLAGS = [
    Flag(
        "--vary",
        "NAME=V,V",
        "search with each value (a variant), and rank the variants. NAME: an argument of endpoint_factory, the "
        "function of the factories file that creates the endpoint; env.NAME: a key of its argument env; payload.NAME: "
        "an argument of payload_factory. Several --vary give every combination",
        parse_axis,
        repeatable=True,
    ),
    Flag("--parallel", "N", "endpoints to measure at a time (default 1); they share the client's cores", parse_int),
    Flag("--target-rps", "R", "rank by the cost of serving this rate", parse_number),
    Flag(
        "--utilisation",
        "P%",
        UTILISATION_ABOUT,
        _utilisation,
    ),
    Flag(
        "--verify",
        "PLAN",
        "verify a plan (its folder or fleet_plan.json): start the planned instances, and send them the target rate, "
        "with Poisson arrivals, until the outcome is clear (or for --time)",
    ),
    Flag("--recommender", "JOB", "show the results of this Inference Recommender job beside the ranking"),
    Flag("--max-cost", "USD", "create no endpoint if it could cost more than this", parse_number),
    Flag("--yes", None, "create endpoints without asking"),
    PRICE_FLAGS[0]._replace(
        about="hourly price of an instance of this type, of a GPU (gpu=USD; endpoint_factory's argument gpus says "
        "how many), or of a variant by its name in the ranking (repeatable; default: AWS's price list, if there are "
        "credentials)"
    ),
    PRICE_FLAGS[1],
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class VariantsRequest:
    """The endpoints to make, each as the variants that are measured on it; and what they are ranked for.

    ``ranked``: --vary was given. ``cores``: those of each search. ``suspends``: --suspend-scaling was.
    ``demo``: the embedded endpoint makes them, and nothing is paid.
    """

    axes: tuple[Axis, ...]
    endpoints: list[list[Variant]]
    aim: Aim
    parallel: int
    cores: int
    prices: Prices
    max_cost: float | None
    sure: bool
    suspends: bool
    demo: bool = False

    @property
    def ranked(self) -> bool:
        """Tells whether variants are compared."""
        return bool(self.axes)


def asked_of(options: dict[str, Any], problems: list[str]) -> VariantsRequest:
    """The meaning of the flags; what is wrong with them is added to the problems."""
    given = read_flags(VARY_FLAGS, options, problems).values
    axes = given["vary"] or ()
    note_addresses(*(text for axis in axes for text in axis.texts))  # here, for the ranking and the searches alike
    endpoints = [[Variant()]]
    try:
        endpoints = variants_of(axes)
    except BenchmarkError as error:
        problems.append(str(error))
    problems += _problems(options, given)
    prices = Prices({})
    try:
        prices = prices_of(options)
    except BenchmarkError as error:
        problems += hidden(str(error)).splitlines()
    parallel = given["parallel"] or 1
    aim = Aim(given["target_rps"], given["utilisation"] or Aim().utilisation)
    sure = bool(options["yes"] or options["demo"])
    cores = max(1, usable_cores() // max(parallel, 1))
    suspends, demo = bool(options["suspend_scaling"]), bool(options["demo"])
    return VariantsRequest(
        tuple(axes), endpoints, aim, parallel, cores, prices, given["max_cost"], sure, suspends, demo
    )


def _stray_in_a_proof(options: dict[str, Any]) -> Iterator[str]:
    if options["verify"] is None:
        return
    for name in _OF_A_SEARCH:
        if options[name] is not None:
            yield f"--{name.replace('_', '-')} is for a search, and --verify sends the plan's target: leave it out."


def _problems(options: dict[str, Any], given: dict[str, Any]) -> Iterator[str]:
    ranked = options["vary"] is not None
    yield from _stray_in_a_proof(options)
    for name in _ONLY_RANKED:
        if options[name] is not None and not ranked:
            yield f"--{name.replace('_', '-')} is for --vary, which compares endpoints."
    if ranked and options["in"] == "users":
        yield "--vary ranks by requests/s: leave --in users out."
    if ranked and options["locust_file"] is not None:
        yield "--vary needs a --factories-file: its endpoint_factory and payload_factory take the values."
    parallel, target, most = given["parallel"], given["target_rps"], given["max_cost"]
    if parallel is not None and not 1 <= parallel <= usable_cores():
        yield f"--parallel must be from 1 to the {usable_cores()} cores of this client, not {parallel}."
    elif parallel is not None and parallel > 1:
        yield from _beside_each_other(options, parallel)
    if target is not None and not 0 < target <= MAX_RATE:
        yield f"--target-rps must be above 0 and at most {MAX_RATE:,} requests/s, not {target:g}."
    if most is not None and most < 0:
        yield f"--max-cost must not be below 0, not {most:g}."


def _beside_each_other(options: dict[str, Any], parallel: int) -> Iterator[str]:
    """The problems of flags that searches beside each other cannot share."""
    if options["port"] is not None:
        yield "--port is for one search at a time: leave it out, or --parallel."
    workers = str(options["workers"] or "").strip()
    if workers.isdecimal() and int(workers) * parallel > usable_cores():
        text = f"--workers {workers} for each of {parallel} searches at a time are more than the"
        yield f"{text} {usable_cores()} cores of this client: leave it out, or lower --parallel."
