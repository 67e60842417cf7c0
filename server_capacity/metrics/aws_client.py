"""boto3's clients of AWS, as all that is asked beside a wave needs them: they give up soon, whatever AWS does."""

from __future__ import annotations

from io import BytesIO
from typing import TYPE_CHECKING, Any

from inference_benchmarker.system.in_time import in_time
from inference_benchmarker.words.units import MIB

if TYPE_CHECKING:
    from collections.abc import Iterator

EXCHANGE_S = 30.0
"""So long one request with its answer may take: botocore's own time-outs begin anew with each byte that comes."""
MOST_BYTES = 64 * MIB
"""So much may an answer have: the largest of CloudWatch's have a few of them."""
_PIECE = 1 << 16


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
    """The client, whose exchanges fail after so many seconds as those do in which nothing comes, and at MOST_BYTES."""
    from botocore.exceptions import ReadTimeoutError

    session = client._endpoint.http_session  # noqa: SLF001 - what sends, for which botocore has no other name

    def send(request: Any, **_: Any) -> Any:
        try:
            return in_time(lambda: _answer(session, request), most_s)
        except TimeoutError:
            raise ReadTimeoutError(endpoint_url=request.url) from None

    client.meta.events.register("before-send", send)
    return client


def _answer(session: Any, request: Any) -> Any:
    """The answer to a request with all its body, which botocore itself would read without a bound."""
    from botocore.awsrequest import AWSResponse

    if request.stream_output:  # whoever asked reads it piece by piece
        return session.send(request)
    request.stream_output = True
    answer = session.send(request)
    return AWSResponse(answer.url, answer.status_code, answer.headers, _Body(_whole(answer.raw, request)))


def _whole(raw: Any, request: Any) -> bytes:
    """The body of an answer. Raises botocore's errors, which are all that its callers know."""
    from botocore.exceptions import ConnectionClosedError, ReadTimeoutError, ResponseStreamingError
    from urllib3 import exceptions

    body = bytearray()
    try:
        for piece in raw.stream(_PIECE):
            body += piece
            if len(body) > MOST_BYTES:
                raw.close()
                raise ResponseStreamingError(error=f"more than {MOST_BYTES // MIB} MiB")
    except exceptions.ReadTimeoutError as error:
        raise ReadTimeoutError(endpoint_url=request.url) from error
    except exceptions.HTTPError as error:
        raise ConnectionClosedError(error=error, request=request, endpoint_url=request.url) from error
    return bytes(body)


class _Body(BytesIO):
    """A body that was read, as botocore reads those that come in."""

    def stream(self, **_: Any) -> Iterator[bytes]:
        """All of it."""
        yield self.read()
