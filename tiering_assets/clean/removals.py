"""Write down which published copies lost their ledger to a trim or a topic's deletion.

Owns: an audit sees the bucket alone, and cannot tell a broker that deleted an object with its
ledger from a loss; this record tells it. It is written after two reads of the topic's node that
agree, and never for so many copies at once that the metadata must be doubted. It permits nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime

from tiering_assets.clean.gone import Whereabouts
from tiering_assets.clean.gone_rules import Fate
from tiering_assets.clean.removal import Sight, judge_gone, too_many_gone
from tiering_assets.ground.stack import Stack
from tiering_assets.look.topic.bucket_listing import Pair
from tiering_assets.look.topic.contexts import read_contexts
from tiering_assets.look.topic.publications import recorded_publications
from tiering_assets.records import keys
from tiering_assets.records.models import Attempt, Outcome, Publication
from tiering_assets.records.stored import Stored
from tiering_assets.records.sweep_models import Removal
from tiering_assets.resources.errors import FormatError, TierkeeperError


@dataclass(frozen=True, slots=True, kw_only=True)
class Removals:
    """Copies whose ledgers this look recorded as gone. `refused` says why it recorded none of
    them.
    """

    recorded: tuple[Pair, ...] = ()
    refused: str = ""

    @property
    def line(self) -> str:
        """What people are told; empty where there is nothing to tell."""
        if self.refused or not self.recorded:
            return self.refused
        return f"{len(self.recorded)} ledgers are gone from their topics; recorded, so that audits know"


def observe_removals(stack: Stack, only: Collection[Pair] | None = None) -> Removals:
    """Record every published copy whose ledger is gone, or those of `only` that are.

    A few listings, one read of each topic, and some requests for each copy that no topic names and
    of which nothing is on record yet. What cannot be read is told and left to the next look.
    """
    try:
        return _observe(stack, only)
    except TierkeeperError as error:
        return Removals(refused=f"ledgers that are gone were not looked for: {error}")


def _observe(stack: Stack, only: Collection[Pair] | None) -> Removals:
    pairs = stack.book.pairs("attempts/")
    open_pairs = pairs & stack.book.pairs("outcomes/") - stack.book.pairs(keys.REMOVALS)
    unnamed = sorted(open_pairs - read_contexts(stack).keys())
    suspects = [
        found
        for pair in unnamed
        if (only is None or pair in only) and (found := _published(stack, pair)) is not None
    ]
    if not suspects:
        return Removals()
    first = _look(stack, suspects)
    gone = [one for one in suspects if one.pair in first]
    why = too_many_gone(
        len(gone), fleet=len(pairs), share_max=stack.settings.release.fleet_share_max
    )
    if why is not None:
        return Removals(
            refused=f"the ledgers of {why}, are gone: nothing is recorded of them, and audits miss "
            f"their objects. Is the metadata complete? If they were meant to go, raise the setting "
            f"for one run"
        )
    again = _look(stack, gone)
    agreed = [one for one in gone if _agree(first[one.pair], again.get(one.pair))]
    stack.book.take_up(one.pair[0] for one in agreed)
    for one in agreed:
        _record(stack, one, first[one.pair], again[one.pair], gone=len(gone), fleet=len(pairs))
    return Removals(recorded=tuple(one.pair for one in agreed))


@dataclass(frozen=True, slots=True)
class _Published:
    """A published attempt, and the record of its newest publication."""

    pair: Pair
    ml_name: str
    outcome: Stored[Outcome]
    publication: Publication


@dataclass(frozen=True, slots=True)
class _Seen:
    """That its ledger was gone at a moment, by our clock."""

    fate: Fate
    czxid: int | None
    at: datetime


def _published(stack: Stack, pair: Pair) -> _Published | None:
    try:
        ml_name = stack.book.require(Attempt, keys.attempt(*pair)).record.ml_name
        newest = recorded_publications(stack, ml_name).newest(*pair)
        outcome = stack.book.read(Outcome, keys.outcome(*pair))
    except FormatError as error:
        stack.tell(f"ledger {pair[0]}: whether it is gone is not known: {error}", pair[0])
        return None
    if newest is None or outcome is None:
        return None
    return _Published(pair, ml_name, outcome, newest.record)


def _look(stack: Stack, suspects: Collection[_Published]) -> Mapping[Pair, _Seen]:
    """Those of them that are gone now, each by a read of its topic's node."""
    where = Whereabouts(stack)
    seen: dict[Pair, _Seen] = {}
    for one in suspects:
        try:
            topic = where.own_topic(one.ml_name)
            fate = judge_gone(
                Sight(
                    ledger_id=one.pair[0],
                    published_czxid=one.publication.node_czxid,
                    published_version=one.publication.node_version,
                    czxid=topic.czxid,
                    version=topic.version,
                    listed=topic.listed,
                    elsewhere=where.elsewhere(one.ml_name, one.pair[0]),
                    in_bookkeeper=where.in_bookkeeper(one.pair[0]),
                )
            )
        except FormatError as error:
            stack.tell(
                f"ledger {one.pair[0]}: whether it is gone is not known: {error}", one.pair[0]
            )
            continue
        if isinstance(fate, Fate):
            seen[one.pair] = _Seen(fate, topic.czxid, stack.now())
    return seen


def _agree(first: _Seen, again: _Seen | None) -> bool:
    return again is not None and (first.fate, first.czxid) == (again.fate, again.czxid)


def _record(
    stack: Stack, one: _Published, first: _Seen, again: _Seen, *, gone: int, fleet: int
) -> None:
    ledger_id, uid = one.pair
    stack.book.create_or_read(
        keys.removal(ledger_id, uid),
        Removal(
            ledger_id=ledger_id,
            uid=uid,
            ml_name=one.ml_name,
            fate=first.fate.value,
            node_czxid=first.czxid,
            seen_at=first.at,
            seen_again_at=again.at,
            gone=gone,
            fleet=fleet,
            writer=stack.writer,
            previous=one.outcome.sha256,
        ),
    )
    stack.tell(f"ledger {ledger_id}: gone from its topic ({first.fate.value}); recorded", ledger_id)
