"""Three brokers killed under load, one of each quorum: all that was read of the tail stays."""

import random

import pytest

from tests.support.tail_kills import QUORUMS, kill_one, killing_cluster

pytestmark = [pytest.mark.stack, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with killing_cluster(tmp_path_factory.mktemp("tail")) as running:
        yield running


@pytest.mark.parametrize("quorum", QUORUMS, ids=str)
def test_what_was_read_of_an_open_ledger_is_in_the_sealed_one(cluster, quorum):
    found = kill_one(cluster, quorum, "killed", random.Random(str(quorum)))
    assert (found.missing, found.different) == ((), ())
    assert found.sealed >= found.read > 300
    assert found.looks > 1
    metadata = cluster.ledger(found.ledger_id)
    assert (metadata.ensemble_size, metadata.write_quorum, metadata.ack_quorum) == quorum
