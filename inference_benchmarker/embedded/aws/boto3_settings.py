"""The settings that make boto3 take the embedded endpoint for AWS, whatever else a user's environment says. Pure."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

_SERVICES = (
    "APPLICATION_AUTO_SCALING",
    "BEDROCK_RUNTIME",
    "CLOUDWATCH",
    "CLOUDWATCH_LOGS",
    "LAMBDA",
    "PRICING",
    "SAGEMAKER",
    "SAGEMAKER_RUNTIME",
    "STS",
    "SERVICE_QUOTAS",
)
# The endpoint accepts any credentials, but boto3 wants some to be there.
_CREDENTIALS = {"AWS_ACCESS_KEY_ID": "demo", "AWS_SECRET_ACCESS_KEY": "demo", "AWS_DEFAULT_REGION": "us-east-1"}
# No profile of the user's: it may name other addresses, other credentials, or be missing.
_NO_FILES = {"AWS_CONFIG_FILE": os.devnull, "AWS_SHARED_CREDENTIALS_FILE": os.devnull}
_LOOPBACK = "127.0.0.1"


def boto3_settings(url: str) -> dict[str, str]:
    """The variables to set where nothing else is set."""
    return {**{f"AWS_ENDPOINT_URL_{service}": url for service in _SERVICES}, **_CREDENTIALS}


def isolated(environment: Mapping[str, str], url: str) -> dict[str, str]:
    """The environment in which boto3 finds nothing but the endpoint.

    No setting of AWS's stays, credentials least of all, and no proxy stands between.
    """
    kept = {name: value for name, value in environment.items() if not name.startswith("AWS_")}
    direct = environment.get("no_proxy", environment.get("NO_PROXY", "")).strip()
    if direct != "*":
        direct = ",".join(filter(None, (direct, _LOOPBACK)))
    return {**kept, **boto3_settings(url), **_NO_FILES, "no_proxy": direct, "NO_PROXY": direct}
