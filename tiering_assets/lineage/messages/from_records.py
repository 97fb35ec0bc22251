"""Blocks of a topic's ledgers where there is no catalogue: by certificates, and brokers' indexes.

Owns: of a ledger the attempt counts that brokers read, else the newest certified one that is not
quarantined. What cannot be found is an error that names the ledger. One or two requests a ledger,
of at most LEDGERS_MAX.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import Final

from tiering_assets.catalogue.facts.known_ledger import BY_BROKER
from tiering_assets.catalogue.facts.rows import rows_of_blocks
from tiering_assets.ground.stack import Stack
from tiering_assets.lineage.messages.listed_ledgers import TopicLedger
from tiering_assets.lineage.placed_block import PlacedBlock, block_of_bookies, placed_block
from tiering_assets.offload_format.decoder import BlockRange, block_lengths, decode_index
from tiering_assets.offload_format.keys import data_key, index_key
from tiering_assets.offload_format.layout import INDEX_BYTES_MAX
from tiering_assets.records import keys
from tiering_assets.records.models import Certificate
from tiering_assets.records.stored import Stored
from tiering_assets.resources.errors import CatalogueError, FormatError, ObjectNotFoundError
from tiering_assets.resources.metastore.offload_context import OffloadContext

LEDGERS_MAX: Final = 1000


def blocks_from_records(
    stack: Stack, topic: str, ledgers: Iterable[TopicLedger]
) -> list[PlacedBlock]:
    """Of those of a topic, or a pattern, that have a copy; in their order."""
    some = [*ledgers]
    if len(some) > LEDGERS_MAX:
        raise CatalogueError(
            f"{topic} has {len(some)} ledgers that the catalogue has no blocks of, and at most "
            f"{LEDGERS_MAX} are looked up one by one. `tierkeeper catalogue post` brings ours, "
            "`tierkeeper scrub run --deep --execute` those that brokers wrote"
        )
    return [*chain.from_iterable(stack.in_parallel(lambda one: _blocks(stack, one), some))]


def _blocks(stack: Stack, ledger: TopicLedger) -> list[PlacedBlock]:
    copy, ledger_id = ledger.copy, ledger.info.ledger_id
    if copy is None:
        newest = _newest_certified(stack, ledger_id)
        return [] if newest is None else _certified(newest)
    stored = stack.book.read(Certificate, keys.certificate(ledger_id, copy.uid))
    return _of_brokers_copy(stack, ledger, copy) if stored is None else _certified(stored)


def _certified(stored: Stored[Certificate]) -> list[PlacedBlock]:
    rows = rows_of_blocks(stored, page=0)
    return [replace(placed_block(row, None), counts=True) for row in rows]


def _newest_certified(stack: Stack, ledger_id: int) -> Stored[Certificate] | None:
    """Of the attempts that no brokers read."""
    found = []
    for key in stack.book.keys(keys.certificates_of(ledger_id)):
        _ledger, uid = keys.pair_of(key)
        if not stack.book.exists(keys.quarantine(ledger_id, uid)):
            found.append(stack.book.read(Certificate, key))
    sound = [one for one in found if one is not None]
    return max(sound, key=lambda one: (one.record.verified_at, str(one.record.uid)), default=None)


def _of_brokers_copy(stack: Stack, ledger: TopicLedger, copy: OffloadContext) -> list[PlacedBlock]:
    """By the index that its broker wrote: nothing of it is certified."""
    ledger_id, bucket = ledger.info.ledger_id, copy.properties.get("bucket")
    if bucket != stack.settings.store.bucket:
        raise CatalogueError(
            f"ledger {ledger_id} of {ledger.ml_name}: its copy is in bucket {bucket!r}, and "
            f"store.bucket is {stack.settings.store.bucket!r}"
        )
    key = index_key(copy.uid, ledger_id)
    index = stack.objects.get(key, bytes_max=INDEX_BYTES_MAX)
    if index is None:
        raise ObjectNotFoundError(
            f"ledger {ledger_id} of {ledger.ml_name}: brokers read the copy {copy.uid}, and there "
            f"is no {key}: `tierkeeper ledger show {ledger_id}` tells what is known of it"
        )
    try:
        ranges = block_lengths(decode_index(index.body))
    except FormatError as error:
        raise FormatError(f"{key} of {ledger.ml_name}: {error}") from error
    return [
        replace(
            block_of_bookies(ledger.ml_name, ledger_id, part, entries, length=one.length),
            bucket=bucket,
            data_key=data_key(copy.uid, ledger_id),
            offset=one.offset,
            uid=str(copy.uid),
            written_by=BY_BROKER,
            state="offloaded by its broker",
            bookie_copy="unknown",
        )
        for part, (one, entries) in enumerate(zip(ranges, _entries(ranges, ledger), strict=True), 1)
    ]


def _entries(ranges: Sequence[BlockRange], ledger: TopicLedger) -> Iterator[range]:
    """Of each block: the index does not say where those of the last one end, the topic does."""
    last = (ledger.info.entries or 0) - 1
    for one in ranges:
        yield range(
            one.first_entry_id, (last if one.last_entry_id is None else one.last_entry_id) + 1
        )
