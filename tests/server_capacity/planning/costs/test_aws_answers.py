"""AWS's price list and its quotas as boto3 reads them from a server; nobody is asked without credentials."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import pytest

from inference_benchmarker.data.decoded import encoded
from server_capacity.planning.costs import quota as quotas
from server_capacity.planning.costs.prices import Prices
from server_capacity.planning.costs.quota import quota
from server_capacity.results.types.price import Price
from tests.fake_cloudwatch import alone
from tests.scripted_server import ScriptedServer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.bench import Bench

M5, US = "ml.m5.xlarge", "us-east-1"


@pytest.fixture(autouse=True)
def _nothing_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    alone(monkeypatch, tmp_path)
    quotas._quotas.cache_clear()
    yield
    quotas._quotas.cache_clear()


def said(*answers: dict[str, Any], status: str = "200 OK") -> list[list[bytes]]:
    """A script for each answer in AWS's JSON."""
    bodies = [json.dumps(each).encode() for each in answers]
    head = f"HTTP/1.1 {status}\r\nContent-Type: application/x-amz-json-1.1\r\nContent-Length: "
    return [[head.encode() + str(len(body)).encode() + b"\r\n\r\n" + body] for body in bodies]


def serve(monkeypatch: pytest.MonkeyPatch, server: ScriptedServer) -> None:
    for name in ("PRICING", "SERVICE_QUOTAS"):
        monkeypatch.setenv(f"AWS_ENDPOINT_URL_{name}", server.url)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "demo")


def listed(amount: str) -> str:
    attributes = {"instanceName": M5, "component": "Hosting", "usagetype": f"USE1-Host:{M5}", "regionCode": US}
    dimension = {"unit": "Hrs", "pricePerUnit": {"USD": amount}}
    terms = {"OnDemand": {"A.B": {"priceDimensions": {"A.B.C": dimension}}}}
    return json.dumps(
        {"product": {"attributes": attributes}, "terms": terms, "publicationDate": "2026-11-20T00:00:00Z"}
    )


def test_the_price_list_is_asked_once_and_for_hosting_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    with ScriptedServer(said({"FormatVersion": "aws_v1", "PriceList": [listed("0.2300000000")]})) as server:
        serve(monkeypatch, server)
        prices = Prices({})
        assert prices.of(M5, US) == prices.of(M5, US) == Price(M5, 0.23, "USD", US, "2026-11-20", "AWS price list")
        (asked,) = server.asked
    wanted = {each["Field"]: each["Value"] for each in json.loads(asked.body)["Filters"]}
    assert wanted == {"regionCode": US, "instanceName": M5, "component": "Hosting"}
    assert "/us-east-1/pricing/" in asked.headers["authorization"]
    assert prices.of("local", US) is None


def test_a_price_list_that_refuses_is_a_remark(monkeypatch: pytest.MonkeyPatch) -> None:
    refused = said({"__type": "AccessDeniedException", "message": "no"}, status="400 Bad Request")
    with ScriptedServer(refused) as server:
        serve(monkeypatch, server)
        prices = Prices({})
        assert prices.of(M5, US) is None
    (remark,) = prices.remarks
    assert "may not call pricing:GetProducts" in remark


def test_without_credentials_nobody_is_asked() -> None:
    prices = Prices({})
    assert prices.of(M5, US) is None
    assert prices.remarks == []
    assert quota(M5, US, 1) is None


def test_a_quota_that_is_too_small_comes_with_the_increase_to_ask_for(monkeypatch: pytest.MonkeyPatch) -> None:
    def row(code: str, name: str, value: float) -> dict[str, Any]:
        return {"ServiceCode": "sagemaker", "QuotaCode": code, "QuotaName": name, "Value": value}

    defaults = {
        "Quotas": [row("L-1", f"{M5} for endpoint usage", 0.0), row("L-2", "ml.c5.large for endpoint usage", 4)]
    }
    defaults["Quotas"].append(row("L-3", "ml.g5.xlarge for endpoint usage", math.inf))
    first = {"Quotas": [row("L-9", f"{M5} for training job usage", 20.0)], "NextToken": "more"}
    second = {"Quotas": [row("L-1", f"{M5} for endpoint usage", 2.0)]}
    with ScriptedServer(said(defaults, first, second)) as server:
        serve(monkeypatch, server)
        found, default, unknown = quota(M5, US, 3), quota("ml.c5.large", US, 3), quota("ml.none", US, 1)
        assert quota("ml.g5.xlarge", US, 1) is None
        assert len(server.asked) == 3

    assert encoded(found) == {
        "name": f"{M5} for endpoint usage",
        "instance_type": M5,
        "region": US,
        "code": "L-1",
        "limit": 2,
        "needed": 3,
        "enough": False,
        "increase": "aws service-quotas request-service-quota-increase --service-code sagemaker --quota-code L-1 "
        "--desired-value 3 --region us-east-1",
    }
    assert default is not None
    assert (default.limit, default.enough) == (4, True)
    assert unknown is None
    assert quota("local", US, 1) is None


@pytest.mark.process
def test_the_embedded_endpoint_tells_prices_and_quotas(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    with bench.endpoint(type_price={M5: 0.25}, type_quota={M5: 3}) as endpoint:
        for name, value in endpoint.aws_environment.items():
            monkeypatch.setenv(name, value)
        price, none = Prices({}).of(M5, None), Prices({}).of("ml.c5.large", None)
        found = quota(M5, None, 4)
    assert price is not None
    assert (price.per_hour, price.region, price.source) == (0.25, US, "AWS price list")
    assert none is None
    assert found is not None
    assert (found.limit, found.enough) == (3, False)
