"""Keeps secrets out of what is written and shown: given values in every usual spelling, and credentials by their form.

Time is linear in the text, whatever it holds: each pattern begins at a place that few texts have, and what it
reads from there is read from no other place (bounded repetitions, or runs that cannot overlap).
"""

from __future__ import annotations

import base64
import re
from bisect import bisect_right
from contextlib import suppress
from functools import lru_cache
from itertools import accumulate
from json import dumps, loads  # by their names: the user's code may put other functions into the module
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote

from inference_benchmarker.own_words import is_own_word

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

HIDDEN = "[hidden]"
CUT = "…"
MIN_LENGTH = 8
"""A shorter value is part of too many words; a given one is hidden as it stands, and in no other spelling."""

HEADERS = "BENCHMARK_HEADERS"
"""The variable that holds the headers of ``--header``: a JSON object, whose values are secrets."""

ASKED_FOR = "BENCHMARK_ASKED_FOR"
"""The variable that holds the names of those that the factories file asks for, with commas between them."""

_ASKED = re.compile(r"""(["'])([A-Za-z_][A-Za-z0-9_]{0,100}+)\1""")
_LOOKS_RANDOM = 16  # characters, and of them:
_RUN = re.compile(r"[A-Za-z0-9]{8}")
_CHANGES = 0.2  # of the characters are of another kind than the one before: a digit, a capital, a small letter
_WORD = re.compile(r"[A-Za-z0-9]+")
_KINDS = re.compile(r"[a-z]+|[A-Z]+|[0-9]+")
_COLOUR = re.compile(r"\x1b\[[0-9;:?]*+[ -/]*+[@-~]")
_NUMBER = re.compile(r"[+-]?[0-9.]+(?:e[+-]?[0-9]{1,3})?", re.IGNORECASE)
_SHORTEST = 4  # of a header whose name says that it is a secret
_SECRET_HEADER = re.compile(r"auth|key|token|secret|pass|cookie|credential", re.IGNORECASE)
_PLAIN_HEADERS = re.compile(r"accept(-.*)?|content-type|user-agent|host|origin|referer|cache-control|connection|prefer")
_SECRET_NAME = re.compile(  # PWD alone is the current folder, which a shell exports
    r"KEY(?!BOARD|RING|MAP)|(?<!TIK)TOKEN(?!I[SZ])|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL|BEARER|COOKIE"
    r"|(?:^|_)AUTH(?![A-Z])|AUTHORIZATION|JWT|WEBHOOK|(?:^|_)(?:PASS|PAT|PEM|CODE)$|_PWD$",
    re.IGNORECASE,
)
# Values that say that there is no secret, and words that reports are made of: hidden, they would wreck every text.
_WORDS = frozenset(
    (
        *("anonymous", "changeme", "disabled", "localhost", "optional", "password", "placeholder", "required"),
        *("benchmark", "endpoint", "inference", "request", "requests", "response", "production", "undefined"),
    )
)
_QUOTE = r"(?:\\{0,4}+[\"']|%2[27])"
# Between a name and its value: as in a header, an assignment, JSON (also within JSON), a URL, Ruby, a tuple.
_SEPARATOR = (
    rf"(?:{_QUOTE}?+\s*+(?:=>|[=:]|%3[AD])\s*+|[\"'],\s*+(?=b?[\"']))"
    rf"(?:\[(?=b?{_QUOTE}))?+(?:b?{_QUOTE})?+"
)
_WORD_VALUE = r"[^\s\"'&,;]{4,}+"
_VALUE = rf"(?:(?<=\")[^\"\r\n]{{4,}}+|(?<=')[^'\r\n]{{4,}}+|{_WORD_VALUE})"
_NAME = (
    r"(?:(?:api|access|secret|private|account|subscription|signing|auth)[-_]?key|secret|passw(?:or)?d|passphrase"
    r"|(?<=[_;-])p(?:ass|wd)"
    # "invalid token: expired" tells of an error, not of a token
    r"|(?:token|signature|credential)(?!(?-i:: [A-Z]?+[a-z]{1,14}+)[.!?)]?+(?:[\s\"'&,;]|\Z)))"
)
_SCHEME = r"(?:Bearer|Basic|Token|Api-?Key|Key|Digest|Negotiate|NTLM|Bot|SharedKey|AWS4-HMAC-SHA256)(?:\s++|%20|\+)"
_NO_VALUE = r"(?!(?:auth\w{0,12}|credentials?|tokens?|realm=?|scheme|headers?|format|errors?|requests?)\b)"
_IN_A_QUERY = r"(?:\A|(?<=[?&]))"
_LAST_WORD = re.compile(rf"(?<![^\s\"'&,;\]{CUT}])[^\s\"'&,;\]{CUT}]*+{CUT}\Z")


_environments: list[Mapping[str, str]] = []  # this process's, once it was handed on


class _Pattern(NamedTuple):
    """A form of credentials: ``hints``, in lower case, one of which stands in every text that has one."""

    hints: tuple[str, ...]
    regex: re.Pattern[str]
    replacement: str


def _pattern(hints: str, regex: str, flags: int = re.IGNORECASE) -> _Pattern:
    """One that keeps what its group ``keep`` matches, if it has one."""
    compiled = re.compile(regex, flags)
    kept = r"\g<keep>" if compiled.groups else ""
    return _Pattern(tuple(hints.split()), compiled, kept + HIDDEN)


_PATTERNS = (
    _pattern(
        "-----begin",
        r"(?P<keep>-----BEGIN [A-Z0-9 ]{0,40}?PRIVATE KEY(?: BLOCK)?-----)"
        r"(?:[\w+/=\s\\:,.]|-(?!----))++(?:-----END [A-Z0-9 ]{0,60}+-----)?+",
        0,
    ),
    _pattern("://", r"(?<=://)[^/\s?#\"']*(?=@)"),
    _pattern(r":\/\/", r"(?<=:\\/\\/)[^/\\\s?#\"']*(?=@)"),
    _pattern("cookie", rf"(?P<keep>cookie{_SEPARATOR})[^\s=;,\"'()]{{1,200}}+=[^\r\n\"'\\]++"),
    _pattern("authorization", rf"(?P<keep>authorization{_SEPARATOR}{_SCHEME}){_WORD_VALUE}"),
    _pattern(
        "authorization",  # of a scheme that is not known: what has a digit or is long is no word
        rf"(?P<keep>authorization{_SEPARATOR}(?:[A-Z-]{{1,15}}+[ \t]++)?)"
        rf"(?=[A-Z_.~+/=-]{{0,64}}+[0-9]|[^\s\"'&,;]{{16}}){_WORD_VALUE}",
    ),
    _pattern("bearer basic", rf"(?P<keep>\b(?:Bearer|Basic)(?:\s++|%20|\+)){_NO_VALUE}[A-Za-z0-9._~+/=-]{{6,}}+"),
    _pattern("key secret pass pwd token signature credential", rf"(?P<keep>{_NAME}{_SEPARATOR}){_VALUE}"),
    _pattern("key> token> password> secret>", r"(?P<keep>(?:AccessKey|Token|Password|Secret)>)[^<>\s]{4,}+(?=</)"),
    # A query may stand alone, as a setting does.
    _pattern(
        "key= sig= pwd= pass= auth= jwt=", rf"(?P<keep>{_IN_A_QUERY}(?:key|sig|pwd|pass|auth|jwt)=)[^\s\"'&,;#]{{8,}}+"
    ),
    _pattern("code=", rf"(?P<keep>{_IN_A_QUERY}code=)[^\s\"'&,;#]{{24,}}+"),  # an Azure function's key is so long
    _pattern("akia asia", r"\b(?:AKIA|ASIA)[A-Z0-9]{12,}+\b", 0),
    _pattern("iqojb3jpz2lu ogzxivyxdz aqodyxdz", r"\b(?:IQoJb3JpZ2lu|F[wQ]oGZXIvYXdz|AQoDYXdz)[\w+/=%-]{16,}+", 0),
    _pattern("eyj", r"\beyJ[\w-]{12,}+(?:\.[\w-]++)*+", 0),
    _pattern(
        "sk- sk_ rk_ hf_ hf- ghp ghu gho ghs ghr github_pat glpat gsk nvapi r8_ pplx xox xapp aiza ya29",
        r"\b(?:(?:sk|rk|hf|gh[oprsu]|github_pat|glpat|gsk|nvapi|r8|pplx|xox[abeprs]|xapp)[-_]|ya29\.|AIza)[\w-]{16,}+",
        0,
    ),
)


def redact(text: str, secrets: Iterable[str] | None = None) -> str:
    """The text with credentials replaced: by their form, and each given secret wherever it stands.

    None stands for those of this process's environment, see ``hide_values_of``: nobody can forget to pass them.
    """
    text = without(text, _own() if secrets is None else secrets)
    lowered = text.lower()
    for hints, regex, replacement in _PATTERNS:
        for hint in hints:  # most texts have none, and looking for them is all that they cost
            if hint in lowered:
                text = regex.sub(replacement, text)
                break
    return text


def without(text: str, secrets: Iterable[str]) -> str:
    """The text with each given secret replaced: what is data must keep what only looks like one."""
    secrets = tuple(secrets)
    for spelling in _spellings(secrets):
        text = text.replace(spelling, HIDDEN)
    return _without_coloured(text, secrets) if "\x1b" in text else text


def _without_coloured(text: str, secrets: tuple[str, ...]) -> str:
    """The text without the secrets that have a terminal's codes, such as colours, inside."""
    codes = [code.span() for code in _COLOUR.finditer(text)]
    plain = _COLOUR.sub("", text)
    before = [0, *accumulate(end - start for start, end in codes)]  # characters of codes, before each of them
    starts = [start - gone for (start, _), gone in zip(codes, before, strict=False)]  # in the plain text
    long = (re.escape(each) for each in secrets if len(each) >= MIN_LENGTH)
    found = {match.span() for each in long for match in re.finditer(each, plain)}
    pieces, told = [], 0
    for start, end in sorted(found):
        first, last = (at + before[bisect_right(starts, at)] for at in (start, end - 1))
        pieces += [text[told:first], HIDDEN] if first >= told else []  # else the one before has its beginning
        told = max(told, last + 1)
    return "".join((*pieces, text[told:]))


def beginning(text: str, limit: int, secrets: Iterable[str] | None = None) -> str:
    """At most ``limit`` characters of the text, without the given secrets, none of which is cut in half.

    What was cut off is told by ``CUT``. Little more than the limit is looked at, whatever the text's length.
    """
    secrets = _own() if secrets is None else tuple(secrets)
    spare = 2 * max(map(len, _spellings(secrets)), default=0)
    piece = text[: limit + spare]
    clean = without(piece, secrets)
    if len(piece) < len(text):  # a secret that the piece has half of lies within what is left out
        clean = clean[: len(clean) - spare] + CUT
    return clean if len(clean) <= limit else clean[: limit - 1] + CUT


def excerpt(text: str, limit: int, secrets: Iterable[str] | None = None) -> str:
    """At most ``limit`` characters of the redacted text; no credential is told that a cut left half of."""
    secrets = _own() if secrets is None else tuple(secrets)
    clean = redact(beginning(text, 4 * limit, secrets))
    if len(clean) <= limit and clean.endswith(CUT):
        clean = _LAST_WORD.sub(CUT, clean)
    return clean[:limit]


def secret_values(environment: Mapping[str, str]) -> list[str]:
    """Values of environment variables whose names say secret, longest first so that no part of one is left.

    Those of the headers in ``HEADERS`` are among them, and what looks random of the variables that ``ASKED_FOR`` names.
    Not those of fewer than ``MIN_LENGTH`` characters, and not the few words that stand for no secret.
    """
    values = {value for name, value in environment.items() if _SECRET_NAME.search(name) and _is_secret(value)}
    values |= set(_header_secrets(environment.get(HEADERS, "")))
    asked = (environment.get(name, "") for name in environment.get(ASKED_FOR, "").split(","))
    values |= {value for value in asked if looks_random(value) and _is_secret(value)}
    return sorted(values, key=len, reverse=True)


def asked_for(source: str, environment: Mapping[str, str], shown: Iterable[str] = ()) -> str:
    """The value of ``ASKED_FOR`` for a factories file, given its text: the variables that are set and named in it.

    Not those whose value is ``shown``, as what stands in ``plan.json`` is.
    """
    names = {match[2] for match in _ASKED.finditer(source)} & environment.keys()
    known = set(shown)
    return ",".join(sorted(name for name in names if environment[name] not in known))


def looks_random(value: str) -> bool:
    """Tells whether a value may be a key: long, and letters and digits mixed as in no name of anything."""
    if len(value) < _LOOKS_RANDOM or not _RUN.search(value) or re.search(r"\s|://", value):
        return False
    words = [_KINDS.findall(word) for word in _WORD.findall(value)]
    runs = [run for word in words for run in word]
    changes = len(runs) - len(words)  # between the words of a name nothing changes
    return changes >= _CHANGES * sum(map(len, runs)) and any(run.isdigit() for run in runs)


def hide_values_of(environment: Mapping[str, str]) -> None:
    """Have every text redacted with this environment's secrets, as it is when a text is."""
    _environments[:] = [environment]


def _own() -> tuple[str, ...]:
    """The secrets of this process's environment, of numbers those alone that are more than digits."""
    return _of_environment(tuple(item for environment in _environments for item in environment.items()))


@lru_cache(maxsize=4)
def _of_environment(items: tuple[tuple[str, str], ...]) -> tuple[str, ...]:
    return tuple(secrets_in_results(dict(items)))


def secrets_in_results(environment: Mapping[str, str]) -> list[str]:
    """Those to hide where results stand, in which a number stays one, whosever key is the same."""
    return [value for value in secret_values(environment) if not _NUMBER.fullmatch(value)]


def _header_secrets(text: str) -> Iterator[str]:
    """The values of headers, and what follows a scheme in them, as in ``Bearer ...``; of Basic, its password, too."""
    try:
        headers = loads(text) if text else {}
    except ValueError:
        headers = {}
    for name, value in headers.items() if isinstance(headers, dict) else ():
        if _PLAIN_HEADERS.fullmatch(name.lower()) or not isinstance(value, str):
            continue
        scheme, _, rest = value.partition(" ")
        parts = [value, rest.strip()]
        if scheme.lower() == "basic":
            with suppress(ValueError):
                parts.append(base64.b64decode(rest).decode("latin-1").partition(":")[2])
        least = _SHORTEST if _SECRET_HEADER.search(name) else MIN_LENGTH
        yield from (part for part in parts if _is_secret(part, least))


def _is_secret(value: str, least: int = MIN_LENGTH) -> bool:
    return len(value) >= least and value.lower() not in _WORDS and not is_own_word(value)


@lru_cache(maxsize=16)
def _spellings(secrets: tuple[str, ...]) -> tuple[str, ...]:
    """Every way in which these may stand in a text, longest first."""
    found: set[str] = set()
    for secret in filter(None, secrets):
        found.add(secret)
        for value in {secret, *map(str.strip, secret.splitlines())}:
            if len(value) >= MIN_LENGTH:
                found.update(_spellings_of(value))
    return tuple(sorted(found, key=len, reverse=True))


def _spellings_of(value: str) -> Iterator[str]:
    """As it is, in base64, both quoted for a URL, and escaped as in JSON, in Python's own words and in HTML.

    Also its bytes as hexadecimal digits, as Python and URLs write each of them, in base32, and as UTF-16.
    """
    data = value.encode("utf-8", "surrogateescape")
    for digits in (data.hex(), data.hex().upper()):
        pairs = [digits[at : at + 2] for at in range(0, len(digits), 2)]
        yield from (digits, " ".join(pairs), ":".join(pairs), "".join(f"%{pair}" for pair in pairs))
        yield from ("".join(f"{escape}{pair}" for pair in pairs) for escape in (r"\x", r"\\x"))
    yield from (nothing.join(value) for nothing in ("\0", r"\x00", r"\u0000", r"\0"))
    for plain in _in_base32(data):
        yield from (plain, plain.lower())
    for plain in (value, *_in_base64(value.encode("utf-8", "surrogateescape"))):
        yield plain
        for safe in ("", "/", "~()*!'", "!#$%&'()*+,/:;=?@[]~"):  # of quote, quote_plus, JavaScript, requests
            quoted = quote(plain, safe=safe, errors="surrogateescape")
            lower = re.sub("%..", lambda code: code[0].lower(), quoted)
            yield from (quoted, lower, quoted.replace("%20", "+"), lower.replace("%20", "+"))
    yield from (dumps(value)[1:-1], dumps(value, ensure_ascii=False)[1:-1], repr(value)[1:-1])
    yield dumps(dumps(value))[3:-3]
    yield dumps(value).replace("/", r"\/")[1:-1]
    yield value.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")


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
