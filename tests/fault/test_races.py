"""Topics that are made again, publishers that sleep, and two runs of one ledger."""

from __future__ import annotations

import pytest

from tests.support.fault_lab import YOUNGEST_S, certificate_of, wait_of
from tests.support.topic_halves import publish_topic, release_topic
from tiering_assets.batch.pipeline import offload_batch
from tiering_assets.change.topic_change import undo
from tiering_assets.change.topic_edit import Copy, TopicChange, is_marked
from tiering_assets.ground.reasons import Reason
from tiering_assets.look.ledger.claims import claim_ledger, read_claim
from tiering_assets.look.ledger.quarantine import win_outcome
from tiering_assets.records import keys
from tiering_assets.records.models import Attempt, Outcome, Publication
from tiering_assets.release.work import Released
from tiering_assets.resources.devstack.traffic import produce
from tiering_assets.resources.errors import MetadataConflictError, RefusedError

pytestmark = [pytest.mark.stack, pytest.mark.fault]


@pytest.fixture(scope="module")
def namespace(lab):
    return lab.namespace("races")


def verified_only(stack, topic):
    [outcome] = offload_batch(stack, [topic.ledger_id], publish=False)
    certificate_of(outcome)
    return outcome


def publish(stack, topic, outcome):
    return publish_topic(
        stack,
        topic.ml_name,
        {topic.ledger_id: outcome.certificate},
        ml_czxid=outcome.ml_czxid,
    )


def test_a_topic_deleted_and_made_again_gets_nothing_of_the_old_one(lab, namespace):
    topic = lab.topic(namespace)
    with lab.open() as stack:
        outcome = verified_only(stack, topic)
        lab.admin("DELETE", f"/persistent/{topic.spec.topic}?force=true")
        with pytest.raises(RefusedError, match="its metadata node is gone"):
            publish(stack, topic, outcome)
        produce(lab.endpoints, topic.spec)
        made_again = lab.close_current(topic.spec.topic)
        assert topic.ledger_id not in made_again
        with pytest.raises(MetadataConflictError, match="a new one") as refused:
            publish(stack, topic, outcome)
        assert topic.name in str(refused.value)
        assert "nothing was published" in str(refused.value)
        assert refused.value.exit_code == 19

        [again] = offload_batch(stack, [topic.ledger_id])
        assert wait_of(again).reason is Reason.EXPIRED
        info, _node = stack.topics.read(topic.ml_name)
        assert [x for x in info.ledgers if x.offload is not None] == []
        published = keys.publications_of(topic.ml_name)
        assert [*stack.book.iter_records(Publication, published)] == []
        lab.older(stack)
        [record] = lab.swept(stack, topic.ledger_id)
        assert stack.objects.head(record.data_key) is None
    lab.readable(topic)


def test_a_publisher_that_slept_while_its_attempt_was_abandoned_stops(lab, namespace):
    topic = lab.topic(namespace)
    with lab.open() as sleeper, lab.open() as other:
        outcome = verified_only(sleeper, topic)
        lab.older(other)
        [attempt] = other.book.iter_records(Attempt, keys.attempts_of(topic.ledger_id))
        assert win_outcome(other, attempt, "abandon", reason="a person gave it up") is not None
        [record] = lab.swept(other, topic.ledger_id)
        before = sleeper.topics.read(topic.ml_name)[1].stat.version

        result = publish(sleeper, topic, outcome)[topic.ledger_id]
        assert isinstance(result, RefusedError)
        assert f"ledger {topic.ledger_id}" in str(result)
        assert str(record.uid) in str(result)
        assert "offload the ledger again" in str(result)
        assert sleeper.topics.read(topic.ml_name)[1].stat.version == before
        assert lab.context_uid(sleeper, topic) is None
        assert sleeper.objects.head(record.data_key) is None

        [again] = offload_batch(sleeper, [topic.ledger_id])  # as the message says
        assert certificate_of(again).uid != record.uid
        lab.assert_published_once(sleeper, topic)
    lab.readable(topic, reloaded=True)


def test_a_sweeper_that_comes_while_an_attempt_is_published_keeps_it(lab, namespace):
    topic = lab.topic(namespace)
    with lab.open() as stack:
        outcome = verified_only(stack, topic)
        publish(stack, topic, outcome)
        lab.older(stack)
        assert lab.swept(stack, topic.ledger_id) == []
        uid = lab.assert_published_once(stack, topic)
        found = stack.book.read(Outcome, keys.outcome(topic.ledger_id, uid))
        assert found is not None
        assert found.record.outcome == "publish"
    lab.readable(topic, reloaded=True)


def test_the_second_of_two_runs_waits_and_names_the_first(lab, namespace):
    topic = lab.topic(namespace)
    with lab.open() as first, lab.open() as second:
        assert claim_ledger(first, topic.ledger_id) is None
        [outcome] = offload_batch(second, [topic.ledger_id])
        wait = wait_of(outcome)
        assert wait.reason is Reason.CLAIMED
        assert first.run_id in wait.detail
        assert [*second.book.iter_records(Attempt, keys.attempts_of(topic.ledger_id))] == []
        claim = read_claim(second, topic.ledger_id)
        assert claim is not None
        assert claim.record.run_id == first.run_id  # waiting did not drop it

        [done] = offload_batch(first, [topic.ledger_id])
        assert done.state == "published"
        [noop] = offload_batch(second, [topic.ledger_id])
        assert noop.noop
        lab.assert_published_once(second, topic)


def test_a_claim_that_ran_out_is_taken_over(lab, namespace):
    topic = lab.topic(namespace)
    settings = lab.with_section("offload", claim_ttl_s=YOUNGEST_S)
    with lab.open(settings) as dead, lab.open() as heir:
        assert claim_ledger(dead, topic.ledger_id) is None
        lab.older(heir)
        [outcome] = offload_batch(heir, [topic.ledger_id])
        assert outcome.state == "published"
        claim = read_claim(heir, topic.ledger_id)
        assert claim is not None
        assert claim.record.run_id == heir.run_id


def test_two_runs_that_both_publish_the_same_attempt_end_alike(lab, namespace):
    """Claims only save work: with none in the way, the second finds the first one's context."""
    topic = lab.topic(namespace)
    with lab.open() as first, lab.open() as second:
        outcome = verified_only(first, topic)
        [theirs] = offload_batch(second, [topic.ledger_id], publish=False)
        assert certificate_of(theirs).uid == certificate_of(outcome).uid
        publish(first, topic, outcome)
        after = first.topics.read(topic.ml_name)[0]
        publish(second, topic, theirs)
        assert second.topics.read(topic.ml_name)[0].ledger(topic.ledger_id) == after.ledger(
            topic.ledger_id
        )
        lab.assert_published_once(second, topic)
    lab.readable(topic, reloaded=True)


def test_marks_of_a_ledger_that_another_run_released_meanwhile_are_not_taken_back(lab, namespace):
    topic = lab.topic(namespace)
    with lab.open() as slow, lab.open() as fast:
        [outcome] = offload_batch(fast, [topic.ledger_id])
        assert outcome.certificate is not None
        lab.older(fast)
        record = outcome.certificate.record
        copy = Copy(record.uid, record.ledger.last_entry_id)
        [released] = release_topic(fast, topic.ml_name, [topic.ledger_id]).values()
        assert isinstance(released, Released)
        found = slow.topics.read(topic.ml_name)
        assert found is not None
        # The slow run marked it, too, could not have it read, and takes its marks back only now.
        undo(
            slow,
            topic.ml_name,
            TopicChange(marks={topic.ledger_id: copy}),
            czxid=found[1].stat.czxid,
            why="it could not read it",
        )
        found = slow.topics.read(topic.ml_name)
        assert found is not None
        assert is_marked(found[0], topic.ledger_id, record.uid)
    lab.readable(topic, reloaded=True)
