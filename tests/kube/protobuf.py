"""Objects in Protocol Buffers, in which kubectl writes those that it makes by its own commands: read as JSON.

The numbers of the fields are those of ``generated.proto`` in k8s.io/api and k8s.io/apimachinery. An answer may be JSON.
"""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

from tests.kube.errors import ApiError

if TYPE_CHECKING:
    from collections.abc import Iterator

MAGIC = b"k8s\x00"
_VARINT, _LONG, _BYTES, _SHORT = 0, 1, 2, 5

# A field: its name and its kind. A kind that ends with * is a list, one that begins with "map of" a map.
_FIELDS: dict[str, dict[int, tuple[str, str]]] = {
    "Meta": {
        1: ("name", "text"),
        2: ("generateName", "text"),
        3: ("namespace", "text"),
        5: ("uid", "text"),
        6: ("resourceVersion", "text"),
        11: ("labels", "map of text"),
        12: ("annotations", "map of text"),
        14: ("finalizers", "text*"),
    },
    "Namespace": {1: ("metadata", "Meta")},
    "ServiceAccount": {1: ("metadata", "Meta")},
    "Secret": {
        1: ("metadata", "Meta"),
        2: ("data", "map of bytes"),
        3: ("type", "text"),
        4: ("stringData", "map of text"),
        5: ("immutable", "bool"),
    },
    "ConfigMap": {
        1: ("metadata", "Meta"),
        2: ("data", "map of text"),
        3: ("binaryData", "map of bytes"),
        4: ("immutable", "bool"),
    },
    "ResourceQuota": {1: ("metadata", "Meta"), 2: ("spec", "QuotaSpec")},
    "QuotaSpec": {1: ("hard", "map of Quantity"), 2: ("scopes", "text*")},
    "Quantity": {1: ("string", "text")},
    "SelfSubjectAccessReview": {1: ("metadata", "Meta"), 2: ("spec", "AccessSpec")},
    "SelfSubjectRulesReview": {1: ("metadata", "Meta"), 2: ("spec", "RulesSpec")},
    "RulesSpec": {1: ("namespace", "text")},
    "AccessSpec": {1: ("resourceAttributes", "Attributes")},
    "Attributes": {
        1: ("namespace", "text"),
        2: ("verb", "text"),
        3: ("group", "text"),
        4: ("version", "text"),
        5: ("resource", "text"),
        6: ("subresource", "text"),
        7: ("name", "text"),
    },
    "DeleteOptions": {
        1: ("gracePeriodSeconds", "int"),
        2: ("preconditions", "Preconditions"),
        4: ("propagationPolicy", "text"),
        5: ("dryRun", "text*"),
    },
    "Preconditions": {1: ("uid", "text"), 2: ("resourceVersion", "text")},
    "Eviction": {1: ("metadata", "Meta"), 2: ("deleteOptions", "DeleteOptions")},
}


def decoded(content: bytes) -> dict[str, Any]:
    """An object. ApiError where it is of a kind that is not known here."""
    envelope = dict(_parts(content.removeprefix(MAGIC)))
    kind_of = dict(_parts(envelope[1]))
    kind = kind_of[2].decode()
    if kind not in _FIELDS:
        raise ApiError(415, "UnsupportedMediaType", f"the tests' server reads no {kind} in Protocol Buffers")
    return {"apiVersion": kind_of[1].decode(), "kind": kind, **_message(kind, envelope.get(2, b""))}


def _message(kind: str, content: bytes) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for number, part in _parts(content):
        if number not in _FIELDS[kind]:
            continue
        name, of = _FIELDS[kind][number]
        if of.startswith("map of "):
            entry = dict(_parts(part))
            made.setdefault(name, {})[entry[1].decode()] = _value(of.removeprefix("map of "), entry.get(2, b""))
        elif of.endswith("*"):
            made.setdefault(name, []).append(_value(of[:-1], part))
        elif part != b"":  # an empty text says that there is none
            made[name] = _value(of, part)
    return made


def _value(kind: str, part: Any) -> Any:
    match kind:
        case "text":
            return part.decode()
        case "bytes":
            return base64.b64encode(part).decode()
        case "int":
            return part
        case "bool":
            return bool(part)
        case "Quantity":
            return _message(kind, part)["string"]
    return _message(kind, part)


def _parts(content: bytes) -> Iterator[tuple[int, Any]]:
    """The number and the content of each field of a message: bytes, or a number."""
    place = 0
    while place < len(content):
        head, place = _varint(content, place)
        number, kind = head >> 3, head & 7
        if kind == _VARINT:
            value, place = _varint(content, place)
            yield number, value
        else:
            size, place = {_LONG: (8, place), _SHORT: (4, place)}.get(kind) or _varint(content, place)
            yield number, content[place : place + size]
            place += size


def _varint(content: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = content[place]
        value |= (byte & 0x7F) << shift
        place, shift = place + 1, shift + 7
        if byte < 0x80:
            return value, place


def openapi_document(kinds: list[dict[str, str]]) -> bytes:
    """The document of OpenAPI's second version, which clients take in this form only, as far as kubectl looks at it.

    For each kind, with its group and version, it says that a patch may ask the server to validate the fields. The
    numbers are those of ``OpenAPIv2.proto`` in github.com/google/gnostic-models.
    """
    validates = _field(8, _field(1, _field(2, _field(3, _field(2, b"query") + _field(4, b"fieldValidation")))))
    paths = b""
    for kind in kinds:
        text = "".join(f"{name}: {json.dumps(value)}\n" for name, value in kind.items())
        extension = _field(13, _field(1, b"x-kubernetes-group-version-kind") + _field(2, _field(2, text.encode())))
        item = _field(8, validates + extension)
        paths += _field(2, _field(1, f"/{kind['kind']}".encode()) + _field(2, item))
    return _field(1, b"2.0") + _field(8, paths)


def _field(number: int, content: bytes) -> bytes:
    """A field that is a text or a message."""
    return _number(number << 3 | _BYTES) + _number(len(content)) + content


def _number(value: int) -> bytes:
    made = b""
    while value >= 0x80:
        made += bytes([value & 0x7F | 0x80])
        value >>= 7
    return made + bytes([value])
