"""A gRPC server of the Open Inference Protocol, in a process of its own; it prints what it saw when it ends.

Knows the protocol by its field numbers alone, so that it judges an example's messages by what went over the wire.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Self

import grpc.aio

from tests.conftest import ROOT

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from types import TracebackType

SERVICE = "inference.GRPCInferenceService"
ANSWER = b"\x0a\x04demo"  # a ModelInferResponse with nothing but model_name
REFUSED = "refused, as the test wants it"
_VARINT, _BYTES = 0, 2


@dataclass(frozen=True)
class Behaviour:
    """What the server does: requests take ``service_s``, every ``refuse_every``-th one fails with ``refusal``.

    The first ``held`` requests are answered once ``until`` others have been. A stream has ``pieces`` texts, each after
    ``service_s``, and an empty one at its end; in Triton's envelope or, as MLServer's, without one. Where it is
    refused, Triton tells so after half of them within the stream.
    """

    service_s: float = 0.0
    refuse_every: int = 0
    refusal: str = "UNAVAILABLE"
    held: int = 0
    until: int = 0
    pieces: int = 4
    enveloped: bool = True


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
            reported, _ = self._process.communicate(timeout=20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()
            raise
        self.seen = json.loads(reported)


class _Inference:
    """Answers ModelInfer and ModelStreamInfer, and keeps a row for each request."""

    def __init__(self, behaviour: Behaviour) -> None:
        self._behaviour = behaviour
        self._released = asyncio.Event()
        self._answered = 0
        self.rows: list[dict[str, Any]] = []

    async def infer(self, request: bytes, context: Any) -> bytes:
        with self._noted(request) as row:
            await self._turn(row)
            await asyncio.sleep(self._behaviour.service_s)
            if row["refused"]:
                row["outcome"] = self._behaviour.refusal
                await context.abort(grpc.StatusCode[self._behaviour.refusal], REFUSED)
        return ANSWER

    async def stream(self, requests: AsyncIterator[bytes], context: Any) -> AsyncIterator[bytes]:
        behaviour = self._behaviour
        envelope = partial(field, 2) if behaviour.enveloped else bytes
        async for request in requests:
            with self._noted(request) as row:
                await self._turn(row)
                for number in range(behaviour.pieces):
                    await asyncio.sleep(behaviour.service_s)
                    if row["refused"] and number == behaviour.pieces // 2:
                        row["outcome"] = behaviour.refusal
                        if not behaviour.enveloped:
                            await context.abort(grpc.StatusCode[behaviour.refusal], REFUSED)
                        yield field(1, REFUSED.encode())
                        return
                    yield envelope(text_answer(f" {number}", raw=behaviour.enveloped))
                yield envelope(text_answer("", raw=behaviour.enveloped))
                yield envelope(ANSWER)

    @contextmanager
    def _noted(self, request: bytes) -> Iterator[dict[str, Any]]:
        """A request's row: cancelled, unless it comes to its end or says another outcome."""
        behaviour = self._behaviour
        row = {"queued_ns": time.monotonic_ns(), "request": readable(request), "outcome": "cancelled"}
        self.rows.append(row)
        row["number"] = number = len(self.rows)
        row["refused"] = behaviour.refuse_every and number % behaviour.refuse_every == 0
        try:
            yield row
            if not row["refused"]:
                row["outcome"] = "ok"
        finally:
            row["finish_ns"] = time.monotonic_ns()
            self._answered += row["outcome"] != "cancelled"
            if self._answered >= behaviour.until:
                self._released.set()

    async def _turn(self, row: dict[str, Any]) -> None:
        if row["number"] <= self._behaviour.held:
            await self._released.wait()


def field(number: int, content: bytes) -> bytes:
    """A field of bytes, a text or a message."""
    return bytes([number << 3 | _BYTES, len(content)]) + content


def text_answer(text: str, *, raw: bool) -> bytes:
    """A ModelInferResponse with one output, as bytes behind it (``raw``) or in it."""
    described = field(1, b"text_output") + field(2, b"BYTES") + field(3, b"\x01")
    if raw:
        return ANSWER + field(5, described) + field(6, len(text).to_bytes(4, "little") + text.encode())
    return ANSWER + field(5, described + field(5, field(8, text.encode())))


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
    """A ModelInferRequest by the names of its fields; each input with its content behind them."""
    message = fields(request)
    (model,) = message[1]
    inputs = [_tensor(*each) for each in zip(message[5], message[7], strict=True)]
    return {"model": model.decode(), "inputs": inputs, "unknown": sorted({*message} - {1, 5, 7})}


def _tensor(described: bytes, content: bytes) -> dict[str, Any]:
    tensor = fields(described)
    (name,), (datatype,), (dimensions,) = tensor[1], tensor[2], tensor[3]
    shape = []
    while dimensions:
        size, dimensions = varint(dimensions)
        shape.append(size)
    members = {"input": name.decode(), "datatype": datatype.decode(), "shape": shape}
    return {**members, "content": content.hex(), "unknown": sorted({*tensor} - {1, 2, 3})}


async def _serve(behaviour: Behaviour) -> None:
    inference = _Inference(behaviour)
    server = grpc.aio.server()
    methods = {
        "ModelInfer": grpc.unary_unary_rpc_method_handler(inference.infer),
        "ModelStreamInfer": grpc.stream_stream_rpc_method_handler(inference.stream),
    }
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
