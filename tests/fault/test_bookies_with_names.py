"""Bookies whose ids are names: one that is down is nowhere, not even at an address of old."""

from __future__ import annotations

import pytest

from tests.support.fault_lab import Lab, certificate_of, error_of
from tests.support.tiered_cluster import wait_until
from tests.support.topic_halves import release_topic
from tiering_assets.batch.pipeline import offload_batch
from tiering_assets.release.work import Released
from tiering_assets.resources.devstack.options import StackOptions
from tiering_assets.resources.devstack.stack import DevStack
from tiering_assets.scrub.heal import Healed, heal_topic

pytestmark = [
    pytest.mark.stack,
    pytest.mark.fault,
    pytest.mark.timeout(600),
    pytest.mark.prove(
        instead="tests/unit/look/topic/test_bookies_with_names.py::"
        "test_one_of_three_that_is_down_costs_neither_the_plan_nor_a_reading"
    ),
]


@pytest.fixture(scope="module")
def named(tmp_path_factory):
    options = StackOptions(bookie_conf={"bookieId": "{server}"})
    with DevStack.start(tmp_path_factory.mktemp("named"), options) as running:
        yield Lab(running)


def test_a_named_bookie_that_is_down_costs_no_plan_heal_or_second_reading(named):
    namespace = named.namespace("named")
    healed, copied = named.multi_block_topic(namespace), named.multi_block_topic(namespace)
    with named.open() as stack:
        assert offload_batch(stack, [healed.ledger_id])[0].state == "published"
        ensembles = {t: _ensemble(stack, t.ledger_id) for t in (healed, copied)}
        assert {*stack.ledgers.available_bookies().writable} == {"bookie1", "bookie2", "bookie3"}
        down = ensembles[copied][0]
        named.running.stop_server(down)
        try:
            wait_until(lambda: down not in stack.ledgers.available_bookies().writable, "gone")
            [outcome] = offload_batch(stack, [copied.ledger_id])
            assert certificate_of(outcome).entries == copied.spec.messages
            assert outcome.state == "published", outcome
            uid = named.context_uid(stack, healed)
            [done] = heal_topic(stack, healed.ml_name, {healed.ledger_id: uid}).values()
            assert isinstance(done, Healed), done
            named.older(stack)
            [released] = release_topic(stack, copied.ml_name, [copied.ledger_id]).values()
            assert isinstance(released, Released), released  # read again: no key is configured
        finally:
            named.running.start_server(down)
    for topic in (healed, copied):
        named.readable(topic, reloaded=True)


def test_without_a_replica_the_error_names_the_bookies(named):
    lost = named.multi_block_topic(named.namespace("lost"))
    with named.open() as stack:
        down = _ensemble(stack, lost.ledger_id)
        try:
            for name in down:
                named.running.stop_server(name)
            [outcome] = offload_batch(stack, [lost.ledger_id])
        finally:
            for name in down:
                named.running.start_server(name)
        said = str(error_of(outcome))
        assert all(f"bookie {name}: not registered" in said for name in down), said


def _ensemble(stack, ledger_id):
    return stack.ledgers.read(ledger_id).metadata.segments[0].bookies
