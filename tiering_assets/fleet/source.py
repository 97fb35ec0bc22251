"""Where an answer about many topics comes from: the catalogue's tables, or topics and records read.

Owns: people are never refused for a catalogue that is switched off, not proven yet or behind: then
everything is read, which takes longer and is said. One that is damaged fails by name.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

from tiering_assets.catalogue.nominate import STALE, ProvenTables, proven
from tiering_assets.catalogue.view import Catalogue
from tiering_assets.ground.moments import moment
from tiering_assets.ground.stack import Stack

FRESH: Final = STALE
"""How long ago the last whole scan of topics may have begun, unless somebody says otherwise."""


def tables_to_ask(stack: Stack, *, fresh: timedelta = FRESH) -> ProvenTables | None:
    """The tables, None where topics and records are to be read instead."""
    if not stack.settings.catalogue.enabled or not fresh:
        return None
    found = proven(Catalogue.of(stack))
    if found is not None and stack.now() - found.scanned_at > fresh:
        stack.narrate(
            f"the catalogue last looked at topics {moment(found.scanned_at)}: they are read instead"
        )
        return None
    return found


def document_of(found: ProvenTables | None) -> dict[str, Any] | None:
    """How far an answer goes, for programs; None where everything was read."""
    if found is None:
        return None
    return {
        "page": found.as_of.page,
        "written_at": found.as_of.written_at,
        "scanned_at": found.scanned_at,
        "ledgers_in_work": len(found.as_of.in_work.ledgers),
    }


def said_of(found: ProvenTables | None) -> str | None:
    """The same as a last line, for people."""
    if found is None:
        return None
    return f"{found.as_of}; topics as of {moment(found.scanned_at)}"
