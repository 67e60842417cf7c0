"""Prices from the text of a file: one's own, or the price list that AWS publishes for a region. Pure.

One's own: ``{TYPE: USD}`` or ``{REGION: {TYPE: USD}}``, beside which ``"currency"`` and ``"date"`` may stand.
AWS's: the ``index.json`` of AmazonSageMaker, https://docs.aws.amazon.com/awsaccountbilling/latest/aboutv2/using-ppslong.html
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from inference_benchmarker.words.redact import excerpt, quoted
from server_capacity.results.types.price import PRICE_LIST, Price

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

HOSTING = "Hosting"
MOST_PER_HOUR = 1_000_000
_EXPECTED = 'expected {"ml.m5.xlarge": 0.23} or {"us-east-1": {"ml.m5.xlarge": 0.23}}'
_OF_HOSTING = re.compile(r"(?:^|-)Host:")
_BESIDE = ("currency", "date")
NOT_OF_AWS = (AttributeError, OverflowError, TypeError, ValueError)
"""Raised by ``of_aws`` for what AWS does not say."""


def read_prices(data: bytes, source: str) -> list[Price]:
    """The prices of a file; ValueError says in words what is wrong with it."""
    try:
        content = json.loads(data.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"is not JSON ({excerpt(str(error), 100)})") from None
    if not isinstance(content, dict):
        raise ValueError(f"is not an object: {_EXPECTED}")
    if "products" in content:
        try:
            found = list(of_aws(_products(content), str(content.get("publicationDate") or "")))
        except NOT_OF_AWS:
            raise ValueError("is no AWS price list: use the index.json of AmazonSageMaker") from None
        if not found:
            raise ValueError("is an AWS price list without SageMaker hosting prices: use that of AmazonSageMaker")
        return [replace(price, source=f"{PRICE_LIST} in {source}") for price in found]
    return list(_own(content, source))


def _own(content: dict[str, Any], source: str) -> Iterator[Price]:
    beside = {name: content[name] for name in _BESIDE if isinstance(content.get(name), str)}
    for key, value in content.items():
        if key in _BESIDE:
            continue
        rows = value.items() if isinstance(value, dict) else [(key, value)]
        for instance_type, number in rows:
            if not is_price(number):
                most = f"{_EXPECTED}, and at most {MOST_PER_HOUR:,} an hour"
                raise ValueError(f"{quoted(instance_type, 60)} has no price but {quoted(str(number), 40)}: {most}")
            region = key if isinstance(value, dict) else None
            yield Price(instance_type, float(number), region=region, source=source, **beside)


def is_price(number: Any) -> bool:
    """Tells whether it can be the price of an hour."""
    return isinstance(number, (int, float)) and not isinstance(number, bool) and 0 <= number <= MOST_PER_HOUR


def _products(content: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The products of a list with their terms, in the shape in which AWS's API gives them one by one."""
    terms = content.get("terms") or {}
    for sku, product in content["products"].items():
        yield {"product": product, "terms": {"OnDemand": (terms.get("OnDemand") or {}).get(sku) or {}}}


def of_aws(products: Iterable[Mapping[str, Any]], date: str) -> Iterator[Price]:
    """The prices of hosting on demand: the same type costs otherwise for notebooks, training and processing."""
    for product in products:
        attributes = (product.get("product") or {}).get("attributes") or {}
        if not _is_hosting(attributes):
            continue
        published = str(product.get("publicationDate") or date)[:10] or None
        for currency, amount in _hourly((product.get("terms") or {}).get("OnDemand") or {}):
            kind, region = attributes.get("instanceName"), attributes.get("regionCode")
            if kind and is_price(amount):
                yield Price(str(kind), amount, currency, region, published, PRICE_LIST)


def _is_hosting(attributes: Mapping[str, Any]) -> bool:
    if attributes.get("component") != HOSTING:
        return False
    usage = attributes.get("usagetype")
    return usage is None or _OF_HOSTING.search(str(usage)) is not None


def _hourly(terms: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    for term in terms.values():
        for dimension in (term.get("priceDimensions") or {}).values():
            if str(dimension.get("unit", "")).lower() in ("hrs", "hours", "hour"):
                for currency, amount in (dimension.get("pricePerUnit") or {}).items():
                    yield str(currency), float(amount)
