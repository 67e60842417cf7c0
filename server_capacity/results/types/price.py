"""The price of an instance, and the cost of a load at it. Pure."""

from dataclasses import dataclass

from server_capacity.results.types.bounds import Amount, Cost

HOURS_A_MONTH = 730.0
NO_PRICE = "No cost: give --price TYPE=USD (an hour of an instance), --price-file FILE, or AWS credentials."
GIVEN, PRICE_LIST = "given", "AWS price list"
GPU = "gpu"
"""In place of an instance type: the price is that of each GPU."""


@dataclass(frozen=True, slots=True)
class Price:
    """The price of an hour of one instance.

    ``date``: ISO, when it was published, or given. ``source``: ``given``, the name of a file, or ``AWS price list``.
    """

    instance_type: str
    per_hour: Amount
    currency: str = "USD"
    region: str | None = None
    date: str | None = None
    source: str | None = ""

    @property
    def origin(self) -> str:
        """``us-east-1, given, 2026-11-23``: what stands beside a sum of money."""
        return ", ".join(filter(None, (self.region, self.source, self.date)))


def cost(price: Price, instances: float, requests_per_s: float) -> Cost:
    """The cost of so many instances, and per million requests at that rate (None where there are none).

    Per million: hourly price x instances / (rate x 3600) x 10^6. A month has 730 hours.
    """
    hour = price.per_hour * instances
    return Cost(
        hour,
        hour * HOURS_A_MONTH,
        per_million(hour, requests_per_s),
        price.currency,
        price.region,
        price.date,
        price.source,
        price.instance_type,
        price.per_hour,
    )


def per_million(hour: float, per_s: float) -> float | None:
    """The cost of a million of what comes so often a second, while an hour costs so much."""
    return hour / (3600 * per_s) * 1e6 if per_s > 0 else None
