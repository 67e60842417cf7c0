"""A secret is found whichever of its characters are escaped, and in whichever ways; what is none stays."""

from __future__ import annotations

import html
import json
from html.entities import codepoint2name
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from inference_benchmarker.words.readings import Reading, readings
from inference_benchmarker.words.redact import CUT, HIDDEN, beginning, decided, without
from tests.growth import grows_with_size

if TYPE_CHECKING:
    from collections.abc import Callable

PLAINER = "abcxuUnt0189ACFZ \"'&%;#+/=<>{}~.-_!*()[]@:?$,|`^äÄß€日\U0001f600"
SIGNS = "\\" + PLAINER  # beside a backslash of a secret, escapes of several kinds in several levels are ambiguous
SECRETS = st.text(SIGNS, min_size=8, max_size=24).filter(lambda value: value == value.strip())


def in_a_url(sign: str) -> list[str]:
    upper = quote(sign, safe="") if not sign.isalnum() or not sign.isascii() else f"%{ord(sign):02X}"
    return (
        [f"%{ord(sign):02X}" if upper == sign else upper, upper.lower()] if sign not in "_.-~" else by_byte(sign, "%")
    )


def by_byte(sign: str, mark: str) -> list[str]:
    return [
        "".join(f"{mark}{byte:02{digits}}" for byte in sign.encode(errors="surrogateescape")) for digits in ("x", "X")
    ]


def in_json(sign: str) -> list[str]:
    units = [sign.encode("utf-16-be")[at : at + 2].hex() for at in range(0, len(sign.encode("utf-16-be")), 2)]
    numbers = ["".join(rf"\u{each}" for each in units), "".join(rf"\u{each.upper()}" for each in units)]
    own = [f"\\{sign}"] if sign in "\"'/\\" else []
    return [*numbers, *own, rf"\u{{{ord(sign):x}}}", *by_byte(sign, r"\x")]


def in_html(sign: str) -> list[str]:
    name = codepoint2name.get(ord(sign))
    return [f"&#{ord(sign)};", f"&#x{ord(sign):x};", f"&#X{ord(sign):X};", *([f"&{name};"] if name else [])]


WAYS: dict[str, tuple[Callable[[str], list[str]], str]] = {  # and the sign that is always escaped
    "URL": (in_a_url, "%"),
    "JSON": (in_json, "\\"),
    "HTML": (in_html, "&"),
    "all of them": (lambda sign: in_a_url(sign) + in_json(sign) + in_html(sign), "%\\&"),
}
AROUND: dict[str, Callable[[str], str]] = {
    "nothing": str,
    "JSON": lambda text: json.dumps(text)[1:-1],
    "JSON in JSON": lambda text: json.dumps(json.dumps(text))[3:-3],
    "HTML": html.escape,
    "JSON in HTML": lambda text: html.escape(json.dumps(text)[1:-1]),
    "URL": quote,
}


PIECES = [
    "%41",
    "%C3%BC",
    "%C3",
    r"\u0041",
    r"\ud83d",
    r"\xe2\x82\xac",
    r"\\n",
    "&amp;",
    "&lt;",
    "&no;",
    "planted-",
    "7f3",
]
PIECES += [
    "\x1b[31m",
    "\x1b]0;",
    "\x07",
    "\n| ",
    "│ ",
    " |\n",
    "&amp;lt;",
    "%2541",
    r"\\u0041",
    "&#65;",
    "&#1;",
    "&#x110000;",
]


@st.composite
def spelt(draw: st.DrawFn, secret: str, way: str) -> str:
    """A secret with any of its characters escaped in one of the ways, or each in another."""
    ways, always = WAYS[way]
    return "".join(draw(st.sampled_from(ways(one))) if one in always or draw(st.booleans()) else one for one in secret)


@given(st.data(), SECRETS, st.sampled_from(["URL", "JSON", "HTML"]))
@settings(max_examples=200)
def test_whichever_characters_are_escaped_nothing_of_a_secret_is_left(
    data: st.DataObject, secret: str, way: str
) -> None:
    text = data.draw(spelt(secret, way))
    assert without(f"before <{text}> after", [secret]) == f"before <{HIDDEN}> after"


@given(
    st.data(),
    st.text(PLAINER, min_size=8, max_size=24).map("k{}9".format),
    st.sampled_from(sorted(WAYS)),
    st.sampled_from(sorted(AROUND)),
)
@settings(max_examples=300)
def test_escapes_of_several_kinds_may_be_mixed_and_escaped_again(
    data: st.DataObject, secret: str, way: str, around: str
) -> None:
    text = AROUND[around](data.draw(spelt(secret, way)))
    assert without(f"before <{text}> after", [secret]) == f"before <{HIDDEN}> after"


@given(st.lists(st.sampled_from([*SIGNS, *PIECES]), max_size=30))
@settings(max_examples=200)
@example(["&", "planted-7f3;"])
def test_a_text_without_a_secret_stays(parts: list[str]) -> None:
    """None of the parts has the letter Q, in any spelling."""
    assert without("".join(parts), ["planted-Q7f3", "Q%41b&lt;c\\n", "Q a"]) == "".join(parts)


@given(st.lists(st.sampled_from([*SIGNS, *PIECES]), max_size=30))
def test_what_stands_between_two_places_leads_back_to_what_it_was_read_from(parts: list[str]) -> None:
    text = "".join(parts)
    for reading in readings(text):
        assert isinstance(reading, Reading)
        places = [reading.back(at, at + 1) for at in range(len(reading.text))]
        assert all(0 <= start < end <= len(text) for start, end in places)
        assert places == sorted(places)
        for (start, end), sign in zip(places, reading.text, strict=True):
            assert end - start > 1 or text[start] == sign


@pytest.mark.parametrize(
    "unit", ["%25", "%2525", "\\\\", "\\u005c", "&amp;", "&#38;#38;", "%F0", "\\xe2", "&a", "\\ud83d", "\x1b[m%41"]
)
def test_time_is_linear_in_a_text_full_of_escapes(unit: str) -> None:
    secrets = ["Zq9xW8vU7tS6rQ5p", "%" * 12, "&amp;" * 4, "\\" * 9]
    assert grows_with_size(lambda size: without(unit * (size // len(unit)), secrets), 5_000)
    assert grows_with_size(lambda size: decided(unit * (size // len(unit)) + "\n", secrets), 5_000)


KEY = "-----BEGIN KEY-----\nMII+first/l\nMII/sec\nMII+third/l=\n-----END KEY-----"


@pytest.mark.parametrize("way", ["URL", "JSON", "HTML"])
def test_a_key_whose_lines_are_escaped_each_is_hidden_however_they_are_written(way: str) -> None:
    """The second line is too short to be a secret by itself."""
    signs = {sign: WAYS[way][0](sign)[0] for sign in "+/="}
    text = f"got {''.join(signs.get(sign, sign) for sign in KEY)} there\n"
    for at in [index + 1 for index, sign in enumerate(text) if sign == "\n"]:
        end = decided(text[:at], [KEY])
        assert without(text[:end], [KEY]) + without(text[end:], [KEY]) == f"got {HIDDEN} there\n"


@pytest.mark.parametrize("spell", [r"\u{:04x}", r"\\u{:04x}", "&#x{:06x};", "%25{:02X}"])
def test_a_beginning_has_no_part_of_an_escaped_secret(spell: str) -> None:
    secret = "Zq9xW8vU7tS6rQ5p"
    spelt_out = "".join(spell.format(ord(sign)) for sign in secret)
    for before in range(0, 400, 7):
        clean = beginning("." * before + spelt_out + "." * 400, 200, [secret])
        assert not set(clean) - set("." + HIDDEN + CUT)
