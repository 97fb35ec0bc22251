"""What the broker's own offloader leaves when it fails, and how clean-up tells the dead from the
slow.
"""

from __future__ import annotations

import threading
import time
from dataclasses import replace

import pytest

from tests.support.fault_lab import Lab, certificate_of
from tests.support.http_proxy import Do, HttpProxy
from tests.support.topic_halves import release_topic
from tiering_assets.batch.pipeline import offload_batch
from tiering_assets.clean.clean_up import clean_up
from tiering_assets.clean.leftovers_rules import Collect, Note
from tiering_assets.ground.reasons import NotNow
from tiering_assets.records import keys
from tiering_assets.records.sweep_models import Leftover, SweepIntent, Swept
from tiering_assets.release.work import Released

pytestmark = [pytest.mark.stack, pytest.mark.fault]

INDEX = "-index"


def begin_offload(lab, topic):
    """Have the broker's own offloader begin with the topic's closed ledgers."""
    stats = lab.admin("GET", f"/persistent/{topic.spec.topic}/internalStats")
    until = {"ledgerId": stats["ledgers"][-1]["ledgerId"], "entryId": 0, "partitionIndex": -1}
    lab.admin("PUT", f"/persistent/{topic.spec.topic}/offload", until)


def status(lab, topic):
    return lab.admin("GET", f"/persistent/{topic.spec.topic}/offload")["status"]


def wait_until(is_so, what):
    deadline = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < deadline, f"not so after a minute: {what}"
        time.sleep(0.1)


@pytest.fixture(scope="module")
def lab(stack_to_stop):
    return Lab(stack_to_stop)


@pytest.fixture(scope="module")
def proxy(lab):
    """The broker and we reach the bucket by a proxy; a namespace's own endpoint a broker
    ignores.
    """
    with HttpProxy(lab.endpoints.s3_endpoint) as between:
        lab.running.stop_server("broker")
        lab.running.start_server(
            "broker", broker_conf={"s3ManagedLedgerOffloadServiceEndpoint": between.url}
        )
        yield between
        between.rule = lambda _method, _path: Do.PASS
        lab.running.stop_server("broker")
        lab.running.start_server("broker")


@pytest.fixture
def near(lab, proxy):
    """Our settings with the same endpoint as the broker's, as publishing requires."""

    def settings(**release):
        return replace(
            lab.settings,
            store=replace(lab.settings.store, endpoint=proxy.url),
            release=replace(lab.settings.release, **release),
        )

    return settings


def of_topic(found, topic):
    return [one for one in found.leftovers if one.pair[0] == topic.ledger_id]


def objects_of(stack, topic):
    return [s.key for s in stack.objects.list_objects() if f"-ledger-{topic.ledger_id}" in s.key]


def unfinished_uid(stack, topic):
    found = stack.topics.read(topic.ml_name)
    assert found is not None
    listed = found[0].ledger(topic.ledger_id)
    assert listed is not None
    if listed.offload is None:
        return None
    assert not listed.offload.complete
    return listed.offload.uid


def test_what_a_broker_that_failed_left_is_noted_then_collected_and_the_ledger_is_offloaded(
    lab, proxy, near
):
    def rule(method, path):
        # Without an index the broker deletes the data object again, if it can.
        denied = method == "DELETE" or path.endswith("?delete") or INDEX in path
        return Do.DENY if denied else Do.PASS

    with lab.open(near()) as stack:
        topic = lab.topic(lab.namespace("leftovers"))
        proxy.rule = rule
        begin_offload(lab, topic)
        wait_until(lambda: status(lab, topic) == "ERROR", "the broker gives up")
        proxy.rule = lambda _method, _path: Do.PASS
        assert proxy.struck
        uid = unfinished_uid(stack, topic)
        assert uid is not None
        [data] = objects_of(stack, topic)  # data without index
        assert data == f"{uid}-ledger-{topic.ledger_id}"
        [blocked] = offload_batch(stack, [topic.ledger_id])
        assert blocked.wait is not None
        assert str(uid) in blocked.wait.detail

        [looked] = of_topic(clean_up(stack, execute=False), topic)
        assert (looked.decision, looked.objects) == (Note(), (data,))
        assert stack.book.read(Leftover, keys.leftover(topic.ledger_id, uid)) is None  # dry run
        clean_up(stack, execute=True)
        noted = stack.book.read(Leftover, keys.leftover(topic.ledger_id, uid))
        assert noted is not None
        lab.older(stack)
        [due] = of_topic(clean_up(stack, execute=False), topic)
        assert due.decision == Collect(take_out=True)
        assert unfinished_uid(stack, topic) == uid

        [done] = of_topic(clean_up(stack, execute=True), topic)
        assert done.error == ""
        assert done.done is not None
        assert done.done.bytes_freed == looked.bytes
        assert unfinished_uid(stack, topic) is None
        assert objects_of(stack, topic) == []
        intent = stack.book.require(SweepIntent, keys.sweep_intent(topic.ledger_id, uid))
        assert intent.record.previous == noted.sha256
        swept = stack.book.require(Swept, keys.swept(topic.ledger_id, uid))
        assert (swept.record.previous, swept.record.objects) == (intent.sha256, (data,))
        assert of_topic(clean_up(stack, execute=True), topic) == []
        lab.readable(topic)

        [outcome] = offload_batch(stack, [topic.ledger_id])
        assert outcome.state == "published"
        lab.assert_published_once(stack, topic)
        assert certificate_of(outcome).uid != uid
    lab.readable(topic, reloaded=True)


def test_a_broker_whose_upload_is_slow_is_left_alone_and_loses_only_its_work_when_it_is_not(
    lab, proxy, near
):
    go_on, waiting, looked = threading.Event(), threading.Event(), threading.Event()

    def rule(method, path):
        """A busy machine takes longer to look than the broker waits for an answer, again and again.
        Then it gives its upload up: that, too, comes behind what is looked at.
        """
        if method == "PUT" and "partNumber=" in path and not go_on.is_set():
            waiting.set()
            go_on.wait(600)
        if method == "DELETE" and "uploadId=" in path:
            looked.wait(600)
        return Do.PASS

    topic = lab.multi_block_topic(lab.namespace("slow"))
    proxy.rule = rule
    try:
        begin_offload(lab, topic)
        assert waiting.wait(60)
        with lab.open(near(guard_age_s=3600.0)) as stack:
            clean_up(stack, execute=True)
            lab.older(stack)
            [kept] = of_topic(clean_up(stack, execute=True), topic)
            assert isinstance(kept.decision, NotNow)
            assert "the broker may be at work" in str(kept.decision)
            uid = unfinished_uid(stack, topic)
            assert uid == kept.pair[1]
            [upload] = [u for u in stack.objects.list_uploads() if str(uid) in u.key]
            assert kept.uploads == (upload.upload_id,)
        looked.set()
        with lab.open(near()) as hasty:  # a guard age of a millisecond: takes the slow one for dead
            [done] = of_topic(clean_up(hasty, execute=True), topic)
            assert done.error == ""
            assert done.done is not None
            assert unfinished_uid(hasty, topic) is None
            assert upload.upload_id not in {u.upload_id for u in hasty.objects.list_uploads()}
    finally:
        looked.set()
        go_on.set()
    with lab.open(near()) as stack:
        lab.readable(topic)
        time.sleep(2)  # the broker goes on with its upload, and fails
        assert unfinished_uid(stack, topic) is None
        [outcome] = offload_batch(stack, [topic.ledger_id])
        assert outcome.state == "published"
        lab.older(stack)
        [released] = release_topic(stack, topic.ml_name, [topic.ledger_id]).values()
        assert isinstance(released, Released)
        lab.older(stack)
        clean_up(stack, execute=True)
        ours = certificate_of(outcome)
        assert sorted(objects_of(stack, topic)) == sorted([ours.data.key, ours.index.key])
    lab.readable(topic, reloaded=True)


def test_what_others_put_into_the_bucket_is_told_apart_and_stays(lab):
    namespace = lab.namespace("foreign")
    topic = lab.topic(namespace)
    begin_offload(lab, topic)
    wait_until(lambda: status(lab, topic) == "SUCCESS", "the broker's offload")
    other, nobody = (
        f"{uid}-ledger-{topic.ledger_id}"
        for uid in (
            "1ecdf250-a9b4-4953-947e-0ace4164fb4a",
            "317fad33-457f-4d7d-8c56-29d2d4e6f21e",
        )
    )
    with lab.open() as stack:
        stack.objects.put(other, b"x", metadata={"tierkeeperinstance": "another-cluster"})
        stack.objects.put(nobody, b"xy")
        lab.older(stack)
        before = objects_of(stack, topic)
        assert len(before) == 4
        found = clean_up(stack, execute=True)
        foreign = {one.objects[0]: one for one in found.foreign if one.pair[0] == topic.ledger_id}
        [theirs] = [one for key, one in foreign.items() if key not in (other, nobody)]
        assert (theirs.owner.name, theirs.detail) == ("BROKER", topic.ml_name)
        assert (foreign[other].owner.name, foreign[other].detail) == (
            "OTHER_INSTANCE",
            "another-cluster",
        )
        assert (foreign[nobody].owner.name, foreign[nobody].bytes) == ("UNKNOWN", 2)
        assert objects_of(stack, topic) == before
    lab.readable(topic, reloaded=True)
