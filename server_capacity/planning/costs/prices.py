"""The price of an instance from whoever says it first: a flag, a file, AWS's price list. Never one from memory."""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.system.given import read_given
from inference_benchmarker.words.redact import quoted
from inference_benchmarker.words.units import MIB
from server_capacity.metrics.aws_answers import NoAnswerError, pages, region_of
from server_capacity.planning.costs.price_file import HOSTING, NOT_OF_AWS, is_price, of_aws, read_prices
from server_capacity.results.types.price import GIVEN, PRICE_LIST, Price

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MOST_BYTES = 512 * MIB
"""AWS's list of a region is some ten MiB."""
_REGION_OF_LIST = "us-east-1"
"""The price list is served from few regions, and tells the prices of all."""


class Prices:
    """The prices that a command may use, each looked up once.

    ``given``: by instance type. ``listed``: those of files. ``remarks``: sentences on why the price list has nothing.
    """

    def __init__(self, given: Mapping[str, float], listed: Sequence[Price] = (), today: str | None = None) -> None:
        self.remarks: list[str] = []
        self._given = dict(given)
        self._listed = tuple(listed)
        self._today = today or f"{datetime.now(UTC):%Y-%m-%d}"
        self._found: dict[tuple[str, str | None, Price | None], Price | None] = {}
        self._before: Price | None = None

    def fall_back_on(self, price: Price | None) -> None:
        """Take a price that an earlier command computed with, where no flag or file reports one."""
        self._before = price

    @property
    def given_types(self) -> list[str]:
        """The instance types that a price was given of."""
        return list(self._given)

    def of(self, instance_type: str, region: str | None, known: Price | None = None) -> Price | None:
        """The price of an hour; None where nobody says one. ``known``: goes before that of the price list."""
        key = (instance_type, region, known)
        if key not in self._found:
            self._found[key] = self._look_up(*key)
        return self._found[key]

    def _look_up(self, instance_type: str, region: str | None, known: Price | None) -> Price | None:
        if instance_type in self._given:
            return Price(instance_type, self._given[instance_type], region=region, date=self._today, source=GIVEN)
        return (
            self._of_file(instance_type, region)
            or known
            or self._of_before(instance_type, region)
            or self._of_list(instance_type, region)
        )

    def _of_file(self, instance_type: str, region: str | None) -> Price | None:
        rows = [price for price in self._listed if price.instance_type == instance_type]
        if region is not None:
            rows = [price for price in rows if price.region == region] or [row for row in rows if row.region is None]
        fields = {(price.per_hour, price.currency): price for price in rows}
        if len(fields) > 1:
            mixed = len({price.currency for price in rows}) > 1
            which = ", ".join(sorted(_in_its_region(price, with_currency=mixed) for price in fields.values()))
            why = "the region is not known" if len({price.region for price in rows}) > 1 else "give --price"
            self._remark(f"The price of {instance_type} is {which} by {rows[0].source}: {why}.")
        return next(iter(fields.values())) if len(fields) == 1 else None

    def _of_before(self, instance_type: str, region: str | None) -> Price | None:
        price = self._before
        if price is None or price.instance_type != instance_type or not _is_in(price, region):
            return None
        return price

    def _of_list(self, instance_type: str, region: str | None) -> Price | None:
        if not instance_type.startswith("ml."):
            return None
        where = region_of(region)
        if where is None:
            return None
        wanted = {"regionCode": where, "instanceName": instance_type, "component": HOSTING}
        filters = [{"Type": "TERM_MATCH", "Field": name, "Value": value} for name, value in wanted.items()]
        asked = {"ServiceCode": "AmazonSageMaker", "Filters": filters}
        try:
            products = [
                json.loads(text)
                for page in pages("pricing", _REGION_OF_LIST, "get_products", asked)
                for text in page.get("PriceList") or []
            ]
            found = [
                price
                for price in of_aws(products, "")
                if price.instance_type == instance_type and price.region in (where, None)
            ]
        except NoAnswerError as error:
            if str(error):
                self._remark(f"AWS's price list was not read: {error}.")
            return None
        except NOT_OF_AWS:
            self._remark("AWS's price list was not read: the answer has an unknown form.")
            return None
        fields = {(price.per_hour, price.currency): price for price in found}
        if len(fields) > 1:
            self._remark(f"{PRICE_LIST} has several prices of {instance_type} in {where}: give --price.")
        return next(iter(fields.values())) if len(fields) == 1 else None

    def _remark(self, sentence: str) -> None:
        if sentence not in self.remarks:
            self.remarks.append(sentence)


def _is_in(price: Price, region: str | None) -> bool:
    return region is None or price.region in (None, region)


def _in_its_region(price: Price, *, with_currency: bool) -> str:
    currency = f" {price.currency}" if with_currency else ""
    return f"{price.per_hour:g}{currency} in {price.region or 'any region'}"


def prices_of(options: Mapping[str, Any]) -> Prices:
    """The prices that the flags --price and --price-file give, as text. One BenchmarkError for all that is wrong."""
    problems: list[str] = []
    found: list[tuple[str, float]] = []
    for text in options.get("price") or ():
        try:
            found.append(parse_price(text))
        except BenchmarkError as error:
            problems.append(str(error))
    several = Counter(kind for kind, _ in found)
    problems += [f"--price {kind} is given {count} times." for kind, count in several.items() if count > 1]
    listed: list[Price] = []
    if options.get("price_file") is not None:
        path = Path(options["price_file"])
        try:
            listed = read_prices(read_given(path, MOST_BYTES), path.name)
        except OSError as error:
            problems.append(f"--price-file {path}: cannot be read ({error.strerror or error}).")
        except ValueError as error:
            problems.append(f"--price-file {path}: {error}.")
    if problems:
        raise BenchmarkError("\n".join(problems))
    return Prices(dict(found), listed)


def parse_price(text: str) -> tuple[str, float]:
    """``ml.m5.xlarge=0.23``: a type and the dollars that an hour of it costs."""
    kind, equals, amount = (part.strip() for part in text.rpartition("="))
    try:
        value = float(amount.removeprefix("$")) if equals and kind and amount.isascii() else -1.0
    except ValueError:
        value = -1.0
    if not is_price(value) or "_" in amount:
        raise BenchmarkError(f"--price must be TYPE=USD, such as ml.m5.xlarge=0.23, not {quoted(text)}.")
    return kind, value
