"""Which topics a sensor looks at: those that the catalogue nominates, or all of them without one.

Owns: before somebody has proven the catalogue every topic is looked at. After that a catalogue that
is behind, or that cannot be read, fails the tick by name: it never falls back to the long way. Only
where the package for tables is missing it does, and the tick's log says so.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from tiering_assets.defs.automation.tick import Tick

if TYPE_CHECKING:
    from tiering_assets.catalogue.view import Tables
    from tiering_assets.look.topic.user_topics import Topic


def nominating(tick: Tick) -> Tables | None:
    """The catalogue's tables, None where every topic is to be looked at."""
    if not tick.settings.catalogue.enabled:
        return None
    from tiering_assets.catalogue import nominate
    from tiering_assets.catalogue.view import Catalogue
    from tiering_assets.resources.tables import missing_package

    if (package := missing_package()) is not None:
        tick.context.log.warning(
            "tierkeeper: package %s is not installed: topics are looked at without the catalogue",
            package,
        )
        return None
    return nominate.nominating(Catalogue.of(tick.stack), now=tick.now)


def post_again(tick: Tick, topics: Iterable[Topic], *, ledgers: int) -> None:
    """Rows said that something was due which is not: they are made anew, and counted."""
    from tiering_assets.catalogue.scan.scan import scan_again
    from tiering_assets.catalogue.view import Catalogue
    from tiering_assets.resources.errors import CatalogueError

    some = [*topics]
    try:
        scan_again(tick.stack, Catalogue.of(tick.stack), some, wrong=ledgers)
    except CatalogueError as error:
        tick.context.log.warning("tierkeeper: %s", error)
    names = ", ".join(one.ml_name for one in some[:5])
    tick.context.log.warning(
        "tierkeeper: %d ledgers of %d topics are not due, as the catalogue said: %s",
        ledgers,
        len(some),
        names,
    )
