"""boto3's two calls of a SageMaker endpoint: the same arguments, results and errors at a fraction of the CPU.

botocore says where the endpoint is, who asks and what parameters there are, and words the errors; the request, its
signature and the way of a success are ours.
"""

from __future__ import annotations

from io import BytesIO
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from inference_benchmarker.clients.aws_errors import connection_error, service_error
from inference_benchmarker.clients.event_stream import EventStream
from inference_benchmarker.clients.http import header_lines
from inference_benchmarker.clients.pool import Answer, Limits, Pool
from inference_benchmarker.clients.signing import Signer

if TYPE_CHECKING:
    from collections.abc import Callable
    from os import PathLike
    from ssl import SSLContext

_SERVICE = "sagemaker-runtime"
_FIRST_ERROR = 301  # as botocore has it


class _Operation:
    """A call as botocore's model has it: its path, and which parameters and results are which headers."""

    def __init__(self, model: Any) -> None:
        self.model = model
        before, _, self._after = model.http["requestUri"].partition("{EndpointName}")
        self._before = before
        self.headers = _headers(model.input_shape)
        self.results = {header: name for name, header in _headers(model.output_shape).items()}
        self._paths: dict[str, str] = {}

    def path(self, endpoint: str) -> str:
        """The path of an endpoint's name."""
        known = self._paths.get(endpoint)
        if known is None:
            known = self._paths[endpoint] = self._before + quote(endpoint, safe="-._~") + self._after
        return known


def _headers(shape: Any) -> dict[str, str]:
    """The members of a shape that are headers, with the header's name in lower case."""
    places = {name: member.serialization for name, member in shape.members.items()}
    return {name: place["name"].lower() for name, place in places.items() if place.get("location") == "header"}


class SageMakerClient:
    """``invoke_endpoint`` and ``invoke_endpoint_with_response_stream`` of ``boto3.client("sagemaker-runtime")``.

    It finds region, URL and credentials (which are refreshed) as boto3 does, or in ``session``, a boto3.Session of
    yours. Create it once in a worker, for all its requests. The body has been read when
    ``invoke_endpoint`` returns; events come one by one. There are no retries and no proxies. Errors are botocore's:
    ClientError and the service's own, such as ModelError, and those of the connection, such as ReadTimeoutError.
    """

    def __init__(
        self,
        *,
        session: Any = None,
        region_name: str | None = None,
        endpoint_url: str | None = None,
        verify: bool | str | PathLike[str] | SSLContext | None = None,
        connect_timeout_s: float | None = 5.0,
        read_timeout_s: float | None = 60.0,
    ) -> None:
        import boto3
        from botocore.exceptions import NoCredentialsError

        session = session or boto3.Session()
        client = session.client(_SERVICE, region_name=region_name, endpoint_url=endpoint_url)
        if (credentials := session.get_credentials()) is None:
            raise NoCredentialsError
        if verify is None:
            verify = session._session.get_config_variable("ca_bundle") or True  # noqa: SLF001 - there is no other way
        model = client.meta.service_model
        self._exceptions = client.exceptions
        self._url: str = client.meta.endpoint_url
        self._pool = Pool(self._url, verify, Limits(connect_timeout_s, read_timeout_s), decodes=False)  # as boto3
        self._signer = Signer(credentials, client.meta.region_name, model.signing_name)
        self._whole = _Operation(model.operation_model("InvokeEndpoint"))
        self._streamed = _Operation(model.operation_model("InvokeEndpointWithResponseStream"))

    def invoke_endpoint(self, **parameters: Any) -> dict[str, Any]:
        """Takes and returns what boto3's ``invoke_endpoint`` does."""
        from botocore.response import StreamingBody

        answer = self._send(self._pool.exchange, self._whole, parameters)
        result = self._result(self._whole, answer)
        result["Body"] = StreamingBody(BytesIO(answer.body), len(answer.body))
        return result

    def invoke_endpoint_with_response_stream(self, **parameters: Any) -> dict[str, Any]:
        """Takes and returns what boto3's ``invoke_endpoint_with_response_stream`` does."""
        connection = self._send(self._pool.ask, self._streamed, parameters)
        events = EventStream(self._pool, connection, self._streamed.model)
        try:
            body = b"" if connection.status < _FIRST_ERROR else connection.read_body()
            result = self._result(self._streamed, Answer(connection.status, connection.headers, body))
        except BaseException:
            events.close()
            raise
        result["Body"] = events
        return result

    def _send(self, send: Callable[[str, bytes], Any], operation: _Operation, parameters: dict[str, Any]) -> Any:
        request = self._request(operation, parameters)
        try:
            return send("POST", request)
        except OSError as error:
            raise connection_error(error, self._url) from error

    def _request(self, operation: _Operation, parameters: dict[str, Any]) -> bytes:
        try:
            headers = {operation.headers[n]: v for n, v in parameters.items() if n not in ("Body", "EndpointName")}
            name, body = parameters["EndpointName"], parameters["Body"]
        except KeyError:
            _check(operation, parameters)
            raise
        if type(body) is not bytes or not all(type(text) is str for text in (name, *headers.values())):
            _check(operation, parameters)
            body = _bytes(body)
        headers["host"] = self._pool.host
        path = f"{self._pool.path}{operation.path(name)}"
        signed = header_lines(self._signer.sign(path, headers, body))
        return f"POST {path} HTTP/1.1\r\n{signed}content-length: {len(body)}\r\n\r\n".encode() + body

    def _result(self, operation: _Operation, answer: Answer) -> dict[str, Any]:
        if answer.status >= _FIRST_ERROR:
            raise service_error(answer, operation.model, self._exceptions)
        headers = answer.headers
        metadata = {"HTTPStatusCode": answer.status, "HTTPHeaders": headers, "RetryAttempts": 0}
        if "x-amzn-requestid" in headers:
            metadata = {"RequestId": headers["x-amzn-requestid"], **metadata}
        result: dict[str, Any] = {"ResponseMetadata": metadata}
        result |= {name: headers[header] for header, name in operation.results.items() if header in headers}
        return result


def _bytes(body: Any) -> bytes:
    """A body as boto3 takes it: bytes of any kind, text or a file."""
    content = body.read() if hasattr(body, "read") else body
    return content.encode() if isinstance(content, str) else bytes(content)


def _check(operation: _Operation, parameters: dict[str, Any]) -> None:
    """Say what is wrong with parameters as botocore does."""
    from botocore.exceptions import ParamValidationError
    from botocore.validate import ParamValidator

    report = ParamValidator().validate(parameters, operation.model.input_shape)
    if report.has_errors():
        raise ParamValidationError(report=report.generate_report())
