"""The keys of hosts that connect by themselves: a file for each of them, and one for the host of the command.

Each host has a key pair of its own (CURVE's), and knows the public key of the command's host; that one knows theirs.
The keys of the workers are others, made anew for each wave.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, TypeVar

import msgspec

from inference_benchmarker.engine.locust.zmq_keys import KeyPair, PrimaryKeys, WorkerKeys, make_keys
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.system.given import read_given

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

_LONGEST_FILE = 1 << 20
_MADE_BY = "`benchmark hosts keys` makes such files."

_Kind = TypeVar("_Kind")
_Key = Annotated[str, msgspec.Meta(pattern=r"\A[0-9a-zA-Z.\-:+=^!/*?&<>()\[\]{}@%$#]{40}\Z")]
"""A key in ZeroMQ's text form."""


class _Own(msgspec.Struct, forbid_unknown_fields=True):
    public: _Key
    secret: _Key


class _OfHost(msgspec.Struct, forbid_unknown_fields=True):
    """The file of a host."""

    own: _Own
    primary: _Key


class _OfCommand(msgspec.Struct, forbid_unknown_fields=True):
    """The file of the command's host: the public key of each host, by its name."""

    own: _Own
    hosts: dict[str, _Key]


@dataclass(frozen=True, slots=True)
class Gatekeeper:
    """The keys of the command's host. ``names``: whose key each of its ``keys`` is, in the same order."""

    names: tuple[str, ...]
    keys: PrimaryKeys


def make_host_keys(names: Sequence[str], command: str) -> Mapping[str, bytes]:
    """The content of each file by its name, HOST.json; ``command`` is the host of the command."""
    primary, own = make_keys(len(names))
    of_command = _OfCommand(_own(primary.own), dict(zip(names, primary.workers, strict=True)))
    of_hosts = {name: _OfHost(_own(keys.own), keys.primary) for name, keys in zip(names, own, strict=True)}
    return {f"{name}.json": msgspec.json.encode(keys) for name, keys in {command: of_command, **of_hosts}.items()}


def write_host_keys(
    folder: Path, names: Sequence[str], command: str, beside: Mapping[str, bytes] = MappingProxyType({})
) -> None:
    """Write the files, and others beside them, into a new folder, which only its owner may read.

    BenchmarkError where it cannot be made.
    """
    try:
        folder.mkdir(mode=0o700)
        for name, content in {**make_host_keys(names, command), **beside}.items():
            (folder / name).touch(mode=0o600, exist_ok=False)
            (folder / name).write_bytes(content)
    except OSError as error:
        raise BenchmarkError(
            f"--keys-dir {folder}: cannot be made ({error.strerror}).", "Name a new folder; keys are never replaced."
        ) from None


def read_gatekeeper(path: Path, names: Sequence[str]) -> Gatekeeper:
    """The keys of the command's host, for all hosts of the file. BenchmarkError where it lacks one of these hosts."""
    found = _read(path, _OfCommand, "the keys of the host that runs the command")
    if missing := [name for name in names if name not in found.hosts]:
        raise BenchmarkError(f"--host-keys {path}: it has no key of {', '.join(missing)}.", _MADE_BY)
    pair = KeyPair(found.own.public, found.own.secret)
    return Gatekeeper(tuple(found.hosts), PrimaryKeys(pair, tuple(found.hosts.values())))


def read_keys_of_host(path: Path) -> WorkerKeys:
    """The keys of a host that connects. BenchmarkError where it is no such file."""
    found = _read(path, _OfHost, "the keys of a host that joins")
    return WorkerKeys(KeyPair(found.own.public, found.own.secret), found.primary)


def _own(pair: KeyPair) -> _Own:
    return _Own(pair.public, pair.secret)


def _read(path: Path, kind: type[_Kind], what: str) -> _Kind:
    try:
        return msgspec.json.decode(read_given(path, _LONGEST_FILE), type=kind)
    except OSError as error:
        raise BenchmarkError(f"--host-keys {path}: cannot be read ({error.strerror}).", _MADE_BY) from None
    except ValueError:  # msgspec's own error, too, which would show the keys
        raise BenchmarkError(f"--host-keys {path}: it does not hold {what}.", _MADE_BY) from None
