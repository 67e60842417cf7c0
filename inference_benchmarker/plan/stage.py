"""Stages, as users write them: ``50:30s, 50..400:2m, spike=2000:10s, 400..0:30s``. Pure."""

from __future__ import annotations
