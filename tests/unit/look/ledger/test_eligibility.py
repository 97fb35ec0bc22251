from dataclasses import replace
from uuid import UUID

import pytest

from tiering_assets.ground.reasons import Reason, Wait
from tiering_assets.look.ledger.eligibility import (
    MayCopy,
    OffloadEvidence,
    decide_offload,
    owner_of,
)
from tiering_assets.resources.bookkeeper.ledger import (
    BookKeeperState,
    EnsembleFragment,
    LedgerMetadata,
)
from tiering_assets.resources.metastore.ledger_info import LedgerInfo
from tiering_assets.resources.metastore.offload_context import OffloadContext

ML_NAME = "public/default/persistent/orders"
UID = UUID("1ecdf250-a9b4-4953-947e-0ace4164fb4a")
OWNED = {"component": b"managed-ledger", "pulsar/managed-ledger": ML_NAME.encode()}
METADATA = LedgerMetadata(
    ledger_id=42,
    state=BookKeeperState.CLOSED,
    last_entry_id=9,
    length=1000,
    ensemble_size=1,
    write_quorum=1,
    ack_quorum=1,
    segments=(EnsembleFragment(0, ("bookie-1",)),),
    custom=OWNED,
)
LISTED = LedgerInfo(ledger_id=42, entries=10, size=1000, closed_at_ms=1767225600000)
READY = OffloadEvidence(
    ledger_id=42, ml_name=ML_NAME, never_touched=None, metadata=METADATA, listed=LISTED
)
OPEN = replace(LISTED, entries=None, size=None, closed_at_ms=None)
EMPTY = replace(METADATA, last_entry_id=-1, length=0)


def metadata(**change):
    return {"metadata": replace(METADATA, **change)}


def listed(**change):
    return {"listed": replace(LISTED, **change)}


def context(*, complete):
    return OffloadContext(uid=UID, complete=complete)


def test_a_closed_listed_ledger_is_copied_to_its_last_entry():
    assert decide_offload(READY) == MayCopy(9)


@pytest.mark.parametrize(
    ("change", "reason", "detail"),
    [
        ({"never_touched": "transaction log"}, Reason.NEVER_TOUCHED, "transaction log"),
        (
            metadata(custom={**OWNED, "pulsar/managed-ledger": b"public/default/persistent/x"}),
            Reason.FOREIGN,
            f"its metadata names public/default/persistent/x, not {ML_NAME}",
        ),
        (
            {"listed": None},
            Reason.NOT_IN_TOPIC,
            f"{ML_NAME} does not list it; nothing to publish",
        ),
        ({"listed": OPEN}, Reason.OPEN, "the topic lists it as the one it writes to"),
        (listed(offload=context(complete=True)), Reason.PUBLISHED, f"as {UID}"),
        (
            listed(offload=context(complete=False)),
            Reason.BROKER_COPYING,
            f"its context names the unfinished attempt {UID}",
        ),
        (
            {"metadata": None},
            Reason.MISSING,
            "no node for ledger 42; it was trimmed or deleted",
        ),
        (
            metadata(state=BookKeeperState.OPEN),
            Reason.UNSEALED,
            "BookKeeper says OPEN; its owner must close it, we never recover",
        ),
        (
            metadata(state=BookKeeperState.IN_RECOVERY),
            Reason.UNSEALED,
            "BookKeeper says IN_RECOVERY; its owner must close it, we never recover",
        ),
        (
            listed(entries=11),
            Reason.DATA_MISSING,
            "the topic counts 11 entries of ledger 42, BookKeeper has 10",
        ),
        (
            {"metadata": EMPTY, "listed": replace(LISTED, entries=0, size=0)},
            Reason.EMPTY,
            "the broker drops empty ledgers when it next loads the topic",
        ),
        (
            {"metadata": EMPTY},  # ten entries are gone, which is not the same as none written
            Reason.DATA_MISSING,
            "the topic counts 10 entries of ledger 42, BookKeeper has 0",
        ),
    ],
)
def test_a_ledger_waits_for_exactly_one_reason(change, reason, detail):
    assert decide_offload(replace(READY, **change)) == Wait(reason, detail)


@pytest.mark.parametrize(
    ("entries", "size", "notes"),
    [
        (10, 1000, ()),
        (None, None, ()),
        (9, 1000, ("the topic counts 9 entries, BookKeeper has 10",)),
        (0, 1000, ("the topic counts 0 entries, BookKeeper has 10",)),
        (10, 999, ("the topic counts 999 bytes, BookKeeper has 1000",)),
        (10, 1001, ("the topic counts 1001 bytes, BookKeeper has 1000",)),
        (
            9,
            900,
            (
                "the topic counts 9 entries, BookKeeper has 10",
                "the topic counts 900 bytes, BookKeeper has 1000",
            ),
        ),
    ],
)
def test_fewer_entries_in_the_topic_than_in_bookkeeper_are_noted_and_copied(entries, size, notes):
    evidence = replace(READY, listed=replace(LISTED, entries=entries, size=size))
    assert decide_offload(evidence) == MayCopy(9, notes)


def test_a_ledger_of_one_entry_is_copied():
    one = replace(READY, **metadata(last_entry_id=0), listed=replace(LISTED, entries=1))
    assert decide_offload(one) == MayCopy(0)


def test_the_last_ledger_of_a_terminated_topic_waits_because_no_broker_lists_it_as_closed():
    """Its context could not be published: the topic's node says that it is still written to."""
    waits = decide_offload(replace(READY, listed=OPEN))
    assert isinstance(waits, Wait)
    assert waits.reason is Reason.OPEN


def test_what_must_not_be_touched_is_said_before_anything_else():
    evidence = replace(READY, never_touched="system topic", metadata=None, listed=None)
    assert decide_offload(evidence) == Wait(Reason.NEVER_TOUCHED, "system topic")


@pytest.mark.parametrize(
    ("custom", "owner"),
    [
        (OWNED, ML_NAME),
        ({}, None),  # written before brokers named the owner
        ({"application": b"pulsar"}, None),
        ({"component": b"managed-ledger"}, None),
        ({"pulsar/managed-ledger": b"a/b/persistent/c"}, "a/b/persistent/c"),
        ({**OWNED, "pulsar/cursor": b"subscription"}, "component managed-ledger, a cursor"),
        (
            {"pulsar/managed-ledger": ML_NAME.encode(), "pulsar/cursor": b"s"},
            "component managed-ledger, a cursor",
        ),
        ({"component": b"schema", "pulsar/schemaId": b"x"}, "component schema"),
        (
            {"component": b"compacted-ledger", "pulsar/compactedTopic": b"persistent://a/b/c"},
            "component compacted-ledger",
        ),
        ({"component": b"\xff"}, "component �"),
        ({**OWNED, "pulsar/managed-ledger": b"\xff"}, "�"),
    ],
)
def test_owner_of_a_ledger(custom, owner):
    assert owner_of(replace(METADATA, custom=custom)) == owner


@pytest.mark.parametrize(
    "custom",
    [
        {**OWNED, "pulsar/cursor": b"subscription"},
        {"component": b"schema"},
        {"component": b"compacted-ledger", "pulsar/managed-ledger": ML_NAME.encode()},
    ],
)
def test_a_ledger_of_another_component_is_never_copied(custom):
    decision = decide_offload(replace(READY, **metadata(custom=custom)))
    assert isinstance(decision, Wait)
    assert decision.reason is Reason.FOREIGN


def test_a_wait_reads_as_its_reason_and_detail():
    assert str(Wait(Reason.UNSEALED, "x")) == "unsealed in BookKeeper: x"
    assert str(Wait(Reason.EXPIRED, "")) == "expired"
