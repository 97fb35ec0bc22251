"""The dashboard as shipped: its form by a schema, and its queries as Prometheus gets them.

Owns: Grafana's own model of a dashboard (schema version 39), as far as ours uses it. What it does
not name is refused, so that a field nobody reads is noticed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

BOARD: Final = Path(__file__).parents[2] / "deploy/grafana/tierkeeper.json"
_VALUES: Final = re.compile(r"label_values\((\w+), (\w+)\)")
_TEXT: Final = {"type": "string"}
_SOME: Final = {"type": "string", "minLength": 1}
_FLAG: Final = {"type": "boolean"}
_COUNT: Final = {"type": "integer", "minimum": 0}


def _object(required: tuple[str, ...] = (), **fields: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": fields,
        "required": [*required],
        "additionalProperties": False,
    }


def _list(items: Any, least: int = 0) -> dict[str, Any]:
    return {"type": "array", "items": items, "minItems": least}


_ANY_OF_COLOURS: Final = {"enum": ["green", "yellow", "red"]}
_SOURCE: Final = _object(
    ("type", "uid"), type={"const": "prometheus"}, uid={"const": "${datasource}"}
)
_STEP: Final = _object(
    ("color", "value"), color=_ANY_OF_COLOURS, value={"type": ["number", "null"]}
)
_THRESHOLDS: Final = _object(("mode", "steps"), mode={"const": "absolute"}, steps=_list(_STEP, 2))
_CUSTOM: Final = _object(
    stacking=_object(("mode",), mode={"enum": ["none", "normal"]}),
    fillOpacity=_COUNT,
    thresholdsStyle=_object(("mode",), mode={"enum": ["off", "line", "dashed", "area"]}),
    lineInterpolation={"enum": ["linear", "smooth", "stepBefore", "stepAfter"]},
)
_MAPPING: Final = _object(
    ("type", "options"),
    type={"const": "value"},
    options={
        "type": "object",
        "additionalProperties": _object(("text",), text=_SOME, color=_ANY_OF_COLOURS),
    },
)
_OVERRIDE: Final = _object(
    ("matcher", "properties"),
    matcher=_object(("id", "options"), id={"enum": ["byName", "byRegexp"]}, options=_SOME),
    properties=_list(_object(("id", "value"), id=_SOME, value={}), 1),
)
_FIELDS: Final = _object(
    ("defaults", "overrides"),
    defaults=_object(
        ("unit",),
        unit={"enum": ["none", "bytes", "s", "percentunit"]},
        min={"type": "number"},
        max={"type": "number"},
        decimals=_COUNT,
        color=_object(("mode",), mode={"enum": ["thresholds", "palette-classic"]}),
        thresholds=_THRESHOLDS,
        mappings=_list(_MAPPING),
        custom=_CUSTOM,
    ),
    overrides=_list(_OVERRIDE),
)
_TARGET: Final = _object(
    ("refId", "expr", "datasource"),
    refId={"type": "string", "pattern": "^[A-Z]$"},
    expr=_SOME,
    legendFormat=_TEXT,
    datasource=_SOURCE,
    instant=_FLAG,
    format={"enum": ["table", "time_series"]},
)
_PANEL: Final = _object(
    ("id", "type", "title", "description", "datasource", "gridPos", "targets", "fieldConfig"),
    id={"type": "integer", "minimum": 1},
    type={"enum": ["stat", "timeseries", "table", "bargauge"]},
    title=_SOME,
    description=_SOME,
    datasource=_SOURCE,
    gridPos=_object(("x", "y", "w", "h"), x=_COUNT, y=_COUNT, w=_COUNT, h=_COUNT),
    targets=_list(_TARGET, 1),
    fieldConfig=_FIELDS,
    options={"type": "object"},
    transformations=_list(_object(("id", "options"), id={"const": "organize"}, options={})),
)
_LINK: Final = _object(
    ("title", "type", "url", "targetBlank"),
    title=_SOME,
    type={"const": "link"},
    url={"type": "string", "pattern": r"^\$\{dagster\}/"},
    icon={"const": "external link"},
    targetBlank=_FLAG,
    tags=_list(_TEXT),
    asDropdown=_FLAG,
    includeVars=_FLAG,
    keepTime=_FLAG,
    tooltip=_TEXT,
)
_VARIABLE: Final = _object(
    ("name", "label", "type", "query", "current"),
    name=_SOME,
    label=_SOME,
    type={"enum": ["datasource", "query", "textbox"]},
    description=_TEXT,
    datasource=_SOURCE,
    query={"type": ["string", "object"]},
    refresh=_COUNT,
    includeAll=_FLAG,
    multi=_FLAG,
    allValue=_TEXT,
    current={"type": "object"},
)
SCHEMA: Final = _object(
    ("title", "uid", "schemaVersion", "panels", "templating", "links", "time"),
    title=_SOME,
    uid=_SOME,
    tags=_list(_SOME),
    schemaVersion={"const": 39},
    version={"type": "integer", "minimum": 1},
    editable=_FLAG,
    refresh=_SOME,
    time=_object(("from", "to"), **{"from": _SOME, "to": _SOME}),
    timezone=_TEXT,
    templating=_object(("list",), list=_list(_VARIABLE, 1)),
    annotations=_object(("list",), list=_list({})),
    links=_list(_LINK, 1),
    panels=_list(_PANEL, 1),
)


def board() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(BOARD.read_text(encoding="utf-8"))
    return found


@dataclass(frozen=True, slots=True)
class BoardQuery:
    """A query of a panel, with every instance and namespace chosen."""

    panel: str
    ref: str
    expression: str


def queries(found: dict[str, Any]) -> Iterator[BoardQuery]:
    for panel in found["panels"]:
        for target in panel["targets"]:
            every = target["expr"].replace("$instance", ".*").replace("$namespace", ".*")
            yield BoardQuery(panel["title"], target["refId"], every)


def variables(found: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Of each variable that asks Prometheus its name, the metric and the label."""
    for one in found["templating"]["list"]:
        if one["type"] == "query":
            asked = _VALUES.fullmatch(one["query"]["query"])
            if asked is None:
                raise ValueError(f"variable {one['name']}: {one['query']} is no label_values(m, l)")
            yield one["name"], asked[1], asked[2]
