"""Prices by who says them, and what is computed of them."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference_benchmarker.data.decoded import encoded
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.words.wording import money_text
from server_capacity.planning.costs.price_file import read_prices
from server_capacity.planning.costs.prices import Prices, parse_price, prices_of
from server_capacity.planning.costs.recommender import recommender_of
from server_capacity.results.text.spend import PaidEndpoint, spend, spend_text
from server_capacity.results.types.price import Price, cost
from tests.mentions import mentions

if TYPE_CHECKING:
    from pathlib import Path

M5 = "ml.m5.xlarge"


def of_sagemaker(sku: str, component: str, usage: str, amount: str | int, **more: str) -> dict[str, Any]:
    """A product of AWS's list, as its API tells it."""
    attributes = {"instanceName": M5, "component": component, "usagetype": usage, "regionCode": "us-east-1", **more}
    dimensions = {f"{sku}.T.D": {"unit": "Hrs", "pricePerUnit": {"USD": amount}}}
    return {
        "product": {"productFamily": "ML Instance", "sku": sku, "attributes": attributes},
        "terms": {"OnDemand": {f"{sku}.T": {"priceDimensions": dimensions}}},
        "publicationDate": "2026-11-20T18:00:00Z",
    }


HOSTED = of_sagemaker("A", "Hosting", "USE1-Host:ml.m5.xlarge", "0.2300000000")
TRAINED = of_sagemaker("B", "Training", "USE1-Train:ml.m5.xlarge", "0.9000000000")
ASYNCHRONOUS = of_sagemaker("C", "Hosting", "USE1-AsyncInf:ml.m5.xlarge", "0.8000000000")


def bulk(*products: dict[str, Any]) -> dict[str, Any]:
    """AWS's file of a region."""
    return {
        "offerCode": "AmazonSageMaker",
        "publicationDate": "2026-11-20T18:00:00Z",
        "products": {each["product"]["sku"]: each["product"] for each in products},
        "terms": {"OnDemand": {each["product"]["sku"]: each["terms"]["OnDemand"] for each in products}},
    }


def test_cost_is_an_hour_a_month_and_a_million_requests() -> None:
    price = Price(M5, 0.23, region="us-east-1", date="2026-11-20", source="given")

    recommender_of = cost(price, 6, 100)

    assert recommender_of.hour == pytest.approx(1.38)
    assert recommender_of.month == pytest.approx(1.38 * 730)
    assert recommender_of.per_million == pytest.approx(1.38 / 360_000 * 1e6)
    assert (recommender_of.currency, recommender_of.region, recommender_of.date, recommender_of.source) == (
        "USD", "us-east-1", "2026-11-20", "given",
    )  # fmt: skip
    assert cost(price, 1, 0).per_million is None


@given(st.floats(0, 100), st.integers(1, 100), st.floats(0.01, 1e5))
def test_a_million_costs_what_the_hour_does_by_the_requests_in_it(per_hour: float, instances: int, rate: float) -> None:
    recommender_of = cost(Price(M5, per_hour), instances, rate)
    assert recommender_of.per_million is not None
    assert recommender_of.per_million * rate * 3600 / 1e6 == pytest.approx(recommender_of.hour)


@pytest.mark.parametrize(
    ("amount", "text"),
    [(1.224, "$1.22"), (0.0036, "$0.0036"), (0.23, "$0.23"), (12345.6, "$12,346"), (0, "$0.00"), (999.999, "$1,000")],
)
def test_money_has_the_digits_that_matter(amount: float, text: str) -> None:
    assert money_text(amount) == text
    assert money_text(2.5, "CNY") == "2.50 CNY"


def test_a_flag_goes_before_a_file(tmp_path: Path) -> None:
    file = tmp_path / "prices.json"
    file.write_text(json.dumps({"us-east-1": {M5: 0.23, "x.large": 1}, "eu-west-1": {M5: 0.25}, "date": "2026-11-01"}))

    prices = prices_of({"price": [f"{M5}=$0.2"], "price_file": str(file)})
    given_price, listed = prices.of(M5, "eu-west-1"), prices.of("x.large", "us-east-1")

    assert given_price is not None
    assert (given_price.per_hour, given_price.region, given_price.source) == (0.2, "eu-west-1", "given")
    assert listed == Price("x.large", 1.0, "USD", "us-east-1", "2026-11-01", "prices.json")
    assert prices.of("x.large", "eu-west-1") is None


def test_a_price_of_before_goes_behind_flags_and_files_and_is_of_its_region() -> None:
    before = Price(M5, 0.3, region="us-east-1", date="2026-11-01", source="given")
    for prices, wanted in (
        (Prices({}), before),
        (Prices({M5: 0.2}), 0.2),
        (Prices({}, [Price(M5, 0.25)]), 0.25),
    ):
        prices.fall_back_on(before)
        found = prices.of(M5, "us-east-1")
        assert found is not None
        assert wanted in (found, found.per_hour)
        assert prices.of("x.large", "us-east-1") is None
    elsewhere = Prices({})
    elsewhere.fall_back_on(replace(before, instance_type="x.large"))
    assert elsewhere.of("x.large", "eu-west-1") is None
    assert elsewhere.of("x.large", None) is not None


def test_a_price_that_differs_between_regions_needs_one() -> None:
    listed = read_prices(json.dumps({"us-east-1": {"a": 0.23}, "eu-west-1": {"a": 0.25, "b": 1}}).encode(), "f.json")
    prices = Prices({}, listed)

    assert prices.of("a", None) is None
    assert mentions(prices.remarks[0], "0.23", "us-east-1", "0.25", "eu-west-1", "f.json")
    assert prices.of("b", None) == Price("b", 1.0, "USD", "eu-west-1", None, "f.json")


def test_a_price_in_two_currencies_is_not_reported_to_lack_a_region() -> None:
    listed = [Price("a", 0.2, "USD", "cn-north-1", source="f.json"), Price("a", 1.4, "CNY", "cn-north-1")]
    prices = Prices({}, listed)
    assert prices.of("a", "cn-north-1") is None
    assert mentions(prices.remarks[0], "0.2 USD", "cn-north-1", "1.4 CNY", "cn-north-1", "f.json", "--price")


def test_a_file_without_regions_is_of_every_region() -> None:
    listed = read_prices(b'{"a": 0.5, "currency": "EUR"}', "f.json")
    assert Prices({}, listed).of("a", "eu-west-1") == Price("a", 0.5, "EUR", None, None, "f.json")


def test_of_awss_own_file_only_hosting_counts() -> None:
    (price,) = read_prices(json.dumps(bulk(TRAINED, HOSTED, ASYNCHRONOUS)).encode(), "index.json")
    assert price == Price(M5, 0.23, "USD", "us-east-1", "2026-11-20", "AWS price list in index.json")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "is not JSON"),
        ("[1]", "is not an object"),
        ('{"ml.m5.xlarge": "cheap"}', "'ml.m5.xlarge' has no price but 'cheap'"),
        ('{"us-east-1": {"a": -1}}', "'a' has no price"),
        ('{"a": NaN}', "'a' has no price"),
        (json.dumps(bulk(TRAINED)), "without SageMaker hosting prices"),
        ('{"a": 1' + "0" * 400 + "}", "'a' has no price but '1000"),
        ('{"a": 1000001}', ", and at most 1,000,000 an hour."),
        ('{"products": []}', "p.json: is no AWS price list"),
        ('{"products": {"A": 1}}', "is no AWS price list"),
        (json.dumps(bulk(of_sagemaker("A", "Hosting", "Host:a", "dear"))), "is no AWS price list"),
        (json.dumps(bulk(of_sagemaker("A", "Hosting", "Host:a", 10**400))), "is no AWS price list"),
    ],
)
def test_a_wrong_file_is_one_sentence(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "p.json").write_text(text)
    with pytest.raises(BenchmarkError) as raised:
        prices_of({"price": ["x"], "price_file": str(tmp_path / "p.json")})
    flag, file = str(raised.value).splitlines()
    assert mentions(flag, "--price", "TYPE=USD", "ml.m5.xlarge=0.23", "'x'")
    assert said in file


@pytest.mark.parametrize("text", ["", "=1", "a=", "a=-1", "a=nan", "a=inf", "a", "a=1_0", "a=\u0661", "a=1e308"])
def test_no_price_is_refused(text: str) -> None:
    with pytest.raises(BenchmarkError, match="TYPE=USD"):
        parse_price(text)


def test_a_type_has_one_price() -> None:
    with pytest.raises(BenchmarkError, match=f"--price {M5} is given 2 times"):
        prices_of({"price": [f"{M5}=1", "b=1", f"{M5}=2"]})


def test_spend_is_what_endpoints_cost_while_they_are_there() -> None:
    price = Price(M5, 0.23)

    recommender_of = spend([PaidEndpoint(M5, 2, 900, price), PaidEndpoint(M5, 1, 900, price)])

    assert recommender_of.instance_hours == pytest.approx(1.5)
    assert recommender_of.cost == pytest.approx(0.345)
    assert mentions(spend_text(recommender_of), "2 endpoints", "30 min", "1.5 instance", "$0.35")


def test_an_endpoint_of_no_type_of_awss_is_there_at_once() -> None:
    assert mentions(
        spend_text(spend([PaidEndpoint(None, 1, 180, None)])), "1 endpoint", "3 min", "0.05 instance", "instance_type"
    )


def test_a_short_time_of_each_endpoint_is_in_seconds() -> None:
    two = [PaidEndpoint(None, 1, 14, None)] * 2
    assert spend_text(spend(two)).startswith("2 endpoints, about 14 s each: ")


def test_spend_says_whose_price_is_missing() -> None:
    recommender_of = spend([PaidEndpoint(M5, 1, 900, Price(M5, 0.23)), PaidEndpoint("ml.g5.xlarge", 1, 900, None)])
    assert (recommender_of.cost, recommender_of.unpriced) == (None, ["ml.g5.xlarge"])
    assert recommender_of.known == pytest.approx(0.115)
    assert mentions(spend_text(recommender_of, 2), "2", "1 instance", "ml.g5.xlarge")


def test_a_recommender_job_is_read_at_saturation() -> None:
    row = {
        "EndpointConfiguration": {
            "EndpointName": "e",
            "VariantName": "v",
            "InstanceType": M5,
            "InitialInstanceCount": 1,
        },
        "ModelConfiguration": {"EnvironmentParameters": [{"Key": "OMP", "ValueType": "integer", "Value": "4"}]},
        "Metrics": {"MaxInvocations": 648, "ModelLatency": 263, "CostPerHour": 0.2, "CpuUtilization": float("nan")},
    }

    found = recommender_of("job", {"Status": "COMPLETED", "InferenceRecommendations": [row]})

    assert "saturation" in found.note
    (mine,) = found.rows
    assert (mine.rate, mine.env, mine.ModelLatency, mine.CpuUtilization) == (10.8, {"OMP": "4"}, 263, None)
    json.dumps(encoded(found), allow_nan=False)
