"""Units of every clock and every duration here."""

from __future__ import annotations

from decimal import Decimal

NS = 1_000_000_000
"""Nanoseconds in a second."""

MAX_SECONDS = 30 * 24 * 3600
"""The longest duration that is accepted: 30 days."""

MIB = 1 << 20
"""Bytes in a mebibyte."""

BYTES = {"B": 1, "kB": 1000, "MB": 1000**2, "GB": 1000**3, "KiB": 1 << 10, "MiB": MIB, "GiB": 1 << 30}
"""Bytes in each unit of size that users may write."""

SECONDS = {"us": Decimal("0.000001"), "ms": Decimal("0.001"), "s": Decimal(1), "m": Decimal(60), "h": Decimal(3600)}
"""Seconds in each unit of time that users may write."""
