"""The messages of an agent, as the command takes them: a host that sends anything else is lost.

A host may be broken or hostile. What is taken from it becomes an argument of ssh, a number of the report or a part of
a sentence, so each part of a message is of its type and within its bounds, or the whole of it is refused.
"""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import msgspec

from inference_benchmarker.engine.hosts.protocol import NODE_NAME

_Count = Annotated[int, msgspec.Meta(ge=0, le=1 << 53)]
_Instant = Annotated[int, msgspec.Meta(ge=-(1 << 62), le=1 << 62)]
_Cores = Annotated[int, msgspec.Meta(ge=1, le=1 << 16)]
# Neither ":" nor "${NAME}", which ssh reads in the path of a socket; see ``place_of_sockets``.
_Folder = Annotated[str, msgspec.Meta(pattern=r"\A/[A-Za-z0-9_./+-]{1,90}\Z")]
_Node = Annotated[str, msgspec.Meta(pattern=rf"\A{NODE_NAME}\Z")]
_Version = Annotated[str, msgspec.Meta(pattern=r"\A[A-Za-z0-9_.+-]{1,40}\Z")]


# A counter of the kernel's may go back: the difference of two is less than nothing then.
_Amount = Annotated[float, msgspec.Meta(ge=-1e12, le=1e12)]
_Difference = Annotated[int, msgspec.Meta(ge=-(1 << 53), le=1 << 53)]


class _Constants(msgspec.Struct, forbid_unknown_fields=True):
    """The facts that ``sampler.host_constants`` tells."""

    cores: _Cores
    memory_total_bytes: Annotated[int, msgspec.Meta(ge=1, le=1 << 53)]
    ephemeral_ports: Annotated[int, msgspec.Meta(ge=0, le=1 << 16)] | None


class _Sample(NamedTuple):
    """A ``client_samples.Sample`` within bounds: the spool takes no other number."""

    unix_s: _Amount
    process: str
    cpu_percent: _Amount
    memory_bytes: _Count
    network_sent_bytes: _Difference | None = None
    network_received_bytes: _Difference | None = None
    steal_percent: _Amount | None = None
    memory_available_bytes: _Count | None = None
    time_wait: _Count | None = None
    throttled_s: _Amount | None = None


class _Hello(msgspec.Struct, tag_field="say", tag="hello"):
    versions: dict[str, _Version]
    variables: list[str]
    cores: _Cores
    open_files: _Count
    constants: _Constants
    folder: _Folder = ""
    node: _Node | None = None
    failed: str | None = None

    def __post_init__(self) -> None:
        if "benchmark" not in self.versions or (self.failed is None and not self.folder):
            raise ValueError("a part of it is missing")


class _Ready(msgspec.Struct, tag_field="say", tag="ready"):
    pass


class _Stored(msgspec.Struct, tag_field="say", tag="stored"):
    pass


class _Closed(msgspec.Struct, tag_field="say", tag="closed"):
    pass


class _Failed(msgspec.Struct, tag_field="say", tag="failed"):
    reason: str


class _Clock(msgspec.Struct, tag_field="say", tag="clock"):
    asked: _Instant
    heard: _Instant
    answered: _Instant
    raw: _Instant

    def __post_init__(self) -> None:
        if self.answered < self.heard:
            raise ValueError("it was answered before it was heard")


class _Memory(msgspec.Struct, tag_field="say", tag="memory"):
    left: _Instant | None  # less than none where a group holds more than it may
    workers: dict[str, _Count]


class _Log(msgspec.Struct, tag_field="say", tag="log"):
    worker: _Count
    data: bytes


class _Samples(msgspec.Struct, tag_field="say", tag="samples"):
    samples: list[_Sample]


class _Ended(msgspec.Struct, tag_field="say", tag="ended"):
    workers: list[_Count]


class _Finished(msgspec.Struct, tag_field="say", tag="finished"):
    left_behind: list[str]


_Said = _Hello | _Ready | _Stored | _Closed | _Failed | _Clock | _Memory | _Log | _Samples | _Ended | _Finished


def is_said(message: dict[str, Any]) -> bool:
    """Tells whether an agent of this version says such a message; it may hold any JSON. Pure."""
    try:
        msgspec.convert(message, _Said)
    except (ValueError, OverflowError, RecursionError):  # msgspec's own error is a ValueError
        return False
    return True
