"""The two functions by which an ``endpoint_factory`` tells what it makes: ``created`` and ``run_tags``.

They do something where a keeper runs the factory; elsewhere, as when the file is tried by hand, they are harmless.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

RUN_TAG = "inference-benchmarker-run"
"""The key of the tag that names the run which a resource was made for."""


class Holder(Protocol):
    """The way to the keeper, in the process in which it runs a factory. ``run`` names the run."""

    run: str

    def hold(self, undo: Any) -> None:
        """Have the keeper write an undo down; it is on disk when this returns. BenchmarkError where it cannot be."""


_holders: list[Holder] = []


def created(undo: Sequence[str] | dict[str, Any]) -> None:
    """Record how to remove what the next statement creates. The record is on disk when this returns.

    ``undo``: a command line as a list of strings, or as ``{"command": [...]}``, run without a shell; or a boto3 call as
    ``{"service": "sagemaker", "operation": "delete_model", "parameters": {...}}``, with a ``"region"`` if it is not the
    configured one. It also runs after the factory's own removal, so a command must not fail if nothing is left; a call
    may find nothing. Raises BenchmarkError if it cannot be recorded; then create nothing.
    """
    if _holders:
        _holders[-1].hold(undo)
    else:
        sys.stderr.write("created(): no keeper runs this endpoint_factory, so its own code alone removes it.\n")


def run_tags() -> list[dict[str, str]]:
    """The tags for an AWS resource, as ``[{"Key": ..., "Value": run}]``; none if no keeper runs."""
    return [{"Key": RUN_TAG, "Value": _holders[-1].run}] if _holders else []


def use_holder(holder: Holder) -> None:
    """Have both functions speak to a keeper from now on."""
    _holders.append(holder)
