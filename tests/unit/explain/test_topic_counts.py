"""Counting a topic's list, held to the protobuf that brokers write."""

from uuid import UUID

from tiering_assets.explain.topic_counts import Amount, count_topic
from tiering_assets.resources._proto import MLDataFormats_pb2 as ml_pb2
from tiering_assets.resources.metastore.ledger_info import decode_managed_ledger

OURS, THEIRS, BEGUN = UUID(int=1), UUID(int=2), UUID(int=3)


def listed(*ledgers):
    """(id, bytes, attempt, complete) of closed ledgers, and an open one after them."""
    message = ml_pb2.ManagedLedgerInfo()
    for ledger_id, size, uid, complete in ledgers:
        info = message.ledgerInfo.add(ledgerId=ledger_id, size=size, entries=1, timestamp=5)
        if uid is not None:
            info.offloadContext.uidMsb, info.offloadContext.uidLsb = 0, uid.int
            info.offloadContext.complete = complete
    message.ledgerInfo.add(ledgerId=99)
    return decode_managed_ledger(message.SerializeToString()).ledgers


def test_each_sealed_ledger_is_ours_the_brokers_or_on_bookies_only():
    ledgers = listed(
        (1, 10, OURS, True),
        (2, 200, THEIRS, True),
        (3, 3000, None, False),
        (4, 40000, BEGUN, False),  # a broker's copy under way: brokers still read bookies
    )
    found = count_topic(ledgers, {(1, OURS), (2, OURS), (3, THEIRS)})
    assert found.every == Amount(ledgers=5, bytes=43210)
    assert found.sealed == Amount(ledgers=4, bytes=43210)
    assert found.published_by_us == Amount(ledgers=1, bytes=10)
    assert found.published_by_broker == Amount(ledgers=1, bytes=200)
    assert found.bookies_only == Amount(ledgers=2, bytes=43000)


def test_a_new_topic_has_its_open_ledger_alone():
    found = count_topic(listed(), set())
    assert (found.every.ledgers, found.sealed.ledgers) == (1, 0)
