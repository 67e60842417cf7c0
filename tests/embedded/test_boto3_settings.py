"""What makes boto3 take the embedded endpoint for AWS, held against boto3 itself."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import boto3
import pytest
from botocore.utils import get_environ_proxies

from inference_benchmarker.embedded.aws.boto3_settings import boto3_settings, isolated

if TYPE_CHECKING:
    from pathlib import Path

URL = "http://127.0.0.1:8080"
HOSTILE = {
    "AWS_PROFILE": "no-such-profile",
    "AWS_DEFAULT_PROFILE": "no-such-profile",
    "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS": "true",
    "AWS_ENDPOINT_URL": "http://elsewhere",
    "AWS_ENDPOINT_URL_CLOUDWATCH": "http://elsewhere",
    "AWS_ACCESS_KEY_ID": "of the user",
    "AWS_SECRET_ACCESS_KEY": "of the user",
    "AWS_SESSION_TOKEN": "of the user",
    "AWS_SECURITY_TOKEN": "of the user",
    "AWS_REGION": "eu-west-1",
    "AWS_USE_FIPS_ENDPOINT": "true",
    "AWS_CA_BUNDLE": "/no/such/bundle.pem",
    "AWS_MAX_ATTEMPTS": "none",
    "HTTP_PROXY": "http://proxy:3128",
    "http_proxy": "http://proxy:3128",
    "ALL_PROXY": "http://proxy:3128",
}
CONFIG = """
[default]
region = eu-west-1
ca_bundle = /no/such/bundle.pem
ignore_configured_endpoint_urls = true
aws_access_key_id = of the user
aws_secret_access_key = of the user
"""


@pytest.fixture(params=[{}, {"AWS_CONFIG_FILE": "moved"}], ids=["home", "moved"])
def _hostile(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A user's environment and files, made those of the endpoint."""
    (tmp_path / ".aws").mkdir()
    for path in (tmp_path / ".aws" / "config", tmp_path / ".aws" / "credentials", tmp_path / "moved"):
        path.write_text(CONFIG)
    monkeypatch.chdir(tmp_path)
    environment = isolated({**os.environ, **HOSTILE, **request.param, "HOME": str(tmp_path)}, URL)
    for name in set(os.environ) - set(environment):
        monkeypatch.delenv(name)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)


@pytest.mark.usefixtures("_hostile")
@pytest.mark.parametrize(
    "service",
    [
        "application-autoscaling",
        "bedrock-runtime",
        "cloudwatch",
        "lambda",
        "logs",
        "pricing",
        "sagemaker",
        "sagemaker-runtime",
        "service-quotas",
    ],
)
def test_boto3_finds_the_endpoint_and_nothing_of_the_users(service: str) -> None:
    session = boto3.Session()
    credentials = session.get_credentials()
    assert (credentials.access_key, credentials.secret_key, credentials.token) == ("demo", "demo", None)
    client = session.client(service)
    assert (client.meta.endpoint_url, client.meta.region_name) == (URL, "us-east-1")
    assert get_environ_proxies(client.meta.endpoint_url) == {}


@pytest.mark.usefixtures("_hostile")
def test_other_addresses_keep_their_proxy() -> None:
    assert get_environ_proxies("http://example.com")["http"] == "http://proxy:3128"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, "127.0.0.1"),
        ({"NO_PROXY": "a.example,b.example"}, "a.example,b.example,127.0.0.1"),
        ({"NO_PROXY": "a.example", "no_proxy": "b.example"}, "b.example,127.0.0.1"),
        ({"no_proxy": " * "}, "*"),
        ({"NO_PROXY": ""}, "127.0.0.1"),
    ],
)
def test_a_proxy_is_left_out_for_loopback_only(given: dict[str, str], expected: str) -> None:
    found = isolated(given, URL)
    assert (found["NO_PROXY"], found["no_proxy"]) == (expected, expected)


def test_what_is_not_of_aws_stays() -> None:
    given = {"PATH": "/bin", "HTTP_PROXY": "http://proxy", "MY_AWS_KEY": "x", "AWS_ANYTHING": "x"}
    found = isolated(given, URL)
    assert {name: found.get(name) for name in given} == {**given, "AWS_ANYTHING": None}
    assert boto3_settings(URL).items() <= found.items()
