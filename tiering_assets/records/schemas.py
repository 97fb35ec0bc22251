"""JSON Schemas of all record kinds, so that other tools can read records without this code.

`python -m tiering_assets.records.schemas` writes docs/schemas/; `--check` only says which files are
stale and exits with 1. Owns: one file per kind and version, generated, never edited by hand.
"""

from __future__ import annotations

import argparse
import inspect
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from tiering_assets.records.codec import OLDER, RECORD_TYPES, adapter
from tiering_assets.records.models import Record

SCHEMAS = Path(__file__).parents[2] / "docs" / "schemas"


def file_name(schema: str) -> str:
    """`tierkeeper/release-intent/1` -> `release-intent-1.json`."""
    _owner, name, version = schema.split("/")
    return f"{name}-{version}.json"


def schema_text(record_type: type[Record]) -> str:
    """The schema of one kind as it is stored; unknown fields are allowed, as in reading."""
    body = adapter(record_type.kind).json_schema(mode="validation")
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **body,
        "description": inspect.getdoc(record_type) or record_type.kind,
        "properties": {
            "schema": {"const": record_type.kind},
            **body["properties"],
            "digest": {"type": "string", "pattern": "^[0-9a-f]{64}$"},
        },
        "required": ["schema", *body["required"]],
    }
    return json.dumps(schema, indent=2) + "\n"


def _wanted() -> dict[str, str]:
    """Contents by file name, of the versions that are written and of those that are read still."""
    texts = {file_name(kind.kind): schema_text(kind) for kind in RECORD_TYPES}
    for record_type in RECORD_TYPES:
        if (older := OLDER.get(record_type.kind)) is not None:
            schema = json.loads(schema_text(record_type))
            for name in older.meant:
                del schema["properties"][name]
                schema["required"].remove(name)
            schema["properties"]["schema"]["const"] = older.schema
            texts[file_name(older.schema)] = json.dumps(schema, indent=2) + "\n"
    return texts


def stale(folder: Path = SCHEMAS) -> list[str]:
    """Names of files that are missing, different, or of no record kind."""
    wanted = _wanted()
    there = {path.name: path.read_text(encoding="utf-8") for path in folder.glob("*.json")}
    return sorted(name for name in {*wanted, *there} if wanted.get(name) != there.get(name))


def write(folder: Path = SCHEMAS) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in _wanted().items():
        (folder / name).write_text(text, encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Write the JSON Schemas of all records.")
    parser.add_argument("--check", action="store_true", help="only say which files are stale")
    if not parser.parse_args(arguments).check:
        write()
        return 0
    names = stale()
    for name in names:
        sys.stderr.write(
            f"docs/schemas/{name} is stale: python -m tiering_assets.records.schemas\n"
        )
    return 1 if names else 0


if __name__ == "__main__":
    sys.exit(main())
