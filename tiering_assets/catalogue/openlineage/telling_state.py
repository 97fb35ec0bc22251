"""How far OpenLineage events are behind what is posted, and what keeps them: for people.

Reads the mark and one page. Changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from tiering_assets.catalogue.openlineage.mark_object import read_mark
from tiering_assets.catalogue.openlineage.telling_mark import TellingMark
from tiering_assets.catalogue.pages import read_page
from tiering_assets.catalogue.view import Catalogue, least
from tiering_assets.ground.finding import Finding, fail, ok, warn
from tiering_assets.ground.moments import moment
from tiering_assets.ground.stack import Stack, open_stack
from tiering_assets.resources.errors import CatalogueError
from tiering_assets.resources.http_access import host_in
from tiering_assets.resources.openlineage import require_package
from tiering_assets.resources.settings import Settings
from tiering_assets.resources.tables import missing_package

_CHECK: Final = "openlineage"
WAIT_MAX: Final = timedelta(hours=1)
_POST: Final = "look at the sensor `catalogue`, or run `tierkeeper catalogue post`"


@dataclass(frozen=True, slots=True, kw_only=True)
class TellingState:
    """`page` is told whole, None before anybody began, and where nobody can tell, by `damage`.
    `pages_behind` are posted and not told.

    `waits_s` is the age of the oldest page of these, 0 where there is none. `tries` failed in a row
    by `why`. `sent`, `dropped` (too old) and `refused` count events, `unread` pages that nobody
    could read, since events were switched on.
    """

    host: str
    page: int | None = None
    damage: str | None = None
    pages_behind: int = 0
    waits_s: float = 0.0
    tries: int = 0
    why: str | None = None
    next_at: datetime | None = None
    sent_at: datetime | None = None
    sent: int = 0
    dropped: int = 0
    refused: int = 0
    unread: int = 0

    def __str__(self) -> str:
        if self.damage is not None:
            return f"to {self.host}: {self.damage}"
        if self.page is None:
            return f"to {self.host}: nothing yet, they begin with the next posting"
        said = f"to {self.host}: {self.sent} sent, told up to page {self.page}"
        if self.pages_behind or self.waits_s:
            said += f", {self.pages_behind} pages behind, the oldest for {self.waits_s:.0f} s"
        if self.tries:
            said += f"; {self.tries} tries failed: {self.why}"
        lost = {"too old": self.dropped, "refused": self.refused, "pages unreadable": self.unread}
        told = [f"{n} {what}" for what, n in lost.items() if n]
        return f"{said}; never sent: {', '.join(told)}" if told else said


def telling_state(stack: Stack, *, posted: int) -> TellingState | None:
    """None where events are switched off. Three requests at most."""
    url = stack.settings.openlineage.url
    if not url:
        return None
    host = host_in(url)
    try:
        found = read_mark(stack)
    except CatalogueError as error:
        return TellingState(host=host, damage=str(error))
    if found is None:
        return TellingState(host=host)
    mark = found.mark
    return TellingState(
        host=host,
        page=mark.page,
        pages_behind=max(0, posted - mark.page),
        waits_s=_waits_s(stack, mark, posted),
        tries=mark.tries,
        why=mark.why,
        next_at=mark.next_at,
        sent_at=mark.sent_at,
        sent=mark.sent,
        dropped=mark.dropped,
        refused=mark.refused,
        unread=mark.unread,
    )


def _waits_s(stack: Stack, mark: TellingMark, posted: int) -> float:
    """Of a page that nobody can read, since the batch before it was begun."""
    if not mark.waits(posted):
        return 0.0
    page = read_page(stack, mark.page + 1) if mark.page < posted else None
    since = mark.at if page is None or page.stored is None else page.stored.record.written_at
    return max(0.0, (stack.now() - since).total_seconds())


def check(settings: Settings) -> Iterator[Finding]:
    """Doctor's question. It has none where events are switched off."""
    if not settings.openlineage.url:
        return
    require_package()
    if not settings.catalogue.enabled:
        yield warn(
            _CHECK,
            "events are of posted pages, and catalogue.enabled is false",
            "set catalogue.enabled = true, or run `tierkeeper catalogue post` yourself",
        )
    if (package := missing_package()) is not None:
        yield fail(_CHECK, f"events need tables, and {package} is not installed", "make setup")
        return
    with open_stack(settings) as stack:
        catalogue = Catalogue.of(stack)
        posted = least(catalogue, catalogue.opened()).page
        yield judged(telling_state(stack, posted=posted))


def judged(state: TellingState | None) -> Finding:
    """What there is to do about it."""
    if state is None:
        return ok(_CHECK, "switched off")
    if state.damage is not None:
        return fail(_CHECK, str(state), "")
    if state.waits_s > WAIT_MAX.total_seconds():
        since = "" if state.sent_at is None else f"; the last one was sent {moment(state.sent_at)}"
        step = f"look at that address (openlineage.url); {_POST}" if state.tries else _POST
        return warn(_CHECK, f"{state}{since}", step)
    if state.dropped or state.refused:
        return warn(
            _CHECK,
            str(state),
            "the catalogue has what was not sent; delete the mark (docs/lineage.md) to count anew",
        )
    return ok(_CHECK, str(state))
