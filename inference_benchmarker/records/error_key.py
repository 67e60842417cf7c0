"""An exception of the user's code: the key it is counted by, and its text. Pure.

Such an exception may be anything: attributes and methods that raise, also what no one should catch, names and
texts of any length, texts of a class of its own. Whatever it does, it has a key and a text, and nobody is ended.
"""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING, Any

from inference_benchmarker.records.error_cause import attribute, bases_of, causes, class_name_of, connection_cause, is_a
from inference_benchmarker.words.redact import beginning
from inference_benchmarker.words.text import plain

if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_LENGTH = 20_000  # of a key before secrets are hidden in it; what is stored is shorter


def error_key(exception: BaseException, found: Sequence[BaseException] = ()) -> str:
    """Class name plus AWS error code, gRPC or HTTP status, or errno where there is one; never the free text.

    Where it came from another exception that ended a connection, that one's errno, OpenSSL's reason or a word for it;
    ``found`` are its ``causes``, where they are known.
    boto3 has classes that are named as their code, which is then said once: "ModelError 502" tells the model's status.
    gRPC's classes are private, so its errors go by the name that is not: "RpcError UNAVAILABLE".
    """
    name = class_name(type(exception))
    try:
        key = _key(exception, name, found)
    except BaseException:
        key = name
    return plain(storable(_bounded(key)))


def class_name(kind: type) -> str:
    """The name of a class."""
    return _bounded(ordinary(class_name_of(kind)))


def error_text(exception: BaseException) -> str:
    """Its text, of whatever length, or why there is none."""
    try:
        return ordinary(str(exception))
    except BaseException as error:
        return f"(its text is not available: {class_name(type(error))})"


def ordinary(text: str) -> str:
    """The same as an ordinary string: the methods of one of a class of its own may do anything."""
    return str.__getitem__(text, slice(None))


def _bounded(text: str) -> str:
    """A text of several lines is hidden as well: ``plain`` makes one of them."""
    return text if len(text) <= MAX_LENGTH and text.isprintable() else beginning(text, MAX_LENGTH)


def storable(text: str) -> str:
    """The text without lone surrogates, which no file takes."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _key(exception: BaseException, name: str, found: Sequence[BaseException]) -> str:
    if status := grpc_status(exception):
        return f"{_public_name(type(exception))} {status}"
    detail = (
        attribute(exception, "_benchmark_detail")
        or aws_code(exception)
        or http_status(exception)
        or _errno_name(exception)
        or connection_cause(found or causes(exception))
    )
    if detail == name:
        detail = _model_status(exception)
    return f"{name} {_text(detail)}" if detail else name


def _text(detail: Any) -> str:
    return _bounded(ordinary(str(detail)))


def _entry(holder: Any, name: str) -> Any:
    """An entry of a response as boto3 gives it."""
    try:
        return holder.get(name) if isinstance(holder, dict) else None
    except BaseException:
        return None


def aws_code(exception: BaseException) -> str:
    """The code of an error of boto3's; nothing for another."""
    code = _entry(_entry(attribute(exception, "response"), "Error"), "Code")
    try:
        return _text(code) if code else ""
    except BaseException:
        return ""


def _model_status(exception: BaseException) -> str:
    """The status that the container behind SageMaker answered."""
    status = _entry(attribute(exception, "response"), "OriginalStatusCode")
    return str(status) if type(status) is int and 0 <= status <= 999 else ""


def grpc_status(exception: Any) -> str:
    """The status that a gRPC error's ``code`` tells; it is known by its class, as no method of another's is called."""
    if all(class_name_of(base) != "RpcError" for base in bases_of(type(exception))):
        return ""
    try:
        return _text(exception.code().name)
    except BaseException:
        return ""


def _public_name(kind: type) -> str:
    return next(name for name in map(class_name, bases_of(kind)) if not name.startswith("_"))


def http_status(exception: BaseException) -> str:
    """The HTTP status that an exception or its response tells; nothing where there is none."""
    response = attribute(exception, "response")
    for holder, name in (
        (response, "status_code"),
        (response, "status"),
        (exception, "status_code"),
        (exception, "status"),
        (exception, "code"),
    ):
        status = attribute(holder, name)
        if is_a(status, int):
            number = int.__index__(status)  # of a class of its own, its methods may do anything
            if 100 <= number <= 599:
                return str(number)
    return ""


def _errno_name(exception: BaseException) -> str:
    if type(exception) is OSError and type(exception.errno) is int and exception.errno:
        return errno.errorcode.get(exception.errno, _text(exception.errno))
    return ""
