"""AWS's price list with the prices of instances that the endpoint was given, as GetProducts reports them.

A price holds in whatever region it is asked for. Each type is listed for hosting, and for training at the same price:
a client that does not say which of them it wants finds both, as it does with AWS.
"""

from __future__ import annotations

import json
import zlib
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from inference_benchmarker.embedded.aws.aws_json import AwsError, Caller, Service
from inference_benchmarker.embedded.aws.paging import page

if TYPE_CHECKING:
    from collections.abc import Mapping

TARGET_PREFIX = "AWSPriceListService"
_SERVICE = "AmazonSageMaker"
_FAMILY = "ML Instance"
_REGION = "us-east-1"
_COMPONENTS = {"Hosting": "Host", "Training": "Train"}
_MOST = 100


class PriceList:
    """The operation. ``prices``: USD an hour by instance type; ``at``: epoch seconds of their publication."""

    def __init__(self, prices: Mapping[str, float], at: float) -> None:
        self._prices = prices
        self._published = datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        self.service = Service("pricing", {"GetProducts": self._get_products})

    def _get_products(self, request: dict[str, Any], _: Caller) -> dict[str, Any]:
        if request["ServiceCode"] != _SERVICE:
            raise AwsError("NotFoundException", f"The service {request['ServiceCode']} is unknown here.")
        asked = [_filter(each) for each in request.get("Filters") or ()]
        region = next((value for field, value in asked if field == "regionCode"), _REGION)
        products = [
            self._product(kind, component, price, region)
            for kind, price in sorted(self._prices.items())
            for component in _COMPONENTS
        ]
        found = [product for product in products if all(_field_of(product, field) == value for field, value in asked)]
        size = request.get("MaxResults", _MOST)
        if not 1 <= size <= _MOST:
            raise AwsError("InvalidParameterException", f"MaxResults is {size}: it must be from 1 to {_MOST}.")
        bad_token = AwsError("InvalidNextTokenException", "The next token is of no earlier answer.")
        cut = page("PriceList", found, request.get("NextToken"), size, bad_token)
        return {**cut, "FormatVersion": "aws_v1", "PriceList": [json.dumps(each) for each in cut["PriceList"]]}

    def _product(self, kind: str, component: str, price: float, region: str) -> dict[str, Any]:
        sku = f"{zlib.crc32(f'{kind} {component} {region}'.encode()):08X}"
        dimension = {
            "unit": "Hrs",
            "description": f"${price:g} per {component} {kind} hour",
            "pricePerUnit": {"USD": f"{price:.10f}"},
        }
        attributes = {
            "servicecode": _SERVICE,
            "instanceName": kind,
            "instanceType": f"{kind}-{component}",
            "component": component,
            "usagetype": f"{region}-{_COMPONENTS[component]}:{kind}",
            "regionCode": region,
            "locationType": "AWS Region",
        }
        return {
            "product": {"productFamily": _FAMILY, "attributes": attributes, "sku": sku},
            "serviceCode": _SERVICE,
            "terms": {"OnDemand": {f"{sku}.T": {"priceDimensions": {f"{sku}.T.D": dimension}, "sku": sku}}},
            "version": self._published,
            "publicationDate": self._published,
        }


def _filter(given: dict[str, str]) -> tuple[str, str]:
    """The field and the value of a filter. Raises AwsError."""
    if given["Type"] not in ("TERM_MATCH", "EQUALS"):
        raise AwsError("InvalidParameterException", f"A filter of the type {given['Type']} is not known here.")
    return given["Field"], given["Value"]


def _field_of(product: dict[str, Any], field: str) -> str | None:
    """The value of a field; None: the product has no such field."""
    text: str | None = {"productFamily": _FAMILY, "ServiceCode": _SERVICE, **product["product"]["attributes"]}.get(
        field
    )
    return text
