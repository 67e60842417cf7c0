"""Exit codes beside those of a verdict."""

from __future__ import annotations

FAILED = NOTHING_FOUND = 1
BAD_INPUT, BROKEN, INTERRUPTED = 2, 3, 130
