"""Runs that died: what they wrote is named, and their ledgers are in work no longer.

Owns: a run is dead once no claim of it can live, by the store's clock. Its records are looked for
under the ledgers that it took up and in their topics; a full listing (prove.py) finds any others. A
run that only slept names what it writes later by its own close page.

A handful of listings for each ledger of a run that died, and nothing where none did.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from tiering_assets.catalogue.facts.record_facts import SAYS, folder_of
from tiering_assets.catalogue.named import to_read
from tiering_assets.catalogue.view import AsOf, Catalogue, Tables, answer, rows_of
from tiering_assets.ground.stack import Stack
from tiering_assets.look.ledger.claims import live_claims, longest_claim
from tiering_assets.records import keys
from tiering_assets.records.bucket_models import NamedRecord
from tiering_assets.records.models import Attempt
from tiering_assets.resources.errors import FormatError
from tiering_assets.resources.lots import lots_of
from tiering_assets.resources.sql import sql_text

_BEHIND: Final = timedelta(minutes=5)
_OF_TOPICS: Final = frozenset({"publications", "undos"})
_OF_LEDGERS: Final = sorted({*SAYS} - _OF_TOPICS - {"holds"})
_AT_ONCE: Final = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Died:
    """`runs` are closed by now; `late` of their records were on no page before."""

    runs: tuple[str, ...] = ()
    late: int = 0


def close_dead(stack: Stack, catalogue: Catalogue, now: AsOf) -> Died:
    """Runs that have ledgers in work longer than any claim lives, none of them claimed."""
    if not now.in_work.runs:  # so it is mostly, and nobody's time need be asked
        return Died()
    store_now = stack.objects.server_time()
    old = {
        name: run.ledgers
        for name, run in now.in_work.runs.items()
        if store_now - run.since > longest_claim(stack) + _BEHIND
    }
    if not old:
        return Died()
    claimed = live_claims(stack, store_now)
    died = {name: left for name, left in old.items() if not left & claimed}
    late = _unnamed(stack, catalogue, sorted({i for left in died.values() for i in left}))
    if late:
        stack.book.name_found(digested(stack, late))
    for name, left in died.items():
        stack.book.close_page_for(name, left)
    return Died(runs=tuple(died), late=len(late))


def _unnamed(stack: Stack, catalogue: Catalogue, ledger_ids: Sequence[int]) -> list[str]:
    """Records of these ledgers that no page has named."""
    own = _listed(stack, (f"{folder}/{i}/" for i in ledger_ids for folder in _OF_LEDGERS))
    tables = catalogue.opened()
    topics = {row["topic"] for row in rows_of(tables, ledger_ids)} - {None}
    topics |= {*_topics_of(stack, [key for key in own if folder_of(key) == "attempts"])}
    below = (of(topic) for topic in sorted(topics) for of in (keys.publications_of, keys.undos_of))
    found = sorted({*own, *_listed(stack, below)})
    named = _named(tables, found)
    return [key for key in found if key not in named]


def _listed(stack: Stack, prefixes: Iterable[str]) -> list[str]:
    found = stack.in_parallel(lambda prefix: [*stack.book.keys(prefix)], [*prefixes])
    return [key for some in found for key in some]


def _topics_of(stack: Stack, attempts: Sequence[str]) -> Iterator[str]:
    for key in attempts:
        stored = stack.book.read_readable(Attempt, key, lambda _key, _error: None)
        if stored is not None:
            yield stored.record.ml_name


def _named(tables: Tables, found: Sequence[str]) -> set[str]:
    named: set[str] = set()
    for lot in lots_of(found, _AT_ONCE):
        some = ", ".join(map(sql_text, lot))
        rows = answer(tables, f"select key from events where key in ({some})")  # noqa: S608
        named.update(row["key"] for row in rows.to_pylist())
    return named


def digested(stack: Stack, record_keys: Sequence[str]) -> list[NamedRecord]:
    """With digests where the content counts: the others are named only."""

    def read(key: str) -> NamedRecord:
        try:
            stored = stack.book.read_any(key)
        except FormatError:
            stored = None
        return NamedRecord(key=key, sha256=None if stored is None else stored.sha256)

    wanted = to_read(record_keys)
    found = {one.key: one for one in stack.in_parallel(read, wanted)}
    return [found.get(key) or NamedRecord(key=key) for key in record_keys]
