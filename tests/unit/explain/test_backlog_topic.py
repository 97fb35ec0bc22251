"""What a topic's policy forbids, by the values that are known; what is not said forbids nothing."""

from dataclasses import replace

import pytest

from tiering_assets.explain.reasons.backlog_topic_rules import facts_of_policy
from tiering_assets.ground.own_policy import OwnPolicies
from tiering_assets.look.topic.publish_gate import OurPlace
from tiering_assets.policy.policy import Origin, Value, effective_policy
from tiering_assets.resources.pulsar.policy_levels import PolicyLevel, PulsarLevels, parse_broker

OURS = OurPlace(driver="aws-s3", bucket="cold", region="eu", endpoint="")
CONFIG = {
    "managedLedgerOffloadDriver": "aws-s3",
    "managedLedgerOffloadBucket": "cold",
    "managedLedgerOffloadRegion": "eu",
    "managedLedgerOffloadAutoTriggerSizeThresholdBytes": "-1",
    "managedLedgerOffloadThresholdInSeconds": "-1",
}
POLICY = effective_policy(
    "persistent://t/ns/orders",
    PulsarLevels(
        topic=PolicyLevel(),
        namespace=PolicyLevel(),
        broker=parse_broker(CONFIG, "broker"),
        broker_config=CONFIG,
    ),
    OwnPolicies(),
    deletion_lag_s=100.0,
)


def facts(*, unknown=None, may=False, coexist=False, **changes):
    policy = replace(POLICY, **changes)
    return facts_of_policy(policy, OURS, unknown=unknown, broker_may_release=may, coexist=coexist)


def test_a_broker_set_up_as_we_are_forbids_nothing():
    found = facts()
    assert found.forbidden is None


@pytest.mark.parametrize("field", ["driver", "bucket", "region"])
def test_another_place_cannot_be_read(field):
    found = facts(**{field: Value("other", Origin.BROKER)})
    assert found.cannot_read == f"{field} is 'other', ours is {getattr(OURS, field)!r}"


@pytest.mark.parametrize("field", ["driver", "bucket", "region"])
def test_a_field_that_no_level_sets_differs_and_one_that_was_not_said_does_not(field):
    unset = facts(**{field: Value(None, Origin.UNSET)})
    assert unset.cannot_read == f"{field} is None, ours is {getattr(OURS, field)!r}"
    assert facts(**{field: Value(None, Origin.UNKNOWN)}).cannot_read is None
    assert facts(**{field: Value("other", Origin.UNKNOWN)}).cannot_read is not None


def test_where_a_broker_that_could_not_be_asked_reads_is_unknown():
    said = facts(unknown="broker level: no answer").cannot_read
    assert said is not None
    assert said.endswith("nothing is published meanwhile: broker level: no answer")


@pytest.mark.parametrize(
    ("lag_ms", "forbids"), [(None, False), (1_000_000, False), (999_999, True), (0, True)]
)
def test_a_broker_that_may_release_first_forbids_it_unless_it_may(lag_ms, forbids):
    lag = Value(lag_ms, Origin.BROKER)
    assert (facts(broker_lag_ms=lag).may_release_first is not None) is forbids
    assert facts(broker_lag_ms=lag, may=True).may_release_first is None


@pytest.mark.parametrize("offloads", [True, False])
def test_a_broker_that_offloads_by_itself_forbids_it_unless_it_may(offloads):
    assert (facts(broker_offloads=offloads).coexists is not None) is offloads
    assert facts(broker_offloads=offloads, coexist=True).coexists is None


def test_a_policy_that_is_refused_is_told_with_its_rule():
    found = facts(ttl_s=Value(-1, Origin.NAMESPACE))
    assert found.refused is not None
    assert found.refused.startswith("negative: message TTL is -1")
