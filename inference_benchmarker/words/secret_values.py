"""Which values are secrets: of the environment's variables, by their names, by who asks for them and by their look."""

from __future__ import annotations

import base64
import re
from contextlib import suppress
from functools import lru_cache
from json import loads  # by its name: the user's code may put another function into the module
from typing import TYPE_CHECKING

from inference_benchmarker.words.own_words import is_own_word

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

MIN_LENGTH = 8
"""A shorter value is part of too many words; a given one is hidden as it stands, and in no other spelling."""

HEADERS = "BENCHMARK_HEADERS"
"""The variable that holds the headers of ``--header``: a JSON object, whose values are secrets."""

ASKED_FOR = "BENCHMARK_ASKED_FOR"
"""The variable that holds the names of those that the factories file asks for, with commas between them."""

_ASKED = re.compile(r"""(["'])([A-Za-z_][A-Za-z0-9_.-]{0,100}+)\1""")
_LOOKS_RANDOM = 16  # characters, and of them:
_RUN = re.compile(r"[A-Za-z0-9]{8}")
_CHANGES = 0.2  # of the characters are of another kind than the one before: a digit, a capital, a small letter
_WORD = re.compile(r"[A-Za-z0-9]+")
_KINDS = re.compile(r"[a-z]+|[A-Z]+|[0-9]+")
_NUMBER = re.compile(r"[+-]?[0-9.]+(?:e[+-]?[0-9]{1,3})?", re.IGNORECASE)
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


def own_secrets(*, with_numbers: bool = False) -> tuple[str, ...]:
    """The secrets of this process's environment; those that are numbers only where no result stands."""
    return _of_environment(tuple(item for each in _environments for item in each.items()), with_numbers)


@lru_cache(maxsize=4)
def _of_environment(items: tuple[tuple[str, str], ...], with_numbers: bool) -> tuple[str, ...]:
    return tuple((secret_values if with_numbers else secrets_in_results)(dict(items)))


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
