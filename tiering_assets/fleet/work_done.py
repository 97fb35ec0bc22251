"""What was done so far, and the budgets in force, for whoever counts the fleet.

Reads only, and grows with nothing: one commit of a table that a count opens anyway, one record.
"""

from __future__ import annotations

from collections.abc import Mapping

from tiering_assets.catalogue.facts.work_done import WorkDone
from tiering_assets.catalogue.nominate import ProvenTables
from tiering_assets.catalogue.status import work_done
from tiering_assets.fleet.source import Unasked, tables_or_why_not
from tiering_assets.ground.stack import Stack
from tiering_assets.look.brakes.budget import read_wanted


def work_done_so_far(stack: Stack, source: ProvenTables | None) -> WorkDone | None:
    """By the tables that a count asked, else by those that are there; None where none is proven.

    How long ago topics were scanned is of no matter: records alone tell what was done.
    """
    if source is None:
        found = tables_or_why_not(stack)
        if isinstance(found, Unasked):
            return None
        source = found
    return work_done(source.tables)


def budgets_in_force(stack: Stack) -> Mapping[str, int]:
    """By name, in bytes or requests per second; without those that are no bound."""
    return {line.name: line.rate for line in read_wanted(stack).lines if line.rate}
