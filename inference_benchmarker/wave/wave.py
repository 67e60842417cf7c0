"""A finished wave, as users have it in Python: it can be loaded from its run directory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from inference_benchmarker.wave.finished import FinishedWave

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True, repr=False)
class Wave(FinishedWave):
    """A finished wave: its plan, window, records and ledger. Its numbers are computed once, when first used.

    ``run_dir``: where it is stored; None if it could not be stored anywhere.
    """

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Load a run directory; an interrupted run is finalised first. BenchmarkError if it is not one."""
        from inference_benchmarker.wave.loading import load  # with pyarrow, which a wave without files does without

        return load(path, cls)
