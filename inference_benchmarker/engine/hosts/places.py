"""The places of the nodes of a cluster, which somebody who may ask for them leaves in a file for a wave in its pods."""

from __future__ import annotations

import json
import os
import re
from contextlib import suppress
from pathlib import Path

from inference_benchmarker.system.files import read_bytes

PLACES = "POD_PLACES"
"""The variable of a pod that names this file: an object with a place for each node."""

PARTS = ("zone", "instance_type")
_MOST = 1 << 20
_LABEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}", re.ASCII)


def place_of(node: str | None) -> dict[str, str]:
    """The zone and the instance type of a node, as far as they are known."""
    found: object = None
    if node is not None and (path := os.environ.get(PLACES)):
        with suppress(OSError, ValueError, AttributeError):
            found = json.loads(read_bytes(Path(path), _MOST)).get(node)
    place = found if isinstance(found, dict) else {}
    return {part: place[part] for part in PARTS if _is_label(place.get(part))}


def _is_label(value: object) -> bool:
    return isinstance(value, str) and _LABEL.fullmatch(value) is not None
