"""A checked block of the stream "prometheus": a Prometheus server or a metrics page, and what it is asked for. Pure.

A server has ``queries``: name to PromQL, in which ``{window}`` stands for the wave's length. A page has ``metrics``:
names with statistics. A preset does for either.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

from server_capacity.metrics.prometheus.exposition import Labels, parse_selector
from server_capacity.metrics.prometheus.presets import PRESETS, RATIOS

if TYPE_CHECKING:
    from server_capacity.metrics.prometheus.items import Item

WINDOW = "{window}"
STATISTICS = ("Rate", "Total", "Average", "Maximum", "Minimum", "Last")
INTERVAL_S = 1.0
_PERCENTILE = re.compile(r"p(\d{1,2}(\.\d+)?|100)")


@dataclass(frozen=True, slots=True)
class Wanted:
    """One quantity to read: the first of ``selectors`` (names with labels) that is there, under ``name``.

    ``statistics``: empty for those usual for its kind. ``preset`` and ``item``: where a preset asks for it.
    """

    name: str
    selectors: tuple[tuple[str, Labels], ...]
    statistics: tuple[str, ...] = ()
    preset: str | None = None
    item: Item | None = None


def percent_of(statistic: str) -> float | None:
    """99.9 of "p99.9"; None where the statistic is no percentile."""
    found = _PERCENTILE.fullmatch(statistic)
    return float(found[1]) if found else None


@dataclass(frozen=True, slots=True)
class Credentials:
    """The names of the environment variables that hold a token or a password, and the password's user."""

    token_variable: str | None = None
    user: str | None = None
    password_variable: str | None = None

    @property
    def variables(self) -> tuple[str, ...]:
        """The variables that are named."""
        return tuple(filter(None, (self.token_variable, self.password_variable)))

    @classmethod
    def of(cls, block: dict[str, Any]) -> Credentials:
        """Those of a block with nothing wrong."""
        return cls(block.get("bearer_token_env"), block.get("username"), block.get("password_env"))


@dataclass(frozen=True, slots=True)
class Signature:
    """AWS's signature of requests to ``url``; None: the region and service that the URL names, or the usual ones."""

    url: str
    region: str | None = None
    service: str | None = None


@dataclass(frozen=True, slots=True)
class Presets:
    """The quantities that inference servers publish, by the names of presets; ``labels`` narrow all of them."""

    names: tuple[str, ...] = ()
    labels: Labels = ()

    @property
    def metrics(self) -> tuple[str, ...]:
        """The names in reports."""
        items = [each.name for preset in self.names for each in PRESETS[preset]]
        return (*items, *(each.name for preset in self.names for each in RATIOS.get(preset, ())))

    @classmethod
    def of(cls, block: dict[str, Any]) -> Presets:
        """Those of a block with nothing wrong."""
        given = block.get("preset", [])
        return cls((given,) if isinstance(given, str) else tuple(given), tuple(block.get("labels", {}).items()))


class _Common:
    """Neither kind of block waits for values, or names an endpoint."""

    __slots__ = ()
    stream: ClassVar[str] = "prometheus"
    dimensions: ClassVar[tuple[tuple[str, str], ...]] = ()
    bucket_s: ClassVar[float] = 0.0
    credentials: Credentials

    @property
    def variables(self) -> tuple[str, ...]:
        """The environment variables of its credentials."""
        return self.credentials.variables

    def waiting(self, wait_s: float) -> Self:
        """The same block: its values are there at once."""
        del wait_s
        return self

    def of_endpoint(self, name: str) -> Self:
        """The same block: it names an address."""
        del name
        return self


@dataclass(frozen=True, slots=True)
class ServerBlock(_Common):
    """A Prometheus server: ``queries`` are pairs of name and PromQL; ``step`` and ``lag`` in seconds.

    ``replicas``: the PromQL that counts the server's replicas. ``signature``: None where AWS is not asked.
    """

    is_live_only: ClassVar[bool] = False

    url: str
    queries: tuple[tuple[str, str], ...] = ()
    presets: Presets = Presets()
    replicas: str | None = None
    step: float | None = None
    lag: float = 0.0
    credentials: Credentials = Credentials()
    signature: Signature | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The metrics that it asks for."""
        return (*(name for name, _ in self.queries), *self.presets.metrics)

    @property
    def wanted(self) -> list[Wanted]:
        """The items to read beside the queries."""
        return _of_presets(self.presets)

    @classmethod
    def of(cls, block: dict[str, Any]) -> ServerBlock:
        """The block with nothing wrong that has a ``url``."""
        signs = block.get("sigv4", False)
        return cls(
            url=block["url"],
            queries=tuple(block.get("queries", {}).items()),
            presets=Presets.of(block),
            replicas=block.get("replicas"),
            step=block.get("step"),
            lag=block.get("lag", 0.0),
            credentials=Credentials.of(block),
            signature=Signature(block["url"], block.get("region"), block.get("service")) if signs else None,
        )


@dataclass(frozen=True, slots=True)
class PageBlock(_Common):
    """A metrics page, read every ``interval`` seconds; ``metrics``: names with statistics (none: those usual)."""

    is_live_only: ClassVar[bool] = True

    url: str
    metrics: tuple[tuple[str, tuple[str, ...]], ...] = ()
    presets: Presets = Presets()
    interval: float = INTERVAL_S
    credentials: Credentials = Credentials()

    @property
    def names(self) -> tuple[str, ...]:
        """The metrics that it asks for."""
        return (*(name for name, _ in self.metrics), *self.presets.metrics)

    @property
    def wanted(self) -> list[Wanted]:
        """The items to read: metrics, then presets."""
        labels = self.presets.labels
        asked = [Wanted(name, (_with(parse_selector(name), labels),), statistics) for name, statistics in self.metrics]
        return asked + _of_presets(self.presets)

    @classmethod
    def of(cls, block: dict[str, Any]) -> PageBlock:
        """The block with nothing wrong that has a ``scrape_url``."""
        metrics = block.get("metrics", {})
        pairs = metrics.items() if isinstance(metrics, dict) else ((name, ()) for name in metrics)
        return cls(
            url=block["scrape_url"],
            metrics=tuple((name, tuple(statistics)) for name, statistics in pairs),
            presets=Presets.of(block),
            interval=block.get("interval", INTERVAL_S),
            credentials=Credentials.of(block),
        )


Block = ServerBlock | PageBlock


def read_block(block: dict[str, Any]) -> Block:
    """The block that ``check_block`` found nothing wrong with."""
    return ServerBlock.of(block) if "url" in block else PageBlock.of(block)


def _of_presets(presets: Presets) -> list[Wanted]:
    return [
        Wanted(
            item.name, tuple(_with(parse_selector(source), presets.labels) for source in item.sources), (), name, item
        )
        for name in presets.names
        for item in PRESETS[name]
    ]


def _with(selector: tuple[str, Labels], extra: Labels) -> tuple[str, Labels]:
    name, labels = selector
    return name, tuple(sorted({**dict(labels), **dict(extra)}.items()))
