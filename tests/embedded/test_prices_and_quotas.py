"""The price list and the service quotas of the embedded endpoint, asked by an unmodified boto3."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError

from inference_benchmarker.embedded.config import EndpointConfig
from inference_benchmarker.embedded.running import start
from tests.boto3_runtime import client

if TYPE_CHECKING:
    from collections.abc import Iterator

    from inference_benchmarker.embedded.running import RunningEndpoint

pytestmark = pytest.mark.process
M5 = "ml.m5.xlarge"


@pytest.fixture(scope="module")
def endpoint() -> Iterator[RunningEndpoint]:
    with start(EndpointConfig(type_price={M5: 0.25, "ml.c5.large": 0.1}, type_quota={M5: 4})) as endpoint:
        yield endpoint


def products(endpoint: RunningEndpoint, **wanted: str) -> list[dict[str, Any]]:
    filters = [{"Type": "TERM_MATCH", "Field": name, "Value": value} for name, value in wanted.items()]
    pages = client(endpoint, "pricing").get_paginator("get_products")
    found = pages.paginate(ServiceCode="AmazonSageMaker", Filters=filters, PaginationConfig={"PageSize": 1})
    return [json.loads(text) for page in found for text in page["PriceList"]]


def test_a_price_is_found_by_its_type_and_what_it_is_for(endpoint: RunningEndpoint) -> None:
    (found,) = products(endpoint, regionCode="eu-west-1", instanceName=M5, component="Hosting")
    assert found["product"]["attributes"]["usagetype"].endswith(f"Host:{M5}")
    (term,) = found["terms"]["OnDemand"].values()
    (dimension,) = term["priceDimensions"].values()
    assert (dimension["unit"], float(dimension["pricePerUnit"]["USD"])) == ("Hrs", 0.25)
    assert found["publicationDate"].endswith("Z")
    assert [each["product"]["attributes"]["component"] for each in products(endpoint, instanceName=M5)] == [
        "Hosting",
        "Training",
    ]
    assert products(endpoint, instanceName="ml.g5.xlarge") == []


def test_quotas_are_those_that_were_given_beside_the_defaults(endpoint: RunningEndpoint) -> None:
    quotas = client(endpoint, "service-quotas")
    found = [
        {
            each["QuotaName"]: each
            for page in quotas.get_paginator(name).paginate(ServiceCode="sagemaker")
            for each in page["Quotas"]
        }
        for name in ("list_service_quotas", "list_aws_default_service_quotas")
    ]
    applied, default = (each[f"{M5} for endpoint usage"] for each in found)
    assert (applied["Value"], default["Value"]) == (4, 20)
    one = quotas.get_service_quota(ServiceCode="sagemaker", QuotaCode=applied["QuotaCode"])["Quota"]
    assert one == applied
    with pytest.raises(ClientError) as caught:
        quotas.get_service_quota(ServiceCode="sagemaker", QuotaCode="L-0")
    assert caught.value.response["Error"]["Code"] == "NoSuchResourceException"
