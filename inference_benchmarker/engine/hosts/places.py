"""The places of the nodes of a cluster, which somebody who may ask for them leaves in a file for a wave in its pods."""

from __future__ import annotations

import json
import re
from contextlib import suppress

from inference_benchmarker.system.files import read_bytes
from inference_benchmarker.system.followed import PLACES, folder_of_follower

PARTS = ("zone", "instance_type")
_MOST = 1 << 20
_LABEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}", re.ASCII)


def place_of(node: str | None) -> dict[str, str]:
    """The zone and the instance type of a node, as far as they are known."""
    found: object = None
    if node is not None and (folder := folder_of_follower()):
        with suppress(OSError, ValueError, AttributeError):
            found = json.loads(read_bytes(folder / PLACES, _MOST)).get(node)
    place = found if isinstance(found, dict) else {}
    return {part: place[part] for part in PARTS if _is_label(place.get(part))}


def _is_label(value: object) -> bool:
    return isinstance(value, str) and _LABEL.fullmatch(value) is not None
