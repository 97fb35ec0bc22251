"""Filters of Spark as what is compared with what; those that say nothing of a block are left out.

Owns: blocks that are left out of a ledger stand before or behind all others. Pieces of a large
message lie in blocks side by side, and none between them may be missing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from tiering_assets.lineage.messages.pushed import Pushed

_HOW: Final = {
    "EqualTo": "=",
    "EqualNullSafe": "=",
    "LessThan": "<",
    "LessThanOrEqual": "<=",
    "GreaterThan": ">",
    "GreaterThanOrEqual": ">=",
    "In": "in",
    "StringStartsWith": "starts",
}


def pushed(filters: Iterable[Any]) -> tuple[Pushed, ...]:
    """Of filters as pyspark.sql.datasource has them."""
    return tuple(
        Pushed(one.attribute[0], _how(one), one.value)
        for one in filters
        if type(one).__name__ in _HOW and len(one.attribute) == 1
    )


def _how(one: Any) -> str:
    how = _HOW[type(one).__name__]
    return "within" if (how, one.attribute[0]) == ("in", "entry_id") else how
