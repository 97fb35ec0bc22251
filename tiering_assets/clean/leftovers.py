"""Collect what a broker's own offloader left: what it did not finish, and what we healed. design
section 6.4.

The order is the contract: bucket listed, metadata read, decided, intent written, the attempt taken
out of the topic's node by compare-and-set, the topic reloaded, the node read again, then deleted
and recorded. A run that died anywhere is gone on with by the next.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from tiering_assets.change.confirm import reload_topic
from tiering_assets.change.disturb import must_wait, see
from tiering_assets.change.topic_change import edit_topic
from tiering_assets.clean.deleting import Going, delete_leavings
from tiering_assets.clean.leavings_evidence import is_served
from tiering_assets.clean.leftovers_rules import (
    Collect,
    LeftoverDecision,
    LeftoverEvidence,
    Note,
    decide_leftover,
    take_out_unfinished,
)
from tiering_assets.ground.effects import reach
from tiering_assets.ground.evidence import Effect, Kind
from tiering_assets.ground.reasons import Wait, not_now
from tiering_assets.ground.stack import Stack, asking
from tiering_assets.look.brakes.holds import require_nothing_held
from tiering_assets.look.ledger.bookie_copy import why_only_copy
from tiering_assets.look.topic.bucket_listing import BucketListing, Pair
from tiering_assets.look.topic.contexts import Named
from tiering_assets.look.topic.publications import recorded_publications
from tiering_assets.offload_format.keys import data_key
from tiering_assets.records import keys
from tiering_assets.records.models import Damage
from tiering_assets.records.stored import Stored
from tiering_assets.records.sweep_models import Leftover, SweepIntent, Swept
from tiering_assets.resources.bookkeeper.ledger import BookKeeperState
from tiering_assets.resources.errors import FormatError, TierkeeperError
from tiering_assets.resources.metastore.offload_context import OffloadContext
from tiering_assets.resources.metastore.topic_names import never_touched


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerLeaving:
    """One attempt of a broker that is unfinished, or broken and replaced, and the decision about
    it.

    `note` is our first record of it, `interrupted` tells that an earlier run began to collect it,
    and `served` that its topic reads another attempt, whole and sound.
    """

    pair: Pair
    ml_name: str
    node_version: int
    objects: tuple[str, ...]
    uploads: tuple[str, ...]
    bytes: int
    decision: LeftoverDecision
    note: Stored[Leftover] | Stored[Damage] | None = None
    interrupted: bool = False
    served: bool = False
    done: Swept | None = None
    error: str = ""


def find_leftovers(
    stack: Stack, listing: BucketListing, named: Mapping[Pair, Named], *, ours: Set[Pair]
) -> list[BrokerLeaving]:
    """Unfinished attempts of brokers in metadata, earlier ones that left something, and broken
    ones.

    `ours` are all of our attempts.
    """
    noted = stack.book.pairs("leftovers/")
    swept = stack.book.pairs("sweeps/")
    begun = stack.book.pairs("sweep-intents/") - swept
    unfinished = {pair for pair, place in named.items() if not place.complete}
    broken = stack.book.pairs(keys.DAMAGE) - named.keys()
    candidates = (unfinished | begun | ((noted | broken) & listing.pairs())) - ours
    found = []
    for pair in sorted(candidates):
        try:
            found.append(_look(stack, pair, listing, named.get(pair), interrupted=pair in begun))
        except FormatError as error:
            stack.tell(
                f"ledger {pair[0]}: what its broker left of {pair[1]} stays: {error}", pair[0]
            )
    return found


def _look(
    stack: Stack, pair: Pair, listing: BucketListing, named: Named | None, *, interrupted: bool
) -> BrokerLeaving:
    ledger_id, uid = pair
    note = stack.book.read(Leftover, keys.leftover(ledger_id, uid))
    damage = stack.book.read(Damage, keys.damage(ledger_id, uid))
    ml_name, version = _topic_of(pair, named, note, damage)
    topic = stack.topics.read(ml_name)
    info = None if topic is None else topic[0]
    listed = None if info is None else info.ledger(ledger_id)
    context = None if listed is None else listed.offload
    named_now = context if context is not None and context.uid == uid else None
    node = stack.ledgers.read(ledger_id)
    served = is_served(stack, ledger_id, context)
    evidence = LeftoverEvidence(
        ledger_id=ledger_id,
        uid=uid,
        named_unfinished=named_now is not None and not named_now.complete,
        named_complete=named_now is not None and named_now.complete,
        noted_at=None if note is None else note.stored_at,
        last_sent_at=max(_sent(stack, pair, listing), default=None),
        store_now=listing.listed_at,
        listed=listed is not None and not listed.is_open,
        in_bookkeeper=node is not None and node.metadata.state is BookKeeperState.CLOSED,
        never_touched=None if info is None else never_touched(ml_name, info.properties),
        damaged=damage is not None,
        replaced_at=None if damage is None else _replaced_at(stack, ml_name, pair, context),
        served=served,
    )
    return BrokerLeaving(
        pair=pair,
        ml_name=ml_name,
        node_version=version,
        objects=listing.keys_of(pair),
        uploads=listing.uploads_of(pair),
        bytes=listing.bytes_of(pair),
        decision=decide_leftover(
            evidence, guard_age=timedelta(seconds=stack.settings.release.guard_age_s)
        ),
        note=note or damage,
        interrupted=interrupted,
        served=served,
    )


def _topic_of(
    pair: Pair,
    named: Named | None,
    note: Stored[Leftover] | None,
    damage: Stored[Damage] | None,
) -> tuple[str, int]:
    """The attempt's topic, and the version of its node that we know of."""
    if named is not None:
        return named.ml_name, named.node_version
    if note is not None:
        return note.record.ml_name, note.record.node_version
    if damage is not None and damage.record.ml_name is not None:
        return damage.record.ml_name, 0
    raise FormatError(f"attempt {pair[1]}: no record of ours says of which topic it is")


def _replaced_at(
    stack: Stack, ml_name: str, pair: Pair, context: OffloadContext | None
) -> datetime | None:
    """When the store took the record of a publication of ours that the topic names instead."""
    if context is None:
        return None
    return recorded_publications(stack, ml_name).replaced_at(*pair, {context.uid})


def _sent(stack: Stack, pair: Pair, listing: BucketListing) -> Iterator[datetime]:
    """When the store took each thing of this attempt."""
    ledger_id, uid = pair
    for summary in listing.objects.get(pair, ()):
        yield summary.last_modified
    for upload in listing.uploads.get(pair, ()):
        yield upload.initiated
        for part in stack.objects.list_parts(data_key(uid, ledger_id), upload.upload_id) or ():
            if part.last_modified is not None:
                yield part.last_modified


def collect_leftovers(
    stack: Stack, leavings: Iterable[BrokerLeaving], *, only: Collection[Pair] | None = None
) -> list[BrokerLeaving]:
    """Note the new ones, collect the dead ones topic by topic; the others stay as they are.

    Of the dead ones no more than `only`.
    """
    done: list[BrokerLeaving] = []
    topics: dict[str, list[BrokerLeaving]] = {}
    leavings = [*leavings]
    stack.book.take_up(one.pair[0] for one in leavings if isinstance(one.decision, Collect | Note))
    for leaving in leavings:
        if isinstance(leaving.decision, Collect) and (only is None or leaving.pair in only):
            topics.setdefault(leaving.ml_name, []).append(leaving)
        else:
            if isinstance(leaving.decision, Note):
                _note(stack, leaving)
            done.append(leaving)
    for ml_name, going in topics.items():
        try:
            done += _collect(stack, ml_name, going)
        except TierkeeperError as error:
            stack.tell(f"{ml_name}: {error}", topic=ml_name)
            done += [replace(leaving, error=str(error)) for leaving in going]
    return sorted(done, key=lambda leaving: leaving.pair)


def _why_kept(stack: Stack, leaving: BrokerLeaving) -> str | None:
    """Why its data object may be all that is left of the ledger, whatever BookKeeper's metadata
    says.
    """
    ledger_id, uid = leaving.pair
    if leaving.served or data_key(uid, ledger_id) not in leaving.objects:
        return None
    return why_only_copy(stack, ledger_id, ml_name=leaving.ml_name, uid=uid)


def _note(stack: Stack, leaving: BrokerLeaving) -> None:
    ledger_id, uid = leaving.pair
    stack.book.create_or_read(
        keys.leftover(ledger_id, uid),
        Leftover(
            ledger_id=ledger_id,
            uid=uid,
            ml_name=leaving.ml_name,
            node_version=leaving.node_version,
            seen_at=stack.now(),
            writer=stack.writer,
        ),
    )
    reach("sweep.noted", ledger_id, topic=leaving.ml_name, attempt=uid)


def _collect(stack: Stack, ml_name: str, dead: list[BrokerLeaving]) -> list[BrokerLeaving]:
    why_kept = {leaving.pair: _why_kept(stack, leaving) for leaving in dead}
    kept = [replace(one, decision=not_now(why)) for one in dead if (why := why_kept[one.pair])]
    given = [leaving for leaving in dead if why_kept[leaving.pair] is None]
    return kept + _collect_given(stack, ml_name, given)


def _collect_given(stack: Stack, ml_name: str, going: list[BrokerLeaving]) -> list[BrokerLeaving]:
    uids = dict(one.pair for one in going if one.decision == Collect(take_out=True))
    # A run that died may have taken it out and not reloaded the topic.
    reload = uids or any(leaving.interrupted for leaving in going)
    seen = see(stack, ml_name) if reload else None
    wait = must_wait(stack, ml_name, seen) if seen is not None else None
    if wait is not None:
        return [replace(leaving, decision=not_now(str(wait))) for leaving in going]
    intents = {leaving.pair: _intend(stack, leaving) for leaving in going}
    if seen is not None:
        found = stack.topics.read(ml_name)
        if found is None:
            return [replace(leaving, decision=not_now("its topic is gone")) for leaving in going]
        edited = edit_topic(
            stack,
            ml_name,
            lambda info: take_out_unfinished(info, uids),
            czxid=found[1].stat.czxid,
            applied=lambda info: take_out_unfinished(info, uids) is None,
        )
        reach("sweep.taken_out", *uids, topic=ml_name)
        if not seen.still_idle(edited):
            why = "what a broker's offloader left was taken out"
            confirmed_by = reload_topic(stack, ml_name, why=why)
            if isinstance(confirmed_by, Wait):
                return [replace(x, decision=not_now(str(confirmed_by))) for x in going]
        reach("sweep.reloaded", topic=ml_name)
    return [_delete(stack, leaving, intents[leaving.pair]) for leaving in going]


def _intend(stack: Stack, leaving: BrokerLeaving) -> Stored[SweepIntent]:
    ledger_id, uid = leaving.pair
    if leaving.note is None:
        raise ValueError(f"ledger {ledger_id}: attempt {uid} was never noted")
    stored, _ours = stack.book.create_or_read(
        keys.sweep_intent(ledger_id, uid),
        SweepIntent(
            ledger_id=ledger_id,
            uid=uid,
            ml_name=leaving.ml_name,
            objects=leaving.objects,
            uploads=len(leaving.uploads),
            intended_at=stack.now(),
            writer=stack.writer,
            previous=leaving.note.sha256,
        ),
    )
    reach("sweep.intended", ledger_id, topic=leaving.ml_name, attempt=uid)
    return stored


def _delete(stack: Stack, leaving: BrokerLeaving, intent: Stored[SweepIntent]) -> BrokerLeaving:
    """Delete, if a fresh read of the node names the attempt no more, in whatever state."""
    ledger_id, uid = leaving.pair
    held = asking(stack, Kind.HOLDS, Kind.NODE, Kind.LEDGER, Kind.RECORDS)
    found = stack.topics.read(leaving.ml_name)
    listed = None if found is None else found[0].ledger(ledger_id)
    if listed is None or (listed.offload is not None and listed.offload.uid == uid):
        return replace(leaving, decision=not_now("its topic changed meanwhile"))
    node = stack.ledgers.read(ledger_id)
    in_bookkeeper = node is not None and node.metadata.state is BookKeeperState.CLOSED
    if not in_bookkeeper and not leaving.served:
        return replace(leaving, decision=not_now("BookKeeper has lost the ledger meanwhile"))
    if leaving.served and not is_served(stack, ledger_id, listed.offload):
        return replace(leaving, decision=not_now("what took its place is not sound any more"))
    going = Going(
        ledger_id=ledger_id,
        uid=uid,
        ml_name=leaving.ml_name,
        objects=leaving.objects,
        uploads=leaving.uploads,
        intent=intent.sha256,
        effect=Effect.SWEEP,
        evidence=held,
    )
    try:
        require_nothing_held(stack, "sweep")
        done = delete_leavings(stack, going)
    except TierkeeperError as error:
        stack.narrate(str(error))
        return replace(leaving, error=str(error))
    stack.tell(
        f"ledger {ledger_id}: collected what a broker left of attempt {uid}", ledger_id, attempt=uid
    )
    return replace(leaving, done=done)
