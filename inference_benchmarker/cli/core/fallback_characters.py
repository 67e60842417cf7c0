"""A sign that an encoding does not have is written as one that is like it, and as wide. Pure."""

from __future__ import annotations

import codecs

LIKENESS = "likeness"
"""The name under which encoding finds this: ``text.encode("ascii", LIKENESS)``."""
_LIKE = {
    **dict(zip("▁▂▃▄▅▆▇█", "_.,:;+*#", strict=True)),
    **dict.fromkeys("–—─", "-"),
    "━": "=",
    **dict.fromkeys("‘’", "'"),
    **dict.fromkeys("“”", '"'),
    "✓": "+",
    "✗": "x",
    "⚠": "!",
    "\ufe0f": "",
    "→": ">",
    "≥": ">",
    "≤": "<",
    "±": "~",
    "×": "x",
    "…": "~",
    "µ": "u",
    "\u00a0": " ",
}


def _alike(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    signs = error.object[error.start : error.end]
    return "".join(_LIKE.get(sign, "?") for sign in signs), error.end


codecs.register_error(LIKENESS, _alike)
