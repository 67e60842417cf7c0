"""Keeps secrets out of files: what looks like a credential is replaced before a text is written."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

HIDDEN = "[hidden]"
_SECRET_NAME = re.compile(r"(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL)|_PASS$", re.IGNORECASE)
_PATTERNS = (
    (re.compile(r"(?P<keep>\b[a-z][a-z0-9+.-]*://)[^/\s?#\"']*@", re.IGNORECASE), r"\g<keep>" + HIDDEN + "@"),
    (
        re.compile(r"(?P<keep>\b(?:Bearer|Basic)\s+)[A-Za-z0-9._~+/=-]{6,}", re.IGNORECASE),
        r"\g<keep>" + HIDDEN,
    ),
    (
        re.compile(
            r"(?P<keep>(?:api[-_]?key|access[-_]?key|secret|token|password|passwd|signature)[\"']?\s*[=:]\s*[\"']?)"
            r"[^\s\"'&,;]{4,}",
            re.IGNORECASE,
        ),
        r"\g<keep>" + HIDDEN,
    ),
    (re.compile(r"\b(?:AKIA|ASIA)[A-Z0-9]{12,}\b"), HIDDEN),
    (re.compile(r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+"), HIDDEN),
    (re.compile(r"\b(?:sk|hf|ghp|gho|xox[bap])[-_][A-Za-z0-9_-]{16,}"), HIDDEN),
)


def redact(text: str, secrets: Iterable[str] = ()) -> str:
    """The text with credentials replaced: by their form, and each given secret wherever it stands."""
    text = without(text, secrets)
    for pattern, replacement in _PATTERNS:
        text = pattern.sub(replacement, text)
    return text


def without(text: str, secrets: Iterable[str]) -> str:
    """The text with each given secret replaced: what is data must keep what only looks like one."""
    for secret in secrets:
        text = text.replace(secret, HIDDEN)
    return text


def secret_values(environment: Mapping[str, str]) -> list[str]:
    """Values of environment variables whose names say secret, longest first so that no part of one is left."""
    values = {value for name, value in environment.items() if _SECRET_NAME.search(name) and len(value) >= 8}
    return sorted(values, key=len, reverse=True)
