"""What a topic has behind its stream's end that is proven to stay. Reads only, never fences.

Owns: the order: the topic's node, then each ledger's metadata, then what its bookies confirm. What
is seen late can only be more. Looking ends where enough for one segment was found, so that a topic
that fell far behind costs no more than one that did not.

Grows with the ledgers of one segment: a read of metadata and two or three of entries for each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from tiering_assets.ground.stack import Stack
from tiering_assets.look.ledger.plan import source_of
from tiering_assets.offload_format.block import FRAME_BYTES
from tiering_assets.records.stream_models import SkippedRange
from tiering_assets.resources.bookkeeper.ledger import BookKeeperState, DigestType
from tiering_assets.resources.bookkeeper.readable import ReadableTo
from tiering_assets.resources.errors import IntegrityError, RefusedError
from tiering_assets.resources.metastore.ledgers import LedgerNode
from tiering_assets.stream.chain import Chain
from tiering_assets.tasks.descriptors import LedgerSource, OpenEnd

Ends = Literal["enough", "tail", "in recovery", "released", "unchecked"]


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenLedger:
    """Entries of one ledger that no segment has yet, both ends included.

    `bytes_before` are payload bytes of all entries before the first, `bytes_upto` with the last.
    """

    source: LedgerSource
    first_entry_id: int
    last_entry_id: int
    bytes_before: int
    bytes_upto: int
    bound: ReadableTo
    metadata_version: int

    @property
    def ledger_id(self) -> int:
        return self.source.ledger_id

    @property
    def entries(self) -> int:
        return self.last_entry_id - self.first_entry_id + 1

    @property
    def frame_bytes(self) -> int:
        """What they take in blocks, headers and padding apart."""
        return self.bytes_upto - self.bytes_before + FRAME_BYTES * self.entries


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenRange:
    """`ledgers` ascend and leave nothing out. `ends` says why there is no more.

    `skipped` lies between the stream's end and the first of them.
    """

    ledgers: tuple[OpenLedger, ...]
    skipped: SkippedRange | None
    ends: Ends

    @property
    def frame_bytes(self) -> int:
        return sum(one.frame_bytes for one in self.ledgers)


@dataclass(frozen=True, slots=True)
class TopicGone:
    """The topic is not in its node any more, or was made again."""

    why: str


def look_at_range(stack: Stack, chain: Chain, *, enough_bytes: int) -> OpenRange | TopicGone:
    """Look from the stream's end on, until so many frame bytes are found or nothing more is proven.

    Raises:
        IntegrityError: a segment has entries that a closed ledger has not.
        EntryUnavailableError: too few bookies answer.
    """
    read = stack.topics.read(chain.ml_name)
    if read is None:
        return TopicGone("it has no managed ledger any more")
    topic, node = read
    if node.stat.czxid != chain.ml_czxid:
        return TopicGone(f"it was made again: creation id {node.stat.czxid}, not {chain.ml_czxid}")
    found: list[OpenLedger] = []
    held_bytes = 0
    missing = topic.ledger(chain.start.ledger_id) is None
    for listed in topic.ledgers:
        if listed.ledger_id < chain.start.ledger_id:
            continue
        seen = stack.ledgers.read(listed.ledger_id)
        if seen is None:  # brokers read its copy, or it is about to go
            if found:
                return _range(chain, found, missing, "released")
            missing |= (listed.entries or 0) > _first_of(chain, listed.ledger_id)
            continue
        one = _look(stack, chain, seen)
        if isinstance(one, OpenLedger):
            found.append(one)
            held_bytes += one.frame_bytes
        elif one is not None:
            return _range(chain, found, missing, one)
        if held_bytes >= enough_bytes:
            return _range(chain, found, missing, "enough")
        if seen.metadata.state is not BookKeeperState.CLOSED:
            break
    return _range(chain, found, missing, "tail")


def _range(chain: Chain, found: Sequence[OpenLedger], missing: bool, ends: Ends) -> OpenRange:
    """`missing` where what comes first does not follow the stream's end."""
    skipped = None
    if missing and found:
        skipped = SkippedRange(
            from_ledger_id=chain.start.ledger_id,
            from_entry_id=chain.start.entry_id,
            to_ledger_id=found[0].ledger_id,
            to_entry_id=found[0].first_entry_id,
            reason="trimmed by retention, or released: what it held is not known any more",
        )
    return OpenRange(ledgers=tuple(found), skipped=skipped, ends=ends)


def _first_of(chain: Chain, ledger_id: int) -> int:
    """The first entry of a ledger that no segment has."""
    return chain.start.entry_id if ledger_id == chain.start.ledger_id else 0


def _look(stack: Stack, chain: Chain, seen: LedgerNode) -> OpenLedger | Ends | None:
    """What of a ledger is open to be copied; None where nothing is, or why nothing is known."""
    metadata, state = seen.metadata, seen.metadata.state
    first = _first_of(chain, metadata.ledger_id)
    if state is BookKeeperState.IN_RECOVERY:
        return "in recovery"
    if metadata.digest_type is DigestType.DUMMY:
        return "unchecked"
    source = source_now(stack, seen)
    bound = source.readable_to()
    if state is BookKeeperState.CLOSED and bound.entry_id < first - 1:
        raise IntegrityError(
            f"ledger {metadata.ledger_id} of {chain.ml_name} was closed with last entry "
            f"{bound.entry_id}, and segment {chain.next_number - 1} of its stream ends with entry "
            f"{first - 1}. BookKeeper lost acknowledged entries: keep the segment's objects"
        )
    if bound.entry_id < first:
        return None
    with stack.open_points(stack.settings.bookies, source) as points:
        before = 0 if first == 0 else points.cumulative_length(first - 1)
        upto = points.cumulative_length(bound.entry_id)
    if metadata.ledger_id == chain.start.ledger_id and before != chain.bytes_before:
        raise IntegrityError(
            f"ledger {metadata.ledger_id} of {chain.ml_name}: payload bytes up to entry {first - 1}: "
            f"expected {chain.bytes_before} by segment {chain.next_number - 1}, found {before}"
        )
    return OpenLedger(
        source=source,
        first_entry_id=first,
        last_entry_id=bound.entry_id,
        bytes_before=before,
        bytes_upto=upto,
        bound=bound,
        metadata_version=seen.stat.version,
    )


def source_now(stack: Stack, seen: LedgerNode) -> LedgerSource:
    """Where a ledger's entries are; of one that is open with what proves how far it may be read.

    Where no bookie says what is confirmed, that is what lies before its newest ensemble.
    RefusedError for one that is in recovery.
    """
    source, state = source_of(stack, seen), seen.metadata.state
    if state is BookKeeperState.CLOSED:
        return source
    if state is BookKeeperState.IN_RECOVERY:
        raise RefusedError(
            f"ledger {source.ledger_id} is in recovery: its end is being decided. Run again later"
        )
    source = replace(source, open_end=OpenEnd(confirmed={}))
    look = stack.look_at_tail(stack.settings.bookies, source)
    if not look.confirmed:
        said = "; ".join(f"{bookie}: {error}" for bookie, error in look.failures.items())
        stack.tell(f"ledger {source.ledger_id}: no bookie says what is confirmed: {said}")
    return replace(source, open_end=OpenEnd(confirmed={**look.confirmed}))
