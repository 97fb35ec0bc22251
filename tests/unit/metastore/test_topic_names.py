import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tiering_assets.resources.errors import FormatError
from tiering_assets.resources.metastore.topic_names import (
    TopicName,
    decode_name,
    encode_name,
    managed_ledger_path,
    never_touched,
    parse_managed_ledger_name,
    parse_topic_name,
)

PLAIN_TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)


@pytest.mark.parametrize(
    ("name", "encoded"),  # as java.net.URLEncoder spells them
    [
        ("plain", "plain"),
        ("a b/c", "a+b%2Fc"),
        ("a~b", "a%7Eb"),
        (".-*_", ".-*_"),
        ("é+%", "%C3%A9%2B%25"),
        ("'(),;:@&=$!", "%27%28%29%2C%3B%3A%40%26%3D%24%21"),
        ("\U0001f600", "%F0%9F%98%80"),
    ],
)
def test_names_are_encoded_as_java_does(name, encoded):
    assert encode_name(name) == encoded
    assert decode_name(encoded) == name


@given(PLAIN_TEXT)
def test_encoding_a_name_is_reversible(name):
    assert decode_name(encode_name(name)) == name


@given(st.text())
def test_any_text_decodes_or_is_a_format_error(text):
    with contextlib.suppress(FormatError):
        assert encode_name(decode_name(text)) == text


@pytest.mark.parametrize("encoded", ["%ff", "a~b", "a b", "%2f", "%7e", "\ud800"])
def test_other_spellings_are_refused(encoded):
    with pytest.raises(FormatError):
        decode_name(encoded)


@pytest.mark.parametrize(
    ("topic", "ml_name"),
    [
        ("persistent://public/default/t", "public/default/persistent/t"),
        ("persistent://t/ns/a b-partition-3", "t/ns/persistent/a+b-partition-3"),
        (
            "persistent://pulsar/lab/127.0.0.1:18080/healthcheck",
            "pulsar/lab/127.0.0.1:18080/persistent/healthcheck",
        ),
        ("persistent://t/c/ns/a/b", "t/c/ns/persistent/a%2Fb"),
    ],
)
def test_the_three_spellings_are_inverse(topic, ml_name):
    parsed = parse_topic_name(topic)
    assert parsed.managed_ledger_name == ml_name
    assert parse_managed_ledger_name(ml_name) == parsed
    assert str(parsed) == topic
    assert managed_ledger_path(ml_name) == f"/managed-ledgers/{ml_name}"


@given(st.tuples(st.sampled_from(["t", "a-b"]), st.sampled_from([None, "c"]), PLAIN_TEXT))
def test_a_managed_ledger_name_parses_back(parts):
    tenant, cluster, local_name = parts
    topic = TopicName(tenant=tenant, cluster=cluster, namespace="ns", local_name=local_name)
    assert parse_managed_ledger_name(topic.managed_ledger_name) == topic


@pytest.mark.parametrize(
    ("local_name", "partition", "unpartitioned"),
    [
        ("t", None, "t"),
        ("t-partition-0", 0, "t"),
        ("t-partition-12", 12, "t"),
        ("t-partition-", None, "t-partition-"),
        ("t-partition-01", None, "t-partition-01"),
        ("t-partition-1-partition-2", 2, "t-partition-1"),
    ],
)
def test_a_partition_knows_its_topic(local_name, partition, unpartitioned):
    topic = parse_topic_name(f"persistent://t/ns/{local_name}")
    assert topic.partition == partition
    assert topic.unpartitioned.local_name == unpartitioned


@pytest.mark.parametrize(
    "name", ["", "t", "non-persistent://a/b/c", "persistent://a/b", "persistent://a//c"]
)
def test_what_is_no_persistent_topic_is_refused(name):
    with pytest.raises(FormatError):
        parse_topic_name(name)


@pytest.mark.parametrize(
    "name", ["a/b/c", "a/b/non-persistent/c", "a/persistent/c", "/b/persistent/c"]
)
def test_what_is_no_managed_ledger_of_a_topic_is_refused(name):
    with pytest.raises(FormatError):
        parse_managed_ledger_name(name)
    assert never_touched(name, {}) is not None


@pytest.mark.parametrize(
    ("ml_name", "says"),
    [
        ("public/default/persistent/__change_events", "system topic"),
        ("public/default/persistent/__change_events-partition-1", "system topic"),
        ("public/default/persistent/__consumer_offsets", "system topic"),
        ("public/default/persistent/__transaction_buffer_snapshot", "transaction log"),
        ("pulsar/system/persistent/__transaction_log_3", "pulsar/system"),
        ("pulsar/system/persistent/transaction_coordinator_assign-partition-0", "pulsar/system"),
        ("pulsar/system/persistent/loadbalancer-broker-load-data", "pulsar/system"),
        ("t/ns/persistent/orders-sub__transaction_pending_ack", "pending-ack"),
        ("t/ns/persistent/o-partition-2-sub__transaction_pending_ack", "pending-ack"),
        ("t/ns/persistent/orders-sub-transaction-pendingack", "pending-ack"),
        ("t/ns/persistent/orders-sub__transaction_pending_ack-partition-3", "pending-ack"),
        ("t/ns/persistent/transaction_coordinator_assign", "system topic"),
        ("pulsar/cluster/system/persistent/x", "tenant pulsar"),
        ("pulsar/lab/127.0.0.1:18080/persistent/healthcheck", "health-check"),
        ("pulsar/broker-1:8080/persistent/healthcheck", "health-check"),
        ("sla-monitor/lab/broker-1:8080/persistent/x", "health-check"),
        ("pulsar/other/persistent/x", "tenant pulsar"),
        ("public/functions/persistent/assignments", "functions"),
        ("public/functions/persistent/anything", "functions"),
        ("acme/functions/persistent/coordinate-partition-0", "functions"),
    ],
)
def test_internal_topics_are_never_touched(ml_name, says):
    assert says in str(never_touched(ml_name, {}))


def test_a_shadow_topic_is_never_touched():
    name = "public/default/persistent/t"
    reason = never_touched(name, {"PULSAR.SHADOW_SOURCE": "persistent://a/b/c"})
    assert reason is not None
    assert "persistent://a/b/c" in reason
    assert never_touched(name, {"owner": "x"}) is None


@pytest.mark.parametrize(
    "ml_name",
    [
        "public/default/persistent/orders",
        "acme/functions/persistent/orders",
        "acme/prod/persistent/metadata",
        "acme/system/persistent/orders",
        "acme/prod/persistent/a__b",
        "acme/prod/persistent/_x-partition-7",
        "t/cluster/ns/persistent/legacy",
    ],
)
def test_user_topics_are_offloaded(ml_name):
    assert never_touched(ml_name, {}) is None
