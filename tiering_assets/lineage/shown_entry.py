"""An entry that was read, with the messages that are meant of it, or why it shows none."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from tiering_assets.lineage.asked import MessagePlace
from tiering_assets.offload_format.message_decoder import DecodedEntry, EntryMessage, decode_entry
from tiering_assets.resources.errors import FormatError


@dataclass(frozen=True, slots=True)
class ReadCost:
    """What was asked of the store, and what the index cache was good for.

    Where it was used, the block was not walked from its beginning; where it was filled, that was
    the last time.
    """

    requests: int = 0
    bytes_read: int = 0
    index_cache: Literal["used", "filled", "not used"] = "not used"


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryInObject:
    """`offset` is that of its frame in the object."""

    entry_id: int
    offset: int
    payload: bytes = field(repr=False)
    cost: ReadCost


@dataclass(frozen=True, slots=True, kw_only=True)
class NoEntry:
    """A byte that no entry has is of the block's `header` or `padding`."""

    what: Literal["header", "padding"]
    cost: ReadCost


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownEntry:
    """`decoded` is None where the entry is no message of Pulsar's, or damaged: `problem` says."""

    stored: EntryInObject
    decoded: DecodedEntry | None
    messages: tuple[EntryMessage, ...] = ()
    problem: str | None = None


def show_entry(stored: EntryInObject, place: MessagePlace) -> ShownEntry:
    """All of its messages, or the one with the index of the place.

    Raises:
        ValueError: the entry has no message of that index.
    """
    try:
        decoded = decode_entry(stored.payload)
    except FormatError as error:
        problem = f"entry {place.ledger_id}:{stored.entry_id} shows no message: {error}"
        return ShownEntry(stored=stored, decoded=None, problem=problem)
    return ShownEntry(stored=stored, decoded=decoded, messages=_chosen(decoded, place))


def _chosen(decoded: DecodedEntry, place: MessagePlace) -> tuple[EntryMessage, ...]:
    if place.batch_index is None:
        return decoded.messages
    found = tuple(one for one in decoded.messages if one.batch_index == place.batch_index)
    if not found:
        entry = f"entry {place.ledger_id}:{place.entry_id}"
        if any(one.batch_index < 0 for one in decoded.messages):
            raise ValueError(f"{entry} is no batch that can be opened: leave the index out")
        raise ValueError(f"{entry} is a batch of {decoded.batch_size}, counted from 0")
    return found
