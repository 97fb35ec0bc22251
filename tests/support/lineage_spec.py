"""What the OpenLineage standard, and our own schema of facets, say is wrong with an event."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

from jsonschema import Draft202012Validator, FormatChecker
from referencing import Registry, Resource

ROOT = Path(__file__).parents[2]
STANDARD = "https://openlineage.io/spec/2-0-2/OpenLineage.json"
OURS = ROOT / "docs" / "schemas" / "openlineage" / "facets-1.json"
_CHECKER = FormatChecker(formats=())


@_CHECKER.checks("date-time", raises=ValueError)
def _is_time(value: object) -> bool:
    return not isinstance(value, str) or datetime.fromisoformat(value).tzinfo is not None


@_CHECKER.checks("uuid", raises=ValueError)
def _is_uuid(value: object) -> bool:
    return not isinstance(value, str) or str(UUID(value)) == value


@_CHECKER.checks("uri", raises=ValueError)
def _is_uri(value: object) -> bool:
    if not isinstance(value, str):
        return True
    found = urlsplit(value)
    return bool(found.scheme) and bool(found.path or found.netloc)


@cache
def _registry() -> Registry[Any]:
    paths = [*(ROOT / "tests" / "golden" / "openlineage").glob("*.json"), OURS]
    schemas = [json.loads(path.read_text()) for path in paths]
    for schema in schemas:
        Draft202012Validator.check_schema(schema)
    pairs = [(schema["$id"], Resource.from_contents(schema)) for schema in schemas]
    return Registry().with_resources(pairs)


def problems(event: dict[str, Any]) -> list[str]:
    """Nothing for an event that is right, each of its facets by the schema that it names."""
    found = _problems(f"{STANDARD}#/$defs/RunEvent", event)
    if event.get("schemaURL") != f"{STANDARD}#/$defs/RunEvent":
        found.append(f"schemaURL: {event.get('schemaURL')}")
    for where, facet in facets_of(event):
        found += [f"{where}: {why}" for why in _problems(facet["_schemaURL"], facet)]
        found += [f"{where}: {name} is in no schema" for name in _unknown(facet)]
    return found


def _problems(url: str, value: object) -> list[str]:
    check = Draft202012Validator({"$ref": url}, registry=_registry(), format_checker=_CHECKER)
    return [f"{error.json_path}: {error.message}" for error in check.iter_errors(value)]


def _unknown(facet: dict[str, Any]) -> set[str]:
    """Fields of a facet that its schema does not know: a facet may have them, ours do not."""
    schema = _registry().resolver().lookup(facet["_schemaURL"]).contents
    known = {name for part in schema["allOf"] for name in part.get("properties", {})}
    return {*facet} - known - {"_producer", "_schemaURL", "_deleted"}


def facets_of(event: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every facet with its place and name."""
    holders = [("run", event["run"], "facets"), ("job", event["job"], "facets")]
    for side, own in (("inputs", "inputFacets"), ("outputs", "outputFacets")):
        for one in event[side]:
            holders += [(side, one, "facets"), (side, one, own)]
    for place, holder, field in holders:
        for name, facet in holder.get(field, {}).items():
            yield f"{place}.{name}", facet
