"""The AWS credentials and the region that boto3 finds by its own chain, and what is wrong with them, in sentences."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

REGION_HINT = "Set AWS_DEFAULT_REGION to the endpoint's region, such as us-east-1."


def credentials_hint(permission: str) -> str:
    """The ways to give credentials."""
    return (
        f"Give credentials that may call {permission}: `aws configure`, AWS_PROFILE, or AWS_ACCESS_KEY_ID"
        " and AWS_SECRET_ACCESS_KEY."
    )


def credential_problems(credentials: Any, stream: str, permission: str) -> Iterator[str]:
    """A sentence where there are none, and for each part that no header can carry."""
    from botocore.credentials import Credentials

    hint = credentials_hint(permission)
    if credentials is None:
        yield f"Stream {stream}: there are no AWS credentials. {hint}"
    elif type(credentials) is Credentials:  # others are fetched when they are first used
        parts = {
            "access key": credentials.access_key,
            "secret key": credentials.secret_key,
            "session token": credentials.token,
        }
        for name, value in parts.items():
            if value is not None and not re.fullmatch(r"[!#-&(-~]+", value):
                yield (
                    f"Stream {stream}: the AWS {name} is malformed (empty, or with blanks, quotes or other"
                    f" characters that keys do not have). {hint}"
                )


def region_problems(region: str | None, stream: str, hint: str = REGION_HINT) -> Iterator[str]:
    """A sentence where there is none."""
    if not region:
        yield f"Stream {stream}: there is no AWS region. {hint}"
