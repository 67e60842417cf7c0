"""The check of every address that a user gives: of an endpoint, a host, a metrics server."""

from __future__ import annotations

import re
from ipaddress import ip_address
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, quote, urlsplit

from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.words.redact import HIDDEN, redact
from inference_benchmarker.words.text import is_utf8

if TYPE_CHECKING:
    from collections.abc import Mapping

PORTS = {"http": 80, "https": 443}
_SERVER = re.compile(r"^(?:[\w+.-]+://)?[^/?#]*")
_NO_SIGN = re.compile(r"[\s\x00-\x1f\ud800-\udfff]")


SERVER_SETTINGS = ("SERVER", "URL")
"""Settings of a factories file that begin with the server."""
ADDRESS_SETTINGS = (*SERVER_SETTINGS, "BASE_PATH", "PATH", "QUERY")
"""Settings of a factories file that say where it sends, as `benchmark URL` gives them."""
SEED_SETTING = "SEED"
"""The setting from which the words of conversations are drawn; `benchmark URL` gives each wave a new one."""
SALT_SETTING = "SALT"
"""The setting with a word before the first message that no run before had: `--cache fresh`."""


def address_of(settings: Mapping[str, str]) -> str | None:
    """The address that settings say, without a query; None where they say none."""
    server = settings.get("SERVER", settings.get("URL", ""))
    return server + settings.get("BASE_PATH", "") + settings.get("PATH", "") if server else None


def without_server(address: str) -> str:
    """The path and query of an address, which may have no scheme."""
    return _SERVER.sub("", address, count=1)


def names_loopback(host: str) -> bool:
    """Tells whether a Host header, with or without a port, names this host's loopback.

    A page that answers others is read by any web page of a browser here, whose name leads to this address (DNS
    rebinding).
    """
    try:
        split = urlsplit(f"//{host}")
        name = (split.netloc == host and split.hostname) or ""
        return "@" not in host and (name == "localhost" or ip_address(name).is_loopback)
    except ValueError:
        return False


def http_address(url: object) -> SplitResult | None:
    """The parts of an address that begins with http:// or https:// and names a host; None where it is none."""
    if not isinstance(url, str) or _NO_SIGN.search(url):
        return None
    try:
        parts = urlsplit(url)
        known = parts.scheme in PORTS and bool(parts.hostname) and parts.port != 0
    except ValueError:  # brackets that do not close, a port that is none
        return None
    return parts if known else None


def url_problem(flag: str, url: str) -> str:
    """The sentence that a user reads of an address that a flag gives and that is none; nothing where it is one."""
    if http_address(url):
        return ""
    shown = redact(_BEFORE_HOST.sub(r"\1" + HIDDEN, url))
    return f"{flag} must start with http:// or https://, not {shown!r}."


def endpoint_address(text: str) -> SplitResult:
    """The parts of the address of an endpoint. Raises BenchmarkError that says what is wrong, and what to try."""
    parts = http_address(text)
    if parts is None:
        shown = _PASSWORD.sub(HIDDEN, text)
        advice = _mended(shown) if http_address(_PASSWORD.sub("x", text)) is None else _SIGNS
        raise BenchmarkError(f"{redact(shown)!r} is not a valid endpoint URL.", redact(advice))
    path, query = (quote(part, _AS_IT_IS) for part in (parts.path, parts.query))
    return parts._replace(path=path, query=query, fragment="")


_AS_IT_IS = "%/:?#[]@!$&'()*+,;=~"  # of an address; what else is no letter or digit of ASCII is written as %XX
_PASSWORD = re.compile(r"(?<=//)[^:@]*:.*(?=@)", re.DOTALL)  # whatever signs are in it: that is why it is no address
_BEFORE_HOST = re.compile(r"\A(\w+:?/+|).+(?=@)", re.DOTALL)  # of what is no address: // may be missing, or half of it
_SIGNS = "In a password, signs are written as %XX: %2F for /, %3F for ?, %23 for #, %40 for @, %20 for a blank."


def _mended(text: str) -> str:
    """The advice for an address that is none."""
    from difflib import get_close_matches

    scheme, separator, rest = text.partition("://")
    if _NO_SIGN.search(text):
        return "It contains a blank: write %20 instead." if is_utf8(text) else "It contains a byte that is not UTF-8."
    if scheme.lower() in ("unix", "http+unix") or text.startswith(("/", "unix:")):
        return (
            "A Unix socket has no URL: give it a port, for example with `socat TCP-LISTEN:8080,fork "
            "UNIX-CONNECT:PATH` does."
        )
    if slip := re.match(r"(https?)(?::/|//)(?!/)(.+)", text, re.IGNORECASE):
        return f"Did you mean {slip[1].lower()}://{slip[2]}?"
    if not separator:
        return f"Write http:// or https:// before it: http://{text}"
    if near := get_close_matches(scheme.lower(), PORTS, n=1):
        return _mended_host(rest, f"{near[0]}://") if scheme.lower() in PORTS else f"Did you mean {near[0]}://{rest}?"
    return "It must begin with http:// or https://. For other protocols, `benchmark factory` lists example files."


def _mended_host(rest: str, scheme: str) -> str:
    place = rest.partition("/")[0].rpartition("@")[2]
    if place.count(":") > 1 and "[" not in place:
        return f"Write an IPv6 address in brackets: {scheme}[::1]:8080"
    if ":" in place and place.partition(":")[0]:
        return f"A port is a number from 1 to 65535, as in {scheme}127.0.0.1:8080"
    return f"It has no host: expected something like {scheme}127.0.0.1:8080/path"
