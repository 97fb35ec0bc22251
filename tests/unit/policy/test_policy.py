"""Topic over namespace over broker over ours; which values mean off, none and unlimited; what is
refused.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tiering_assets.ground.own_policy import OwnPolicies, OwnPolicy, TieringMode
from tiering_assets.policy.policy import Origin, Value, effective_policy, rows
from tiering_assets.policy.policy_rules import check_policy, refusals
from tiering_assets.resources.pulsar.offload_policies import merge_offload_policies
from tiering_assets.resources.pulsar.policy_levels import (
    PolicyLevel,
    PulsarLevels,
    RetentionLimits,
    parse_broker,
    parse_namespace,
)

TOPIC = "persistent://public/default/orders"
BYTES = "managedLedgerOffloadThresholdInBytes"
SECONDS = "managedLedgerOffloadThresholdInSeconds"
LAG = "managedLedgerOffloadDeletionLagInMillis"
CONFIG = {
    "managedLedgerOffloadAutoTriggerSizeThresholdBytes": "-1",
    "managedLedgerOffloadThresholdInSeconds": "-1",
    "managedLedgerOffloadDriver": "aws-s3",
}
LAG_S = 100.0


def levels(topic=None, namespace=None, config=None):
    config = {**CONFIG, **(config or {})}
    return PulsarLevels(
        topic=topic or PolicyLevel(),
        namespace=namespace or PolicyLevel(),
        broker=parse_broker(config, "broker"),
        broker_config=config,
    )


def away(namespace=None):
    return PulsarLevels(
        topic=None,
        namespace=namespace or PolicyLevel(),
        broker=None,
        read_from="metadata store",
        unknown={"topic": "cannot reach it", "broker": "cannot reach it"},
    )


def policy(found=None, own=None):
    return effective_policy(TOPIC, found or levels(), own or OwnPolicies(), deletion_lag_s=LAG_S)


def offload(**values):
    names = {"size": BYTES, "time": SECONDS, "lag": LAG}
    return PolicyLevel(offload={names[name]: value for name, value in values.items()})


def retained(minutes, megabytes):
    return PolicyLevel(retention=RetentionLimits(minutes=minutes, megabytes=megabytes))


def own(**default):
    return OwnPolicies(default=OwnPolicy(**default))


# ----- which level wins


def test_a_stock_broker_sets_no_threshold_and_keeps_nothing_acknowledged():
    found = policy()
    assert found.thresholds.off
    assert (found.threshold_bytes.value, found.threshold_bytes.origin) == (-1, Origin.BROKER)
    assert (found.retention_minutes.value, found.retention_minutes.origin) == (0, Origin.BROKER)
    assert (found.broker_lag_ms.value, found.broker_lag_ms.origin) == (None, Origin.UNSET)
    assert found.complete
    assert found.mode.value == TieringMode.ENABLED
    assert refusals(found) == ()


VALUE = st.none() | st.integers(-1, 3)


@given(VALUE, VALUE, st.integers(-1, 3), VALUE)
def test_the_threshold_is_that_of_the_first_level_that_sets_it_and_ours_where_theirs_is_off(
    topic, namespace, broker, ours
):
    found = policy(
        levels(
            topic=offload() if topic is None else offload(size=topic),
            namespace=offload() if namespace is None else offload(size=namespace),
            config={"managedLedgerOffloadAutoTriggerSizeThresholdBytes": str(broker)},
        ),
        own(threshold_bytes=ours),
    )
    theirs = next(value for value in (topic, namespace, broker) if value is not None)
    expected = theirs if theirs >= 0 or ours is None else ours
    assert found.threshold_bytes.value == expected
    assert found.broker_offloads is (theirs >= 0)


@given(st.data())
def test_fields_agree_with_the_merge_that_publishing_goes_by(data):
    """Two ways through the same levels, of which the publish gate uses the other one."""
    numbers = st.none() | st.integers(-3, 10)

    def level():
        return {name: data.draw(numbers) for name in (BYTES, SECONDS, LAG)}

    legacy = {"offload_threshold": data.draw(st.integers(-1, 5))}
    made = levels(
        topic=PolicyLevel(offload=level()),
        namespace=parse_namespace({**legacy, "offload_policies": level()}, "ns"),
        config={"managedLedgerOffloadDeletionLagMs": "7"},
    )
    found, merged = policy(made), merge_offload_policies(made.answers(), topic=TOPIC)

    def on(value):
        return None if value is None or value < 0 else value

    assert on(found.threshold_bytes.value) == merged.threshold_bytes
    assert on(found.threshold_seconds.value) == merged.threshold_seconds
    assert found.broker_lag_ms.value == merged.deletion_lag_ms
    assert found.broker_lag_ms.origin == merged.origins["deletion_lag_ms"]


def test_retention_and_ttl_come_level_by_level():
    found = policy(levels(topic=retained(5, -1), namespace=PolicyLevel(ttl_s=0)))
    assert (found.retention_minutes.value, found.retention_megabytes.value) == (5, -1)
    assert found.retention_megabytes.origin is Origin.TOPIC
    assert (found.ttl_s.value, found.ttl_s.origin) == (0, Origin.NAMESPACE)
    shown = {row.name: row.meaning for row in rows(found)}
    assert shown["retentionSizeInMB"] == "unlimited"
    assert shown["retentionTimeInMinutes"] == "5 min"
    assert shown["messageTTLInSeconds"] == "none"


def test_the_brokers_lag_is_not_ours():
    found = policy(levels(namespace=offload(lag=5000)))
    assert (found.broker_lag_ms.value, found.broker_lag_ms.origin) == (5000, Origin.NAMESPACE)
    assert (found.deletion_lag_s.value, found.deletion_lag_s.origin) == (LAG_S, Origin.DEFAULT)


def test_ours_is_topic_over_namespace_over_default():
    policies = OwnPolicies(
        default=OwnPolicy(threshold_bytes=1, threshold_seconds=1, mode=TieringMode.PAUSED),
        namespaces={"public/default": OwnPolicy(threshold_bytes=2, threshold_seconds=-1)},
        topics={TOPIC: OwnPolicy(threshold_bytes=3)},
    )
    found = policy(own=policies)
    assert (found.threshold_bytes.value, found.threshold_bytes.origin) == (3, Origin.OWN_TOPIC)
    assert (found.threshold_seconds.value, found.threshold_seconds.origin) == (
        -1,
        Origin.OWN_NAMESPACE,
    )
    assert (found.mode.value, found.mode.origin) == (TieringMode.PAUSED, Origin.OWN_DEFAULT)


def test_the_place_has_pulsars_origin():
    found = policy(levels(topic=PolicyLevel(offload={"managedLedgerOffloadBucket": "b"})))
    assert (found.bucket.value, found.bucket.origin) == ("b", Origin.TOPIC)
    assert (found.driver.value, found.driver.origin) == ("aws-s3", Origin.BROKER)
    assert (found.region.value, found.region.origin) == (None, Origin.UNSET)


def test_without_a_broker_every_field_of_pulsar_is_uncertain():
    found = policy(away(offload(size=5)), own(threshold_seconds=60))
    assert not found.complete
    assert len(found.unknown) == 2
    assert (found.threshold_bytes.value, found.threshold_bytes.certain) == (5, False)
    assert (found.threshold_seconds.value, found.threshold_seconds.certain) == (60, False)
    assert (found.retention_minutes.value, found.retention_minutes.origin) == (None, Origin.UNKNOWN)
    by_name = {row.name: row for row in rows(found)}
    assert by_name["retentionTimeInMinutes"].meaning == "unknown"
    assert by_name["managedLedgerOffloadDriver"].meaning == "unknown"
    certain = {name for name, row in by_name.items() if row.certain}
    assert certain == {"tiering", "release.deletion_lag_s"}


# ----- what cannot be


def rules_of(found):
    return [finding.rule for finding in refusals(found)]


@pytest.mark.parametrize(
    ("seconds", "minutes", "refused"),
    [
        (60, 1, True),
        (59, 1, False),
        (61, 1, True),
        (0, 1, False),
        (-1, 1, False),
        (10**9, -1, False),
        (10**9, 0, False),
    ],
)
def test_offload_time_is_below_retention_time(seconds, minutes, refused):
    found = policy(levels(topic=retained(minutes, -1)), own(threshold_seconds=seconds))
    assert rules_of(found) == (["offload_time"] if refused else [])
    if refused:
        [said] = refusals(found)
        assert f"{seconds} s (tiering.toml default)" in said.text
        assert f"{minutes} min (topic)" in said.text


@pytest.mark.parametrize(
    ("size", "megabytes", "refused"),
    [
        (1 << 20, 1, True),
        ((1 << 20) - 1, 1, False),
        (0, 1, False),
        (-1, 1, False),
        (1 << 60, -1, False),
    ],
)
def test_offload_size_is_below_retention_size(size, megabytes, refused):
    made = levels(topic=retained(-1, megabytes), namespace=offload(size=size))
    found = policy(made)
    assert rules_of(found) == (["offload_size"] if refused else [])
    if refused:
        assert f"{size} bytes (namespace)" in refusals(found)[0].text
        assert "1 MB (topic)" in refusals(found)[0].text


@pytest.mark.parametrize(
    ("level", "said"),
    [
        (retained(-2, 5), "retention time is -2 (topic), the least is -1"),
        (retained(5, -7), "retention size is -7 (topic), the least is -1"),
        (PolicyLevel(ttl_s=-1), "message TTL is -1 (topic), the least is 0"),
        (
            offload(lag=-1),
            "lag is -1 (topic), the least is 0: the broker deletes bookie copies at once",
        ),
    ],
)
def test_numbers_below_what_means_something_are_refused(level, said):
    [found] = refusals(policy(levels(topic=level)))
    assert found.rule == "negative"
    assert said in found.text


def test_notes_refuse_nothing():
    made = levels(
        topic=offload(size=1, lag=999_999),
        namespace=PolicyLevel(retention=RetentionLimits(minutes=10, megabytes=0), ttl_s=540),
    )
    found = check_policy(policy(made, own(threshold_seconds=550)))
    assert {finding.rule for finding in found} == {
        "broker_offloads",
        "broker_releases",
        "no_retention",
        "lag_past_retention",
        "ttl",
    }
    assert not any(finding.refused for finding in found)


@pytest.mark.parametrize(("lag", "noted"), [(1_000_000, []), (999_999, ["broker_releases"])])
def test_a_lag_that_publishing_accepts_is_no_note(lag, noted):
    found = check_policy(policy(levels(topic=offload(lag=lag), namespace=retained(-1, -1))))
    assert [finding.rule for finding in found] == noted


@pytest.mark.parametrize("mode", TieringMode)
def test_what_cannot_be_is_refused_whatever_a_person_says_of_tiering(mode):
    impossible = levels(topic=retained(1, -1), namespace=offload(time=60))
    found = policy(impossible, own(mode=mode))
    assert (found.mode.value, found.mode.origin) == (mode, Origin.OWN_DEFAULT)
    assert [finding.rule for finding in refusals(found)] == ["offload_time"]
    assert refusals(policy(levels(namespace=offload(time=60)))) == ()


def test_a_broker_that_skips_what_it_cannot_read_is_told():
    def notes(said):
        found = check_policy(policy(levels(config={"autoSkipNonRecoverableData": said})))
        return {note.text for note in found if note.rule == "skips_unreadable" and not note.refused}

    [text] = notes("true")
    assert "nothing is published or released until `pulsar-admin brokers" in text
    assert notes("false") == set()


def test_a_value_that_is_not_set_is_the_fallback():
    assert Value(None, Origin.UNSET).value_or(3) == 3
    assert Value(0, Origin.TOPIC).value_or(3) == 0


@pytest.mark.parametrize(("default", "origin"), [(True, Origin.DEFAULT), (False, Origin.SETTING)])
def test_a_lag_that_was_set_is_told_to_be_a_setting(default, origin):
    found = effective_policy(
        TOPIC, levels(), OwnPolicies(), deletion_lag_s=LAG_S, lag_is_default=default
    )
    assert (found.deletion_lag_s.value, found.deletion_lag_s.origin) == (LAG_S, origin)


def test_what_no_level_sets_is_certain_where_every_level_was_asked():
    assert policy().broker_lag_ms == Value(None, Origin.UNSET, certain=True)
    assert policy(away()).broker_lag_ms == Value(None, Origin.UNKNOWN, certain=False)


# ----- notes that are told only where they are true


def noted(found):
    return {one.rule for one in check_policy(found)}


def refused_texts(found):
    return [one.text for one in refusals(found)]


def test_only_of_the_brokers_lag_it_is_said_that_copies_go_at_once():
    [text] = refused_texts(policy(levels(namespace=retained(-2, -1))))
    assert "retention time is -2" in text
    assert "at once" not in text
    [text] = refused_texts(policy(levels(namespace=offload(lag=-5))))
    assert text.endswith("the broker deletes bookie copies at once")


@pytest.mark.parametrize(
    ("time", "minutes", "told"),
    [
        (30, 2, True),  # 130 s of 120 s
        (20, 2, True),
        (19, 2, False),
        (None, 1, False),
        (-1, 1, False),  # off: nothing is offloaded by time
        (30, -1, False),
        (30, 0, False),
    ],
)
def test_a_lag_past_retention_is_told_where_both_are_set(time, minutes, told):
    own_time = OwnPolicies(default=OwnPolicy(threshold_seconds=time))
    found = policy(levels(namespace=retained(minutes, -1)), own_time)
    assert ("lag_past_retention" in noted(found)) is told


@pytest.mark.parametrize(
    ("ttl", "time", "told"),
    [
        (60, 60, True),
        (61, 60, False),
        (0, 60, False),
        (None, 60, False),
        (60, None, False),
        (60, -1, False),
    ],
)
def test_a_ttl_that_comes_before_offload_is_told_where_both_are_set(ttl, time, told):
    own_time = OwnPolicies(default=OwnPolicy(threshold_seconds=time))
    found = policy(levels(namespace=PolicyLevel(ttl_s=ttl)), own_time)
    assert ("ttl" in noted(found)) is told


def test_a_ttl_that_is_not_known_is_not_said_to_come_before_offload():
    assert "ttl" not in noted(policy(away(), own(threshold_seconds=60)))


@pytest.mark.parametrize(("theirs", "found"), [(5, 5), (0, 0), (-1, 9)])
def test_our_threshold_counts_where_theirs_is_off(theirs, found):
    merged = policy(levels(namespace=offload(time=theirs)), own(threshold_seconds=9))
    assert merged.threshold_seconds.value == found
