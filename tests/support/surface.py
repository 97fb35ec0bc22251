"""What scripts hold on to, and what of it changed since a commit: lines for CHANGELOG.md.

    python -m tests.support.surface BASE        prints what changed, as a list in Markdown
    python surface.py --record OUTPUT           of the tree in the current folder

Owns: commands and their options from the command line itself; fields of JSON documents by their
schema, as the stories of each tree's own same_record.py make them print; exit codes by error class;
settings; names of assets, jobs, sensors, pools and metrics. What no story prints has no line.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
_COMMON = {"--config", "--set", "--json", "--verbose", "--log-format", "--help"}
Surface = Mapping[str, list[str]]


def surface() -> Surface:
    """Of the tree in the current folder: sorted lines by kind."""
    from tests.support import same_record

    fields = [*_fields(same_record)]
    found = {
        "command": [" ".join(words) for words in same_record.every_command() if words],
        "option": [*_options()],
        "JSON document": [field.partition(" ")[0] for field in fields],
        "JSON field": fields,
        "exit code": [*_exit_codes()],
    }
    names = same_record.names()
    found["setting"] = [*_settings()]
    found["name in Dagster"] = [
        line.partition(": ")[0] for line in names["dagster"] if "/name: " in line
    ]
    return {kind: sorted({*lines}) for kind, lines in found.items()}


def _options() -> Iterator[str]:
    import typer

    from tiering_assets.cli import main

    def below(group: Any, words: tuple[str, ...]) -> Iterator[str]:
        for name, one in getattr(group, "commands", {}).items():
            if hasattr(one, "commands"):
                yield from below(one, (*words, name))
            else:
                for option in one.params:
                    for spelt in (*option.opts, *option.secondary_opts):
                        if spelt.startswith("--") and spelt not in _COMMON:
                            yield f"{' '.join((*words, name))} {spelt}"

    yield from below(typer.main.get_command(main.app), ())


def _fields(same_record: Any) -> Iterator[str]:
    """`tierkeeper/ledger-list/1 ledgers[].state` of each document that a story prints."""
    for lines in same_record.STORIES.values():
        text = "\n".join(same_record.told_by(lines, ("--json",)))
        decoder = json.JSONDecoder()
        at = text.find("{")
        while at >= 0:
            try:
                document, end = decoder.raw_decode(text, at)
            except ValueError:
                end = at + 1
            else:
                schema = document.get("schema") if isinstance(document, dict) else None
                if schema:
                    yield from (f"{schema} {path}" for path in _paths(document) if path)
            at = text.find("{", end)


def _paths(value: Any, path: str = "") -> Iterator[str]:
    yield path
    if isinstance(value, dict):
        for key, one in value.items():
            # Keys that are values, such as topics, are one field.
            named = key if key.isidentifier() and len(key) < 40 else "*"
            yield from _paths(one, f"{path}.{named}".lstrip("."))
    elif isinstance(value, list):
        for one in value:
            yield from _paths(one, f"{path}[]")


def _exit_codes() -> Iterator[str]:
    from tiering_assets.cli.shared.exit_codes import exit_codes

    for row in exit_codes():
        yield f"{row.code} {row.name}".strip()


def _settings() -> Iterator[str]:
    import dataclasses

    from tiering_assets.resources.settings import Settings

    for section in dataclasses.fields(Settings()):
        for field in dataclasses.fields(getattr(Settings(), section.name)):
            yield f"{section.name}.{field.name}"


def changes(before: Surface, now: Surface) -> list[str]:
    """One line for each kind and direction that has any; of what is new or gone as a whole, no
    part.
    """
    lines, wholes = [], {"gone": set[str](), "new": set[str]()}
    for kind in now:
        old, new = {*before.get(kind, ())}, {*now[kind]}
        for word, found in (("gone", old - new), ("new", new - old)):
            told = []
            for one in sorted(found):
                if not _is_inside(one, wholes[word]):
                    told.append(one)
                    wholes[word].add(one)
            if told:
                lines.append(f"- {kind}, {word}: {', '.join(f'`{one}`' for one in told)}")
    return lines


def _is_inside(one: str, wholes: Iterable[str]) -> bool:
    return any(one.startswith((f"{whole} ", f"{whole}.", f"{whole}[")) for whole in wholes)


def record(tree: Path) -> Surface:
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder, "surface.json")
        subprocess.run(
            [sys.executable, Path(__file__), "--record", output],
            cwd=tree,
            env={**os.environ, "PYTHONPATH": str(tree), "PYTHONHASHSEED": "0"},
            check=True,
        )
        found: Surface = json.loads(output.read_text())
        return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("base", nargs="?", help="the commit to compare with")
    parser.add_argument("--record", type=Path)
    asked = parser.parse_args()
    if asked.record is not None:
        asked.record.write_text(json.dumps(surface()))
        return 0
    from benchmarks.start import unpack

    with tempfile.TemporaryDirectory() as folder:
        unpack(asked.base, tree := Path(folder, "tree"))
        before = record(tree)
    sys.stdout.write("\n".join(changes(before, record(ROOT))) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
