"""All objects of the cluster, in memory, with the versions that watches follow."""

from __future__ import annotations

import copy
import threading
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from tests.kube.errors import ApiError, not_found

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Object = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Key:
    """The place of an object: the plural of its kind, its namespace (empty: it has none) and its name."""

    resource: str
    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class Change:
    """One step in the life of an object: ``kind`` is ADDED, MODIFIED or DELETED."""

    version: int
    kind: str
    key: Key
    found: Object


def now() -> str:
    """The time, as Kubernetes writes it."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class Store:
    """Objects by their keys. What it hands over is never changed: a change makes a new object."""

    def __init__(self) -> None:
        self._objects: dict[Key, Object] = {}
        self._changes: list[Change] = []
        self._version = 1
        self.changed = threading.Condition(threading.RLock())

    @property
    def version(self) -> int:
        """Of the last change."""
        return self._version

    def create(self, resource: str, wanted: Object) -> Object:
        """Keep a new object. ApiError where there is one of this name."""
        with self.changed:
            made = copy.deepcopy(wanted)
            metadata = made["metadata"]
            key = Key(resource, metadata.get("namespace", ""), metadata["name"])
            if key in self._objects:
                message = f'{resource} "{key.name}" already exists'
                raise ApiError(409, "AlreadyExists", message, name=key.name, kind=resource)
            metadata["uid"], metadata["creationTimestamp"] = str(uuid.uuid4()), now()
            return self._keep("ADDED", key, made)

    def get(self, key: Key) -> Object:
        """An object. ApiError where there is none."""
        with self.changed:
            found = self.find(key)
        if found is None:
            raise not_found(key.resource, key.name)
        return found

    def find(self, key: Key) -> Object | None:
        """An object, or None."""
        with self.changed:
            return self._objects.get(key)

    def of_kind(self, resource: str, namespace: str = "") -> list[Object]:
        """The objects of a kind, of a namespace or of all, by age."""
        with self.changed:
            return [
                found
                for key, found in self._objects.items()
                if key.resource == resource and namespace in ("", key.namespace)
            ]

    def items(self) -> list[tuple[Key, Object]]:
        """All there is."""
        with self.changed:
            return list(self._objects.items())

    def update(self, key: Key, change: Callable[[Object], object]) -> Object:
        """Change an object by a function that is given a copy. ApiError where there is none."""
        with self.changed:
            before = self.get(key)
            after = copy.deepcopy(before)
            change(after)
            if after == before:
                return before
            return self._keep("MODIFIED", key, after)

    def remove(self, key: Key) -> None:
        """Forget an object, if there is one."""
        with self.changed:
            found = self._objects.get(key)
            if found is not None:
                gone = copy.deepcopy(found)
                self._keep("DELETED", key, gone)
                del self._objects[key]

    def since(self, version: int) -> list[Change]:
        """What has changed after a version."""
        with self.changed:
            return [*self._after(version)][::-1]

    def _after(self, version: int) -> Iterator[Change]:
        for change in reversed(self._changes):
            if change.version <= version:
                return
            yield change

    def _keep(self, kind: str, key: Key, found: Object) -> Object:
        self._version += 1
        found["metadata"]["resourceVersion"] = str(self._version)
        self._objects[key] = found
        self._changes.append(Change(self._version, kind, key, found))
        self.changed.notify_all()
        return found
