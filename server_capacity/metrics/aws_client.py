"""boto3's clients of AWS, as all that is asked beside a wave needs them: they give up soon, whatever AWS does."""

from __future__ import annotations

from typing import Any

from inference_benchmarker.system.in_time import in_time

EXCHANGE_S = 30.0
"""So long one request with its answer may take: botocore's own time-outs begin anew with each byte that comes."""


def make_client(
    service: str, region: str | None, *, attempts: int, connect_s: float, read_s: float, **more: Any
) -> Any:
    """A client of a service. Raises BotoCoreError or ValueError where AWS's configuration makes none.

    ``more``: ``endpoint_url``, and other settings of botocore's ``Config``.
    """
    import boto3
    from botocore.config import Config

    address = {"endpoint_url": more.pop("endpoint_url", None)}
    retries = {"mode": "standard", "total_max_attempts": attempts}
    config = Config(retries=retries, connect_timeout=connect_s, read_timeout=read_s, **more)
    return _bounded(boto3.Session().client(service, region_name=region, config=config, **address), EXCHANGE_S)


def _bounded(client: Any, most_s: float) -> Any:
    """The client, whose exchanges fail after so many seconds as those do in which nothing comes."""
    from botocore.exceptions import ReadTimeoutError

    session = client._endpoint.http_session  # noqa: SLF001 - what sends, for which botocore has no other name

    def send(request: Any, **_: Any) -> Any:
        try:
            return in_time(lambda: session.send(request), most_s)
        except TimeoutError:
            raise ReadTimeoutError(endpoint_url=request.url) from None

    client.meta.events.register("before-send", send)
    return client
