"""Calls that ask AWS for facts which a command can do without; nobody is asked where there are no credentials."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from server_capacity.metrics import aws_client
from server_capacity.metrics.aws_failures import UNREADABLE, call_failure

if TYPE_CHECKING:
    from collections.abc import Iterator

CONNECT_S, READ_S, ATTEMPTS = 2, 10, 3


class NoAnswerError(Exception):
    """It is not known: why, in words; no words where there are no credentials, so that nobody was asked."""


def region_of(given: str | None) -> str | None:
    """The region, else that of boto3's configuration; None where neither names one."""
    if given:
        return given
    import boto3
    from botocore.exceptions import BotoCoreError

    try:
        return boto3.Session().region_name or None
    except BotoCoreError:
        return None


def has_credentials() -> bool:
    """Tells whether boto3's chain finds any."""
    import boto3
    from botocore.exceptions import BotoCoreError

    try:
        return boto3.Session().get_credentials() is not None
    except (BotoCoreError, *UNREADABLE):
        return False


def pages(service: str, region: str, operation: str, parameters: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The answers to a call, page by page where there are several. Raises NoAnswerError."""
    from botocore.exceptions import BotoCoreError, ClientError
    from botocore.parsers import ResponseParserError

    if not has_credentials():
        raise NoAnswerError
    try:
        client = aws_client.make_client(service, region, attempts=ATTEMPTS, connect_s=CONNECT_S, read_s=READ_S)
    except (BotoCoreError, ValueError) as error:
        raise NoAnswerError(f"boto3 cannot be used for {service} ({type(error).__name__})") from None
    try:
        if client.can_paginate(operation):
            yield from client.get_paginator(operation).paginate(**parameters)
        else:
            yield getattr(client, operation)(**parameters)
    except (BotoCoreError, ClientError, ResponseParserError, *UNREADABLE) as error:
        permission = f"{service.replace('-', '')}:{client.meta.method_to_api_mapping[operation]}"
        raise NoAnswerError(call_failure(error, client, permission).text) from None
