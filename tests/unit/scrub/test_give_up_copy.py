"""A copy is given up only while the bookies have the ledger and nobody releases it."""

from dataclasses import replace

import pytest

from tests.support.copies import BROKERS, OURS, Copy
from tests.support.left_behind import PATH
from tiering_assets.records import keys
from tiering_assets.records.models import Quarantine
from tiering_assets.resources.errors import LedgerNotFoundError, RefusedError
from tiering_assets.resources.metastore.ledger_info import (
    decode_managed_ledger,
    encode_managed_ledger,
)
from tiering_assets.scrub.give_up_copy import GivenUp, give_up_copy


@pytest.fixture
def copy():
    return Copy()


def give_up(copy):
    return give_up_copy(copy.scene.process(), copy.ledger_id, reason="odd dates", author="kim")


def edit(copy, change):
    nodes = copy.scene.cluster.metadata.nodes
    found = decode_managed_ledger(nodes[PATH].data)
    message = found.message_copy()
    change(message, message.ledgerInfo[0])
    data = encode_managed_ledger(found.with_message(message))
    nodes[PATH] = replace(nodes[PATH], data=data)


def test_it_is_quarantined_once_and_the_first_reason_stays(copy):
    given = GivenUp(
        ledger_id=copy.ledger_id, uid=copy.uid, topic="persistent://t/ns/orders", fresh=True
    )
    assert give_up(copy) == given
    assert give_up(copy) == replace(given, fresh=False)
    record = copy.scene.stack.book.require(Quarantine, keys.quarantine(copy.ledger_id, copy.uid))
    assert record.record.reason == "given up by kim: odd dates"


def gone(copy):
    copy.lose_ledger()


def of_no_topic(copy):
    cluster = copy.scene.cluster
    cluster.owner[copy.ledger_id] = ""
    cluster._write(copy.ledger_id, cluster._metadata(copy.ledger_id, closed=True))


@pytest.mark.parametrize("change", [gone, of_no_topic])
def test_one_that_may_be_the_only_copy_is_kept(copy, change):
    uid = copy.uid
    change(copy)
    with pytest.raises(LedgerNotFoundError, match="its copy stays as it is"):
        give_up(copy)
    assert not copy.scene.is_quarantined(copy.ledger_id, uid)


def not_listed(copy):
    edit(copy, lambda message, info: message.ledgerInfo.remove(info))


def not_published(copy):
    edit(copy, lambda _message, info: info.ClearField("offloadContext"))


def not_complete(copy):
    def change(_message, info):
        info.offloadContext.complete = False

    edit(copy, change)


@pytest.mark.parametrize("change", [not_listed, not_published, not_complete])
def test_one_that_readers_do_not_get_is_no_copy_to_replace(copy, change):
    uid = copy.uid
    change(copy)
    with pytest.raises(RefusedError, match="not published, so there is no copy to replace"):
        give_up(copy)
    assert not copy.scene.is_quarantined(copy.ledger_id, uid)


def test_one_that_is_being_released_is_kept(copy):
    def change(_message, info):
        info.offloadContext.bookkeeperDeleted = True

    edit(copy, change)
    with pytest.raises(RefusedError, match="it is being released"):
        give_up(copy)
    assert not copy.scene.is_quarantined(copy.ledger_id, copy.uid)


def test_one_of_a_broker_is_not_ours_to_give_up():
    copy = Copy(BROKERS)
    with pytest.raises(RefusedError, match="is not one of ours"):
        give_up(copy)
    assert copy.who != OURS
    assert not copy.scene.is_quarantined(copy.ledger_id, copy.uid)
