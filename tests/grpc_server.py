"""A gRPC server of the Open Inference Protocol, in a process of its own; what it saw is told when it ends.

Knows the protocol by its field numbers alone, so that it judges an example's messages by what went over the wire.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Self

import grpc.aio

from tests.conftest import ROOT

if TYPE_CHECKING:
    from types import TracebackType

SERVICE = "inference.GRPCInferenceService"
ANSWER = b"\x0a\x04demo"  # a ModelInferResponse with nothing but model_name
_VARINT, _BYTES = 0, 2


@dataclass(frozen=True)
class Behaviour:
    """What the server does: requests take ``service_s``, every ``refuse_every``-th one fails with ``refusal``.

    The first ``held`` requests are answered once ``until`` others have been.
    """

    service_s: float = 0.0
    refuse_every: int = 0
    refusal: str = "UNAVAILABLE"
    held: int = 0
    until: int = 0


class GrpcServer:
    """The server as a child; ``seen`` is known after the ``with`` block."""

    def __init__(self, **behaviour: Any) -> None:
        self._behaviour = Behaviour(**behaviour)
        self.seen: dict[str, list[Any]] = {}

    def __enter__(self) -> Self:
        line = [sys.executable, "-m", "tests.grpc_server", json.dumps(asdict(self._behaviour))]
        self._process = subprocess.Popen(
            line, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
        )
        assert self._process.stdout is not None
        self.address = f"127.0.0.1:{int(self._process.stdout.readline())}"
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            told, _ = self._process.communicate(timeout=20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()
            raise
        self.seen = json.loads(told)


class _Inference:
    """Answers ModelInfer, and keeps a row for each request."""

    def __init__(self, behaviour: Behaviour) -> None:
        self._behaviour = behaviour
        self._released = asyncio.Event()
        self._answered = 0
        self.rows: list[dict[str, Any]] = []

    async def infer(self, request: bytes, context: Any) -> bytes:
        behaviour = self._behaviour
        row = {"queued_ns": time.monotonic_ns(), "request": readable(request), "outcome": "cancelled"}
        self.rows.append(row)
        number = len(self.rows)
        try:
            if number <= behaviour.held:
                await self._released.wait()
            await asyncio.sleep(behaviour.service_s)
            if behaviour.refuse_every and number % behaviour.refuse_every == 0:
                row["outcome"] = behaviour.refusal
                await context.abort(grpc.StatusCode[behaviour.refusal], "refused, as the test wants it")
            row["outcome"] = "ok"
        finally:
            row["finish_ns"] = time.monotonic_ns()
        self._answered += 1
        if self._answered >= behaviour.until:
            self._released.set()
        return ANSWER


def fields(message: bytes) -> dict[int, list[Any]]:
    """The fields of a protobuf message by number: integers, and bytes."""
    found: dict[int, list[Any]] = {}
    rest = message
    while rest:
        key, rest = varint(rest)
        value, rest = varint(rest)
        if key & 7 == _BYTES:
            value, rest = rest[:value], rest[value:]  # type: ignore[assignment]  # the integer was its length
        else:
            assert key & 7 == _VARINT
        found.setdefault(key >> 3, []).append(value)
    return found


def varint(data: bytes) -> tuple[int, bytes]:
    """The integer at the start, and what follows."""
    number = shift = 0
    for index, byte in enumerate(data):
        number |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return number, data[index + 1 :]
    raise ValueError("the message ends within a number")


def readable(request: bytes) -> dict[str, Any]:
    """A ModelInferRequest with one input, by the names of its fields."""
    message = fields(request)
    (model,), (tensor,), (content,) = message[1], message[5], message[7]
    of_tensor = fields(tensor)
    (name,), (datatype,), (dimensions,) = of_tensor[1], of_tensor[2], of_tensor[3]
    shape = []
    while dimensions:
        size, dimensions = varint(dimensions)
        shape.append(size)
    return {
        "model": model.decode(),
        "input": name.decode(),
        "datatype": datatype.decode(),
        "shape": shape,
        "content": content.hex(),
        "unknown": sorted({*message} - {1, 5, 7}) + sorted({*of_tensor} - {1, 2, 3}),
    }


async def _serve(behaviour: Behaviour) -> None:
    inference = _Inference(behaviour)
    server = grpc.aio.server()
    methods = {"ModelInfer": grpc.unary_unary_rpc_method_handler(inference.infer)}
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, methods),))
    print(server.add_insecure_port("127.0.0.1:0"), flush=True)  # noqa: T201 - its parent reads it
    await server.start()
    await asyncio.to_thread(sys.stdin.read)
    await server.stop(grace=None)
    columns = {name: [row.get(name) for row in inference.rows] for name in ("queued_ns", "finish_ns", "request")}
    outcomes = [row["outcome"] for row in inference.rows]
    print(json.dumps({**columns, "outcome": outcomes}), flush=True)  # noqa: T201 - its parent reads it


if __name__ == "__main__":
    asyncio.run(_serve(Behaviour(**json.loads(sys.argv[1]))))
