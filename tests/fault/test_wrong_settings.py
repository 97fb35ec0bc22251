"""Servers that are away or elsewhere, and keys that open nothing: the error names the setting."""

from __future__ import annotations

import socket
from dataclasses import replace

import pytest

from tests.support.fault_lab import error_of
from tests.support.http_proxy import Do, HttpProxy
from tests.support.zookeeper_proxy import ZooKeeperProxy
from tiering_assets.batch.pipeline import offload_batch
from tiering_assets.records import keys
from tiering_assets.records.models import Attempt
from tiering_assets.resources.errors import MetadataError, ObjectStoreError

pytestmark = [pytest.mark.stack, pytest.mark.fault]


@pytest.fixture(scope="module")
def topic(lab):
    return lab.topic(lab.namespace("settings"))


@pytest.fixture
def nobody():
    """An address of this machine where nobody listens, and nobody can begin to."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{taken.getsockname()[1]}"


def store_settings(lab, **values):
    quick = {"attempts_max": 2, "connect_timeout_s": 1.0}
    return lab.with_section("store", **quick, **values)


def assert_store_error(lab, topic, settings):
    with lab.open(settings) as stack:
        [outcome] = offload_batch(stack, [topic.ledger_id])
    error = error_of(outcome)
    assert isinstance(error, ObjectStoreError)
    assert error.exit_code == 21
    lab.assert_no_secret(str(error))
    with lab.open() as stack:
        assert [*stack.book.iter_records(Attempt, keys.attempts_of(topic.ledger_id))] == []
        assert lab.context_uid(stack, topic) is None
    return str(error)


def test_a_missing_bucket_is_named_with_the_setting(lab, topic):
    said = assert_store_error(lab, topic, store_settings(lab, bucket="no-such-bucket"))
    assert "no-such-bucket" in said
    assert lab.endpoints.s3_endpoint in said
    assert "store.bucket" in said


@pytest.mark.parametrize(
    "values",
    [{"secret_key": "wrong-secret-value"}, {"access_key": "AKUNKNOWN", "secret_key": "wrong"}],
    ids=["secret", "unknown key"],
)
def test_wrong_credentials_name_the_settings_and_no_secret(lab, topic, values):
    said = assert_store_error(lab, topic, store_settings(lab, **values))
    assert "store.access_key" in said
    assert "wrong-secret-value" not in said


def test_a_wrong_endpoint_is_named_with_the_setting(lab, topic, nobody):
    endpoint = f"http://{nobody}"
    said = assert_store_error(lab, topic, store_settings(lab, endpoint=endpoint))
    assert endpoint in said
    assert "store.endpoint" in said


def test_zookeeper_away_from_the_start_is_told_at_once(lab, nobody):
    settings = lab.with_section("metadata", store=f"zk:{nobody}", connect_timeout_s=1.0)
    with pytest.raises(MetadataError, match=nobody) as told, lab.open(settings):
        pass
    assert told.value.exit_code == 18
    assert "metadata.store" in str(told.value)


def test_zookeeper_away_between_verify_and_publish_changes_nothing(lab, topic):
    with ZooKeeperProxy(lab.endpoints.zookeeper) as proxy:
        settings = lab.with_section("metadata", store=f"zk:{proxy.connect_string}")
        with lab.open(settings) as stack:
            [verified] = offload_batch(stack, [topic.ledger_id], publish=False)
            assert verified.verified
            proxy.go_away()
            [outcome] = offload_batch(stack, [topic.ledger_id])
    error = error_of(outcome)
    assert isinstance(error, MetadataError)
    assert error.retryable
    with lab.open() as stack:
        assert lab.context_uid(stack, topic) is None
        [again] = offload_batch(stack, [topic.ledger_id])
        assert again.state == "published"
        assert not again.copied  # the proof is used, not made again
        lab.assert_published_once(stack, topic)
    lab.readable(topic, reloaded=True)


def test_a_broker_that_does_not_answer_leaves_the_ledger_verified(lab):
    topic = lab.topic(lab.namespace("mute"))
    with HttpProxy(lab.endpoints.admin_url, lambda _method, _path: Do.REFUSE) as proxy:
        settings = replace(
            lab.settings, broker=replace(lab.settings.broker, admin_url=proxy.url, timeout_s=5.0)
        )
        with lab.open(settings) as stack:
            [outcome] = offload_batch(stack, [topic.ledger_id])
    error = error_of(outcome)
    assert error.exit_code == 25
    assert "503" in str(error)
    with lab.open() as stack:
        assert lab.context_uid(stack, topic) is None
        [again] = offload_batch(stack, [topic.ledger_id])
        assert again.state == "published"
        assert not again.copied
    lab.readable(topic, reloaded=True)
