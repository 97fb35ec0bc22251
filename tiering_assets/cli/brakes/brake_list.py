"""`hold list` and `tiering list`: every brake with its author and reason.

Owns: one that cannot be read is listed by its key, as it brakes all the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from tiering_assets.cli.shared.output import print_document, print_line, print_table
from tiering_assets.cli.terminal.columns import Column, ValueKind

if TYPE_CHECKING:
    from tiering_assets.look.brakes.brake import Brake

_UNREADABLE = "unreadable"
_KINDS = {"name": ValueKind.TOPIC, "mode": ValueKind.STATE, "since": ValueKind.TIME}


def print_brakes(
    found: Sequence[Brake | str],
    *,
    document: str,
    plural: str,
    columns: Mapping[str, str],
    as_json: bool,
) -> None:
    """`columns` name the fields of a Brake as this document has them; `mode` is there for
    pauses.
    """
    rows = [{field: _cells(one)[column] for column, field in columns.items()} for one in found]
    if as_json:
        print_document(document, {plural: rows})
        return
    shown = [Column(name.upper(), _KINDS.get(name, ValueKind.TEXT)) for name in columns]
    print_table(shown, [tuple(row.values()) for row in rows])
    print_line(f"{len(rows)} {plural}")


def _cells(one: Brake | str) -> dict[str, object]:
    if isinstance(one, str):
        said = dict.fromkeys(("author", "since", "reason"), _UNREADABLE)
        return {"scope": "?", "name": one, "mode": "paused", **said}
    return {
        "scope": one.scope.kind,
        "name": one.scope.name,
        "mode": one.mode,
        "author": one.author,
        "since": one.since,
        "reason": one.reason,
    }
