"""Which blocks hold what is asked for, and how each is read.

Owns: the catalogue says which blocks there are. Where there is none, the topic's node and its
ledgers' records do. With `include_hot` come ledgers that are sealed and have no copy, by their
topic's node as it is now.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Final

from tiering_assets.catalogue.view import AsOf, Catalogue, Tables, least
from tiering_assets.cold.decode import Entries
from tiering_assets.ground.stack import Stack
from tiering_assets.lineage.find import OF_BLOCKS, blocks_after, blocks_before
from tiering_assets.lineage.known_places import known_places
from tiering_assets.lineage.messages.arrived import copied_by_brokers, first_pages
from tiering_assets.lineage.messages.earlier_pieces import LOOKED_MAX, Read
from tiering_assets.lineage.messages.from_records import blocks_from_records
from tiering_assets.lineage.messages.hot_entries import reads_of_blocks
from tiering_assets.lineage.messages.listed_ledgers import TopicLedger, listed_ledgers
from tiering_assets.lineage.messages.options import ColdOptions
from tiering_assets.lineage.messages.pushed import Pushed, may_have
from tiering_assets.lineage.placed_block import PlacedBlock, block_of_bookies
from tiering_assets.lineage.read_entry import get_bytes
from tiering_assets.look.ledger.plan import source_of
from tiering_assets.resources.bookkeeper.ledger import BookKeeperState
from tiering_assets.resources.errors import CatalogueError, LedgerNotFoundError, MetadataError
from tiering_assets.resources.tables import missing_package
from tiering_assets.tasks.descriptors import LedgerSource

_HOT_BYTES: Final = 64 * 1024 * 1024
"""Of entries that are read at once."""


@dataclass(frozen=True, kw_only=True)
class ReadingPlan:
    """`blocks` in the order of topics. `tables` and `as_of` are None without a catalogue, whose
    tables are below `root`.

    `sources` are those of ledgers on bookies alone. Where the catalogue does not know all that is
    read, `known` are these blocks with those that filters left out.
    """

    blocks: Sequence[PlacedBlock]
    tables: Tables | None
    as_of: AsOf | None
    root: str
    sources: Mapping[int, LedgerSource] = field(default_factory=dict)
    known: Sequence[PlacedBlock] = ()

    @property
    def said(self) -> str:
        """How far it goes."""
        if self.as_of is None:
            return "without a catalogue, by the topic and its records as they are now"
        return str(self.as_of)

    def before(self, block: PlacedBlock) -> Iterator[PlacedBlock]:
        """Those of its topic before it, the nearest first."""
        if self.known:
            yield from self.earlier(block)
        elif self.tables is not None:
            yield from blocks_before(self.tables, block)

    def after(self, block: PlacedBlock) -> Iterator[PlacedBlock]:
        """Those behind it, the nearest first."""
        if self.known:
            yield from self.later(block)
        elif self.tables is not None:
            yield from blocks_after(self.tables, block)

    def earlier(self, block: PlacedBlock) -> Iterator[PlacedBlock]:
        """The `known` ones before it, as far back as pieces are looked for."""
        return self._of_topic(block, range(self._places[_in_order(block)] - 1, -1, -1))

    def later(self, block: PlacedBlock) -> Iterator[PlacedBlock]:
        """The `known` ones behind it, as far as a transaction's end is looked for."""
        return self._of_topic(block, range(self._places[_in_order(block)] + 1, len(self.known)))

    def _of_topic(self, block: PlacedBlock, places: range) -> Iterator[PlacedBlock]:
        looked = 0
        for at in places:
            one = self.known[at]
            if one.topic != block.topic or looked > LOOKED_MAX:
                return
            looked += one.length
            yield one

    @cached_property
    def _places(self) -> Mapping[tuple[str, int, int], int]:
        return {_in_order(block): at for at, block in enumerate(self.known)}


def plan_messages(stack: Stack, asked: ColdOptions, filters: Sequence[Pushed] = ()) -> ReadingPlan:
    """Blocks that may have some of the messages that pass the filters.

    CatalogueError for a topic of which nothing is known.
    """
    catalogue = Catalogue.of(stack)
    tables = _tables(catalogue)
    as_of = None if tables is None else least(catalogue, tables)
    root, wanted = catalogue.place.root, (*filters, *asked.of_time)
    beside = _beside(tables, asked)
    if tables is not None and as_of is not None and beside == set():
        blocks = [one for one in asked.blocks(tables, as_of, filters) if may_have(one, wanted)]
        return ReadingPlan(blocks=blocks, tables=tables, as_of=as_of, root=root)
    known: list[PlacedBlock] = []
    if tables is not None and as_of is not None:
        known += asked.blocks(tables, as_of, or_none=True)
    listed = _listed(stack, asked, beside, {one.ledger_id for one in known})
    if not listed and not known:
        raise CatalogueError(f"{asked.topic}: no topic that is named so has a closed ledger")
    hot = [one for one in listed if asked.include_hot and one.copy is None]
    sources = {one.info.ledger_id: _source(stack, one) for one in hot}
    # Of those beside the catalogue none is in it.
    posted = first_pages(tables, asked.topic) if tables is not None and beside is None else {}
    placed = posted.keys() | sources.keys()
    others = [one for one in listed if one.info.ledger_id not in placed]
    known += [block for one in hot for block in ranges_of(one)]
    known += blocks_from_records(stack, asked.topic, others)
    known.sort(key=_in_order)
    return ReadingPlan(
        blocks=[one for one in known if may_have(one, wanted)],
        tables=tables,
        as_of=as_of,
        root=root,
        sources=sources,
        known=known,
    )


def _beside(tables: Tables | None, asked: ColdOptions) -> set[int] | None:
    """Ledgers that are to be looked for in their topics' lists; None is all that are there.

    A copy of a broker has blocks in the catalogue once a deep look has read it.
    """
    if tables is None or asked.include_hot:
        return None
    if asked.ledgers:
        return set()
    of_brokers = copied_by_brokers(tables, asked.topic)
    return of_brokers.difference(first_pages(tables, asked.topic)) if of_brokers else set()


def _listed(
    stack: Stack, asked: ColdOptions, beside: set[int] | None, known: set[int]
) -> list[TopicLedger]:
    if asked.ledgers:
        raise CatalogueError(
            "ledgers by their ids are found by the catalogue alone: give their topic, or "
            "`tierkeeper catalogue post` makes a catalogue"
        )
    return [
        one
        for one in listed_ledgers(stack, asked.topic)
        if one.info.ledger_id not in known and (beside is None or one.info.ledger_id in beside)
    ]


def _tables(catalogue: Catalogue) -> Tables | None:
    """None where the package is missing that reads them, or none was ever written."""
    if missing_package() is not None:
        return None
    tables = catalogue.opened(OF_BLOCKS)
    return tables if tables["blocks"].is_written else None


def ranges_of(ledger: TopicLedger) -> Iterator[PlacedBlock]:
    """Its entries, so many at once as have about _HOT_BYTES."""
    entries, size = ledger.info.entries or 0, ledger.info.size or 0
    step = max(1, min(entries, entries * _HOT_BYTES // max(1, size)))
    for part, first in enumerate(range(0, entries, step), 1):
        some = range(first, min(first + step, entries))
        yield block_of_bookies(
            ledger.ml_name,
            ledger.info.ledger_id,
            part,
            some,
            length=size * len(some) // entries,
        )


def _source(stack: Stack, ledger: TopicLedger) -> LedgerSource:
    """Nothing is read of a ledger that BookKeeper has not closed: that would fence its writer."""
    ledger_id = ledger.info.ledger_id
    node = stack.ledgers.read(ledger_id)
    if node is None:
        raise LedgerNotFoundError(
            f"ledger {ledger_id} of {ledger.ml_name} has no copy that brokers read, and BookKeeper "
            f"does not have it: `tierkeeper ledger show {ledger_id}` tells what is known of it"
        )
    if node.metadata.state is not BookKeeperState.CLOSED:
        raise MetadataError(
            f"ledger {ledger_id} of {ledger.ml_name} is closed by its topic, and "
            f"{node.metadata.state.name} by BookKeeper: whoever opens it first closes it, repeat then"
        )
    return source_of(stack, node)


@contextmanager
def reading(stack: Stack, plan: ReadingPlan) -> Iterator[Read]:
    """How the entries of its blocks are read, by this process, which remembers where they lie."""
    get, bookies = partial(get_bytes, stack), partial(stack.open_points, stack.settings.bookies)
    places = known_places(stack.settings.cache)
    with reads_of_blocks(get, plan.sources, bookies, stack.spending_for) as read:

        def remembered(block: PlacedBlock) -> Entries:
            entries = read(block)
            if not block.on_bookies:
                places.learn(block, entries)
            return entries

        yield remembered


def _in_order(block: PlacedBlock) -> tuple[str, int, int]:
    return block.topic, block.ledger_id, block.part
