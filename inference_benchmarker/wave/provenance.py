"""The results that another one is built on: it stores the digest of each, which lies in a folder below its own.

Waves that the search of a tier took from those before it lie in theirs, beside its own: ``../gold/WAVE``.

A wave's digest is of its plan and its requests, which nothing changes once they are stored; its server metrics may be
asked for again.
"""

from __future__ import annotations

from os.path import realpath
from typing import TYPE_CHECKING, Any

from inference_benchmarker.data.digest import KEY as DIGEST
from inference_benchmarker.data.digest import digest_of, require_digest
from inference_benchmarker.data.json_file import read_json
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.system.files import is_file, is_folder
from inference_benchmarker.wave.files.identity import require_unchanged
from inference_benchmarker.wave.run_dir import RunDir
from inference_benchmarker.words.redact import quoted
from inference_benchmarker.words.wording import pluralize

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

KEY = "built_on"
WITHOUT = "was stored by an earlier version, without digests of what it is built on: that may have been replaced"
_SEARCH = "capacity.json"


def built_on(folder: Path, below: Iterable[Path]) -> dict[str, str]:
    """The digest of each of the folders ``below`` that holds a wave or a search, by its path from ``folder``."""
    found = ((str(each.relative_to(folder)), _digest_in(each)) for each in sorted(below) if is_folder(each))
    return {name: digest for name, digest in found if digest is not None}


def require_built_on(folder: Path, data: Mapping[str, Any]) -> None:
    """Check what is still there of it against the digests that were stored; ValueError where one is another.

    A result of an earlier version has none: what lies below is checked against its own digests alone.
    """
    for child, digest in _children(folder, data):
        if not is_folder(child):
            continue
        if digest is not None and _digest_in(child) != digest:
            raise ValueError(f"{child.name} does not match its digest: it was changed, or is another result")
        _require_unchanged(child)


def not_checked(folder: Path, data: Mapping[str, Any]) -> str:
    """Clauses on the results that it is built on and that are gone, or may be others; empty where all were checked."""
    children = list({realpath(child): child for child in _all_below(folder, data)}.values())  # tiers share waves
    gone = sum(not is_folder(child) for child in children)
    clauses = []
    if gone:
        are = "is" if gone == 1 else "are"
        number = pluralize(len(children), "result", "results")
        clauses.append(f"{gone} of the {number} that it is built on {are} missing, and cannot be checked")
    if gone < len(children) and KEY not in data:
        clauses.append(WITHOUT)
    return "; ".join(clauses)


def _children(folder: Path, data: Mapping[str, Any]) -> Iterator[tuple[Path, str | None]]:
    """The folders of what it is built on, each with its digest; None where an earlier version stored none."""
    below: Mapping[str, str | None] = data.get(KEY) or dict.fromkeys(_named(data))
    for name, digest in below.items():
        if not _is_reached(name.split("/")):
            raise ValueError(f"{quoted(name, 40)} is not a folder below this one")
        yield folder / name, digest


def _is_reached(parts: list[str]) -> bool:
    """Tells whether it lies below the folder of what is built on it, or in one beside that."""
    inside = parts[1:] if parts[0] == ".." and len(parts) == 3 else parts
    return all(part not in ("", ".", "..") for part in inside)


def _named(data: Mapping[str, Any]) -> Iterator[str]:
    """The waves of a search, a proof or A and B, and the searches of a ranking, as it names them."""
    waves = data.get("waves") or ()
    if isinstance(waves, dict):
        yield from (str(name) for names in waves.values() for name in names)
    else:
        yield from (str(each["run"]) for each in waves)
    if data.get("directory"):
        yield str(data["directory"])
    yield from (str(row["capacity"]) for row in data.get("rows") or () if row.get("capacity"))


def _all_below(folder: Path, data: Mapping[str, Any]) -> Iterator[Path]:
    """The folders of what it is built on, and of what those are built on."""
    for child, _ in _children(folder, data):
        yield child
        if is_file(child / _SEARCH):
            yield from _all_below(child, read_json(child / _SEARCH, inside=folder))


def _digest_in(folder: Path) -> str | None:
    """The digest of the wave or the search in a folder as stored; None where there is none, or was stored without."""
    if is_file(folder / _SEARCH):
        return read_json(folder / _SEARCH, inside=folder.parent).get(DIGEST)
    files = _lasting_files(folder)
    return digest_of(files) if files else None


def _lasting_files(folder: Path) -> dict[str, str]:
    """The digests, by name, of a wave's files that nothing changes; empty where no wave is, or was stored without."""
    run_dir = RunDir(folder)
    if not is_file(run_dir.summary):
        return {}
    digests = read_json(run_dir.summary, inside=folder.parent).get("files") or {}
    return {
        path.name: digests[path.name]
        for path in (run_dir.plan, run_dir.requests, run_dir.counts)
        if path.name in digests
    }


def _require_unchanged(folder: Path) -> None:
    """Check a search against its digest and what it is built on, or the files of a wave against their digests."""
    if is_file(folder / _SEARCH):
        require_built_on(folder, _undamaged(folder / _SEARCH, "search"))
        return
    digests = _lasting_files(folder)
    if digests:  # asked for the server's metrics again, a wave writes its summary with a new digest
        _undamaged(RunDir(folder).summary, "wave")
    for name in digests:
        if not is_file(folder / name):
            raise ValueError(f"{folder.name} has lost its {name}")
        try:
            require_unchanged(folder / name, digests)
        except BenchmarkError:
            raise ValueError(f"{folder.name}/{name} was changed after the wave was stored") from None
        except OSError as error:
            raise ValueError(f"{folder.name}/{name} cannot be read ({error.strerror or error})") from None


def _undamaged(file: Path, kind: str) -> dict[str, Any]:
    """The content of a file that has its own digest; ValueError where it is another's."""
    fields = read_json(file, inside=file.parent.parent)
    name = f"{file.parent.name}/{file.name}"
    try:
        has_digest = require_digest(fields)
    except ValueError:
        raise ValueError(f"{name} was changed after the {kind} was stored") from None
    if not has_digest and (fields.get("files") or fields.get(KEY)):
        raise ValueError(f"{name} has digests of other files but none of its own")
    return fields
