"""The primary's own host: what the primary does for it, by what the process that started both says of it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from inference_benchmarker.engine.processes.leftovers import end_leftovers

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from inference_benchmarker.facts.client_samples import Sample


@dataclass(frozen=True, slots=True)
class OwnHost:
    """The wave's processes on the machine of the primary: their ``mark``, and the process ids of the workers there.

    The ids come from the process that started the workers. A worker's own word is not asked for: the same number is
    another process where the worker runs on another machine.
    """

    mark: str
    workers: Mapping[int, int]

    def to_json(self) -> dict[str, Any]:
        """The mark, and pairs of a worker and its process id."""
        return {"mark": self.mark, "workers": list(self.workers.items())}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        """The host that ``to_json`` described."""
        return cls(data["mark"], dict(data["workers"]))

    def sample(
        self,
        sleep: Callable[[float], object],
        note: Callable[[list[Sample]], object],
        table: Path | None = None,
    ) -> None:
        """Sample the machine once a second; with a ``table`` also each process, into that file as well."""
        from inference_benchmarker.engine.hosts.sampler import sample_regularly  # for the primary alone

        processes: dict[str, int] = {}
        if table is not None:
            processes = {"primary": os.getpid(), "benchmark": os.getppid()}
            processes |= {f"worker_{number}": process for number, process in self.workers.items()}
        sample_regularly(processes, sleep, note, table)

    def end_leftovers(self) -> None:
        """End what is left of the workers and of what they started, where nobody else is left to do it."""
        end_leftovers(self.mark, self.workers.values(), astray=True)
