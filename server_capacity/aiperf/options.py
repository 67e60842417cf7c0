"""The options of a run of aiperf."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from server_capacity.aiperf.arguments import brings_input

if TYPE_CHECKING:
    from collections.abc import Mapping

    from server_capacity.aiperf.arguments import Value
    from server_capacity.aiperf.installation import Installation

API_KEY = "BENCHMARK_API_KEY"
MOST_PAUSE_S = 86_400


@dataclass(frozen=True, slots=True)
class AiperfOptions:
    """The options of its run. ``url`` None: the embedded endpoint's. ``pause_s`` None: until the metrics are back."""

    installation: Installation
    url: str | None
    only: bool
    given: Mapping[str, Value]
    pause_s: float | None

    @property
    def brings_input(self) -> bool:
        """Tells whether its requests are not those of payload_factory."""
        return brings_input(self.given)

    @property
    def stands_alone(self) -> bool:
        """Tells whether no endpoint need be described: there is no wave, and the requests are named."""
        return self.only and self.brings_input
