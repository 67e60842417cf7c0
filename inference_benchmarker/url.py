"""The check of every address that a user gives: of an endpoint, a host, a metrics server."""

from __future__ import annotations

import re
from urllib.parse import SplitResult, urlsplit

from inference_benchmarker.redact import redact

PORTS = {"http": 80, "https": 443}


def http_address(url: object) -> SplitResult | None:
    """The parts of an address that begins with http:// or https:// and names a host; None where it is none."""
    if not isinstance(url, str) or re.search(r"[\s\x00-\x1f]", url):
        return None
    try:
        parts = urlsplit(url)
        known = parts.scheme in PORTS and bool(parts.hostname) and parts.port != 0
    except ValueError:  # brackets that do not close, a port that is none
        return None
    return parts if known else None


def url_problem(flag: str, url: str) -> str:
    """The sentence that a user reads of an address that a flag gives and that is none; nothing where it is one."""
    return "" if http_address(url) else f"{flag} must start with http:// or https://, not {redact(url)!r}."
