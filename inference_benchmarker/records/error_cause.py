"""The exceptions that one of the user's code came from, and what in them ended a connection. Pure.

A client that wraps its errors (openai, requests, botocore, httpx) has one class for a refused connection, a cut one and
one whose certificate is not trusted: which of them it was stands further down. Any of them may be anything, as
``error_key`` says, so that nothing of theirs is trusted.
"""

from __future__ import annotations

import errno
from http.client import HTTPException
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

class_name_of = type.__dict__["__name__"].__get__  # a metaclass may have one of its own
bases_of = type.__dict__["__mro__"].__get__

BROKEN = "broken"
"""In an error's key: the connection ended within an exchange without an errno, or what came was no answer."""
_MAX_CAUSES = 16
# What a host answers itself, before anything has left it.
_LOCAL_ERRORS = frozenset(
    (
        *(errno.EMFILE, errno.ENFILE, errno.EADDRNOTAVAIL, errno.EADDRINUSE, errno.ENOBUFS),
        *(errno.ENETDOWN, errno.ENETUNREACH, errno.EPERM, errno.EACCES),
    )
)
# What ends a connection, or that there is none; EPERM and EACCES are of files as well.
_ENDS = (_LOCAL_ERRORS - {errno.EPERM, errno.EACCES}) | {
    *(errno.ECONNREFUSED, errno.ECONNRESET, errno.ECONNABORTED, errno.EPIPE, errno.ENOTCONN),
    *(errno.ETIMEDOUT, errno.EHOSTUNREACH, errno.EHOSTDOWN),
}


def local_errno(exception: BaseException) -> str | None:
    """The errno by which this host refused the request, from the exception or those it came from; else None."""
    return next((errno.errorcode[code] for code in map(_errno, causes(exception)) if code in _LOCAL_ERRORS), None)


def connection_cause(exception: BaseException) -> str:
    """The end of the connection that an exception came from: an errno, OpenSSL's reason or a word; else nothing.

    Of an exception whose class says it already, nothing.
    """
    if is_a(exception, ConnectionError):
        return ""
    found = list(causes(exception))
    words = () if _word(exception) else map(_word, found)
    return next(filter(None, (*map(_end, found), *words)), "")


def causes(exception: BaseException) -> Iterator[BaseException]:
    """The exception, then those it came from, the nearest first."""
    found = [exception]
    for number in range(_MAX_CAUSES):
        if number == len(found):
            return
        yield (cause := found[number])
        arguments = attribute(cause, "args")
        further = [attribute(cause, name) for name in ("__cause__", "__context__", "reason")]
        further += arguments[:2] if type(arguments) is tuple else ()
        known = {id(other) for other in found}  # an exception may compare in ways of its own
        found += [other for other in further if is_a(other, BaseException) and id(other) not in known]


def is_a(value: object, kind: type) -> bool:
    """Tells whether it is one by its class; what it claims to be is its own word."""
    return issubclass(type(value), kind)


def attribute(holder: Any, name: str) -> Any:
    """An attribute of the user's exception; one that raises (a property without its request) is none."""
    try:
        return getattr(holder, name, None)
    except BaseException:
        return None


def _errno(cause: BaseException) -> int | None:
    """Its errno; the numbers that OpenSSL and the resolver have in that place are none."""
    code = attribute(cause, "errno") if is_a(cause, OSError) and not _named(cause, "SSLError", "gaierror") else None
    return code if type(code) is int else None


def _end(cause: BaseException) -> str:
    if _named(cause, "SSLError"):
        reason = attribute(cause, "reason")
        return str.__getitem__(reason, slice(100)) if type(reason) is str else ""
    code = _errno(cause)
    return errno.errorcode[code] if code in _ENDS else ""


def _word(cause: BaseException) -> str:
    """A word for an end that has no number."""
    if _named(cause, "gaierror"):
        return "gaierror"
    is_broken = is_a(cause, ConnectionError) or is_a(cause, HTTPException) or _named(cause, "ProtocolError")
    return BROKEN if is_broken else ""


def _named(cause: BaseException, *names: str) -> bool:
    """Tells whether it is of a class of that name, whose module need not be loaded for it."""
    return any(class_name_of(base) in names for base in bases_of(type(cause)))
