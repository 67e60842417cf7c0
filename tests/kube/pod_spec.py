"""A pod's description as a container that can be started: its variables, its volumes as folders, its user."""

from __future__ import annotations

import base64
import os
import re
import shutil
from typing import TYPE_CHECKING, Any

from tests.kube.quantities import quantity
from tests.kube.sandbox import Mount, Spec, image
from tests.kube.store import Key

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tests.kube.store import Object, Store

_REFERENCE = re.compile(r"\$\$|\$\(([A-Za-z_][\w.-]*)\)")


_REFERENCES = (("secrets", "secretKeyRef"), ("configmaps", "configMapKeyRef"))
_REFERENCES_FROM = (("secrets", "secretRef"), ("configmaps", "configMapRef"))


class NotMountedError(Exception):
    """A volume cannot be had: it is tried again."""


class ConfigError(Exception):
    """A container cannot be made, since something that it refers to is not there: it is tried again."""


def expanded(text: str, variables: Mapping[str, str]) -> str:
    """A text with its ``$(NAME)``; an unknown one stays as it is, and ``$$`` is ``$``."""

    def value(match: re.Match[str]) -> str:
        return "$" if match[0] == "$$" else variables.get(match[1], match[0])

    return _REFERENCE.sub(value, text)


class PodSpec:
    """A pod as its node reads it; ``address`` is the one that it gets."""

    def __init__(self, store: Store, pod: Object, address: str) -> None:
        self._store, self._pod, self._address = store, pod, address
        self._namespace = pod["metadata"]["namespace"]
        (self._container,) = pod["spec"]["containers"]
        self._context = pod["spec"].get("securityContext", {})
        self._name = pod["spec"].get("hostname", pod["metadata"]["name"])

    def make_volumes(self, place: Path, claims: Path) -> dict[str, Path]:
        """The folders of its volumes by their names; claimed ones are below ``claims``. NotMountedError."""
        return {
            volume["name"]: self._make_volume(volume, place, claims) for volume in self._pod["spec"].get("volumes", ())
        }

    def container(self, volumes: Mapping[str, Path], log: Path) -> Spec:
        """Its container. ConfigError."""
        container, of_image = self._container, image()
        variables = self._variables()
        context = {**self._context, **container.get("securityContext", {})}
        entry = container.get("command", [of_image["entry"]])
        limit = container.get("resources", {}).get("limits", {}).get("cpu")
        groups = (context.get("fsGroup"), *context.get("supplementalGroups", ()))
        return Spec(
            name=self._name,
            command=[expanded(word, variables) for word in (*entry, *container.get("args", ()))],
            environment=variables,
            folder=container.get("workingDir", ""),
            mounts=[_mount(mount, volumes, variables) for mount in container.get("volumeMounts", ())],
            user=context.get("runAsUser", of_image["user"]),
            group=context.get("runAsGroup", of_image["group"]),
            groups=[group for group in groups if group is not None],
            read_only=bool(context.get("readOnlyRootFilesystem")),
            cpus=None if limit is None else float(quantity(limit)),
            log=log,
        )

    def _make_volume(self, volume: dict[str, Any], place: Path, claims: Path) -> Path:
        name, group = volume["name"], self._context.get("fsGroup")
        folder: Path = place / "volumes" / name
        if "persistentVolumeClaim" in volume:
            claim = volume["persistentVolumeClaim"]["claimName"]
            if self._store.find(Key("persistentvolumeclaims", self._namespace, claim)) is None:
                raise NotMountedError(f'persistentvolumeclaim "{claim}" not found')
            folder = claims / self._namespace / claim
        folder.mkdir(parents=True, exist_ok=True)
        if source := volume.get("secret"):
            kept = self._kept("secrets", source["secretName"], name, source)
            _write(folder, source, kept, group, added=0 if group is None else 0o440)
        elif source := volume.get("configMap"):
            _write(folder, source, self._kept("configmaps", source["name"], name, source), group, added=0)
        elif "emptyDir" in volume or "persistentVolumeClaim" in volume:
            if group is not None:
                shutil.chown(folder, group=group)
            folder.chmod(0o2777)
        else:
            raise NotMountedError(f'volume "{name}" is of a kind that this server does not know')
        return folder

    def _kept(self, resource: str, name: str, volume: str, source: dict[str, Any]) -> dict[str, bytes]:
        found = self._store.find(Key(resource, self._namespace, name))
        if found is None:
            if source.get("optional"):
                return {}
            kind = resource.removesuffix("s")
            raise NotMountedError(f'MountVolume.SetUp failed for volume "{volume}" : {kind} "{name}" not found')
        return content(found)

    def _variables(self) -> dict[str, str]:
        variables: dict[str, str] = {"HOSTNAME": self._name}
        for source in self._container.get("envFrom", ()):
            for resource, field in _REFERENCES_FROM:
                if field in source:
                    found = self._referred(resource, source[field])
                    variables |= {f"{source.get('prefix', '')}{key}": value.decode() for key, value in found.items()}
        for each in self._container.get("env", ()):
            source = each.get("valueFrom")
            value = expanded(each.get("value", ""), variables) if source is None else self._value(each["name"], source)
            if value is not None:
                variables[each["name"]] = value
        return variables

    def _value(self, name: str, source: dict[str, Any]) -> str | None:
        if "fieldRef" in source:
            return self._field(source["fieldRef"]["fieldPath"])
        if "resourceFieldRef" in source:
            of, _, what = source["resourceFieldRef"]["resource"].partition(".")
            return str(int(quantity(self._container["resources"][of][what]).to_integral_value()))
        for resource, field in _REFERENCES:
            if field in source:
                reference = source[field]
                kept = self._referred(resource, reference)
                if reference["key"] not in kept and not reference.get("optional"):
                    kind = resource.removesuffix("s").capitalize()
                    where = f"{self._namespace}/{reference['name']}"
                    raise ConfigError(f"couldn't find key {reference['key']} in {kind} {where}")
                return kept[reference["key"]].decode() if reference["key"] in kept else None
        raise ConfigError(f"{name}: this server does not know valueFrom {sorted(source)}")

    def _referred(self, resource: str, reference: dict[str, Any]) -> dict[str, bytes]:
        found = self._store.find(Key(resource, self._namespace, reference["name"]))
        if found is None and not reference.get("optional"):
            raise ConfigError(f'{resource.removesuffix("s")} "{reference["name"]}" not found')
        return content(found) if found else {}

    def _field(self, path: str) -> str:
        """A field that the downward API offers. ConfigError for any other one."""
        metadata, spec = self._pod["metadata"], self._pod["spec"]
        if found := re.fullmatch(r"metadata\.(labels|annotations)\['(.*)'\]", path):
            return str((metadata.get(found[1]) or {}).get(found[2], ""))
        fields = {
            "metadata.name": metadata["name"],
            "metadata.namespace": metadata["namespace"],
            "metadata.uid": metadata["uid"],
            "spec.nodeName": spec["nodeName"],
            "spec.serviceAccountName": spec["serviceAccountName"],
            "status.podIP": self._address,
            "status.podIPs": self._address,
            "status.hostIP": f"{self._address.rpartition('.')[0]}.1",
        }
        if path not in fields:
            raise ConfigError(f"fieldPath {path} is none that this server knows")
        return str(fields[path])


def content(found: Object) -> dict[str, bytes]:
    """What a Secret or a ConfigMap holds, by its keys."""
    if found["kind"] == "Secret":
        return {key: base64.b64decode(value) for key, value in (found.get("data") or {}).items()}
    binary = {key: base64.b64decode(value) for key, value in (found.get("binaryData") or {}).items()}
    return {key: value.encode() for key, value in (found.get("data") or {}).items()} | binary


def _write(folder: Path, source: dict[str, Any], kept: dict[str, bytes], group: int | None, *, added: int) -> None:
    """Write a volume's files; ``added`` are the bits that its group gives them."""
    items = {item["key"]: item["path"] for item in source.get("items", ())}
    for key, value in kept.items():
        if items and key not in items:
            continue
        path = folder / items.get(key, key)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(value)
        if group is not None:
            os.chown(path, 0, group)
        path.chmod(source.get("defaultMode", 0o644) | added)


def _mount(mount: dict[str, Any], volumes: Mapping[str, Path], variables: Mapping[str, str]) -> Mount:
    below = expanded(mount["subPathExpr"], variables) if "subPathExpr" in mount else mount.get("subPath", "")
    source = volumes[mount["name"]] / below
    if not source.exists():
        if "$(" in below or mount.get("readOnly"):
            raise ConfigError(f'failed to create subPath directory for volumeMount "{mount["name"]}" of container')
        source.mkdir(parents=True)
    return Mount(source, mount["mountPath"], bool(mount.get("readOnly")))
