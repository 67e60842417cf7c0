"""The embedded endpoint as its callers see it: an inference server on loopback, in a process of its own.

What it is and does there is in the modules beside this one.
"""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from inference_benchmarker.embedded.aws.boto3_settings import boto3_settings
from inference_benchmarker.embedded.config import EndpointConfig
from inference_benchmarker.embedded.listening import listen

if TYPE_CHECKING:
    from types import TracebackType

__all__ = ["EndpointConfig", "RunningEndpoint", "listen", "start"]

_PATIENCE_S = 10.0


def start(config: EndpointConfig, port: int = 0, host: str = "127.0.0.1") -> RunningEndpoint:
    """The endpoint in a process of its own, answering by the time this returns.

    It ends with ``stop``, with the ``with`` block, or with the calling process, however that ends.
    Raises BenchmarkError where the port cannot be had.
    """
    with listen(port, host) as sock:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "inference_benchmarker.embedded"],
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            cwd=Path(__file__).parents[2],  # where the package is, whether it is installed or not
            pass_fds=(sock.fileno(),),
            start_new_session=True,
        )
        endpoint = RunningEndpoint(process, host, sock.getsockname()[1])
        handover = json.dumps({"socket": sock.fileno(), "config": asdict(config)})
    try:
        endpoint.await_readiness(handover)
    except BaseException:
        endpoint.stop()
        raise
    return endpoint


class RunningEndpoint:
    """An endpoint in a child process; owns the process, and its standard input as the lifeline."""

    def __init__(self, process: subprocess.Popen[bytes], host: str, port: int) -> None:
        self._process = process
        self._host = host
        self.port = port
        self.url = f"http://{host}:{port}"

    def await_readiness(self, handover: str) -> None:
        """Tell the child what to be and wait until it is. Raises RuntimeError where it ends instead."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(handover.encode() + b"\n")
            self._ask("GET", "/ping")
        except OSError as error:
            raise RuntimeError(f"the endpoint's process did not start: {error}") from error

    @property
    def pid(self) -> int:
        """The child's process id."""
        return self._process.pid

    @property
    def aws_environment(self) -> dict[str, str]:
        """The environment in which boto3 takes this endpoint for AWS."""
        return boto3_settings(self.url)

    def arrivals(self) -> dict[str, list[Any]]:
        """The log's columns by name; see ``ArrivalLog.columns``."""
        columns: dict[str, list[Any]] = json.loads(self._ask("GET", "/arrivals"))["columns"]
        return columns

    def clear(self) -> None:
        """Forget the log."""
        self._ask("DELETE", "/arrivals")

    def stall(self, seconds: float) -> None:
        """Let all servers stand still for that long from now on."""
        self._ask("POST", f"/stall?seconds={seconds}")

    def metrics(self) -> str:
        """The metrics in Prometheus' text format."""
        return self._ask("GET", "/metrics").decode()

    def _ask(self, method: str, target: str) -> bytes:
        connection = http.client.HTTPConnection(self._host, self.port, timeout=_PATIENCE_S)
        try:
            connection.request(method, target)
            response = connection.getresponse()
            content = response.read()
        finally:
            connection.close()
        if response.status != http.HTTPStatus.OK:
            raise ValueError(f"{method} {target} was answered {response.status}: {content.decode()}")
        return content

    def stop(self) -> None:
        """End the child and reap it; a second time does nothing.

        The end of its lifeline is enough: a signal beside it would meet an event loop that is being closed.
        """
        if self._process.stdin and not self._process.stdin.closed:
            self._process.stdin.close()
        try:
            self._process.wait(_PATIENCE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
