"""The headers of ``--header``, which are secrets: taken from the environment, and handed on by it alone."""

from __future__ import annotations

import base64
import json
import re
from typing import TYPE_CHECKING
from urllib.parse import unquote

from inference_benchmarker.words.redact import HEADERS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from urllib.parse import SplitResult

_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_REFERENCE = re.compile(r"\$(?:(\$)|\{(\w+)\}|(\w+))")
_OURS = ("Content-Length", "Transfer-Encoding", "Connection")


def headers_of(given: Iterable[str], environment: Mapping[str, str], problems: list[str]) -> dict[str, str]:
    """The headers that the flags say, their names spelt as usual. ``problems`` never has a value in it."""
    headers = {}
    for text in given:
        name, colon, value = text.partition(":")
        name = _usual(name)
        if not colon or not _NAME.fullmatch(name):
            problems.append("--header must look like 'Name: value', as in 'X-Own: $MINE'.")
        elif name in _OURS:
            problems.append(f"--header {name}: the client sets this header itself; leave it out.")
        elif name in headers:
            problems.append(f"--header {name} is given twice, but a request has it once: join its values with a comma.")
        else:
            headers[name] = _value(name, value.strip(), environment, problems)
    return headers


def of_environment(environment: Mapping[str, str], problems: list[str]) -> dict[str, str]:
    """The headers that the user's environment has, by their usual spelling. ``problems`` never has a value in it."""
    try:
        fields = json.loads(environment.get(HEADERS) or "{}")
    except (ValueError, RecursionError):
        fields = None
    if not isinstance(fields, dict) or not all(isinstance(value, str) for value in fields.values()):
        problems.append(f'{HEADERS} in the environment must be a JSON object of texts, as in {{"X-Own": "mine"}}.')
        return {}
    return {_usual(name): value for name, value in fields.items()}


def of_user(address: SplitResult) -> dict[str, str]:
    """The header for the user and the password of an address; nothing where it has none."""
    if address.username is None:
        return {}
    pair = f"{unquote(address.username)}:{unquote(address.password or '')}"
    return {"Authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"}


def _usual(name: str) -> str:
    return "-".join(part.capitalize() for part in name.strip().split("-"))


def _value(name: str, text: str, environment: Mapping[str, str], problems: list[str]) -> str:
    missing: list[str] = []

    def taken(found: re.Match[str]) -> str:
        variable = found[2] or found[3]
        if variable and not environment.get(variable):
            missing.append(variable)
        return "$" if found[1] else environment.get(variable, "")

    value = _REFERENCE.sub(taken, text)
    problems += [f"--header {name}: ${each} is not set, or empty; `export {each}=...` sets it." for each in missing]
    if not missing and (not value.isprintable() or not _is_latin(value)):
        problems.append(f"--header {name}: its value has a line break or a character that no header may have.")
    return value


def _is_latin(text: str) -> bool:
    try:
        text.encode("latin-1")
    except UnicodeEncodeError:
        return False
    return True
