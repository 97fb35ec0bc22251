"""Published is not released: what could not be read back now keeps its bookie copy."""

from __future__ import annotations

import pytest

from tests.support.fault_lab import certificate_of
from tests.support.topic_halves import release_topic
from tiering_assets.batch.pipeline import offload_batch
from tiering_assets.ground.reasons import NotNow
from tiering_assets.records import keys
from tiering_assets.records.models import Release
from tiering_assets.release.work import Released
from tiering_assets.resources.errors import RefusedError

pytestmark = [pytest.mark.stack, pytest.mark.fault]


def assert_kept(stack, topic, uid):
    """The bookie copy is there, unmarked, and no record says that it was deleted."""
    assert stack.ledgers.read(topic.ledger_id) is not None
    listed = stack.topics.read(topic.ml_name)[0].ledger(topic.ledger_id)
    assert listed.offload.uid == uid
    assert not listed.offload.bookkeeper_deleted
    assert stack.book.read(Release, keys.release(topic.ledger_id, uid)) is None


def test_a_broker_that_can_no_longer_read_the_object_gets_its_bookie_copy_back(lab):
    namespace = lab.namespace("rehearsal")
    topic = lab.topic(namespace)
    policies = lab.offload_policies()
    with lab.open(lab.with_section("publish", confirm_timeout_s=3.0)) as stack:
        [outcome] = offload_batch(stack, [topic.ledger_id])
        uid = certificate_of(outcome).uid
        lab.older(stack)
        wrong = {
            **policies,
            "s3ManagedLedgerOffloadCredentialId": "nobody",
            "s3ManagedLedgerOffloadCredentialSecret": "no-secret-of-ours",
        }
        lab.admin("POST", f"/namespaces/{namespace}/offloadPolicies", wrong)
        with pytest.raises(RefusedError, match="nothing was deleted") as refused:
            release_topic(stack, topic.ml_name, [topic.ledger_id])
        assert topic.name in str(refused.value)
        assert f"ledger {topic.ledger_id}" in str(refused.value)
        lab.assert_no_secret(str(refused.value))
        assert_kept(stack, topic, uid)

        lab.admin("DELETE", f"/namespaces/{namespace}/removeOffloadPolicies")
        lab.readable(topic, reloaded=True)
        result = release_topic(stack, topic.ml_name, [topic.ledger_id])[topic.ledger_id]
        assert isinstance(result, Released)
    lab.readable(topic, reloaded=True)


@pytest.mark.parametrize("part", ["data", "index"])
def test_an_object_that_is_not_the_certified_one_any_more_waits(lab, part):
    topic = lab.topic(lab.namespace("damaged"))
    with lab.open() as stack:
        [outcome] = offload_batch(stack, [topic.ledger_id])
        certificate = certificate_of(outcome)
        key = getattr(certificate, part).key
        lab.older(stack)
        good = stack.objects.get(key)
        assert good is not None
        bad = bytearray(good.body)
        bad[-1] ^= 1
        stack.objects.put(key, bytes(bad), metadata=good.head.metadata)
        result = release_topic(stack, topic.ml_name, [topic.ledger_id])[topic.ledger_id]
        assert isinstance(result, NotNow)
        assert f"the {part} object is not the certified version" in str(result)
        assert f"suite certificates/2: {part}_etag: " in str(result)
        assert f"expected {getattr(certificate, part).etag!r}" in str(result)
        assert_kept(stack, topic, certificate.uid)
        stack.objects.put(key, good.body, metadata=good.head.metadata)
    lab.readable(topic, reloaded=True)
