"""The folder in which every command leaves its own, unless told otherwise."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, cast

from inference_benchmarker.plan.plan import WavePlan

if TYPE_CHECKING:
    from pathlib import Path


OUTPUT_DIR = cast("Path", next(each.default for each in fields(WavePlan) if each.name == "output_dir"))
"""Where commands leave their folders unless told otherwise."""
