"""Units that every clock and every duration of ours is told in."""

from __future__ import annotations

from decimal import Decimal

NS = 1_000_000_000
"""Nanoseconds in a second."""

MAX_SECONDS = 30 * 24 * 3600
"""The longest duration that is accepted: 30 days."""

MIB = 1 << 20
"""Bytes in a mebibyte."""

SECONDS = {"us": Decimal("0.000001"), "ms": Decimal("0.001"), "s": Decimal(1), "m": Decimal(60), "h": Decimal(3600)}
"""Seconds in each unit of time that users may write."""
