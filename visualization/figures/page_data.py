"""Pages are made of these: templates, and figures as the data that a script draws."""

from __future__ import annotations

import json
from dataclasses import fields, is_dataclass
from importlib.resources import files
from typing import Any

from inference_benchmarker.words.text import plain

_DIGITS = 6


def page_data(**known: Any) -> str:
    """JSON for a script element: numbers as long as a reader can use, and no text that ends the element."""
    data = json.dumps(_short(known), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return data.replace("<", "\\u003c")


def _short(value: Any) -> Any:
    if isinstance(value, float):
        return int(value) if value.is_integer() else float(f"{value:.{_DIGITS}g}")
    if isinstance(value, str):
        return plain(value)
    if is_dataclass(value):
        return {each.name: _short(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, dict):
        return {key: _short(each) for key, each in value.items()}
    return [_short(each) for each in value] if isinstance(value, (list, tuple)) else value


def template(name: str) -> str:
    """A file of ``templates/``."""
    return (files("visualization") / "templates" / name).read_text(encoding="utf-8")
