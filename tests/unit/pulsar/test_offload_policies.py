from dataclasses import replace

import pytest

from tiering_assets.resources.errors import BrokerError
from tiering_assets.resources.pulsar.offload_policies import PolicyAnswers, merge_offload_policies

TOPIC = "persistent://public/default/x"
BROKER = {
    "managedLedgerOffloadDriver": "aws-s3",
    "managedLedgerOffloadDeletionLagMs": "14400000",
    "managedLedgerOffloadAutoTriggerSizeThresholdBytes": "-1",
    "managedLedgerOffloadThresholdInSeconds": "-1",
    "managedLedgerDataReadPriority": "tiered-storage-first",
}
PLACE = {
    "managedLedgerOffloadDriver": "aws-s3",
    "s3ManagedLedgerOffloadBucket": "from-broker-conf",
    "s3ManagedLedgerOffloadServiceEndpoint": "http://s3:1",
    "s3ManagedLedgerOffloadRegion": "us-east-1",
}
PLAIN = PolicyAnswers(
    topic=None,
    namespace=None,
    namespace_lag_ms=None,
    namespace_threshold_bytes=-1,
    namespace_threshold_seconds=-1,
    broker=BROKER,
    applied=PLACE,
)


def merged(**changes):
    return merge_offload_policies(replace(PLAIN, **changes), topic=TOPIC)


def test_a_broker_without_policies_shows_its_place_by_its_own_merge():
    found = merged()
    assert (found.driver, found.bucket) == ("aws-s3", "from-broker-conf")
    assert (found.endpoint, found.region) == ("http://s3:1", "us-east-1")
    assert found.deletion_lag_ms == 14_400_000
    assert found.threshold_bytes is None
    assert found.threshold_seconds is None
    assert found.read_priority == "tiered-storage-first"
    assert set(found.origins.values()) == {"broker"}


def test_topic_beats_namespace_beats_broker_field_by_field():
    found = merged(
        topic={"s3ManagedLedgerOffloadBucket": "t", "managedLedgerOffloadDriver": None},
        namespace={
            "s3ManagedLedgerOffloadBucket": "n",
            "managedLedgerOffloadDriver": "S3",
            "managedLedgerOffloadedReadPriority": "bookkeeper-first",
            "managedLedgerOffloadThresholdInBytes": 1000,
        },
        applied=None,
    )
    assert (found.bucket, found.driver, found.region) == ("t", "S3", None)
    assert found.read_priority == "bookkeeper-first"
    assert found.threshold_bytes == 1000
    assert found.origins["bucket"] == "topic"
    assert found.origins["driver"] == "namespace"
    assert found.origins["deletion_lag_ms"] == "broker"


def test_the_drivers_own_bucket_beats_the_general_one_even_from_a_lower_level():
    found = merged(topic={"managedLedgerOffloadBucket": "general"})
    assert found.bucket == "from-broker-conf"
    filesystem = {
        "managedLedgerOffloadDriver": "filesystem",
        "managedLedgerOffloadBucket": "general",
    }
    assert merged(topic=filesystem, applied=None).bucket == "general"


def test_legacy_namespace_fields_fill_gaps_only():
    found = merged(namespace_lag_ms=0, namespace_threshold_bytes=0)
    assert (found.deletion_lag_ms, found.threshold_bytes) == (0, 0)
    assert found.origins["deletion_lag_ms"] == "namespace"
    policy = {"managedLedgerOffloadDeletionLagInMillis": 5}
    assert merged(namespace=policy, namespace_lag_ms=7).deletion_lag_ms == 5


def test_a_negative_lag_is_shown_as_set_for_brokers_delete_at_once():
    assert merged(namespace_lag_ms=-1).deletion_lag_ms == -1


def test_a_merge_that_the_broker_contradicts_is_an_error():
    with pytest.raises(BrokerError, match=r"bucket is 't'.*applies 'from-broker-conf'"):
        merged(topic={"s3ManagedLedgerOffloadBucket": "t"})


def test_a_lag_that_is_no_number_is_an_error():
    with pytest.raises(BrokerError, match="whole number"):
        merged(broker={**BROKER, "managedLedgerOffloadDeletionLagMs": "4h"})


@pytest.mark.parametrize("said", ["", "null", None])
def test_what_a_level_leaves_empty_the_next_one_says(said):
    found = merged(
        topic={"s3ManagedLedgerOffloadBucket": said},
        namespace={"s3ManagedLedgerOffloadBucket": "of-the-namespace"},
        applied={**PLACE, "s3ManagedLedgerOffloadBucket": "of-the-namespace"},
    )
    assert found.bucket == "of-the-namespace"
    assert found.origins["bucket"] == "namespace"
