"""`catalogue`: keeps the catalogue's tables behind the runs and the topics.

Owns: pages of the day book first, then runs that died, the fleet's figures, events for others, and
as many topics as the tick's time allows, from where the last tick stopped. Schemas of topics that
were published are archived in the time that is left. Small files of many ticks are joined. Nothing
waits for it: when it fails, views are late and the tick is red.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

import dagster as dg

from tiering_assets.defs.automation.tick import Result, Tick
from tiering_assets.defs.explain.posted_figures import FigureEvent, figure_events
from tiering_assets.resources.errors import TierkeeperError

if TYPE_CHECKING:
    from tiering_assets.catalogue.view import Catalogue

_FIGURES_EVERY_S: Final = 60.0
_FIGURES_SHARE: Final = 20  # what they took, of the time until they are told again
OFF = "catalogue.enabled is false: nothing is posted"
MISSING = "package {} is not installed: nothing is posted"


def catalogue(tick: Tick) -> Result:
    """Post what runs wrote, then look at topics."""
    if not tick.settings.catalogue.enabled:
        return dg.SkipReason(OFF)
    from tiering_assets.catalogue.died import close_dead
    from tiering_assets.catalogue.post import post
    from tiering_assets.catalogue.scan.scan import scan
    from tiering_assets.catalogue.upkeep.keep import join_files
    from tiering_assets.catalogue.view import Catalogue, least
    from tiering_assets.resources.tables import missing_package

    if (package := missing_package()) is not None:
        return dg.SkipReason(MISSING.format(package))
    until = tick.stack.monotonic() + tick.auto.tick_budget_s
    tables = Catalogue.of(tick.stack)
    pages = 0
    while (done := post(tick.stack, tables)).pages:
        pages += done.pages
        if tick.stack.monotonic() >= until:
            break
    else:
        opened = tables.opened() if pages else done.tables
        died = close_dead(tick.stack, tables, least(tables, opened))
        if died.runs:
            tick.context.log.info(
                "tierkeeper: catalogue: runs that died are closed, %d records named: %s",
                died.late,
                ", ".join(died.runs),
            )
        join_files(tables, opened)
    events, figures = _figures(tick, posted=pages > 0)
    events_told = _tell(tick, tables, posted=done.mark)
    unmoved = tick.memory.unmoved
    try:
        seen = scan(
            tick.stack,
            tables,
            after=tick.cursor.text("after"),
            began=_time(tick.cursor.number("began_ms")),
            seconds=max(0.0, until - tick.stack.monotonic()),
            may_have_moved=unmoved.may_have_moved,
            seen=done.tables,
        )
        unmoved.settle()
    finally:
        unmoved.forget()
    page = _archive(tick, tables, done.mark, since=done.mark - pages, until=until)
    whole = seen.resume is None
    return dg.SensorResult(
        asset_events=events,
        skip_reason=dg.SkipReason(
            f"posted {pages} pages up to {done.mark}; of {seen.topics} topics {seen.asked} were asked, "
            f"{seen.moved} had moved, {seen.ledgers} ledgers are new or others"
            + ("" if whole else f"; goes on behind {seen.resume}")
            + events_told
        ),
        cursor=tick.write_cursor(
            after=seen.resume,
            began_ms=None if whole else int(seen.began.timestamp() * 1000),
            schemas_page=page,
            **figures,
        ),
    )


def _tell(tick: Tick, tables: Catalogue, *, posted: int) -> str:
    """Send events of what is posted. Nothing waits for them, and no tick fails by them."""
    from tiering_assets.catalogue.openlineage.tell import is_on, tell

    if not is_on(tick.settings):
        return ""
    try:
        return f"; {tell(tick.stack, tables, posted=posted)}"
    except TierkeeperError as error:
        tick.context.log.warning("tierkeeper: catalogue: no OpenLineage events: %s", error)
        return f"; no OpenLineage events: {error}"


def _archive(tick: Tick, tables: Catalogue, mark: int, *, since: int, until: float) -> int:
    """Archive schemas of topics published behind the page where the last tick stopped.

    The page that is done. Without one the tick begins where it began to post.
    """
    from tiering_assets.catalogue.scan.published import published_behind
    from tiering_assets.schemas.topics import archive_published

    page = int(tick.cursor.number("schemas_page", since))
    if page >= mark:
        return page
    stopped = archive_published(
        tick.stack,
        published_behind(tick.stack, tables.opened(), page),
        has_time=lambda: tick.stack.monotonic() < until,
        tell=lambda line: tick.context.log.warning("tierkeeper: %s", line),
    )
    return mark if stopped is None else stopped - 1


def _figures(tick: Tick, *, posted: bool) -> tuple[list[FigureEvent], dict[str, int | None]]:
    """Told behind what was posted, and seldom enough to be a small part of the sensor's time.

    Also what the next tick is told of it: whether figures wait, and until when.
    """
    waits = posted or bool(tick.cursor.number("figures_wait", 0))
    now_ms = int(tick.now.timestamp() * 1000)
    after_ms = int(tick.cursor.number("figures_after_ms", 0))
    if not waits or now_ms < after_ms:
        return [], {"figures_wait": 1 if waits else None, "figures_after_ms": after_ms or None}
    began = tick.stack.monotonic()
    events = figure_events(tick.stack, tick.cluster)
    rest_s = max(_FIGURES_EVERY_S, _FIGURES_SHARE * (tick.stack.monotonic() - began))
    return events, {"figures_after_ms": now_ms + int(1000 * rest_s)}


def _time(ms: float) -> datetime | None:
    return datetime.fromtimestamp(ms / 1000, UTC) if ms else None
