"""PromQL behind IAM: a server that computes each signature anew, from the request as it came."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.facts.server_metric import Interval, ServerMetric
from inference_benchmarker.report.server_metrics import metric_lines
from server_capacity.metrics.prometheus import check_block, make_source, read_block
from server_capacity.metrics.prometheus.block import ServerBlock, Signature
from server_capacity.metrics.prometheus.sigv4 import of_host
from tests.fake_cloudwatch import alone
from tests.fake_prometheus import Asked, Fake, fake

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

KEY, SECRET, TOKEN = "AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", "a+token/with=signs"
WINDOW = Interval(1000.0, 1000.0, 1060.0, 100)
ENDPOINT = "aws.sagemaker.endpoint.name"
MISMATCH = "The request signature we calculated does not match the signature you provided."


def signature(asked: Asked, address: str, region: str, service: str) -> str:
    """The Authorization that a request must have: its query decoded and encoded again, as AWS does it."""
    headers = {name.lower(): value for name, value in asked.headers.items()}
    names = headers["authorization"].partition("SignedHeaders=")[2].partition(",")[0].split(";")
    parts = urlsplit(asked.path)
    request = AWSRequest(
        "GET",
        address + parts.path,
        headers={name: headers[name] for name in names},
        params=dict(parse_qsl(parts.query, keep_blank_values=True)),
    )
    request.context["timestamp"] = headers["x-amz-date"]
    signer = SigV4Auth(Credentials(KEY, SECRET), service, region)
    found = signer.signature(signer.string_to_sign(request, signer.canonical_request(request)), request)
    scope = f"{KEY}/{signer.credential_scope(request)}"
    return f"AWS4-HMAC-SHA256 Credential={scope}, SignedHeaders={';'.join(names)}, Signature={found}"


def vector(*series: tuple[dict[str, str], str | dict[str, Any]]) -> str:
    result = [
        {"metric": labels, **({"value": [1060.0, one]} if isinstance(one, str) else {"histogram": [1060.0, one]})}
        for labels, one in series
    ]
    return json.dumps({"status": "success", "data": {"resultType": "vector", "result": result}})


class Answers:
    """What the fake says to each query, once its signature is right: the first key that stands in the query."""

    def __init__(self, server: Fake, region: str = "eu-west-1", service: str = "aps") -> None:
        self.server, self.region, self.service = server, region, service
        self.by_query: dict[str, str] = {}
        self.asked: list[str] = []

    def __call__(self, asked: Asked) -> tuple[int, str]:
        if asked.headers.get("Authorization") != signature(asked, self.server.url, self.region, self.service):
            return 403, json.dumps({"message": f"{MISMATCH} {TOKEN}"})
        query = asked.parameters["query"]
        self.asked.append(query)
        return 200, next((text for part, text in self.by_query.items() if part in query), vector())


def matrix(labels: dict[str, str], **points: list[list[Any]]) -> str:
    data = {"resultType": "matrix", "result": [{"metric": labels, **points}]}
    return json.dumps({"status": "success", "data": data})


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    alone(monkeypatch, tmp_path)
    for name, value in (("ACCESS_KEY_ID", KEY), ("SECRET_ACCESS_KEY", SECRET), ("SESSION_TOKEN", TOKEN)):
        monkeypatch.setenv(f"AWS_{name}", value)
    return monkeypatch


@pytest.fixture
def answers() -> Iterator[Answers]:
    with fake(kind="application/json") as server:
        server.answer = answers = Answers(server)
        yield answers


def collect(answers: Answers, **block: Any) -> list[ServerMetric]:
    asked = {"stream": "prometheus", "url": answers.server.url, "sigv4": True, **block}
    assert check_block(asked, "block 1") == []
    return make_source([read_block(asked)]).collect(WINDOW, lambda _: None)


@pytest.mark.usefixtures("aws")
@pytest.mark.parametrize("path", ["", "/workspaces/ws-1f2e3d4c"])
def test_queries_are_signed_whatever_stands_in_them(answers: Answers, path: str) -> None:
    queries = {
        "plain": "up",
        "special": 'sum by (a) (rate(x{b=~"c+|d e", f!="é/%20&=;~*\'"}[{window}])) / 2',
        "dotted": f'{{"vllm:num_requests_running", "{ENDPOINT}"="my-endpoint"}}',
    }
    answers.by_query = {"timestamp(": vector(({}, "9e9")), "": vector(({}, "3"))}
    found = collect(answers, url=answers.server.url + path, queries=queries, region="eu-west-1")
    assert {row.name: row.statistics["Value"] for row in found} == dict.fromkeys(queries, 3.0)
    filled = {query.replace("{window}", "60000ms") for query in queries.values()}
    assert filled <= set(answers.asked), "what was signed is what was meant"
    assert {asked.partition("/api/v1")[0] for asked in answers.server.asked} == {path}


@pytest.mark.parametrize(
    ("changed", "said"),
    [({"AWS_SECRET_ACCESS_KEY": "another"}, MISMATCH), ({}, '"region" us-west-2 and "service" aps')],
)
def test_a_signature_that_is_refused_says_what_to_try(
    aws: pytest.MonkeyPatch, answers: Answers, changed: dict[str, str], said: str
) -> None:
    for name, value in changed.items():
        aws.setenv(name, value)
    region = "eu-west-1" if changed else "us-west-2"
    (row,) = collect(answers, queries={"a": "up"}, region=region)
    assert row.statistics == {"Value": None}
    assert "HTTP 403 Forbidden" in str(row.reason)
    assert said in str(row.reason)
    assert "may call aps:QueryMetrics, that this clock is right" in str(row.reason)
    assert TOKEN not in str(row.reason)


LATENCY = {
    "count": "40",
    "sum": "6",
    "buckets": [[0, "0", "0.1", "20"], [0, "0.1", "0.2", "16"], [0, "0.4", "+Inf", "4"]],
}
"""A native histogram as CloudWatch has vLLM's: with the few bounds of the server, those bins that hold something."""


@pytest.mark.usefixtures("aws")
def test_sagemakers_observability_has_native_histograms(answers: Answers) -> None:
    answers.service = "monitoring"
    labels = {ENDPOINT: "my-endpoint", "@resource.host.id": "i-1"}
    counted = {
        "prefix_cache_hits_total": "30",
        "prefix_cache_queries_total": "40",
        "spec_decode_num_accepted_tokens_total": "90",
        "spec_decode_num_draft_tokens_total": "120",
        "spec_decode_num_drafts_total": "40",
    }
    latency = "vllm:time_to_first_token_seconds"
    counts = [[at, {"count": count, "sum": "0"}] for at, count in ((1001.0, "0"), (1059.0, "40"))]
    answers.by_query = {
        "resets(": vector(),
        f"histogram_sum(rate({latency}{{": matrix(labels),
        f"increase({latency}{{": vector((labels, LATENCY)),
        latency + "{": matrix(labels, histograms=counts),
        **{f"increase(vllm:{name}{{": vector((labels, gained)) for name, gained in counted.items()},
        "rate(": matrix(labels),
        **{f"vllm:{n}{{": matrix(labels, values=[[999.0, "7"], [1061.0, str(7 + int(v))]]) for n, v in counted.items()},
        "_over_time(vllm:num_requests_waiting{": vector((labels, "2")),
    }
    asked = {"preset": ["vllm", "vllm_detailed"], "labels": {ENDPOINT: "my-endpoint"}}
    found = {row.name: row for row in collect(answers, region="eu-west-1", service="monitoring", **asked)}
    first = found["time_to_first_token"]
    assert next(metric_lines([first])) == (
        "   time_to_first_token: Average=0.15, p50<=0.1, p90=0.2, p99>=0.4, Minimum<=0.1, Maximum>=0.4"
        " (seconds; 40 samples; extrapolated from the samples inside, which leave out 2 s of 60 s)"
    )
    assert first.dimensions[ENDPOINT] == "my-endpoint"
    assert found["prefix_cache_hit_rate"].statistics == {"Average": 0.75}
    assert found["speculative_acceptance_rate"].statistics == {"Average": 0.75}
    assert found["speculative_acceptance_length"].statistics == {"Average": 3.25}
    assert found["queue_length"].statistics == {"Average": 2.0, "Maximum": 2.0, "Last": 2.0}
    assert f'vllm:num_requests_waiting{{"{ENDPOINT}"="my-endpoint"}}' in " ".join(answers.asked)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://aps-workspaces.eu-central-1.amazonaws.com/workspaces/ws-1", ("aps", "eu-central-1")),
        ("https://aps-workspaces-fips.us-gov-west-1.amazonaws.com/workspaces/ws-1", ("aps", "us-gov-west-1")),
        ("https://vpce-1.aps-workspaces.us-east-2.vpce.amazonaws.com/workspaces/ws-1", ("aps", "us-east-2")),
        ("https://monitoring.ap-southeast-2.amazonaws.com", ("monitoring", "ap-southeast-2")),
        ("https://monitoring.cn-north-1.amazonaws.com.cn", ("monitoring", "cn-north-1")),
        ("https://monitoring.example.org", (None, None)),
        ("http://127.0.0.1:9090", (None, None)),
    ],
)
def test_an_address_of_aws_names_service_and_region(url: str, expected: tuple[str | None, str | None]) -> None:
    assert of_host(url) == expected


def test_the_region_is_boto3s_where_nobody_names_one(aws: pytest.MonkeyPatch, answers: Answers) -> None:
    aws.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    answers.by_query = {"timestamp(": vector(({}, "9e9")), "": vector(({}, "3"))}
    (row,) = collect(answers, queries={"a": "up"})
    assert row.statistics == {"Value": 3.0}


def test_missing_credentials_and_region_are_said_before_the_wave(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    alone(monkeypatch, tmp_path)
    url = "http://127.0.0.1:1"
    with pytest.raises(BenchmarkError) as caught:
        make_source([ServerBlock(url, (("a", "up"),), signature=Signature(url))])
    assert "there are no AWS credentials. Give credentials that may call aps:QueryMetrics" in str(caught.value)
    assert 'there is no AWS region. Give "region" in the block' in str(caught.value)
