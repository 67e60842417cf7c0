"""The dashboard for Grafana: its form, and that it asks for metrics that there are."""

from __future__ import annotations

import re
from itertools import combinations
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from inference_benchmarker.export.metric_rows import metrics_of
from inference_benchmarker.export.page import exposition
from inference_benchmarker.records.label_counters import ValueCounts
from inference_benchmarker.verdict.finding import Finding
from inference_benchmarker.verdict.verdict import Verdict
from tests.exported import BOARD, count_of, expressions, figures, samples

TEXT, NUMBER, FLAG, LIST, OBJECT = ({"type": kind} for kind in ("string", "integer", "boolean", "array", "object"))


def having(known: dict[str, Any], *optional: str, **more: Any) -> dict[str, Any]:
    """The schema of an object with these members and no others; all but the optional ones must be there."""
    required = [name for name in known if name not in optional]
    return {"type": "object", "properties": known, "required": required, "additionalProperties": False, **more}


SOURCE = having({"type": {"const": "prometheus"}, "uid": {"const": "${datasource}"}})
PLACE = having(
    {
        "x": {**NUMBER, "minimum": 0, "maximum": 23},
        "y": {**NUMBER, "minimum": 0},
        "w": {**NUMBER, "minimum": 1, "maximum": 24},
        "h": {**NUMBER, "minimum": 1},
    }
)
TARGET = having(
    {
        "datasource": SOURCE,
        "editorMode": {"enum": ["code", "builder"]},
        "expr": {**TEXT, "minLength": 1},
        "format": {"enum": ["time_series", "heatmap", "table"]},
        "instant": FLAG,
        "range": FLAG,
        "legendFormat": TEXT,
        "refId": {**TEXT, "pattern": "^[A-Z]$"},
    }
)
COLOUR = {"type": "string", "minLength": 1}
STEP = having({"color": COLOUR, "value": {"type": ["number", "null"]}})
MAPPED = having({"text": TEXT, "color": COLOUR, "index": NUMBER})
DEFAULTS = having(
    {
        "color": having({"mode": {"enum": ["palette-classic", "thresholds"]}}),
        "custom": OBJECT,
        "decimals": NUMBER,
        "mappings": {
            "type": "array",
            "items": having({"type": {"const": "value"}, "options": {**OBJECT, "additionalProperties": MAPPED}}),
        },
        "min": {"type": "number"},
        "noValue": TEXT,
        "thresholds": having(
            {"mode": {"enum": ["absolute", "percentage"]}, "steps": {"type": "array", "minItems": 1, "items": STEP}}
        ),
        "unit": {"enum": ["none", "s", "short", "percentunit", "reqps"]},
    },
    "custom",
    "decimals",
    "min",
    "noValue",
)
STAT = having(
    {
        "colorMode": {"enum": ["value", "background", "none"]},
        "graphMode": {"enum": ["none", "area"]},
        "justifyMode": {"enum": ["auto", "center"]},
        "orientation": {"enum": ["auto", "horizontal", "vertical"]},
        "reduceOptions": having({"calcs": LIST, "fields": TEXT, "values": FLAG}),
        "textMode": {"enum": ["auto", "value", "value_and_name", "name", "none"]},
    }
)
SERIES = having(
    {
        "legend": having(
            {
                "calcs": LIST,
                "displayMode": {"enum": ["list", "table", "hidden"]},
                "placement": {"enum": ["bottom", "right"]},
                "showLegend": FLAG,
            }
        ),
        "tooltip": having({"mode": {"enum": ["single", "multi", "none"]}, "sort": {"enum": ["none", "asc", "desc"]}}),
    }
)
HEATMAP = {**OBJECT, "required": ["calculate", "color", "filterValues", "legend", "rowsFrame", "tooltip", "yAxis"]}


def panel(kind: str, options: dict[str, Any]) -> dict[str, Any]:
    """The schema of a panel of a kind."""
    return having(
        {
            "id": {**NUMBER, "minimum": 1},
            "type": {"const": kind},
            "title": {**TEXT, "minLength": 1},
            "description": {**TEXT, "minLength": 1},
            "datasource": SOURCE,
            "gridPos": PLACE,
            "fieldConfig": having({"defaults": DEFAULTS, "overrides": LIST}),
            "options": options,
            "targets": {"type": "array", "minItems": 1, "items": TARGET},
        }
    )


CHOICE = {"type": "object", "required": ["name", "label", "type", "query", "refresh", "hide", "current", "options"]}
SCHEMA = having(
    {
        "annotations": having({"list": LIST}),
        "description": TEXT,
        "editable": FLAG,
        "fiscalYearStartMonth": NUMBER,
        "graphTooltip": {"enum": [0, 1, 2]},
        "links": LIST,
        "liveNow": FLAG,
        "panels": {
            "type": "array",
            "minItems": 1,
            "items": {"oneOf": [panel("stat", STAT), panel("timeseries", SERIES), panel("heatmap", HEATMAP)]},
        },
        "refresh": {**TEXT, "pattern": "^[0-9]+[smh]$"},
        "schemaVersion": {**NUMBER, "minimum": 36},
        "tags": LIST,
        "templating": having({"list": {"type": "array", "items": CHOICE}}),
        "time": having({"from": TEXT, "to": TEXT}),
        "timepicker": OBJECT,
        "timezone": {"enum": ["browser", "utc", ""]},
        "title": TEXT,
        "uid": {**TEXT, "pattern": "^[A-Za-z0-9_-]{1,40}$"},
        "version": NUMBER,
        "weekStart": TEXT,
    }
)
"""Grafana's form of a dashboard (schema version 39), as far as this one uses it."""


def test_the_form_is_grafanas() -> None:
    Draft202012Validator.check_schema(SCHEMA)
    errors = [f"{error.json_path}: {error.message[:200]}" for error in Draft202012Validator(SCHEMA).iter_errors(BOARD)]
    assert errors == []


@pytest.mark.parametrize("broken", [{"panels": []}, {"schemaVersion": "39"}, {"panel": 1}, {"uid": "a b"}])
def test_another_form_is_refused(broken: dict[str, Any]) -> None:
    assert list(Draft202012Validator(SCHEMA).iter_errors({**BOARD, **broken}))


def test_no_panel_lies_upon_another() -> None:
    cells = [
        {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        for at in (each["gridPos"] for each in BOARD["panels"])
    ]
    assert not any(one & other for one, other in combinations(cells, 2))
    assert max(x for cell in cells for x, _ in cell) == 23
    assert len({each["id"] for each in BOARD["panels"]}) == len(BOARD["panels"])


def test_every_metric_that_is_asked_for_is_there_and_chosen_by_run_and_endpoint() -> None:
    count = count_of([0.02], {"HttpError 503": 1})
    for name in ("response_time", "lag", "ttft", "itl"):
        count.cell.times[name].merge(count.cell.times["latency"])
    count.named.labels["a"].ok = 1
    count.named.metrics["hits"].merge(ValueCounts(1, 1.0, 1.0, 1.0))
    verdict = Verdict((Finding("too_few_samples", "warning", "1", "2", "More."),))
    running, over = figures(count), figures(count, verdict=verdict)
    pages = [exposition(metrics_of([each])).decode() for each in (running, over)]
    known = {name for text in pages for name, _ in samples(text)} | {
        f"benchmark_{name}_rate_per_second" for name in ("target", "sent", "completed")
    }
    for expression in expressions():
        asked = re.findall(r"\b(benchmark_\w+)(\{[^}]*\})?", expression)
        assert asked
        assert {name for name, _ in asked} <= known
        assert all('run=~"$run", endpoint=~"$endpoint"' in chosen for _, chosen in asked)
