"""An exception of the user's code: the key it is counted by, its text, and whether this host refused. Pure.

Such an exception may be anything: attributes and methods that raise, also what no one should catch, names and
texts of any length, texts of a class of its own. Whatever it does, it has a key and a text, and nobody is ended.
"""

from __future__ import annotations

import errno
from typing import Any

from inference_benchmarker.text import plain

MAX_LENGTH = 20_000  # of a key before secrets are hidden in it; what is stored is shorter
_NAME = type.__dict__["__name__"].__get__  # a metaclass may have one of its own
_BASES = type.__dict__["__mro__"].__get__


def error_key(exception: BaseException) -> str:
    """Class name plus AWS error code, gRPC or HTTP status, or errno where there is one; never the free text.

    boto3 has classes that are named as their code, which is then said once: "ModelError 502" tells the model's status.
    gRPC's classes are private, so its errors go by the name that is not: "RpcError UNAVAILABLE".
    """
    name = class_name(type(exception))
    try:
        key = _key(exception, name)
    except BaseException:
        key = name
    return plain(storable(key[:MAX_LENGTH]))


def class_name(kind: type) -> str:
    """The name of a class."""
    return ordinary(_NAME(kind))[:MAX_LENGTH]


def error_text(exception: BaseException) -> str:
    """Its text, of whatever length, or why there is none."""
    try:
        return ordinary(str(exception))
    except BaseException as error:
        return f"(its text cannot be had: {class_name(type(error))})"


def ordinary(text: str) -> str:
    """The same as an ordinary string: the methods of one of a class of its own may do anything."""
    return str.__getitem__(text, slice(None))


def storable(text: str) -> str:
    """The text without lone surrogates, which no file takes."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


# What a host answers itself, before anything has left it.
_LOCAL_ERRORS = frozenset(
    (
        *(errno.EMFILE, errno.ENFILE, errno.EADDRNOTAVAIL, errno.EADDRINUSE, errno.ENOBUFS),
        *(errno.ENETDOWN, errno.ENETUNREACH, errno.EPERM, errno.EACCES),
    )
)
_MAX_CAUSES = 16


def local_errno(exception: BaseException) -> str | None:
    """The errno by which this host refused the request, from the exception or those it came from; else None."""
    causes = [exception]
    for number in range(_MAX_CAUSES):
        if number == len(causes):
            return None
        cause = causes[number]
        code = _attribute(cause, "errno") if _is_a(cause, OSError) else None
        if type(code) is int and code in _LOCAL_ERRORS:
            return errno.errorcode[code]
        arguments = _attribute(cause, "args")
        further = [_attribute(cause, name) for name in ("__cause__", "__context__", "reason")]
        further += arguments[:1] if type(arguments) is tuple else ()
        known = {id(other) for other in causes}  # an exception may compare in ways of its own
        causes += [other for other in further if _is_a(other, BaseException) and id(other) not in known]
    return None


def _is_a(value: object, kind: type) -> bool:
    """Tells whether it is one by its class; what it claims to be is its own word."""
    return issubclass(type(value), kind)


def _attribute(holder: Any, name: str) -> Any:
    """An attribute of the user's exception; one that raises (a property without its request) is none."""
    try:
        return getattr(holder, name, None)
    except BaseException:
        return None


def _key(exception: BaseException, name: str) -> str:
    if status := _grpc_status(exception):
        return f"{_public_name(type(exception))} {status}"
    detail = (
        _attribute(exception, "_benchmark_detail")
        or _aws_code(exception)
        or _http_status(exception)
        or _errno_name(exception)
    )
    if detail == name:
        detail = _model_status(exception)
    return f"{name} {_text(detail)}" if detail else name


def _text(detail: Any) -> str:
    return ordinary(str(detail))[:MAX_LENGTH]


def _entry(holder: Any, name: str) -> Any:
    """An entry of a response as boto3 gives it."""
    try:
        return holder.get(name) if isinstance(holder, dict) else None
    except BaseException:
        return None


def _aws_code(exception: BaseException) -> str:
    code = _entry(_entry(_attribute(exception, "response"), "Error"), "Code")
    try:
        return _text(code) if code else ""
    except BaseException:
        return ""


def _model_status(exception: BaseException) -> str:
    """The status that the container behind SageMaker answered."""
    status = _entry(_attribute(exception, "response"), "OriginalStatusCode")
    return str(status) if type(status) is int and 0 <= status <= 999 else ""


def _grpc_status(exception: Any) -> str:
    """The status that a gRPC error's ``code`` tells; it is known by its class, as no method of another's is called."""
    if all(_NAME(base) != "RpcError" for base in _BASES(type(exception))):
        return ""
    try:
        return _text(exception.code().name)
    except BaseException:
        return ""


def _public_name(kind: type) -> str:
    return next(name for name in map(class_name, _BASES(kind)) if not name.startswith("_"))


def _http_status(exception: BaseException) -> str:
    response = _attribute(exception, "response")
    for holder, attribute in (
        (response, "status_code"),
        (response, "status"),
        (exception, "status_code"),
        (exception, "status"),
        (exception, "code"),
    ):
        status = _attribute(holder, attribute)
        if _is_a(status, int):
            number = int.__index__(status)  # of a class of its own, its methods may do anything
            if 100 <= number <= 599:
                return str(number)
    return ""


def _errno_name(exception: BaseException) -> str:
    if type(exception) is OSError and type(exception.errno) is int and exception.errno:
        return errno.errorcode.get(exception.errno, _text(exception.errno))
    return ""
