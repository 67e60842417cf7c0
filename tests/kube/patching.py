"""The patches that kubectl sends."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.kube.errors import ApiError

if TYPE_CHECKING:
    from tests.kube.store import Object

MERGE, STRATEGIC = "application/merge-patch+json", "application/strategic-merge-patch+json"
_KEYS = {
    "containers": "name",
    "env": "name",
    "volumes": "name",
    "taints": "key",
    "volumeMounts": "mountPath",
    "ports": "port",
}


def patched(found: Object, patch: Any, kind: str) -> Object:
    """An object after a patch. ApiError where its kind is none that this server knows."""
    if kind not in (MERGE, STRATEGIC):
        raise ApiError(415, "UnsupportedMediaType", f"the tests' server takes {MERGE} and {STRATEGIC}, not {kind}")
    made = _merged(found, patch, "", is_strategic=kind == STRATEGIC)
    assert isinstance(made, dict)
    return made


def _merged(old: Any, new: Any, field: str, *, is_strategic: bool) -> Any:
    if isinstance(new, dict):
        made = dict(old) if isinstance(old, dict) else {}
        for name, value in new.items():
            if value is None:
                made.pop(name, None)
            elif not name.startswith("$"):
                made[name] = _merged(made.get(name), value, name, is_strategic=is_strategic)
        return made
    if is_strategic and isinstance(new, list) and isinstance(old, list) and field in _KEYS:
        key = _KEYS[field]
        items = {item[key]: item for item in old}
        for item in new:
            if item.get("$patch") == "delete":
                items.pop(item[key], None)
            else:
                items[item[key]] = _merged(items.get(item[key]), item, "", is_strategic=True)
        return list(items.values())
    return new
