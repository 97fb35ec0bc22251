"""A copy whose process died goes on with the parts that are there, and with no others."""

from __future__ import annotations

import signal
from dataclasses import replace
from hashlib import sha256

import pytest

from tests.support.debug_log import debug_log
from tests.support.fault_lab import YOUNGEST_S, certificate_of
from tiering_assets.batch.pipeline import offload_batch
from tiering_assets.copy.offload import uploads_of
from tiering_assets.records import keys
from tiering_assets.records.models import Attempt
from tiering_assets.resources.devstack.endpoints import environment_of
from tiering_assets.resources.object_store.multipart import PART_NUMBER_MAX

pytestmark = [pytest.mark.stack, pytest.mark.fault]


@pytest.fixture(scope="module")
def namespace(lab):
    return lab.namespace("resumed")


@pytest.fixture
def died_in_mid_copy(lab, namespace, crash_driver):
    """A ledger of two blocks whose first run died after sending both parts; and its attempt."""
    topic = lab.multi_block_topic(namespace)
    settings = replace(lab.settings, offload=replace(lab.settings.offload, claim_ttl_s=YOUNGEST_S))
    ended = crash_driver.run(
        "offload",
        environment_of(settings),
        crash_at="offload.parts_sent",
        ledger_ids=[topic.ledger_id],
    )
    assert ended == -signal.SIGKILL
    with lab.open() as stack:
        lab.older(stack)  # the dead process's claim has run out
        [attempt] = stack.book.iter_records(Attempt, keys.attempts_of(topic.ledger_id))
        return topic, attempt.record


def offload_and_listen(lab, topic):
    """Run the offload to its end; the outcome, and what it said about this ledger's blocks."""
    said: list[str] = []
    with lab.open(narrate=said.append) as stack, debug_log("tiering_assets.copy.offload") as log:
        [outcome] = offload_batch(stack, [topic.ledger_id])
    assert outcome.error is None
    assert outcome.state == "published"
    lab.readable(topic, reloaded=True)
    blocks = [line for line in log if f"ledger {topic.ledger_id} block" in line]
    return outcome, [line.partition(" block ")[2] for line in blocks if "MB in" not in line], said


def upload_of(stack, record):
    [upload_id] = uploads_of(stack, record.uid, record.ledger.ledger_id)
    return upload_id


def test_parts_with_the_right_checksum_are_not_sent_again(lab, died_in_mid_copy):
    topic, record = died_in_mid_copy
    outcome, found, said = offload_and_listen(lab, topic)
    assert certificate_of(outcome).uid == record.uid  # the same attempt, and no second one
    assert found == ["1: was sent before", "2: was sent before"]
    assert any("2 of 2 parts are there" in line for line in said)


def test_a_part_with_other_bytes_never_reaches_the_object(lab, died_in_mid_copy):
    topic, record = died_in_mid_copy
    with lab.open() as stack:
        junk = bytes(5 * 1024 * 1024)
        stack.objects.upload_part(
            record.data_key,
            upload_of(stack, record),
            part_number=1,
            body=junk,
            sha256=sha256(junk).digest(),
        )
    outcome, found, _said = offload_and_listen(lab, topic)
    assert certificate_of(outcome).uid == record.uid
    assert "2: was sent before" in found  # the first one, too, where the store lists both


def test_an_upload_with_a_part_of_somebody_else_ends_the_attempt_not_the_ledger(
    lab, died_in_mid_copy
):
    topic, record = died_in_mid_copy
    with lab.open() as stack:
        stack.objects.upload_part(
            record.data_key,
            upload_of(stack, record),
            part_number=PART_NUMBER_MAX,
            body=b"x",
            sha256=sha256(b"x").digest(),
        )
        [outcome] = offload_batch(stack, [topic.ledger_id])
        assert outcome.error is not None
        assert "another writer is in it" in str(outcome.error)
    again, _found, _said = offload_and_listen(lab, topic)
    assert certificate_of(again).uid != record.uid


def test_an_upload_that_somebody_aborted_gets_a_new_attempt(lab, died_in_mid_copy):
    topic, record = died_in_mid_copy
    with lab.open() as stack:
        stack.objects.abort_upload(record.data_key, upload_of(stack, record))
    outcome, found, _said = offload_and_listen(lab, topic)
    assert certificate_of(outcome).uid != record.uid
    assert found == []
