"""The orders of a command to its keeper, and the job that a keeper gives to the process of an endpoint_factory. Pure.

Each is a JSON object in a line. ValueError for what this tool does not write.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from inference_benchmarker.data.decoded import decoded
from server_capacity.provisioning.undo import undo_of

if TYPE_CHECKING:
    from server_capacity.provisioning.undo import Undo


@dataclass(frozen=True, slots=True)
class ChangeOrder:
    """Make ``change`` of ``what``, once its ``undo`` is on disk. ``account``: of AWS; None: not known."""

    what: str
    change: Undo
    undo: Undo
    account: str | None

    def to_json(self) -> dict[str, Any]:
        """As it stands in a line."""
        undos = {"change": self.change.to_json(), "undo": self.undo.to_json()}
        return {"what": self.what, **undos, "account": self.account}

    @classmethod
    def of(cls, data: dict[str, Any]) -> Self:
        """The order of its line."""
        return cls(data["what"], undo_of(data["change"]), undo_of(data["undo"]), data["account"])


@dataclass(frozen=True, slots=True)
class EndpointOrder:
    """Have the endpoint_factory of a file make an endpoint.

    ``run``: the name that ``run_tags`` gives its resources. ``settings``: texts in place of the file's constants.
    """

    factories_file: str
    arguments: dict[str, Any]
    run: str
    settings: dict[str, str]


@dataclass(frozen=True, slots=True)
class Job:
    """An order with what the factory's process takes over where its keeper is killed.

    ``folder``: that of the cleanup file, whose ``lock`` is a descriptor. ``mark``: of the processes that it starts.
    """

    order: EndpointOrder
    folder: str
    lock: int
    mark: str


def order_of(data: dict[str, Any]) -> ChangeOrder | EndpointOrder:
    """The order of its line."""
    return ChangeOrder.of(data) if "change" in data else decoded(data, EndpointOrder)
