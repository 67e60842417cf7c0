"""Each spelling that the page of secrets promises, of nine kinds of keys: made by the programs that write it."""

from __future__ import annotations

import base64
import html
import json
import re
from itertools import product
from typing import TYPE_CHECKING
from urllib.parse import quote, quote_plus

import pytest

from inference_benchmarker.words.redact import HIDDEN, without

if TYPE_CHECKING:
    from collections.abc import Iterator

PEM = """-----BEGIN PRIVATE KEY-----
MIIEvQIBADANBgkqhkiG9w0BAQ
EFAASCBKcwggSjAgEAAoIBAQC7
-----END PRIVATE KEY-----
"""
KEYS = {
    "plain": "planted7f3Kd92Lm0",
    "apostrophe": "Zq8'planted7f3Kd92Lm0",
    "quotes and brackets": 'Zq8"planted7f&3<Kd92>',
    "slashes": "a/b+c=plan7f3\\Kd92",
    "not ASCII": "schlüsselÄ7f3Kd92€x",
    "long": "eyJ" + "aB3dE5gH7j" * 12,
    "several lines": PEM,
    "spaces": "hand over 7f3K d92L",
    "beyond 16 bits": "key\U0001f6007f3Kd92Lmno",
}


def wrapped(text: str, columns: int, end: str) -> str:
    return end.join(text[at : at + columns] for at in range(0, len(text), columns))


def in_bytes(data: bytes) -> Iterator[tuple[str, str]]:
    encoded = base64.b64encode(data).decode()
    yield "base64", encoded
    yield "base64 for URLs", base64.urlsafe_b64encode(data).decode()
    yield "base64 of 64 columns", wrapped(encoded, 64, "\n")
    yield "base64 of 76 columns in JSON", json.dumps(wrapped(encoded, 76, "\r\n"))[1:-1]
    yield "base64 of 64 columns in JSON in JSON", json.dumps(json.dumps(wrapped(encoded, 64, "\n")))[3:-3]
    yield "base64 of 20 columns in YAML", wrapped(encoded, 20, "\n      ")
    yield "hex", data.hex()
    yield "HEX", data.hex().upper()
    yield "Python's bytes", repr(data)[2:-1]


def spelt(key: str) -> Iterator[tuple[str, str]]:
    """Every spelling by its name."""
    data, in_json = key.encode(), json.dumps(key)
    yield "as it is", key
    for order in ("utf-8", "utf-16-le", "utf-16-be"):
        yield from ((f"{name} of {order}", text) for name, text in in_bytes(key.encode(order)))
    yield from (
        (f"UTF-16 as Latin-1, {order}", key.encode(f"utf-16-{order}").decode("latin-1")) for order in ("le", "be")
    )
    yield from (
        (f"UTF-16 read as UTF-8, {order}", key.encode(f"utf-16-{order}").decode(errors="replace"))
        for order in ("le", "be")
    )
    yield "base32", base64.b32encode(data).decode()
    yield "hex by twos", data.hex(" ")
    yield "hex with colons", data.hex(":")
    yield "percent", "".join(f"%{byte:02x}" for byte in data)
    yield "escaped bytes", "".join(rf"\x{byte:02x}" for byte in data)
    yield "quoted", quote(key, safe="")
    yield "quoted but for slashes", quote(key)
    yield "quoted with plus", quote_plus(key)
    yield "base64, quoted", quote(base64.b64encode(data).decode(), safe="")
    yield "JSON", in_json[1:-1]
    yield "JSON with letters", json.dumps(key, ensure_ascii=False)[1:-1]
    yield "JSON in JSON", json.dumps(in_json)[3:-3]
    yield "Python", repr(key)[1:-1]
    yield "Python in ASCII", ascii(key)[1:-1]
    yield "HTML", html.escape(key)
    yield "HTML of others", html.escape(key).replace("&#x27;", "&#39;")
    yield "HTML, double quotes as they are", html.escape(key, quote=False)
    yield "JSON in HTML", html.escape(in_json)[6:-6]
    yield from of_other_programs(key)
    for before in (b"x" * 50, b"y" * 51, b"z" * 52):
        yield f"base64 after {len(before)} bytes", base64.encodebytes(before + data + b"tail").decode()


UNQUOTED = {  # beside letters, digits and _.-~
    "JavaScript's encodeURI": ";,/?:@&=+$!*'()#",
    "JavaScript's encodeURIComponent": "!*'()",
    "Go's PathEscape": "$&+=:@",
    "urllib3's paths": "/:@!$&'()*+,;=",
    "yarl's queries": "/:@!$'()*,;?",
    "aiohttp's paths": "/:@!$&'()*+,;=|",
}


def of_other_programs(key: str) -> Iterator[tuple[str, str]]:
    """What languages and libraries write that are not Python's own."""
    in_json, with_letters = json.dumps(key)[1:-1], json.dumps(key, ensure_ascii=False)[1:-1]
    for name, unquoted in UNQUOTED.items():
        yield name, quote(key, safe=unquoted)
        yield f"{name} in lower case", re.sub("%..", lambda code: code[0].lower(), quote(key, safe=unquoted))
    yield "Java's URLEncoder", quote(key, safe="*").replace("~", "%7E").replace("%20", "+")
    go, gson = with_numbers(with_letters, "&<>"), with_numbers(with_letters, "&<>='")
    yield from (("Go's JSON", go), ("Go's JSON in JSON", json.dumps(go, ensure_ascii=False)[1:-1]), ("Gson", gson))
    net = with_numbers(with_letters.replace(r"\"", r"\u0022"), "&<>'+`")
    yield ".NET's JSON", re.sub(r"\\u....", lambda code: r"\u" + code[0][2:].upper(), net)
    yield "Jackson", re.sub(r"\\u....", lambda code: r"\u" + code[0][2:].upper(), in_json)
    for name, text in (("PHP", in_json), ("PHP with letters", with_letters)):
        yield f"{name}'s JSON", (slashed := text.replace("/", r"\/"))
        yield f"{name}'s JSON in JSON", json.dumps(slashed)[1:-1]
    yield "MarkupSafe", html.escape(key).replace("&quot;", "&#34;").replace("&#x27;", "&#39;")
    yield "HTML of hexadecimal numbers", html.escape(key).replace("&quot;", "&#x22;").replace("&#x27;", "&#x27;")
    yield "HTML of numbers", "".join(f"&#{ord(sign)};" for sign in key)
    yield "HTML of names", key.encode("ascii", "xmlcharrefreplace").decode().replace("/", "&sol;")
    yield "Rust", key.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n").replace("Ä", r"\u{c4}")


def with_numbers(text: str, signs: str) -> str:
    """A text with these signs as JSON may write any."""
    return "".join(rf"\u{ord(sign):04x}" if sign in signs else sign for sign in text)


CODES = {
    "none": ("", ""),
    "a colour within": ("\x1b[31m", ""),
    "what tput writes": ("\x1b(B\x1b[m", ""),
    "a title": ("\x1b]0;a title\x07", ""),
    "a link": ("\x1b]8;;http://a.b\x1b\\", ""),
    "a colour at line ends": ("", "\x1b[0m"),
    "a colour at line starts": ("\x1b[1;38:2:1:2:3m", "\x1b[K"),
}


def coloured(text: str, within: str, at_line_ends: str) -> str:
    """With codes at some places of each line, and at the ends of lines."""
    parts = [within.join((line[:1], line[1:2], line[2:5], line[5:])) for line in text.split("\n")]
    return f"{at_line_ends}\n".join(parts)


@pytest.mark.parametrize("kind", KEYS)
def test_each_promised_spelling_is_hidden(kind: str) -> None:
    """Up to two characters at either end of base64 are left, and what stands between the lines of a key."""
    left = {}
    for codes, (name, text) in product(CODES, spelt(KEYS[kind])):
        clean = without(f"<{coloured(text, *CODES[codes])}>", [KEYS[kind]])
        most = 100 if name.startswith("base64 after") else 8  # of what is beside it, encoded with it
        for code in CODES[codes]:
            clean = clean.replace(code, "")
        if HIDDEN not in clean or sum(map(str.isalnum, clean.replace(HIDDEN, ""))) > most:
            left[codes, name] = clean
    assert not left
