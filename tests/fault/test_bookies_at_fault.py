"""Bookies that are away, and replicas that have rotted."""

from __future__ import annotations

import random
from contextlib import ExitStack

import pytest

from tests.support.bookie_proxy import BookieProxy
from tests.support.fault_lab import Lab, certificate_of, error_of, wait_of
from tests.support.redirected import Redirected
from tests.support.tiered_cluster import wait_until
from tests.support.topic_halves import release_topic
from tiering_assets.batch.pipeline import LedgerOutcome, offload_batch
from tiering_assets.doctor.cluster import check_bookies
from tiering_assets.ground.reasons import NotNow
from tiering_assets.records.models import Certificate
from tiering_assets.release.work import Released

pytestmark = [pytest.mark.stack, pytest.mark.fault]


@pytest.fixture(scope="module")
def lab(stack_to_stop):
    return Lab(stack_to_stop)


@pytest.fixture(scope="module")
def namespace(lab):
    return lab.namespace("bookies")


@pytest.fixture
def stopped(lab):
    """Stop bookies by id; all of them run again after the test."""
    names = []

    def stop(bookie_id):
        names.append(lab.endpoints.bookie_names[bookie_id])
        lab.running.stop_server(names[-1])

    yield stop
    for name in names:
        lab.running.start_server(name)


@pytest.fixture
def proxies(lab):
    with ExitStack() as stack:
        yield {
            bookie: stack.enter_context(BookieProxy(address))
            for bookie, address in lab.endpoints.bookies.items()
        }


@pytest.fixture
def behind_proxies(lab, proxies):
    with lab.open() as stack:
        directory = Redirected(stack.metadata, stack.settings.metadata.ledgers_root, proxies)
        with lab.open(ledgers=directory) as proxied:
            yield proxied


def replicas_of(stack, ledger_id):
    return stack.ledgers.read(ledger_id).metadata.segments[0].bookies


def assert_fails_by_name(lab, outcome, ledger_id):
    error = error_of(outcome)
    assert error.exit_code == 16
    assert f"ledger {ledger_id} entry" in str(error)
    assert error.retryable
    lab.assert_no_secret(str(error))
    return str(error)


def test_bookies_stopped_one_by_one(lab, namespace, stopped):
    """One of three away: the other replica serves. Both replicas away: the ledger fails by name."""
    read_by_failover, lost = lab.multi_block_topic(namespace), lab.multi_block_topic(namespace)
    with lab.open() as stack:
        first, second = replicas_of(stack, lost.ledger_id)
        stopped(first)
        [outcome] = offload_batch(stack, [read_by_failover.ledger_id])
        assert certificate_of(outcome).entries == read_by_failover.spec.messages
        lab.assert_published_once(stack, read_by_failover)

        stopped(second)
        [failed] = offload_batch(stack, [lost.ledger_id])
        said = assert_fails_by_name(lab, failed, lost.ledger_id)
        assert first in said
        assert second in said
        assert lab.context_uid(stack, lost) is None
        lab.assert_only_collectable(stack, lost.ledger_id)
    lab.readable(read_by_failover)


def test_a_loaded_topic_is_not_reloaded_while_bookies_are_short(lab, namespace):
    """Two of three away: an unload would take from its readers what they still get."""
    published, waiting = lab.topic(namespace), lab.topic(namespace)
    with lab.open() as stack:
        assert offload_batch(stack, [published.ledger_id])[0].state == "published"
        assert offload_batch(stack, [waiting.ledger_id], publish=False)[0].verified
        kept = replicas_of(stack, waiting.ledger_id)[0]
        away = {b: name for b, name in lab.endpoints.bookie_names.items() if b != kept}
        before = {t: stack.topics.read(t.ml_name)[1].stat.version for t in (published, waiting)}
        try:
            for name in away.values():
                lab.running.stop_server(name)
            wait_until(lambda: stack.ledgers.available_bookies().writable == (kept,), "stopped")
            lab.readable(waiting)
            [outcome] = offload_batch(stack, [waiting.ledger_id])
            [kept_back] = release_topic(stack, published.ml_name, [published.ledger_id]).values()
            for said in (str(wait_of(outcome)), str(kept_back)):
                assert "bookies short: 1 writable bookies" in said
                assert "a reload needs 2" in said
                assert all(bookie in said for bookie in away)
            assert isinstance(kept_back, NotNow)
            found = {f.check: f for f in check_bookies(stack.settings, stack.ledgers)}
            assert {b: found[f"bookie {b}"].level for b in away} == dict.fromkeys(away, "fail")
            lab.readable(waiting)  # loaded as it was
            for topic, version in before.items():
                assert stack.topics.read(topic.ml_name)[1].stat.version == version
        finally:
            for name in away.values():
                lab.running.start_server(name)
        wait_until(lambda: len(stack.ledgers.available_bookies().writable) == 3, "back")
        [outcome] = offload_batch(stack, [waiting.ledger_id])
        assert outcome.state == "published", outcome
        [released] = release_topic(stack, published.ml_name, [published.ledger_id]).values()
        assert isinstance(released, Released)
    lab.readable(waiting, reloaded=True)
    lab.readable(published)


def test_after_the_bookies_are_back_the_same_ledger_is_published(lab, namespace):
    topic = lab.multi_block_topic(namespace)
    with lab.open() as stack:
        [outcome] = offload_batch(stack, [topic.ledger_id])
        assert outcome.error is None
        lab.assert_published_once(stack, topic)
    lab.readable(topic, reloaded=True)


@pytest.mark.parametrize("rotten", [0, 1])
def test_a_flipped_bit_on_one_replica_is_caught_and_the_other_serves(
    lab, namespace, proxies, behind_proxies, rotten
):
    topic = lab.multi_block_topic(namespace)
    bookie = replicas_of(behind_proxies, topic.ledger_id)[rotten]
    every = {(topic.ledger_id, entry) for entry in range(topic.spec.messages)}
    proxies[bookie].flipped |= every
    [outcome] = offload_batch(behind_proxies, [topic.ledger_id])
    assert certificate_of(outcome).entries == topic.spec.messages
    with lab.open() as stack:
        lab.assert_published_once(stack, topic)
    lab.readable(topic, reloaded=True)  # from the object: not one wrong byte


def test_an_entry_flipped_on_every_replica_fails_by_name(lab, namespace, proxies, behind_proxies):
    entry_id = 3  # in the middle; the first and the last: tests/unit/bookkeeper/test_reader.py
    topic = lab.multi_block_topic(namespace)
    for bookie in replicas_of(behind_proxies, topic.ledger_id):
        proxies[bookie].flipped.add((topic.ledger_id, entry_id))
    [outcome] = offload_batch(behind_proxies, [topic.ledger_id])
    said = assert_fails_by_name(lab, outcome, topic.ledger_id)
    assert f"entry {entry_id}:" in said
    assert "digest" in said
    assert sum(proxy.flips for proxy in proxies.values()) >= 2
    with lab.open() as stack:
        assert lab.context_uid(stack, topic) is None
        certificates = f"certificates/{topic.ledger_id}/"
        assert [*stack.book.iter_records(Certificate, certificates)] == []
        lab.assert_only_collectable(stack, topic.ledger_id)
    lab.readable(topic)


def test_bookies_whose_every_answer_comes_late_only_cost_time(
    lab, namespace, proxies, behind_proxies
):
    topic = lab.multi_block_topic(namespace)
    dice = random.Random(2)
    for proxy in proxies.values():
        proxy.delay_s = lambda: dice.uniform(0.05, 0.2)
    [outcome] = offload_batch(behind_proxies, [topic.ledger_id])
    assert sum(proxy.answers for proxy in proxies.values()) > 0
    assert certificate_of(outcome).entries == topic.spec.messages
    with lab.open() as stack:
        lab.assert_published_once(stack, topic)
    lab.readable(topic, reloaded=True)


def test_a_bookie_that_dies_in_the_middle_of_answers_costs_no_entry(
    lab, namespace, proxies, behind_proxies
):
    """Half of one bookie's answers, in large batches and entry by entry; the other replica
    serves.
    """
    topic = lab.multi_block_topic(namespace)
    bookie = replicas_of(behind_proxies, topic.ledger_id)[0]
    dice = random.Random(3)
    proxies[bookie].drops = lambda: dice.random() < 0.5
    [outcome] = offload_batch(behind_proxies, [topic.ledger_id], publish=False)
    assert certificate_of(outcome).entries == topic.spec.messages
    assert proxies[bookie].dropped >= 1
    with lab.open() as stack:
        [outcome] = offload_batch(stack, [topic.ledger_id])
        lab.assert_published_once(stack, topic)
    lab.readable(topic, reloaded=True)


def test_bookies_that_all_die_now_and_then_fail_the_ledger_by_name_or_not_at_all(
    lab, namespace, proxies, behind_proxies
):
    topic = lab.multi_block_topic(namespace)
    dice = random.Random(1)
    for proxy in proxies.values():
        proxy.drops = lambda: dice.random() < 0.4
    ended: list[LedgerOutcome] = []
    while not ended or (ended[-1].error is not None and len(ended) < 20):
        ended += offload_batch(behind_proxies, [topic.ledger_id], publish=False)
    for outcome in ended[:-1]:
        assert_fails_by_name(lab, outcome, topic.ledger_id)
    assert ended[-1].verified
    assert sum(proxy.dropped for proxy in proxies.values()) >= 1
    with lab.open() as stack:
        [outcome] = offload_batch(stack, [topic.ledger_id])
        assert not outcome.copied
        lab.assert_published_once(stack, topic)
    lab.readable(topic, reloaded=True)
