"""Colours of what a terminal shows. Every mark can be read without them, and nobody gets any who asked for none."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import TextIO

CODES = {
    "bold": "1",
    "dim": "2",
    "cyan": "36",
    "good": "1;32",
    "alarm": "1;33",
    "bad": "1;31",
    "yellow": "33",
    "green": "32",
    "red": "31",
}
_RULES = (
    (re.compile(r"^INVALID\b", re.MULTILINE), "bad"),
    (re.compile(r"^FAILED\b(?=[:,]| \()", re.MULTILINE), "bad"),
    (re.compile(r"^(?:PENDING|UNDECIDED|LIMIT MISSED)\b(?=[:,]| \()", re.MULTILINE), "alarm"),
    (re.compile(r"^VALID\b(?=[^\n]*\b(?:missed|failed|limited)\b)", re.MULTILINE), "alarm"),
    (re.compile(r"^VALID\b", re.MULTILINE), "good"),
    (re.compile(r"^PASSED\b(?=:|;| \()", re.MULTILINE), "good"),
    (re.compile(r"(?<=[-% ] )worse$", re.MULTILINE), "red"),
    (re.compile(r"(?<=[-% ] )improved$", re.MULTILINE), "green"),
    (re.compile(r"(?<=[-% ] )cannot tell$", re.MULTILINE), "yellow"),
    (re.compile(r"✓ passed"), "green"),
    (re.compile(r"✗ failed"), "red"),
    (re.compile(r"^   ✗(?= )", re.MULTILINE), "red"),
    (re.compile(r"^   ⚠\ufe0f? CLIENT BOTTLENECK", re.MULTILINE), "alarm"),
)


def wanted(stream: TextIO) -> bool:
    """Tells whether colours are shown: on a terminal that has some, unless the user wants none (NO_COLOR)."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def painted(text: str, colour: str) -> str:
    """The text in a colour."""
    return f"\x1b[{CODES[colour]}m{text}\x1b[0m" if text else ""


def coloured(report: str) -> str:
    """A report with its verdicts and marks in colours."""
    for pattern, colour in _RULES:
        report = pattern.sub(painted(r"\g<0>", colour), report)
    return report
