"""Where every ledger is: both metadata trees and one listing of our records, read once.

Reads only, loads no topic, and costs a handful of listings however many ledgers there are. What the
CLI lists, what Dagster discovers and what the backlog counts all come from here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from tiering_assets.ground.evidence import lag_elapsed
from tiering_assets.ground.stack import Stack
from tiering_assets.look.brakes.brake import HOLD, Brakes, read_brakes
from tiering_assets.look.ledger.claims import live_claims
from tiering_assets.look.ledger.plan import look_at
from tiering_assets.look.ledger.resume import attempts_of
from tiering_assets.look.ledger.states import LedgerState, StateEvidence, decide_state
from tiering_assets.look.topic.publications import (
    PublicationKeys,
    Publications,
    list_publications,
    surveyed_publications,
)
from tiering_assets.look.topic.topic_evidence import topic_of
from tiering_assets.look.topic.user_topics import Topic, readable_topics, user_topic_names
from tiering_assets.offload_format.keys import index_key
from tiering_assets.records import keys
from tiering_assets.records.models import Publication
from tiering_assets.records.stored import Stored
from tiering_assets.resources.errors import FormatError
from tiering_assets.resources.metastore.ledger_info import LedgerInfo, ManagedLedger

UNFINISHED = frozenset(
    {LedgerState.SEALED, LedgerState.COPIED, LedgerState.VERIFIED, LedgerState.QUARANTINED}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerView:
    """One ledger of a topic. `entries` and `bytes` are the topic's counts; None while open."""

    ledger_id: int
    ml_name: str
    topic: str
    state: LedgerState
    entries: int | None
    bytes: int | None
    closed_at: datetime | None
    uid: UUID | None
    offloaded_by: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SurveyedLedger:
    """A ledger's view with what it was decided from. `due_at` is when its deletion lag has passed.

    `attempted_at` is when the store got the newest of its attempts' records. `publication` is the
    recorded one of the attempt that the topic names; `ours` is whether that
    attempt has a record of ours, certified or not, and `damaged` whether a check found it broken.
    """

    view: LedgerView
    evidence: StateEvidence
    attempts: int
    attempted_at: datetime | None
    hold: str | None
    published_at: datetime | None
    due_at: datetime | None
    publication: Stored[Publication] | None = None
    ours: bool = False
    damaged: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SurveyedTopic:
    """One topic as its node lists it, with its ledgers in id order. `written_ms`: when that was
    written, by the metadata store's clock.
    """

    ml_name: str
    info: ManagedLedger
    written_ms: int
    ledgers: tuple[SurveyedLedger, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedRecords:
    """Which records and objects exist, by ledger and attempt."""

    newest_attempt: dict[int, UUID]
    newest_at: dict[int, datetime]
    attempted: set[tuple[int, UUID]]
    attempts: Counter[int]
    certified: set[tuple[int, UUID]]
    quarantined: set[tuple[int, UUID]]
    damaged: set[tuple[int, UUID]]
    indexed: set[tuple[int, UUID]]
    holds: Brakes
    claimed: set[int]
    store_now: datetime
    publications: PublicationKeys | None = None  # of every topic, where all were listed


def survey(stack: Stack, topics: Iterable[str] | None = None) -> Iterator[LedgerView]:
    """Every ledger of the given managed ledgers (all user topics without), in topic and id
    order.
    """
    for topic in survey_topics(stack, topics):
        for ledger in topic.ledgers:
            yield ledger.view


def survey_topics(stack: Stack, topics: Iterable[str] | None = None) -> Iterator[SurveyedTopic]:
    """The same by topic, with the evidence. The records are listed once, before the first topic."""
    records = _read_records(stack, of_all_topics=topics is None)
    in_bookkeeper = set(stack.ledgers.list_ledger_ids())
    names = user_topic_names(stack) if topics is None else sorted(topics)
    for topic in readable_topics(stack, names):
        yield _survey_topic(stack, topic, records, in_bookkeeper)


def _survey_topic(
    stack: Stack, topic: Topic, records: ListedRecords, in_bookkeeper: set[int]
) -> SurveyedTopic:
    ml_name, publications = topic.ml_name, Publications(())
    if any(listed.offload is not None for listed in topic.info.ledgers):
        publications = surveyed_publications(stack, ml_name, records.publications)
    return SurveyedTopic(
        ml_name=ml_name,
        info=topic.info,
        written_ms=topic.node.stat.mtime_ms,
        ledgers=tuple(
            survey_ledger(
                stack,
                ml_name,
                listed,
                records,
                publications,
                in_bookkeeper=listed.ledger_id in in_bookkeeper,
            )
            for listed in topic.info.ledgers
        ),
    )


def survey_ledger(
    stack: Stack,
    ml_name: str,
    listed: LedgerInfo,
    records: ListedRecords,
    publications: Publications,
    *,
    in_bookkeeper: bool,
) -> SurveyedLedger:
    """One ledger of a topic's list, by what was read of the records."""
    context = listed.offload
    uid = records.newest_attempt.get(listed.ledger_id) if context is None else context.uid
    attempt = listed.ledger_id, uid  # in no listing where it is none
    publication = publications.counted(listed.ledger_id, context)
    certified = attempt in records.certified
    hold = records.holds.why(listed.ledger_id, ml_name)
    evidence = StateEvidence(
        listed=True,
        open=listed.is_open,
        context_complete=context is not None and context.complete,
        context_other=context is not None and not context.complete,
        marked_deleted=context is not None and context.bookkeeper_deleted,
        in_bookkeeper=in_bookkeeper,
        claimed=listed.ledger_id in records.claimed,
        has_index_object=attempt in records.indexed,
        certified=certified,
        quarantined=attempt in records.quarantined,
        published=publication is not None,
        lag_elapsed=publication is not None and _lag_elapsed(stack, publication, records),
        held=hold is not None,
    )
    view = LedgerView(
        ledger_id=listed.ledger_id,
        ml_name=ml_name,
        topic=topic_of(ml_name),
        state=decide_state(evidence),
        entries=listed.entries,
        bytes=listed.size,
        closed_at=listed.closed_at,
        uid=uid,
        offloaded_by=None if context is None else ("tierkeeper" if certified else "broker"),
    )
    published_at = None
    if publication is not None:
        published_at = max(publication.record.confirmed_at, publication.stored_at)
    return SurveyedLedger(
        view=view,
        evidence=evidence,
        attempts=records.attempts[listed.ledger_id],
        attempted_at=records.newest_at.get(listed.ledger_id),
        hold=hold,
        published_at=published_at,
        due_at=None if published_at is None else published_at + stack.deletion_lag,
        publication=publication,
        ours=attempt in records.attempted,
        damaged=(
            context is not None
            and context.complete
            and any(
                (listed.ledger_id, context.uid) in found
                for found in (records.quarantined, records.damaged)
            )
        ),
    )


def _lag_elapsed(stack: Stack, publication: Stored[Publication], records: ListedRecords) -> bool:
    return lag_elapsed(
        lag=stack.deletion_lag,
        recorded_at=publication.record.confirmed_at,
        now=stack.now(),
        stored_at=publication.stored_at,
        store_now=records.store_now,
    )


def _read_records(stack: Stack, *, of_all_topics: bool) -> ListedRecords:
    store_now = stack.objects.server_time()
    newest: dict[int, tuple[datetime, UUID]] = {}
    attempts: Counter[int] = Counter()
    attempted: set[tuple[int, UUID]] = set()
    for key, summary in stack.book.listed("attempts/"):
        ledger_id, uid = keys.pair_of(key)
        attempts[ledger_id] += 1
        attempted.add((ledger_id, uid))
        if ledger_id not in newest or newest[ledger_id][0] < summary.last_modified:
            newest[ledger_id] = (summary.last_modified, uid)
    certified = stack.book.pairs("certificates/")
    newest_pairs = [(ledger_id, uid) for ledger_id, (_when, uid) in newest.items()]
    return ListedRecords(
        newest_attempt={ledger_id: uid for ledger_id, (_when, uid) in newest.items()},
        newest_at={ledger_id: when for ledger_id, (when, _uid) in newest.items()},
        attempts=attempts,
        attempted=attempted,
        certified=certified,
        quarantined=stack.book.pairs("quarantines/"),
        damaged=stack.book.pairs(keys.DAMAGE),
        indexed=_indexed(stack, [pair for pair in newest_pairs if pair not in certified]),
        holds=read_brakes(stack, HOLD),
        claimed=live_claims(stack, store_now),
        store_now=store_now,
        publications=list_publications(stack) if of_all_topics else None,
    )


def _indexed(stack: Stack, pairs: list[tuple[int, UUID]]) -> set[tuple[int, UUID]]:
    """Of these attempts without a certificate, those whose index object is there: one request
    each.
    """
    found = stack.in_parallel(
        lambda pair: stack.objects.head(index_key(pair[1], pair[0])) is not None, pairs
    )
    return {pair for pair, there in zip(pairs, found, strict=True) if there}


def ml_names_of(stack: Stack, ledger_ids: Iterable[int]) -> dict[int, str]:
    """Owner of each ledger by attempt record or, without a readable one, by its own metadata."""
    found: dict[int, str] = {}
    for ledger_id in ledger_ids:
        try:
            attempts = attempts_of(stack, ledger_id)
        except FormatError:  # one ledger's record must not stop what is done to the others
            attempts = []
        name = attempts[-1].record.ml_name if attempts else look_at(stack, ledger_id).ml_name
        if name is not None:
            found[ledger_id] = name
    return found
