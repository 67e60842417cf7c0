"""Which values are secrets: of the environment's variables, by their names, by who asks for them and by their look."""

from __future__ import annotations

import base64
import re
from contextlib import suppress
from functools import lru_cache
from json import loads  # by its name: the user's code may put another function into the module
from typing import TYPE_CHECKING
from urllib.parse import unquote

from inference_benchmarker.words.own_words import is_own_word

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

MIN_LENGTH = 8
"""A shorter value is part of too many words; a given one is hidden as it stands, and in no other spelling."""

_OTLP_HEADERS = re.compile(r"OTEL_EXPORTER_OTLP_(?:[A-Z]+_)?HEADERS")
"""The variables that hold headers for a collector: ``name=value``, quoted as in URLs, with commas between them."""

HEADERS = "BENCHMARK_HEADERS"
"""The variable that holds the headers of ``--header``: a JSON object, whose values are secrets."""

ASKED_FOR = "BENCHMARK_ASKED_FOR"
"""The variable that holds the names of those that the factories file asks for, with commas between them."""

ADDRESSES = "BENCHMARK_ADDRESSES"
"""The variable that holds the beginnings of given addresses with a user, up to the host, with spaces between them."""

# Of an address. A password may have a single quote in it, with which an address ends elsewhere.
_USER_INFO = (re.compile(r"://([^/\s?#\"']+)@"), re.compile(r"://([^/\s?#\"]+)@"))
_ADDRESS = re.compile(rf"(?:\A|(?<=[,;]))\s*+[A-Za-z][\w+.:-]*{_USER_INFO[1].pattern}")
_ASKED = re.compile(r"""(["'])([A-Za-z_][A-Za-z0-9_.-]{0,100}+)\1""")
_LOOKS_RANDOM = 16  # characters, and of them:
_LEAST_SCORE = 2.5  # of its pairs of neighbours: what letters and digits by chance have, and names of things do not
_SIZE_OR_TIME = re.compile(r"(?<=[0-9])(?:[xT](?=[0-9])|Z(?![A-Za-z0-9]))")
_IN_GROUPS = re.compile(r"(?=.*[0-9])(?=.*[A-Fa-f])(?:[0-9a-f]+|[0-9A-F]+)")  # hexadecimal digits
# Pairs of letters that are common in English and in names of models and machines.
_PAIRS = frozenset(
    re.findall(
        r"[a-z]+",
        "ab ac ad ag ai ak al am an ap ar as at av ay be bl br ce ch ck cl co cr ct de di do dr ea ec ed el em en "
        "ep er es et ev ew ex ey fa ff fi fo fp fr gb ge gg go gp gr ha he hi ho ic id if ig il im in io ir is it "
        "iv ka ke ki kn la ld le li lk ll lo lu ly ma mb me mi mo mp na nc nd ne ng ni no ns nt nv oc od of ol om "
        "on oo op or os ot ou ov ow pa pe pl po pp pr pu qu ra rd re ri rm rn ro ry sa se sh si so sp ss st su sx "
        "ub bu tu cu nn sy ta te th ti to tr ty ul um un up ur us ut ve vi vl wa we wi wo xm xt ys zo",
    )
)
_NUMBER = re.compile(r"[+-]?[0-9.]+(?:e[+-]?[0-9]{1,3})?", re.IGNORECASE)
_SEPARATORS = re.compile(r"[=:\s'\"]+")  # of a collector's header, in whatever way it is written
_MOST_SEPARATORS = 4
_SHORTEST = 4  # of a header whose name says that it is a secret
_SECRET_HEADER = re.compile(r"auth|key|token|secret|pass|cookie|credential", re.IGNORECASE)
_PLAIN_HEADERS = re.compile(r"accept(-.*)?|content-type|user-agent|host|origin|referer|cache-control|connection|prefer")
_SECRET_NAME = re.compile(  # PWD alone is the current folder, which a shell exports
    r"KEY(?!BOARD|RING|MAP)|(?<!TIK)TOKEN(?!I[SZ])|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL|BEARER|COOKIE"
    r"|(?:^|[_.-])AUTH(?![A-Z])|AUTHORIZATION|JWT|WEBHOOK|(?:^|[_.-])(?:PASS|PAT|PEM|CODE)$|[_.-]PWD$",
    re.IGNORECASE,
)
# Values that say that there is no secret, and words that reports are made of: hidden, they would wreck every text.
_WORDS = frozenset(
    (
        *("anonymous", "changeme", "disabled", "localhost", "optional", "password", "placeholder", "required"),
        *("benchmark", "endpoint", "inference", "request", "requests", "response", "production", "undefined"),
    )
)

_environments: list[Mapping[str, str]] = []  # this process's, once it was handed on


def secret_values(environment: Mapping[str, str]) -> list[str]:
    """Values of environment variables whose names say secret, longest first.

    Those of the headers in ``HEADERS`` are among them, passwords in addresses, whatever variable holds one, and what
    looks random of the variables that ``ASKED_FOR`` names.
    Not those of fewer than ``MIN_LENGTH`` characters, and not the few words that stand for no secret.
    """
    values = {value for name, value in environment.items() if _SECRET_NAME.search(name) and _is_secret(value)}
    values |= set(_header_secrets(_headers(environment.get(HEADERS, "")).items()))
    for name, value in environment.items():
        if _OTLP_HEADERS.fullmatch(name):
            values |= set(_header_secrets(_otlp_headers(value)))
        values |= set(_passwords(value, is_given=name == ADDRESSES))
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


def up_to_hosts(text: str) -> Iterator[str]:
    """The beginnings of the addresses with a user that a text consists of: one, or several with commas between them."""
    return (found[0].lstrip() for found in _ADDRESS.finditer(text))


def looks_random(value: str) -> bool:
    """Tells whether a value may be a key: long, and letters and digits mixed as in no name of anything."""
    if len(value) < _LOOKS_RANDOM or re.search(r"\s|://", value):
        return False
    digits = value.replace("-", "")
    if len(digits) >= _LOOKS_RANDOM and _IN_GROUPS.fullmatch(digits):
        return True
    plain = _SIZE_OR_TIME.sub("-", value)
    return sum(map(_score, plain, plain[1:])) >= _LEAST_SCORE


def _score(before: str, sign: str) -> float:
    """The weight of two neighbours: above 0 if they are rather found in a key, below 0 if rather in a name."""
    if before.isalpha() and sign.isalpha():
        if before.islower() and sign.isupper():
            return 1.5
        return -1.0 if (before + sign).lower() in _PAIRS else 1.0
    if not sign.isalnum():
        return -1.0
    return 1.2 if before.isalnum() and before.isdigit() != sign.isdigit() else 0.0


def hide_values_of(environment: Mapping[str, str]) -> None:
    """Have every text redacted with this environment's secrets, as it is when a text is."""
    _environments[:] = [environment]


def own_secrets(*, with_numbers: bool = False) -> tuple[str, ...]:
    """The secrets of this process's environment; those that are numbers only where no result stands."""
    return _of_environment(tuple(item for each in _environments for item in each.items()), with_numbers)


@lru_cache(maxsize=4)
def _of_environment(items: tuple[tuple[str, str], ...], with_numbers: bool) -> tuple[str, ...]:
    return tuple((secret_values if with_numbers else secrets_in_results)(dict(items)))


def secrets_in_results(environment: Mapping[str, str]) -> list[str]:
    """Those to hide where results stand, in which a number stays one, whosever key is the same."""
    return [value for value in secret_values(environment) if not _NUMBER.fullmatch(value)]


def _headers(text: str) -> dict[str, object]:
    try:
        found = loads(text) if text else {}
    except ValueError:
        found = {}
    return found if isinstance(found, dict) else {}


def _otlp_headers(text: str) -> Iterator[tuple[str, str]]:
    """Name and value of each; of one that was written wrong, whatever may be its value."""
    for part in (unquote(each).strip() for each in text.split(",")):
        ends = [match.end() for match in _SEPARATORS.finditer(part)] or [0]
        name = _SEPARATORS.split(part, maxsplit=1)[0]
        yield from ((name, part[end:].rstrip("'\" ")) for end in ends[:_MOST_SEPARATORS])


def _passwords(text: str, *, is_given: bool) -> Iterator[str]:
    """Those of the addresses in a text, as they stand there and as they are sent; of given ones, a user alone, too."""
    for user_info in {each for pattern in _USER_INFO for each in pattern.findall(text)}:
        user, _, password = user_info.partition(":")
        least = _SHORTEST if password and is_given else MIN_LENGTH
        part = password or (user if is_given else "")
        yield from (each for each in (part, unquote(part)) if _is_secret(each, least))


def _header_secrets(headers: Iterable[tuple[str, object]]) -> Iterator[str]:
    """The values of headers, and what follows a scheme in them, as in ``Bearer ...``; of Basic, its password, too."""
    for name, value in headers:
        if _PLAIN_HEADERS.fullmatch(name.lower()) or not isinstance(value, str):
            continue
        scheme, _, rest = value.partition(" ")
        parts = [value, rest.strip()]
        if scheme.lower() == "basic":
            with suppress(ValueError):
                user, _, password = _decoded(base64.b64decode(rest)).partition(":")
                parts.append(password or (user if len(user) >= MIN_LENGTH else ""))
        least = _SHORTEST if _SECRET_HEADER.search(name) else MIN_LENGTH
        yield from (part for part in parts if _is_secret(part, least))


def _decoded(data: bytes) -> str:
    """The text of Basic, in UTF-8 or, as clients once wrote it, in Latin-1."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data.decode("latin-1")


def _is_secret(value: str, least: int = MIN_LENGTH) -> bool:
    return len(value) >= least and value.lower() not in _WORDS and not is_own_word(value)
