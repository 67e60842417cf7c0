"""The folder of a pod in which its wave, and whoever follows that from elsewhere, leave things for each other."""

from __future__ import annotations

import os
from pathlib import Path

FOLLOWED = "POD_FOLLOWED"
"""The variable of the pod that names the folder."""

PLACES = "places"
"""The file with the places of the nodes: an object with one for each node."""

SCREEN = "screen"
"""The file with the lines of the wave's panel, in pieces of a text and its colour; an empty list: none is shown."""

COLUMNS = "columns"
"""The file with the width of the terminal on which the panel is shown; there is none before somebody has one."""

KEYS = "keys"
"""The file with the keys that were pressed there; it is touched as long as somebody can press some."""


def folder_of_follower() -> Path | None:
    """The folder; None where this is no pod of a wave."""
    path = os.environ.get(FOLLOWED)
    return Path(path) if path else None
