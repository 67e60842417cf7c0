"""The JSON schemas of stored results and their page, made from the types: ``python -m tests.schemas`` writes them."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import msgspec

from inference_benchmarker.report.summary_types import SummaryResult
from server_capacity.results.types.capacity import CapacityResult
from server_capacity.results.types.plan import PlanResult
from server_capacity.results.types.proof import ProofResult
from server_capacity.results.types.ranking import RankingResult
from server_capacity.results.types.surface import SurfaceResult
from server_capacity.results.types.tiers import TiersResult
from visualization.comparison.result import AbResult

REFERENCE = Path(__file__).parent.parent / "docs" / "reference"
DRAFT = "https://json-schema.org/draft/2020-12/schema"
KINDS: dict[str, tuple[type, str]] = {
    "capacity": (CapacityResult, "`benchmark capacity`"),
    "ranking": (RankingResult, "`benchmark capacity --vary`"),
    "tiers": (TiersResult, "`benchmark capacity --tier`"),
    "surface": (SurfaceResult, "`benchmark capacity --over`"),
    "fleet_plan": (PlanResult, "`benchmark plan`"),
    "proof": (ProofResult, "`benchmark capacity --verify`"),
    "ab": (AbResult, "`benchmark ab`"),
    "summary": (SummaryResult, "a wave"),
}
_HEAD = """\
# Schemas of stored results

These are the files in which commands store their results, each with its [JSON schema](https://json-schema.org).
`python -m tests.schemas` makes the schemas and this page from the types with which the tool writes and reads the files.

| file | of | schema |
|---|---|---|
"""
_FOOT = """
A file of this version has every key of its schema, except those that depend on a condition. A file of an earlier
version may lack every key that is not *required*. A later version may add keys, so ignore those that you do not know.
Rates are in requests/s (users, for a search with `"in": "users"`), and times in seconds. [Files](files.md) says what
the keys mean.
"""


def schemas() -> dict[str, str]:
    """The text of each schema by the name of its file."""
    return {f"{name}.schema.json": _text(_schema(name, kind)) for name, (kind, _) in KINDS.items()}


def page() -> str:
    """The page that lists them."""
    rows = [
        f"| `{name}.json` | {made_by} | [{name}.schema.json](schemas/{name}.schema.json) |\n"
        for name, (_, made_by) in KINDS.items()
    ]
    return _HEAD + "".join(rows) + _FOOT


def _text(schema: dict[str, Any]) -> str:
    return json.dumps(schema, indent=1, ensure_ascii=False) + "\n"


def _schema(name: str, kind: type) -> dict[str, Any]:
    (whole,), parts = msgspec.json.schema_components([kind], ref_template="#/$defs/{name}")
    made = parts.pop(whole["$ref"].rpartition("/")[2])
    types = _types_in(kind)
    defs = {part: _as_written(parts[part], types[part]) for part in sorted(parts)}
    return {"$schema": DRAFT, **_as_written(made, kind), "title": f"{name}.json", "$defs": defs}


def _as_written(schema: dict[str, Any], kind: type) -> dict[str, Any]:
    """A type's schema with its keys as they stand in a file, in their order."""
    keys = {each.name: each.metadata.get("key", each.name) for each in fields(kind)}
    properties = {key: _brief(schema["properties"][name]) for name, key in keys.items()}
    description = " ".join(schema["description"].replace("``", "`").split())
    return {**schema, "description": description, "properties": properties}


def _brief(schema: Any) -> Any:
    """The same without what says nothing: a default of null, a choice between a type and null."""
    if isinstance(schema, list):
        return [_brief(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    made = {key: _brief(part) for key, part in schema.items() if (key, part) != ("default", None)}
    one, *others = made.get("anyOf", [{}])
    if others == [{"type": "null"}] and "type" in one:
        del made["anyOf"]
        made |= {**one, "type": [one["type"], "null"]}
    return made


def _types_in(kind: type) -> dict[str, type]:
    """The dataclasses that stand anywhere in one, by their names."""
    found: dict[str, type] = {}
    for part in msgspec.inspect.multi_type_info([kind]):
        _collect(part, found)
    return found


def _collect(part: Any, found: dict[str, type]) -> None:
    if isinstance(part, msgspec.inspect.DataclassType) and part.cls.__name__ not in found:
        found[part.cls.__name__] = part.cls
        for each in part.fields:
            _collect(each.type, found)
    for name in ("item_type", "key_type", "value_type"):
        if hasattr(part, name):
            _collect(getattr(part, name), found)
    for each in getattr(part, "types", ()):
        _collect(each, found)


def main() -> None:
    """Write the schemas and the page."""
    folder = REFERENCE / "schemas"
    folder.mkdir(exist_ok=True)
    for name, text in schemas().items():
        (folder / name).write_text(text)
    (REFERENCE / "schemas.md").write_text(page())


if __name__ == "__main__":
    main()
