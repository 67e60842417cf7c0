"""In which spellings a secret is found: the ways in which programs write a value, and its places in a text.

Time is linear in the text: each spelling is looked for as it stands, and what overlaps is not looked at again. Which
characters a program escapes is its own affair: a secret is also looked for where escapes are undone. The usual ones are
looked for as they stand, too, since what stands beside a secret may look like a part of an escape.
"""

from __future__ import annotations

import base64
import re
from functools import lru_cache
from json import dumps  # by its name: the user's code may put another function into the module
from typing import TYPE_CHECKING
from urllib.parse import quote

from inference_benchmarker.words.readings import LEVELS, Reading, readings, unescaped, without
from inference_benchmarker.words.secret_values import MIN_LENGTH

if TYPE_CHECKING:
    from collections.abc import Iterator

_BREAK = re.compile(  # of lines, as it is or escaped; each pattern begins with what is found fast
    r"[\r\n\\](?:(?<=\n)|(?<=\r)\n?+|(?<=\\)\\{0,3}+(?:r\\{1,4}+)?n)[ \t]*+"
)
_BASE64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=_-"
_JOINT = re.compile(r"[\r\n\\](?<=[A-Za-z0-9+/=_-][\r\n\\])")
_LINES = re.compile(rf"[A-Za-z0-9+/=_-]*+(?:(?:{_BREAK.pattern})++[A-Za-z0-9+/=_-]++)++")
_OPEN_TITLE = re.compile(r"\x1b\][^\x07\x1b]*+\Z")
_CERTIFICATE_BEGINS, _BODY = re.compile(r"-----BEGIN (?:\w+ )?CERTIFICATE-----"), re.compile(r"[A-Za-z0-9+/=]+")
_SHORT = 8  # characters
_LEAST_OF_A_KEY = 4  # characters, at the end of a line: a single one of a key, or of its digits, ends many a line


def places(text: str, secrets: tuple[str, ...]) -> list[tuple[int, int]]:
    """The places (start, end) that secrets take in a text, in their order; those that overlap are one."""
    merged: list[tuple[int, int]] = []
    for start, end in sorted(set(_all_places(text, secrets))):
        if merged and start < merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((start, end))
    return merged


def begun(text: str, secrets: tuple[str, ...]) -> int:
    """The place in a text, whole lines, from which on it may be the beginning of a secret that goes on behind it.

    Its length where no secret can go on.
    """
    starts = ((reading, _begun_in(reading, secrets)) for reading in readings(text))
    return min(
        (reading.back(start, start + 1)[0] for reading, start in starts if start < len(reading.text)),
        default=len(text),
    )


def longest(secrets: tuple[str, ...]) -> int:
    """The most characters that one of these takes in a usual spelling, on one line and without colours."""
    return max(map(len, _spellings(secrets)), default=0)


def _all_places(text: str, secrets: tuple[str, ...]) -> Iterator[tuple[int, int]]:
    for reading in readings(text):
        yield from (reading.back(*place) for place in _plain_places(reading.text, _sought(secrets, reading.escaped)))
        yield from (reading.back(*place) for place in _places_on_lines(reading.text, _on_lines(secrets)))


def _begun_in(reading: Reading, secrets: tuple[str, ...]) -> int:
    """The place in this reading of a text; its length where no secret can go on."""
    text = reading.text
    if title := "\x1b]" in text and _OPEN_TITLE.search(text):
        text = text[: title.start()]
    start = _begun(text, _over_lines(secrets, reading.escaped))
    at = len(text.rstrip(_BASE64 + "\r\n\t \\"))
    joined = without(_BREAK, Reading(text[at:]))
    on_lines = (
        _begun(joined.text, _in_base64_on_lines(secrets)),
        _begun(joined.text, _as_it_is_on_lines(secrets), _LEAST_OF_A_KEY),
    )
    if (first := min(on_lines)) < len(joined.text):
        start = min(start, at + joined.back(first, first + 1)[0])
    return start


def _plain_places(text: str, spellings: tuple[str, ...]) -> Iterator[tuple[int, int]]:
    for spelling in [each for each in spellings if each in text]:  # of most texts none, which must cost little
        size, at = len(spelling), text.find(spelling)
        while at >= 0:
            yield at, at + size
            overlapping = text.rfind(spelling, at + 1, at + 2 * size - 1)  # the last: it covers those before it
            at = text.find(spelling, at + size) if overlapping < 0 else overlapping


def _begun(text: str, spellings: tuple[str, ...], least: int = 1) -> int:
    """The place of the longest end of a text that one of these begins with and goes on after; its length: of none.

    What has fewer than ``least`` characters counts for none.
    """
    short = _beginnings(spellings)
    sizes = range(least, min(_SHORT, len(text) + 1))
    start = len(text) - max((size for size in sizes if text[-size:] in short), default=0)
    last = text[-_SHORT:]
    for spelling in spellings if len(last) == _SHORT and last in _all_of(spellings) else ():
        at = spelling.rfind(last, 0, len(spelling) - 1)
        while at >= 0 and not text.endswith(spelling[: at + _SHORT]):
            at = spelling.rfind(last, 0, at + _SHORT - 1)
        if at >= 0:
            start = min(start, len(text) - at - _SHORT)
    return start


def _places_on_lines(text: str, spellings: tuple[str, ...]) -> Iterator[tuple[int, int]]:
    """Those of secrets that are broken into lines of base64, of which most texts have none: so they cost little."""
    least, most = min(map(len, spellings), default=0), max(map(len, spellings), default=0)
    joint = _JOINT.search(text) if spellings else None
    while joint:
        before = text[max(joint.start() - most, 0) : joint.start()]
        start = joint.start() - len(before) + len(before.rstrip(_BASE64))
        lines = _LINES.match(text, start)
        if lines and len(lines[0]) > least:
            joined = without(_BREAK, Reading(lines[0]))
            for place in _plain_places(joined.text, spellings):
                first, end = joined.back(*place)
                yield start + first, start + end
        joint = _JOINT.search(text, lines.end() if lines else joint.end())


@lru_cache(maxsize=16)
def _over_lines(secrets: tuple[str, ...], escaped: bool) -> tuple[str, ...]:
    """Those of several lines."""
    return tuple(spelling for spelling in _sought(secrets, escaped) if "\n" in spelling)


@lru_cache(maxsize=16)
def _all_of(spellings: tuple[str, ...]) -> str:
    """A text that has all of them, to look in all at once."""
    return "\x1b".join(spellings)


@lru_cache(maxsize=16)
def _beginnings(spellings: tuple[str, ...]) -> frozenset[str]:
    """Their first few characters."""
    return frozenset(spelling[:size] for spelling in spellings for size in range(1, min(_SHORT, len(spelling))))


@lru_cache(maxsize=16)
def _spellings(secrets: tuple[str, ...]) -> tuple[str, ...]:
    """Every way in which these may stand in a text."""
    found = set(filter(None, secrets))
    for value in _values(secrets):
        found.update(_spellings_of(value))
    return tuple(found)


def _sought(secrets: tuple[str, ...], escaped: bool) -> tuple[str, ...]:
    """Those to look for in a text, or in one whose escapes are undone."""
    return _unescaped(secrets) if escaped else _spellings(secrets)


@lru_cache(maxsize=16)
def _unescaped(secrets: tuple[str, ...]) -> tuple[str, ...]:
    """Those that are left of secrets where escapes are undone, also escapes within the secrets themselves."""
    found = {plain for value in _values(secrets) for plain in _escapable(value)}
    for _ in range(LEVELS):
        found |= {unescaped(plain) for plain in found}
    return tuple(plain for plain in found if len(plain) >= MIN_LENGTH)


def _escapable(value: str) -> Iterator[str]:
    """As it is, with ``+`` for spaces as in a URL, as UTF-16 that was read as Latin-1, and in base64."""
    data, *wide = _encoded(value)
    yield from (value, value.replace(" ", "+"), "\0".join(value), *(each.decode("latin-1") for each in wide))
    for each in (data, *wide):
        yield from _in_base64(each)


@lru_cache(maxsize=16)
def _on_lines(secrets: tuple[str, ...]) -> tuple[str, ...]:
    """Those that programs break into lines, at a place that depends on what stands before."""
    return _in_base64_on_lines(secrets) + _as_it_is_on_lines(secrets)


@lru_cache(maxsize=16)
def _in_base64_on_lines(secrets: tuple[str, ...]) -> tuple[str, ...]:
    return tuple({plain for value in _values(secrets) for data in _encoded(value) for plain in _in_base64(data)})


@lru_cache(maxsize=16)
def _as_it_is_on_lines(secrets: tuple[str, ...]) -> tuple[str, ...]:
    """As hexadecimal digits, and a value that has but the characters of base64: such runs are looked at."""
    values = _values(secrets)
    digits = {written for value in values for written in (_encoded(value)[0].hex(), _encoded(value)[0].hex().upper())}
    return tuple(digits | {value for value in values if not value.strip(_BASE64)})


def _own_lines(secret: str) -> Iterator[str]:
    """The lines of a secret without those of certificates, which are public: of a chain there are thousands."""
    is_public = False
    for line in map(str.strip, secret.splitlines()):
        if _CERTIFICATE_BEGINS.fullmatch(line):
            is_public = True
        elif not (is_public and _BODY.fullmatch(line)):
            is_public = False
            yield line


def _values(secrets: tuple[str, ...]) -> set[str]:
    """Each of these, with either end of lines, and each of its lines."""
    found = {value for secret in secrets for value in (secret, *_own_lines(secret))}
    found |= {end.join(value.splitlines()) + end * value.endswith("\n") for value in found for end in ("\n", "\r\n")}
    return {value for value in found if len(value) >= MIN_LENGTH}


def _spellings_of(value: str) -> Iterator[str]:
    """As it is, in base64, both quoted for a URL, and escaped as in JSON, in Python's own words and in HTML.

    Also its bytes as hexadecimal digits, as Python and URLs write each of them, in base32, and as UTF-16.
    """
    data, *wide = _encoded(value)
    for digits in (data.hex(), data.hex().upper()):
        pairs = [digits[at : at + 2] for at in range(0, len(digits), 2)]
        yield from (digits, " ".join(pairs), ":".join(pairs), "".join(f"%{pair}" for pair in pairs))
        yield from ("".join(f"{escape}{pair}" for pair in pairs) for escape in (r"\x", r"\\x"))
    yield from (nothing.join(value) for nothing in ("\0", r"\x00", r"\u0000", r"\0"))
    for each in wide:
        yield from (
            each.hex(),
            each.hex().upper(),
            each.decode("latin-1"),
            each.decode("utf-8", "replace"),
            *_in_base64(each),
        )
    yield from (_as_python_writes(each) for each in (data, *wide))
    for plain in _in_base32(data):
        yield from (plain, plain.lower())
    for plain in (value, *_in_base64(data)):
        yield plain
        for safe in ("", "/", "~()*!'", "!#$%&'()*+,/:;=?@[]~"):  # of quote, quote_plus, JavaScript, requests
            quoted = quote(plain, safe=safe, errors="surrogateescape")
            lower = re.sub("%..", lambda code: code[0].lower(), quoted)
            yield from (quoted, lower, quoted.replace("%20", "+"), lower.replace("%20", "+"))
    yield from (repr(value)[1:-1], ascii(value)[1:-1])
    for text in (dumps(value)[1:-1], dumps(value, ensure_ascii=False)[1:-1]):
        yield from (text, *_in_html(text))
    yield dumps(dumps(value))[3:-3]
    yield dumps(value).replace("/", r"\/")[1:-1]
    yield from _in_html(value)


def _encoded(value: str) -> tuple[bytes, bytes, bytes]:
    """Its bytes as UTF-8, and as UTF-16 of either order."""
    data = value.encode("utf-8", "surrogateescape")
    return data, value.encode("utf-16-le", "surrogatepass"), value.encode("utf-16-be", "surrogatepass")


def _as_python_writes(data: bytes) -> str:
    """The bytes within quotes; a zero of UTF-16 at either end may be written with its neighbours."""
    return repr(data)[2:-1].removeprefix(r"\x00").removesuffix(r"\x00")


def _in_html(text: str) -> Iterator[str]:
    """Without quotes, with double ones, and with single ones in either of their numbers."""
    plain = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    double = plain.replace('"', "&quot;")
    yield from (plain, double, double.replace("'", "&#x27;"), double.replace("'", "&#39;"))


def _in_base64(value: bytes) -> Iterator[str]:
    """The characters of base64 that this value alone decides, at each of the three places in a group of bytes."""
    for before in range(3):
        text = base64.b64encode(bytes(before) + value).decode()
        own = text[-(-8 * before // 6) : 8 * (before + len(value)) // 6]
        yield own
        yield own.replace("+", "-").replace("/", "_")


def _in_base32(value: bytes) -> Iterator[str]:
    """The same of base32, at each of the five places in a group of bytes."""
    for before in range(5):
        text = base64.b32encode(bytes(before) + value).decode()
        yield text[-(-8 * before // 5) : 8 * (before + len(value)) // 5]
