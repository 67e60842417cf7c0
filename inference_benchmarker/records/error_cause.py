"""The exceptions that one of the user's code came from, and what in them ended a connection. Pure.

A client that wraps its errors (openai, requests, botocore, httpx) has one class for a refused connection, a cut one and
one whose certificate is not trusted: which of them it was stands further down. Any of them may be anything, as
``error_key`` says, so that nothing of theirs is trusted.
"""

from __future__ import annotations

import errno
from http.client import HTTPException
from itertools import islice
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

class_name_of = type.__dict__["__name__"].__get__  # a metaclass may have one of its own
bases_of = type.__dict__["__mro__"].__get__
# So may an exception of these.
_cause_of, _context_of, _suppresses, _arguments_of = (
    BaseException.__dict__[name].__get__ for name in ("__cause__", "__context__", "__suppress_context__", "args")
)

BROKEN = "broken"
"""In an error's key: the connection ended within an exchange without an errno, or what came was no answer."""
_MAX_CAUSES = 16
# What went wrong in code, whatever it was handling then: such an error came from another one only where it says so.
_MISTAKES = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, AssertionError, NameError)
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


def local_errno(found: Sequence[BaseException]) -> str | None:
    """The errno by which this host refused the request, from an exception's ``causes``; else None."""
    return next((errno.errorcode[code] for code in map(_errno, found) if code in _LOCAL_ERRORS), None)


def connection_cause(found: Sequence[BaseException]) -> str:
    """The end of the connection that an exception came from, by its ``causes``: an errno, OpenSSL's reason or a word.

    Else nothing, and of an exception whose class says it already.
    """
    if is_a(found[0], ConnectionError):
        return ""
    words = () if _word(found[0]) else map(_word, found)
    return next(filter(None, (*map(_end, found), *words)), "")


def causes(exception: BaseException) -> Sequence[BaseException]:
    """The exception, then those it came from, the nearest first."""
    found = [exception]
    for cause in islice(found, _MAX_CAUSES):  # which grows meanwhile
        handled = _cause_of if issubclass(type(cause), _MISTAKES) else before
        further = (handled(cause), attribute(cause, "reason"), *_arguments_of(cause)[:2])
        for other in further:
            if is_a(other, BaseException) and not any(other is known for known in found):  # it may compare oddly
                found.append(other)
    return found[:_MAX_CAUSES]


def before(exception: BaseException) -> BaseException | None:
    """The exception that Python's own traceback tells before it: its cause, else the one that was being handled."""
    found: BaseException | None = _cause_of(exception) if _suppresses(exception) else _context_of(exception)
    return found


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
