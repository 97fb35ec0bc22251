"""Ledgers that are not ready, not ours, wrong, or as small and as full as they get."""

from __future__ import annotations

import os
import time
from uuid import uuid4

import pytest

from tests.support.fault_lab import (
    certificate_of,
    error_of,
    framed,
    managed_ledger_bytes,
    wait_of,
)
from tests.support.offload_policies import MIB
from tiering_assets.batch.pipeline import offload_batch
from tiering_assets.ground.reasons import Reason
from tiering_assets.records import keys
from tiering_assets.records.models import Attempt
from tiering_assets.resources.bookkeeper.ledger import BookKeeperState
from tiering_assets.resources.metastore.topic_names import managed_ledger_path

pytestmark = [pytest.mark.stack, pytest.mark.fault]

BLOCK = 5 * MIB
HEADER, FRAME = 128, 12


@pytest.fixture(scope="module")
def namespace(lab):
    return lab.namespace("odd")


@pytest.fixture
def product(lab):
    with lab.open() as stack:
        yield stack


@pytest.fixture
def hand_made(lab, product):
    """Write a ledger to the bookies and list it in a topic's node that no broker loads."""

    def make(payloads, *, listed=None, **metadata):
        ml_name = f"public/hand-made/persistent/t{uuid4().hex[:8]}"
        ledger_id = lab.write_ledger(product, payloads, owner=ml_name, **metadata)
        node = managed_ledger_bytes({ledger_id: payloads if listed is None else listed})
        product.metadata.create(managed_ledger_path(ml_name), node)
        return ledger_id

    return make


def assert_untouched(stack, ledger_id):
    """Not even an attempt was recorded."""
    assert [*stack.book.iter_records(Attempt, keys.attempts_of(ledger_id))] == []


def waits(stack, ledger_id):
    [outcome] = offload_batch(stack, [ledger_id])
    assert_untouched(stack, ledger_id)
    return wait_of(outcome)


def test_the_open_ledger_of_a_topic_waits(lab, namespace, product):
    topic = lab.topic(namespace)
    info, _node = product.topics.read(topic.ml_name)
    [open_id] = [x.ledger_id for x in info.ledgers if x.is_open]
    wait = waits(product, open_id)
    assert wait.reason is Reason.OPEN


def test_a_ledger_that_bookkeeper_does_not_have_waits(product):
    wait = waits(product, 999_999_999)
    assert wait.reason is Reason.MISSING
    assert "999999999" in wait.detail


@pytest.mark.parametrize(
    "state", [BookKeeperState.IN_RECOVERY, BookKeeperState.OPEN], ids=lambda s: s.name
)
def test_a_ledger_listed_as_closed_but_not_sealed_is_never_recovered(hand_made, product, state):
    ledger_id = hand_made([b"one", b"two"], state=state)
    before = product.ledgers.read(ledger_id)
    wait = waits(product, ledger_id)
    assert wait.reason is Reason.UNSEALED
    assert state.name in wait.detail
    assert product.ledgers.read(ledger_id) == before


def test_a_ledger_without_entries_waits_for_the_broker_to_drop_it(hand_made, product):
    assert waits(product, hand_made([])).reason is Reason.EMPTY


def test_a_ledger_with_fewer_entries_than_the_topic_counts_is_not_copied(hand_made, product):
    ledger_id = hand_made([b"a", b"b"], listed=[b"a", b"b", b"c"])
    wait = waits(product, ledger_id)
    assert wait.reason is Reason.DATA_MISSING
    assert "counts 3 entries" in wait.detail
    assert "BookKeeper has 2" in wait.detail


def test_one_entry_is_published_and_released(lab, namespace, product):
    topic = lab.topic(namespace, messages=1)
    [outcome] = offload_batch(product, [topic.ledger_id])
    certificate = certificate_of(outcome)
    assert (certificate.entries, len(certificate.blocks)) == (1, 1)
    lab.assert_published_once(product, topic)
    lab.readable(topic, reloaded=True)


@pytest.mark.parametrize(
    "payloads",
    [[b""], [b"", b"x", b""], [b"", b"", b""]],
    ids=["alone", "around one byte", "nothing else"],
)
def test_empty_payloads_are_entries_like_any_other(hand_made, product, payloads):
    ledger_id = hand_made(payloads)
    [outcome] = offload_batch(product, [ledger_id], publish=False)
    certificate = certificate_of(outcome)
    assert certificate.entries == len(payloads)
    assert certificate.payload_bytes == sum(map(len, payloads))
    data = certificate.data
    body = product.objects.get_range(data.key, start=0, length=data.size)
    assert body == framed(0, payloads, data.size)


@pytest.mark.parametrize("spare", [0, 1, FRAME], ids=["exact", "one byte", "an empty entry"])
def test_a_block_filled_to_the_last_byte(hand_made, product, spare):
    room = BLOCK - HEADER - spare
    first = [b"\xab" * MIB] * 4
    first.append(b"\xcd" * (room - 4 * (FRAME + MIB) - FRAME))
    payloads = [*first, b"the next block"]
    ledger_id = hand_made(payloads)
    [outcome] = offload_batch(product, [ledger_id], publish=False)
    certificate = certificate_of(outcome)
    assert [b.first_entry_id for b in certificate.blocks] == [0, len(first)]
    one, two = certificate.blocks
    assert (one.offset, one.block_length) == (0, BLOCK)
    found = product.objects.get_range(certificate.data.key, start=0, length=certificate.data.size)
    expected = framed(0, first, one.block_length)
    expected += framed(len(first), payloads[len(first) :], two.block_length)
    assert found == expected


def test_a_length_below_that_of_the_entries_fails_before_anything_is_sent(hand_made, product):
    payloads = [b"x" * 100] * 7
    ledger_id = hand_made(payloads, length=699)
    [outcome] = offload_batch(product, [ledger_id])
    error = error_of(outcome)
    assert error.exit_code == 14
    for text in (f"ledger {ledger_id}", "699", "700"):
        assert text in str(error)
    assert_untouched(product, ledger_id)


def test_a_length_beyond_that_of_the_entries_is_padding(hand_made, product):
    """Recovery leaves such ledgers (tests/stack/test_interop.py has a real one)."""
    payloads = [b"x" * 100] * 7
    ledger_id = hand_made(payloads, length=750)
    [outcome] = offload_batch(product, [ledger_id], publish=False)
    certificate = certificate_of(outcome)
    assert (certificate.payload_bytes, certificate.ledger.length) == (700, 750)
    body = product.objects.get_range(certificate.data.key, start=0, length=certificate.data.size)
    assert body == framed(0, payloads, HEADER + 7 * FRAME + 750)


def test_a_ledger_that_its_own_topic_does_not_list_waits(lab, hand_made, product):
    """Another topic's node lists it; its own metadata decides whose it is."""
    owner = f"public/hand-made/persistent/owner-{uuid4().hex[:8]}"
    ledger_id = lab.write_ledger(product, [b"mine"], owner=owner)
    product.metadata.create(managed_ledger_path(owner), managed_ledger_bytes({}))
    stranger = f"public/hand-made/persistent/stranger-{uuid4().hex[:8]}"
    node = managed_ledger_bytes({ledger_id: [b"mine"]})
    product.metadata.create(managed_ledger_path(stranger), node)
    wait = waits(product, ledger_id)
    assert wait.reason is Reason.NOT_IN_TOPIC
    assert owner in wait.detail


def test_a_cursor_ledger_belongs_to_another_managed_ledger(lab, namespace, product):
    import pulsar

    topic = lab.topic(namespace)
    client = pulsar.Client(
        lab.endpoints.service_url,
        logger=pulsar.FileLogger(pulsar.LoggerLevel.Error, os.devnull),
    )
    try:
        consumer = client.subscribe(
            topic.name, "sub", initial_position=pulsar.InitialPosition.Earliest
        )
        consumer.acknowledge(consumer.receive(timeout_millis=60_000))
        deadline, wait = time.monotonic() + 60, None
        while wait is None or wait.reason is Reason.MISSING:  # its broker may have begun another
            assert time.monotonic() < deadline, "the cursor never got a ledger that stays"
            time.sleep(0.1)
            cursor = product.topics.cursors(topic.ml_name)["sub"]
            if cursor.cursors_ledger_id != -1:  # the position is not in its node
                wait = waits(product, cursor.cursors_ledger_id)
    finally:
        client.close()
    assert wait.reason is Reason.FOREIGN
