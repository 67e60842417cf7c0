"""The digest of a JSON object: it finds damage to a stored result, not forgers, who can compute it as well. Pure."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

KEY = "digest"
WITHOUT = "was stored without a digest, by an earlier version: damage to it may go unnoticed"


def digest_of(data: Mapping[str, Any]) -> str:
    """The SHA-256, in hex, of the object's canonical JSON without its own digest; ValueError for what is no JSON."""
    content = {key: value for key, value in data.items() if key != KEY}
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def require_digest(data: Mapping[str, Any]) -> bool:
    """Tells whether the object has a digest; ValueError where that is not the one of its content."""
    if KEY not in data:
        return False
    if data[KEY] != digest_of(data):
        raise ValueError("its content does not match its digest: it was changed after it was stored")
    return True
