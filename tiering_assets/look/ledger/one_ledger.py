"""One ledger as both trees and the records have it now, from its own and its topic's keys alone.

Reads only. Owns: what is asked of one ledger costs the store the same at any size of the fleet. It
gives what the survey of all ledgers would say of this one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from tiering_assets.ground.stack import Stack
from tiering_assets.look.brakes.brake import HOLD, Brakes, read_brakes
from tiering_assets.look.ledger.claims import read_claim
from tiering_assets.look.ledger.plan import LedgerSight, look_at
from tiering_assets.look.ledger.resume import attempts_of
from tiering_assets.look.ledger.survey import ListedRecords, SurveyedLedger, survey_ledger
from tiering_assets.look.topic.publications import Publications, publication_of
from tiering_assets.offload_format.keys import index_key
from tiering_assets.records import keys
from tiering_assets.records.models import Attempt, Claim
from tiering_assets.records.stored import Stored
from tiering_assets.resources.errors import FormatError, LedgerNotFoundError
from tiering_assets.resources.metastore.ledger_info import LedgerInfo
from tiering_assets.resources.metastore.topics import decode_topic


@dataclass(frozen=True, slots=True, kw_only=True)
class OneLedger:
    """`attempts` are oldest first; `publications` those that tell of the context that stands.

    `claim` is None where no run works on it; `surveyed` where no topic lists the ledger. `unread`
    are topics that could not be asked whether they list it, with path and fault.
    """

    sight: LedgerSight
    attempts: Sequence[Stored[Attempt]]
    publications: Publications
    holds: Brakes
    claim: Claim | None
    surveyed: SurveyedLedger | None
    unread: tuple[str, ...] = ()


def look_at_one(stack: Stack, ledger_id: int) -> OneLedger:
    """Look at one ledger. Where neither BookKeeper nor a record names its topic, at every topic."""
    attempts = attempts_of(stack, ledger_id)
    sight = look_at(stack, ledger_id, ml_name=attempts[-1].record.ml_name if attempts else None)
    unread: tuple[str, ...] = ()
    if sight.ml_name is None:
        lister, unread = _lister(stack, ledger_id)
        sight = look_at(stack, ledger_id, ml_name=lister)
    listed, ml_name = sight.listed, sight.ml_name
    publications = Publications(())
    if ml_name is not None:
        publications = publication_of(stack, ml_name, listed)
    records, claim = _records(stack, ledger_id, attempts, listed)
    surveyed = None
    if listed is not None and ml_name is not None:
        surveyed = survey_ledger(
            stack, ml_name, listed, records, publications, in_bookkeeper=sight.node is not None
        )
    return OneLedger(
        sight=sight,
        attempts=attempts,
        publications=publications,
        holds=records.holds,
        claim=claim,
        surveyed=surveyed,
        unread=unread,
    )


def nobody_knows(one: OneLedger) -> LedgerNotFoundError:
    """The error where neither tree nor any record has a ledger, as far as they can be read."""
    return LedgerNotFoundError(
        f"ledger {one.sight.ledger_id}: BookKeeper does not have it, no topic lists it, and it has "
        "no records; "
        + "; ".join([*may_list(one), "`tierkeeper ledger list` prints those that exist"])
    )


def may_list(one: OneLedger) -> tuple[str, ...]:
    """One sentence for each topic that may list the ledger after all."""
    return tuple(f"a topic that cannot be read may list it: {fault}" for fault in one.unread)


def _lister(stack: Stack, ledger_id: int) -> tuple[str | None, tuple[str, ...]]:
    """The topic that lists a ledger, or those that cannot be read: looks through all of them."""
    unread = []
    for ml_name, node in stack.topics.read_all():
        try:
            if node is not None and decode_topic(node).ledger(ledger_id) is not None:
                return ml_name, ()
        except FormatError as error:
            unread.append(str(error))
    return None, tuple(unread)


def _records(
    stack: Stack,
    ledger_id: int,
    attempts: Sequence[Stored[Attempt]],
    listed: LedgerInfo | None,
) -> tuple[ListedRecords, Claim | None]:
    """What the survey's listings would say of this ledger, and who works on it."""
    uids = [attempt.record.uid for attempt in attempts]
    store_now = stack.objects.server_time()
    context = None if listed is None else listed.offload
    known = dict.fromkeys([*uids, *([] if context is None else [context.uid])])
    certified = {u for u in known if stack.book.exists(keys.certificate(ledger_id, u))}
    quarantined = {u for u in known if stack.book.exists(keys.quarantine(ledger_id, u))}
    newest = uids[-1] if uids else None
    indexed: set[tuple[int, UUID]] = set()  # of those without a certificate alone
    if newest is not None and newest not in certified:
        there = stack.objects.head(index_key(newest, ledger_id)) is not None
        indexed = {(ledger_id, newest)} if there else set()
    settled = context is not None and context.uid in certified - quarantined
    by_broker = [] if context is None or context.uid in uids else [context.uid]
    damaged = [u for u in by_broker if stack.book.exists(keys.damage(ledger_id, u))]
    claim = None if settled else read_claim(stack, ledger_id)  # nobody copies it again
    live = claim is not None and claim.record.expires_at > store_now
    records = ListedRecords(
        newest_attempt={} if newest is None else {ledger_id: newest},
        newest_at={} if newest is None else {ledger_id: attempts[-1].stored_at},
        attempts=Counter({ledger_id: len(uids)}),
        attempted={(ledger_id, uid) for uid in uids},
        certified={(ledger_id, uid) for uid in certified},
        quarantined={(ledger_id, uid) for uid in quarantined},
        damaged={(ledger_id, uid) for uid in damaged},
        indexed=indexed,
        holds=read_brakes(stack, HOLD),
        claimed={ledger_id} if live else set(),
        store_now=store_now,
    )
    return records, claim.record if claim is not None and live else None
