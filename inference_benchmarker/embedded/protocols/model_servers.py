"""Model servers: the Open Inference Protocol (KServe v2), as Triton and MLServer speak it, and TorchServe's own."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from inference_benchmarker.embedded.http.messages import Answer, HttpError, json_answer
from inference_benchmarker.embedded.protocols.dialects import json_object

if TYPE_CHECKING:
    from collections.abc import Mapping

    from inference_benchmarker.embedded.http.messages import Request

_JSON_LENGTH = "inference-header-content-length"
_BITS = {"BOOL": 8, "BF16": 16} | {
    f"{kind}{bits}": bits
    for kind, sizes in (("INT", (8, 16, 32, 64)), ("UINT", (8, 16, 32, 64)), ("FP", (16, 32, 64)))
    for bits in sizes
}


class KServeDialect:
    """Inference of tensors that stand in the JSON, or as bytes behind it (the binary extension)."""

    def reply(self, request: Request, sequence: int) -> Answer:  # noqa: ARG002 - not all need all
        """A tensor with a number for each row of the first input."""
        head, binary = _split(request)
        asked = json_object(head)
        inputs = asked.get("inputs")
        if not isinstance(inputs, list) or not inputs:
            raise HttpError(400, "the body needs inputs: a list with at least one tensor")
        expected = sum(map(_binary_size, inputs))
        if expected != len(binary):
            raise HttpError(400, f"{len(binary)} bytes follow the JSON, but its inputs have {expected}")
        rows = inputs[0]["shape"][0]
        output = {"name": "output", "datatype": "FP32", "shape": [rows, 1], "data": [0.5] * rows}
        _, _, _, name, *version, _ = request.path.split("/")  # /v2/models/NAME[/versions/VERSION]/infer
        fields = {"id": asked["id"]} if "id" in asked else {}
        model = {"model_name": name, "model_version": version[-1] if version else "1"}
        return json_answer(200, {**model, **fields, "outputs": [output]})

    def failure(self, status: int, reason: str, sequence: int) -> Answer:  # noqa: ARG002 - not all need all
        """The reason as ``error``."""
        return json_answer(status, {"error": reason})

    @staticmethod
    def ready() -> Answer:
        """The server takes requests."""
        return json_answer(200, {"ready": True})


class TorchServeDialect:
    """TorchServe's predictions, of whatever a model's handler takes."""

    _OK = json_answer(200, {"demo": 0.5})
    _TYPES: Mapping[int, str] = {
        400: "BadRequestException",
        404: "ModelNotFoundException",
        503: "ServiceUnavailableException",
    }

    def reply(self, request: Request, sequence: int) -> Answer:  # noqa: ARG002 - not all need all
        """The same class for every input, as an image classifier's handler returns it."""
        return self._OK

    def failure(self, status: int, reason: str, sequence: int) -> Answer:  # noqa: ARG002 - not all need all
        """TorchServe's error object; the type is the name of its exception."""
        kind = self._TYPES.get(status, "InternalServerException")
        return json_answer(status, {"code": status, "type": kind, "message": reason})


def _split(request: Request) -> tuple[bytes, bytes]:
    """The JSON of a request and the bytes of its tensors. Raises HttpError."""
    length = request.headers.get(_JSON_LENGTH)
    if length is None:
        return request.body, b""
    if not length.isdecimal() or int(length) > len(request.body):
        raise HttpError(400, f"Inference-Header-Content-Length is {length!r}: it must be the length of the JSON")
    return request.body[: int(length)], request.body[int(length) :]


def _binary_size(tensor: Any) -> int:
    """The number of bytes of an input behind the JSON. Raises HttpError where it is no tensor."""
    try:
        name, shape, kind = tensor["name"], tensor["shape"], tensor["datatype"]
        elements = math.prod(shape)
        if "data" in tensor:
            given, expected, size = _count(tensor["data"]), elements, 0
        else:
            given = size = tensor["parameters"]["binary_data_size"]
            expected = elements * _BITS[kind] // 8 if kind in _BITS else given
    except (KeyError, TypeError) as error:
        raise HttpError(400, f"an input needs name, shape, datatype and data or binary_data_size: {error!r}") from error
    if given != expected:
        raise HttpError(400, f"input {name!r} has {given}, but its shape {shape} means {expected}")
    return int(size)


def _count(data: Any) -> int:
    """The elements of a tensor, flat or in rows."""
    return sum(map(_count, data)) if isinstance(data, list) else 1
