"""What a reader of a wave's numbers must know. Pure."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Literal

Severity = Literal["invalid", "missed", "warning"]


@dataclass(frozen=True, slots=True)
class Finding:
    """Something a reader of the numbers must know: what was measured, against which limit, and what to do."""

    code: str
    severity: Severity
    measured: str
    limit: str
    advice: str

    def to_json(self) -> dict[str, str]:
        """The finding as strings."""
        return asdict(self)
