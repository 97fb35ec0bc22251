"""Policy JSON as brokers and ZooKeeper give it; anything else is a FormatError and nothing else."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tiering_assets.resources.errors import FormatError
from tiering_assets.resources.pulsar.policy_levels import (
    PolicyLevel,
    RetentionLimits,
    load_json,
    parse_broker,
    parse_namespace,
    parse_topic_level,
)

BYTES = "managedLedgerOffloadThresholdInBytes"
SECONDS = "managedLedgerOffloadThresholdInSeconds"
LAG = "managedLedgerOffloadDeletionLagInMillis"

# Keys that we read, with values of any type, and keys that we do not know.
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)
OFFLOAD = st.dictionaries(
    st.sampled_from([BYTES, SECONDS, LAG, "managedLedgerOffloadDriver", "offloadersDirectory"]),
    VALUES,
)
RETENTION = st.dictionaries(
    st.sampled_from(["retentionTimeInMinutes", "retentionSizeInMB", "new"]), VALUES
)
NAMESPACES = st.fixed_dictionaries(
    {},
    optional={
        "offload_policies": OFFLOAD | VALUES,
        "retention_policies": RETENTION | VALUES,
        "message_ttl_in_seconds": VALUES,
        "offload_threshold": VALUES,
        "offload_threshold_in_seconds": VALUES,
        "offload_deletion_lag_ms": VALUES,
        "bundles": VALUES,
    },
)


def level_or_refusal(make):
    """What it gives, or the text of its FormatError; any other error ends the test."""
    try:
        return make()
    except FormatError as error:
        return str(error)


@given(NAMESPACES | VALUES)
def test_any_json_is_a_level_or_a_format_error(policies):
    found = level_or_refusal(lambda: parse_namespace(policies, "ns"))
    if isinstance(found, str):
        assert found.startswith("ns")
        return
    for number in (found.threshold_bytes, found.threshold_seconds, found.deletion_lag_ms):
        assert number is None or (isinstance(number, int) and abs(number) <= 2**63)


@given(st.binary(max_size=60) | VALUES.map(lambda value: json.dumps(value).encode()))
def test_any_bytes_are_json_or_a_format_error(data):
    found = level_or_refusal(lambda: repr(load_json(data, "node")))
    assert found.startswith("node: not JSON") or found == repr(json.loads(data))


@pytest.mark.parametrize("data", [b"", b"[" * 100_000, b'{"offload_threshold": ' + b"9" * 5000])
def test_bytes_that_break_decoders(data):
    with pytest.raises(FormatError, match="node: not JSON"):
        load_json(data, "node")


def test_what_is_missing_or_null_is_not_set():
    assert parse_namespace({}, "ns") == PolicyLevel()
    nulls = {"offload_policies": None, "retention_policies": None, "message_ttl_in_seconds": None}
    assert parse_namespace(nulls, "ns") == PolicyLevel()
    assert parse_topic_level(None, None, None, "t") == PolicyLevel()


def test_unknown_fields_are_left_alone():
    level = parse_namespace({"offload_policies": {BYTES: 5, "new": {"x": 1}}, "newer": []}, "ns")
    assert level.threshold_bytes == 5
    assert level.offload["new"] == {"x": 1}


def test_legacy_fields_fill_gaps_and_minus_one_is_unset():
    legacy = {
        "offload_threshold": 7,
        "offload_threshold_in_seconds": -1,
        "offload_deletion_lag_ms": 0,
    }
    level = parse_namespace(legacy, "ns")
    assert (level.threshold_bytes, level.threshold_seconds, level.deletion_lag_ms) == (7, None, 0)
    both = {**legacy, "offload_policies": {BYTES: -1, LAG: 3}}
    level = parse_namespace(both, "ns")
    assert (level.threshold_bytes, level.deletion_lag_ms) == (-1, 3)


@pytest.mark.parametrize(
    ("policies", "said"),
    [
        ([], "ns: expected a JSON object, found a JSON list"),
        ({"offload_policies": 3}, "ns: offload_policies: expected a JSON object, found 3"),
        (
            {"offload_policies": {BYTES: "5"}},
            f"{BYTES}: expected a whole number or null, found '5'",
        ),
        ({"offload_policies": {SECONDS: True}}, "found True"),
        ({"offload_policies": {LAG: 1.5}}, "found 1.5"),
        ({"offload_policies": {BYTES: 2**63}}, "expected a number of 64 bits"),
        ({"offload_policies": {BYTES: 10**4000}}, "found a number of 13288 bits"),
        (
            {"offload_policies": {"managedLedgerOffloadDriver": 1}},
            "managedLedgerOffloadDriver: expected text or null, found 1",
        ),
        (
            {"offload_policies": {"s3ManagedLedgerOffloadBucket": ["b"]}},
            "s3ManagedLedgerOffloadBucket: expected text or null, found a JSON list",
        ),
        ({"message_ttl_in_seconds": {}}, "message_ttl_in_seconds: expected a whole number"),
        (
            {"retention_policies": {"retentionTimeInMinutes": 5}},
            "retention_policies: retentionSizeInMB: expected a whole number, found None",
        ),
    ],
)
def test_a_wrong_type_is_named(policies, said):
    with pytest.raises(FormatError) as told:
        parse_namespace(policies, "ns")
    assert said in str(told.value)


def test_the_broker_spells_it_otherwise_and_as_text():
    level = parse_broker(
        {
            "managedLedgerOffloadAutoTriggerSizeThresholdBytes": "-1",
            "managedLedgerOffloadThresholdInSeconds": "3600",
            "managedLedgerOffloadDeletionLagMs": "14400000",
            "defaultRetentionTimeInMinutes": "-1",
            "defaultRetentionSizeInMB": "10",
            "ttlDurationDefaultInSeconds": "60",
        },
        "broker",
    )
    assert (level.threshold_bytes, level.threshold_seconds) == (-1, 3600)
    assert level.deletion_lag_ms == 14_400_000
    assert level.retention == RetentionLimits(minutes=-1, megabytes=10)
    assert level.ttl_s == 60


def test_a_broker_without_a_lag_has_none_and_keeps_nothing_acknowledged():
    level = parse_broker({"managedLedgerOffloadDeletionLagMs": "null"}, "broker")
    assert level.deletion_lag_ms is None
    assert level.retention == RetentionLimits(minutes=0, megabytes=0)
    assert level.ttl_s == 0


@pytest.mark.parametrize(
    "text", ["4h", "1_000", "1.0", "--1", "٣", "9" * 30, "9223372036854775808"]
)
def test_a_broker_setting_that_is_no_number_is_named(text):
    with pytest.raises(FormatError, match="broker: ttlDurationDefaultInSeconds: expected"):
        parse_broker({"ttlDurationDefaultInSeconds": text}, "broker")
