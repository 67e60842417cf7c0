"""The readings of a text: without a terminal's codes and frames around lines, and with escapes undone.

Each tells where in the text its characters stood. Time is linear in the text: a pattern begins at a sign that has to
be there, what it reads from it is bounded or read from no other place, and escapes are undone a few times at most.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property, lru_cache
from html import unescape
from html.entities import html5
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_CODES = re.compile(  # of a terminal: colours and what else begins with a bracket, character sets, titles and links
    r"\x1b(?:\[[0-?]*+[ -/]*+[@-~]|[ -/]++[0-~]|[=>78]|\][^\x07\x1b]*+(?:\x07|\x1b\\))"
)
_FRAME = re.compile(  # what programs draw around lines, or set before those that they quote
    r"(?:(?<=\n)|\A)[ \t]*+(?:[│┃║|>][ \t]*+)++|(?<![ \t│┃║|])[ \t│┃║|]++(?=\r?\n|\Z)"
)
_FRAMED = re.compile(r"[│┃║]|\|[ \t]*+\r?\n|\n[ \t]*+[|>]")
LEVELS = 4
"""Of escapes within escapes, as of JSON in JSON in HTML."""
_HEX = "[0-9A-Fa-f]"
_LATER = "[89ABab]" + _HEX  # a byte of UTF-8 that goes on with a character


def _of_bytes(sign: str) -> str:
    """The pattern of a character in bytes that follow such a sign each: of UTF-8, or a byte that is none of it."""
    later = sign + _LATER
    return rf"{sign}(?:[CDcd]{_HEX}{later}|[Ee]{_HEX}(?:{later}){{2}}|[Ff][0-7](?:{later}){{3}}|{_HEX}{{2}})"


_NUMBER = (  # of a character, or the two that UTF-16 has for it
    rf"u[Dd][89ABab]{_HEX}{{2}}\\u[Dd][C-Fc-f]{_HEX}{{2}}|u{_HEX}{{4}}"
    rf"|u\{{(?:10{_HEX}{{4}}|{_HEX}{{1,5}})\}}|U00(?:0{_HEX}|10){_HEX}{{4}}"
)
_ESCAPES = {  # by the sign that each begins with: as in a URL, in JSON and Python, in HTML
    "%": _of_bytes("%"),
    "\\": rf"\\(?:[\\/\"'bfnrtv]|{_NUMBER})|" + _of_bytes(r"\\x"),
    "&": rf"&(?:#[0-9]{{1,8}}|#[Xx]{_HEX}{{1,8}}|[A-Za-z][0-9A-Za-z]{{1,31}});",
}
_OF_A_KIND = {sign: re.compile(pattern) for sign, pattern in _ESCAPES.items()}
_OF_ANY_KIND = re.compile("|".join(_ESCAPES.values()))
_CONTROLS = dict(zip("bfnrtv", "\b\f\n\r\t\v", strict=True))


def _nothing(_: re.Match[str]) -> str:
    return ""


@dataclass(frozen=True)
class Reading:
    """A text in which each ``code`` of its ``source`` is replaced by what it means.

    ``escaped`` tells that escapes were undone.
    """

    text: str
    source: Reading | None = None
    code: re.Pattern[str] = _CODES
    meaning: Callable[[re.Match[str]], str] = _nothing
    escaped: bool = False

    def back(self, start: int, end: int) -> tuple[int, int]:
        """The place in the first source of what stands between two places."""
        if self.source is None:
            return start, end
        return self.source.back(self._place(start)[0], self._place(end - 1)[1])

    def _place(self, at: int) -> tuple[int, int]:
        """The place of a character in the source."""
        starts, ends, codes = self._replaced
        last = bisect_right(starts, at) - 1
        if last >= 0 and at < ends[last]:
            return codes[last]
        here = at if last < 0 else at - ends[last] + codes[last][1]
        return here, here + 1

    @cached_property
    def _replaced(self) -> tuple[list[int], list[int], list[tuple[int, int]]]:
        """The starts and ends of what codes were replaced by, and where these stood."""
        starts, ends, codes, gone = [], [], [], 0
        for found in self.code.finditer(self.source.text if self.source else ""):
            meaning = self.meaning(found)
            if meaning != found[0]:
                codes.append(found.span())
                starts.append(found.start() - gone)
                ends.append(starts[-1] + len(meaning))
                gone = found.end() - ends[-1]
        return starts, ends, codes


def readings(text: str) -> Iterator[Reading]:
    """The text as it is, without codes and frames, and both with escapes undone; each that differs.

    Those of all kinds are undone, then those of each kind alone: in HTML, the backslash that ends a secret may look
    like the beginning of an escape as in JSON.
    """
    whole = _with_bare([Reading(text)])
    yield from whole
    seen = set()
    for code in _codes_in(text):
        for each in _unescaped(whole, code):
            if each.text not in seen:
                seen.add(each.text)
                yield each


def _codes_in(text: str) -> list[re.Pattern[str]]:
    """The escapes that a text may have: of any kind, and of each where it has signs of several."""
    kinds = [code for sign, code in _OF_A_KIND.items() if sign in text]
    return [_OF_ANY_KIND, *kinds] if len(kinds) > 1 else [_OF_ANY_KIND] * len(kinds)


def _unescaped(latest: list[Reading], code: re.Pattern[str]) -> Iterator[Reading]:
    """Readings with one level of such escapes undone after the other."""
    for _ in range(LEVELS):
        latest = _with_bare([replaced for each in latest if (replaced := _replaced(each, code)).text != each.text])
        yield from latest


def _replaced(text: Reading, code: re.Pattern[str]) -> Reading:
    return Reading(code.sub(_meaning, text.text), text, code, _meaning, escaped=True)


def without(code: re.Pattern[str], text: Reading) -> Reading:
    """A text without such codes."""
    return Reading(code.sub("", text.text), text, code, _nothing, text.escaped)


def _with_bare(latest: list[Reading]) -> list[Reading]:
    """Readings, of which the last is without codes and frames: with them, at most one."""
    bare = [_undecorated(each) for each in latest[-1:]]
    return [*latest[:1], *(each for each in bare if each is not latest[0])]


def _undecorated(text: Reading) -> Reading:
    """A text without a terminal's codes and frames around lines."""
    bare = without(_CODES, text) if "\x1b" in text.text else text
    return without(_FRAME, bare) if _FRAMED.search(bare.text) else bare


def unescaped(text: str) -> str:
    """A text with each escape of URLs, of JSON and Python, and of HTML replaced by the character it stands for."""
    return _OF_ANY_KIND.sub(_meaning, text)


def _meaning(found: re.Match[str]) -> str:
    return _character(found[0])


@lru_cache(maxsize=4096)
def _character(escape: str) -> str:
    """The character that an escape stands for; a name that HTML does not have stands for itself."""
    sign, kind = escape[0], escape[1]
    if sign == "&":
        return unescape(escape) if kind == "#" else html5.get(escape[1:], escape)
    if sign == "%":
        return bytes.fromhex(escape.replace("%", "")).decode("utf-8", "surrogateescape")
    if kind == "x":
        return _of_utf_8_or_latin_1(bytes.fromhex(escape.replace(r"\x", "")))
    if kind in "uU":
        return _of_numbers(re.findall(f"{_HEX}+", escape))
    return _CONTROLS.get(kind, kind)


def _of_utf_8_or_latin_1(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data.decode("latin-1")


def _of_numbers(digits: list[str]) -> str:
    """One number of a character, or the two that UTF-16 has for it."""
    if len(digits) > 1:
        return bytes.fromhex("".join(digits)).decode("utf-16-be", "surrogatepass")
    return chr(int(digits[0], 16))
