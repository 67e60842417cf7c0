"""The flags of `benchmark pareto`: the GPUs of each run, what they cost, and how the cost is divided."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from inference_benchmarker.cli.capacity.vary_flags import PRICE_FLAGS
from inference_benchmarker.cli.core.flags import Flag, Table, parse_int, parse_number, parse_path, read_flags
from inference_benchmarker.cli.core.output_flags import OUTPUT_DIR
from inference_benchmarker.errors import BenchmarkError, refuse
from inference_benchmarker.words.redact import hidden, quoted
from server_capacity.planning.costs.prices import Prices, prices_of
from server_capacity.results.types.price import GPU
from visualization.pareto.costs import Weights

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping
    from pathlib import Path

    from server_capacity.results.types.price import Price

_MOST = 1_000_000
_SAGEMAKER = "ml."
Named = tuple[str, Any]
"""The name of a run, empty for all, and its value."""


def _named(parse: Callable[[str, str], Any]) -> Callable[[str, str], Named]:
    """A value for all runs, or as NAME=VALUE for one."""

    def read(flag: str, text: str) -> Named:
        name, _, value = text.rpartition("=")
        return name.strip(), parse(flag, value)

    return read


def _count(flag: str, text: str) -> int:
    number = parse_int(flag, text)
    if not 1 <= number <= _MOST:
        raise BenchmarkError(f"{flag} must be from 1 to {_MOST:,}, not {number}.")
    return number


def _type(flag: str, text: str) -> str:
    if not text.strip():
        raise BenchmarkError(f"{flag} must be a type, or NAME=TYPE, not {quoted(text)}.")
    return text.strip()


def _weights(flag: str, text: str) -> Weights:
    parts = text.split(":")
    values = [parse_number(flag, part) for part in parts] if len(parts) == 3 else []
    if not values or min(values) < 0 or not any(values):
        raise BenchmarkError(f"{flag} must be INPUT:CACHED:OUTPUT, such as 1:0.1:4, not {quoted(text)}.")
    return Weights(*values)


_PRICE, _PRICE_FILE = PRICE_FLAGS
PARETO_FLAGS: Table = {
    "GPUs and cost": [
        Flag(
            "--gpus",
            "[NAME=]N",
            "number of GPUs that served each run, or the run NAME (repeatable; default 1)",
            _named(_count),
            repeatable=True,
        ),
        _PRICE._replace(
            about="hourly price of an instance of this type, of a GPU (gpu=USD), or of all hardware that served the "
            "run NAME (NAME=USD; repeatable)"
        ),
        _PRICE_FILE,
        Flag(
            "--instance-type",
            "[NAME=]TYPE",
            "type of the instances that served each run, or the run NAME (repeatable)",
            _named(_type),
            repeatable=True,
        ),
        Flag("--instances", "[NAME=]N", "number of these instances (default 1)", _named(_count), repeatable=True),
        Flag(
            "--token-weights",
            "I:C:O",
            "price an input, a cached and an output token in this ratio, such as 1:0.1:4 (default: the price of "
            "each kind if it carries the whole cost)",
            _weights,
        ),
    ],
    "output": [
        Flag(
            "--output-dir",
            "DIR",
            "where to create the folder with the page, images and tables",
            parse_path,
            default=OUTPUT_DIR,
        ),
        Flag("--json", None, "print pareto.json"),
    ],
}


@dataclass(frozen=True, slots=True)
class ParetoRequest:
    """The question; numbers and types by the name of a run, ``""`` for all others."""

    gpus: Mapping[str, int]
    prices: Prices
    instance_types: Mapping[str, str]
    instances: Mapping[str, int]
    weights: Weights | None
    output_dir: Path
    as_json: bool

    def problems(self, names: Collection[str]) -> Iterator[str]:
        """Sentences on names that no run has, and on prices that are of none."""
        known = ", ".join(names)
        for flag, given in (
            ("--gpus", self.gpus),
            ("--instance-type", self.instance_types),
            ("--instances", self.instances),
        ):
            strangers = (name for name in given if name and name not in names)
            yield from (
                f"{flag} {name}={given[name]}: no run is called {name}. They are called {known}." for name in strangers
            )
        used = {self._kind(name, names) for name in names}
        unused = (kind for kind in self.prices.given_types if kind not in used)
        yield from (
            f"--price {kind}: no run is of it. It must be gpu, one of {known}, or named by --instance-type."
            for kind in unused
        )

    def gpus_of(self, name: str) -> int:
        """The GPUs of a run."""
        return self.gpus.get(name, self.gpus.get("", 1))

    def hour_of(self, name: str, names: Collection[str]) -> tuple[Price, int] | None:
        """The price of what served a run, one of these names, and how many; None where nobody says one."""
        kind = self._kind(name, names)
        price = None if kind is None else self.prices.of(kind, None)
        if price is None:
            return None
        if kind == name:
            return price, 1
        return price, self.gpus_of(name) if kind == GPU else self.instances.get(name, self.instances.get("", 1))

    def _kind(self, name: str, names: Collection[str]) -> str | None:
        """The thing that has the price of a run: the run, its type, a GPU, or the only type that has a price.

        The price of a run is that of no other run. A word is a type if SageMaker calls types so, or if the number of
        instances is given; else a run's name that is misspelt would be a price of all of them.
        """
        if name in self.prices.given_types:
            return name
        given = [kind for kind in self.prices.given_types if kind not in names]
        if (kind := self.instance_types.get(name, self.instance_types.get(""))) is not None:
            return kind
        if GPU in given:
            return GPU
        types = [kind for kind in given if self.instances or kind.startswith(_SAGEMAKER)]
        return types[0] if len(types) == 1 else None


def asked_of(options: dict[str, Any], problems: list[str]) -> ParetoRequest:
    """The meaning of the flags, or one error with everything that is wrong with them."""
    flags = [flag for flags in PARETO_FLAGS.values() for flag in flags if flag.name not in ("price", "price_file")]
    given = read_flags(flags, options, problems).values
    prices = Prices({})
    try:
        prices = prices_of(options)
    except BenchmarkError as error:
        problems += hidden(str(error)).splitlines()
    named = {name: dict(given[name] or ()) for name in ("gpus", "instance_type", "instances")}
    for name, values in named.items():
        if len(values) < len(given[name] or ()):
            problems.append(f"--{name.replace('_', '-')} is given twice for one run.")
    refuse(problems)
    return ParetoRequest(
        gpus=named["gpus"],
        prices=prices,
        instance_types=named["instance_type"],
        instances=named["instances"],
        weights=given["token_weights"],
        output_dir=given["output_dir"],
        as_json=bool(given["json"]),
    )
