"""The one error of the laboratory."""

from __future__ import annotations


class LabError(Exception):
    """Hosts cannot be made here; says why, in one line."""
