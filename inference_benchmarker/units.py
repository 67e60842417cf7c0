"""Units that every clock and every duration of ours is told in."""

NS = 1_000_000_000
"""Nanoseconds in a second."""

MAX_SECONDS = 30 * 24 * 3600
"""The longest duration that is accepted: 30 days."""

MIB = 1 << 20
"""Bytes in a mebibyte."""
