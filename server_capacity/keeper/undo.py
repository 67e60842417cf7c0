"""An undo: a boto3 call or a command line, as JSON and as a line to be pasted. Pure."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import asdict, dataclass
from typing import Any

CALLS = {
    ("application-autoscaling", "register_scalable_target"): frozenset(
        ("ServiceNamespace", "ResourceId", "ScalableDimension", "SuspendedState")
    ),
}
"""The calls that this tool writes down, with the parameters that it gives them. No other is made from a file."""

_REGION = re.compile(r"[a-z0-9-]{1,40}")


@dataclass(frozen=True, slots=True)
class Call:
    """A call of boto3: ``operation`` is the name of a client's method."""

    service: str
    operation: str
    parameters: dict[str, Any]
    region: str

    def to_json(self) -> dict[str, Any]:
        """As it stands in a file."""
        return asdict(self)

    @property
    def by_hand(self) -> str:
        """The same for the AWS CLI."""
        parameters = json.dumps(self.parameters, separators=(",", ":"))
        operation = self.operation.replace("_", "-")
        return shlex.join(["aws", self.service, operation, "--region", self.region, "--cli-input-json", parameters])


@dataclass(frozen=True, slots=True)
class CommandLine:
    """A program with its arguments, run without a shell."""

    arguments: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """As it stands in a file."""
        return {"command": list(self.arguments)}

    @property
    def by_hand(self) -> str:
        """The same for a shell."""
        return shlex.join(self.arguments)


Undo = Call | CommandLine


def undo_of(data: Any) -> Undo:
    """The undo of its JSON; ValueError for what this tool does not write."""
    if not isinstance(data, dict):
        raise ValueError(f"an undo is an object, not {type(data).__name__}")
    return _command_line(data["command"]) if set(data) == {"command"} else _call(data)


def _command_line(arguments: Any) -> CommandLine:
    if not isinstance(arguments, list) or not arguments or not all(_is_argument(each) for each in arguments):
        raise ValueError("a command is a list of texts")
    return CommandLine(tuple(arguments))


def _is_argument(value: Any) -> bool:
    return isinstance(value, str) and "\0" not in value


def _call(data: dict[str, Any]) -> Call:
    call = Call(**data)
    named = (call.service, call.operation, call.region)
    if not all(isinstance(each, str) for each in named) or not isinstance(call.parameters, dict):
        raise ValueError("a call has a service, an operation, parameters and a region")
    if (call.service, call.operation) not in CALLS or set(call.parameters) != CALLS[call.service, call.operation]:
        raise ValueError(f"{call.service} {call.operation} with {', '.join(call.parameters)} is no call of this tool")
    if not _REGION.fullmatch(call.region):
        raise ValueError(f"{call.region!r} is no region")
    return call
