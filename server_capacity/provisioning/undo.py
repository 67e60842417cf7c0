"""An undo: a boto3 call, a command line or the end of processes, as JSON and as a line to be pasted. Pure."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import asdict, dataclass
from typing import Any

from inference_benchmarker.words.text import one_line

MARK = "BENCHMARK_MADE"
"""The variable by which the processes that an endpoint_factory starts are recognised."""

PUTTING_BACK = {
    ("application-autoscaling", "register_scalable_target"): frozenset(
        ("ServiceNamespace", "ResourceId", "ScalableDimension", "SuspendedState")
    ),
}
"""The calls that put back a setting, with the parameters that this tool gives them."""

REMOVING = re.compile(
    r"(batch_delete|cancel|delete|deregister|detach|disable|disassociate|release|remove|stop|terminate|untag)_[a-z0-9_]+"
)
"""The operations that take away what somebody made. No other call is made from a file."""

_REGION, _SERVICE, _MARK = (re.compile(form) for form in (r"[a-z0-9-]{1,40}", r"[a-z0-9-]{1,60}", r"[0-9a-f]{16}"))
_ADDRESS = re.compile(r"https?://[A-Za-z0-9.:\[\]/_~%-]{1,300}")  # without a user's name, so without a password


@dataclass(frozen=True, slots=True)
class Call:
    """A call of boto3: ``operation`` is the name of a client's method.

    ``endpoint_url``: the address of the service at which the thing was made; None where nobody knows it yet.
    """

    service: str
    operation: str
    parameters: dict[str, Any]
    region: str
    endpoint_url: str | None = None

    @property
    def removes(self) -> bool:
        """Tells whether it takes something away, rather than to put a setting back."""
        return (self.service, self.operation) not in PUTTING_BACK

    def to_json(self) -> dict[str, Any]:
        """As it stands in a file."""
        return asdict(self)

    @property
    def by_hand(self) -> str:
        """The same for the AWS CLI."""
        parameters = json.dumps(self.parameters, separators=(",", ":"))
        operation = self.operation.replace("_", "-")
        address = [] if self.endpoint_url is None else ["--endpoint-url", self.endpoint_url]
        place = ["--region", self.region, *address]
        return shlex.join(["aws", self.service, operation, *place, "--cli-input-json", parameters])


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


@dataclass(frozen=True, slots=True)
class Processes:
    """The end of all processes that carry a mark, a random text, in the variable ``MARK`` of their environment."""

    mark: str

    def to_json(self) -> dict[str, Any]:
        """As it stands in a file."""
        return {"processes": self.mark}

    @property
    def by_hand(self) -> str:
        """The same for a shell; the brackets keep awk from finding itself."""
        found = f"ps axeww -o pid= -o args= | awk '/[{MARK[0]}]{MARK[1:]}={self.mark}/{{print $1}}'"
        return f"kill -9 $({found})"


Undo = Call | CommandLine | Processes


def undo_of(data: Any) -> Undo:
    """The undo of its JSON; ValueError for what this tool does not write."""
    if not isinstance(data, dict):
        raise ValueError(f"an undo is an object, not {type(data).__name__}")
    if set(data) == {"processes"}:
        return _processes(data["processes"])
    return _command_line(data["command"]) if set(data) == {"command"} else _call(data)


def undo_given(given: Any, region: str | None) -> Undo:
    """The undo that a user's code reports, as ``created`` takes it; ``region``: where a call names none.

    ValueError for what is none, and tells what was given and what was expected.
    """
    if isinstance(given, dict) and "command" in given:
        if unknown := set(given) - {"command"}:
            raise ValueError(f"a command has no {', '.join(sorted(map(str, unknown)))}")
        return _command_given(given["command"])
    if isinstance(given, dict) and set(given) & _OF_A_CALL:
        return _call_given(given, region)
    return _command_given(given)


_NEEDED = {"service", "operation", "parameters"}
_OF_A_CALL = _NEEDED | {"region", "endpoint_url"}
_EXPECTED = (
    'expected is a command as a list of texts, ["PROGRAM", "ARGUMENT"] or {"command": ["PROGRAM", "ARGUMENT"]}, or a '
    'call of boto3, {"service": ..., "operation": ..., "parameters": {...}}'
)


def _call_given(given: dict[str, Any], region: str | None) -> Call:
    if missing := _NEEDED - set(given):
        raise ValueError(
            f"a call of boto3 has service, operation and parameters; missing: {', '.join(sorted(missing))}"
        )
    if unknown := set(given) - _OF_A_CALL:
        raise ValueError(f"a call of boto3 has no {', '.join(sorted(map(str, unknown)))}")
    if "region" not in given and region is None:
        raise ValueError("it names no region, and AWS_DEFAULT_REGION is not set")
    return _call({"region": region, **given})


def _command_given(given: Any) -> CommandLine:
    text = one_line(repr(given), 100)
    if isinstance(given, str):
        raise ValueError(f"it was given {text}; {_EXPECTED}; write {given.split()!r}")
    if not isinstance(given, list):
        raise ValueError(f"it was given {text}; {_EXPECTED}")
    try:
        return _command_line(given)
    except ValueError as error:
        raise ValueError(f"{error}, without NUL; it was given {text}") from None


def _processes(mark: Any) -> Processes:
    if not isinstance(mark, str) or not _MARK.fullmatch(mark):
        raise ValueError("a mark has 16 hexadecimal digits")
    return Processes(mark)


def _command_line(arguments: Any) -> CommandLine:
    if not isinstance(arguments, list) or not arguments or not all(_is_argument(each) for each in arguments):
        raise ValueError("a command is a list of one text or more")
    return CommandLine(tuple(arguments))


def _is_argument(value: Any) -> bool:
    return isinstance(value, str) and "\0" not in value


def _call(data: dict[str, Any]) -> Call:
    call = Call(**data)
    named = (call.service, call.operation, call.region)
    if not all(isinstance(each, str) for each in named) or not isinstance(call.parameters, dict):
        raise ValueError("a call has a service, an operation, parameters and a region")
    if not _SERVICE.fullmatch(call.service) or not (_puts_back(call) or REMOVING.fullmatch(call.operation)):
        raise ValueError(f"{call.service} {call.operation} with {', '.join(call.parameters)} is not a call that undoes")
    if not _REGION.fullmatch(call.region):
        raise ValueError(f"{call.region!r} is no region")
    if call.endpoint_url is not None and not _is_address(call.endpoint_url):
        raise ValueError("an endpoint_url is http://HOST:PORT or https://HOST:PORT")
    return call


def _is_address(value: Any) -> bool:
    return isinstance(value, str) and _ADDRESS.fullmatch(value) is not None


def _puts_back(call: Call) -> bool:
    return PUTTING_BACK.get((call.service, call.operation)) == frozenset(call.parameters)
