import shlex
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tiering_assets.ground.reasons import NotNow
from tiering_assets.look.topic.publish_gate import (
    BrokerSeen,
    OurPlace,
    Publish,
    PublishEvidence,
    decide_publish,
    place_digest,
)
from tiering_assets.resources.pulsar.offload_policies import EffectiveOffloadPolicies

TOPIC = "persistent://public/default/orders"
POLICY = EffectiveOffloadPolicies(
    driver="aws-s3",
    bucket="tiered",
    endpoint="http://s3:9000",
    region="us-east-1",
    deletion_lag_ms=None,
    threshold_bytes=None,
    threshold_seconds=None,
    read_priority=None,
)
OURS = OurPlace(driver="aws-s3", bucket="tiered", region="us-east-1", endpoint="http://s3:9000")
GOOD = BrokerSeen(name="b1:8080", driver="aws-s3", skips=False)
READY = PublishEvidence(
    topic=TOPIC,
    namespace="public/default",
    never_touched=None,
    listed=True,
    policy=POLICY,
    brokers=(GOOD,),
    ours=OURS,
    deletion_lag_s=14400.0,
    broker_may_release=False,
    coexist=False,
    clock_skew_s=0.0,
    clock_skew_max_s=60.0,
)


def ready(policy=None, **change):
    return replace(READY, policy=replace(POLICY, **(policy or {})), **change)


def only_refusal(evidence):
    decision = decide_publish(evidence)
    assert isinstance(decision, NotNow), decision
    assert len(decision.reasons) == 1
    return decision.reasons[0]


def command_in(lift):
    """The pulsar-admin line, without the prose around it, as a shell would split it."""
    return shlex.split(lift[lift.index("pulsar-admin") :].split(" (or ")[0])


def test_a_topic_whose_broker_reads_our_bucket_is_published():
    assert decide_publish(READY) == Publish()


def test_a_broker_that_may_be_the_next_must_read_our_objects_too():
    blind = replace(GOOD, name="b2:8080", driver=None)
    refusal = only_refusal(ready(brokers=(GOOD, blind)))
    assert "b2:8080 has None, ours is 'aws-s3'" in refusal.text
    assert "b1:8080" not in refusal.text
    assert command_in(refusal.lift)[:4] == [
        "pulsar-admin",
        "namespaces",
        "set-offload-policies",
        "public/default",
    ]
    for level in ("namespace", "topic"):  # what they set is every broker's
        policy = {"origins": {"driver": level}}
        assert decide_publish(ready(policy, brokers=(GOOD, blind))) == Publish()
    shouting = replace(GOOD, driver="AWS-S3")
    assert decide_publish(ready(brokers=(shouting,))) == Publish()


def test_where_the_place_is_another_one_nothing_is_said_of_each_broker():
    """What sets the place right tells every broker its driver, too."""
    blind = replace(GOOD, name="b2:8080", driver=None)
    refusal = only_refusal(ready({"bucket": "another"}, brokers=(GOOD, blind)))
    assert "its broker would not read our bucket" in refusal.text


@pytest.mark.parametrize("skips", [True, None])
def test_a_broker_that_skips_what_it_cannot_read_gets_nothing_published(skips):
    careless = replace(GOOD, name="b2:8080", skips=skips)
    refusal = only_refusal(ready(brokers=(GOOD, careless)))
    assert "autoSkipNonRecoverableData is not false at b2:8080" in refusal.text
    assert command_in(refusal.lift)[-1] == "false"


@pytest.mark.parametrize(
    ("change", "text", "lift"),
    [
        ({"never_touched": "transaction log"}, f"{TOPIC}: transaction log", ""),
        ({"listed": None}, f"{TOPIC}: the broker did not say if it exists", "try again"),
        ({"listed": False}, f"{TOPIC}: the broker lists no such topic", ""),
        (
            {"clock_skew_s": 60.5},
            "our clock is +60 s off the object store's, 60 s are allowed",
            "set this machine's clock",
        ),
        (
            {"clock_skew_s": -61.0},
            "our clock is -61 s off the object store's, 60 s are allowed",
            "set this machine's clock",
        ),
    ],
)
def test_each_refusal_says_what_lifts_it(change, text, lift):
    refusal = only_refusal(replace(READY, **change))
    assert (refusal.text, refusal.lift) == (text, lift)
    assert str(refusal) == (f"{text}. To lift it: {lift}" if lift else text)


def test_a_skew_up_to_the_limit_is_allowed_and_an_unknown_one_is_not():
    for skew in (60.0, -60.0):
        assert decide_publish(replace(READY, clock_skew_s=skew)) == Publish()
    assert isinstance(decide_publish(replace(READY, clock_skew_s=float("nan"))), NotNow)


@pytest.mark.parametrize(
    ("policy", "said"),
    [
        ({"driver": None}, "driver is None, ours is 'aws-s3'"),
        ({"driver": "google-cloud-storage"}, "driver is 'google-cloud-storage', ours is 'aws-s3'"),
        ({"bucket": "other"}, "bucket is 'other', ours is 'tiered'"),
        ({"bucket": "Tiered"}, "bucket is 'Tiered', ours is 'tiered'"),
        ({"bucket": "tiered/"}, "bucket is 'tiered/', ours is 'tiered'"),
        ({"bucket": None}, "bucket is None, ours is 'tiered'"),
        ({"region": None}, "region is None, ours is 'us-east-1'"),
        ({"region": "eu-west-1"}, "region is 'eu-west-1', ours is 'us-east-1'"),
        ({"endpoint": None}, "endpoint is None, ours is 'http://s3:9000'"),
        (
            {"endpoint": "https://s3:9000"},
            "endpoint is 'https://s3:9000', ours is 'http://s3:9000'",
        ),
    ],
)
def test_a_broker_that_reads_another_place_is_refused(policy, said):
    refusal = only_refusal(ready(policy))
    assert refusal.text == f"{TOPIC}: its broker would not read our bucket: {said}"
    assert command_in(refusal.lift) == [
        "pulsar-admin",
        "namespaces",
        "set-offload-policies",
        "public/default",
        "--driver",
        "aws-s3",
        "--bucket",
        "tiered",
        "--region",
        "us-east-1",
        "--endpoint",
        "http://s3:9000",
    ]


@pytest.mark.parametrize(
    ("policy", "ours"),
    [
        ({"endpoint": "http://s3:9000/"}, {}),
        ({}, {"endpoint": "http://s3:9000/"}),
        ({"endpoint": "HTTP://S3:9000"}, {}),
        ({"driver": "AWS-S3"}, {}),
        ({"endpoint": None}, {"endpoint": ""}),  # both mean the provider's own
    ],
)
def test_another_spelling_of_the_same_place_is_no_difference(policy, ours):
    assert decide_publish(ready(policy, ours=replace(OURS, **ours))) == Publish()


def test_the_command_leaves_out_what_we_do_not_set_and_quotes_the_rest():
    ours = OurPlace(driver="aws-s3", bucket="a b", region="", endpoint="")
    refusal = only_refusal(ready({"region": None, "endpoint": None}, ours=ours))
    assert command_in(refusal.lift)[4:] == ["--driver", "aws-s3", "--bucket", "a b"]


def test_every_difference_of_the_place_is_in_one_refusal():
    refusal = only_refusal(ready({"driver": None, "bucket": "x", "region": "y", "endpoint": "z"}))
    assert [word in refusal.text for word in ("driver", "bucket", "region", "endpoint")] == [
        True
    ] * 4


@pytest.mark.parametrize(
    ("lag_ms", "allowed"),
    [
        (None, True),  # a broker without a lag never deletes
        (144_000_000, True),  # ten times ours
        (143_999_999, False),
        (14_400_000, False),  # a stock broker has what we have
        (0, False),
        (-1, False),  # deletes at once
    ],
)
def test_the_brokers_own_lag_is_off_or_ten_times_ours(lag_ms, allowed):
    assert (decide_publish(ready({"deletion_lag_ms": lag_ms})) == Publish()) is allowed
    permitted = ready({"deletion_lag_ms": lag_ms}, broker_may_release=True)
    assert decide_publish(permitted) == Publish()


def test_the_refusal_of_a_short_lag_names_both_and_the_command():
    refusal = only_refusal(ready({"deletion_lag_ms": 14_400_000}, namespace="team-a/eu"))
    assert "14400 s after publication" in refusal.text
    assert "Our lag is 14400 s" in refusal.text
    assert refusal.lift == (
        "pulsar-admin namespaces set-offload-deletion-lag team-a/eu --lag 144000s "
        "(or publish.broker_may_release = true)"
    )


@given(lag_s=st.floats(0, 1e7), broker_ms=st.integers(-(10**6), 10**12))
def test_following_the_printed_command_lifts_the_refusal(lag_s, broker_ms):
    decision = decide_publish(ready({"deletion_lag_ms": broker_ms}, deletion_lag_s=lag_s))
    if decision == Publish():
        assert broker_ms >= 10 * lag_s * 1000
        return
    assert isinstance(decision, NotNow)
    seconds = command_in(decision.reasons[0].lift)[-1]
    assert seconds.endswith("s")
    followed = {"deletion_lag_ms": int(seconds[:-1]) * 1000}
    assert decide_publish(ready(followed, deletion_lag_s=lag_s)) == Publish()


@pytest.mark.parametrize("name", ["threshold_bytes", "threshold_seconds"])
@pytest.mark.parametrize(
    ("limit", "allowed"), [(None, True), (-1, True), (0, False), (1, False), (10**12, False)]
)
def test_a_broker_that_offloads_on_its_own_is_refused(name, limit, allowed):
    evidence = ready({name: limit})
    assert (decide_publish(evidence) == Publish()) is allowed
    assert decide_publish(replace(evidence, coexist=True)) == Publish()


def test_the_refusal_of_auto_offload_names_the_command():
    refusal = only_refusal(ready({"threshold_bytes": 0}, namespace="team-a/eu"))
    assert "threshold 0 bytes, None seconds" in refusal.text
    assert refusal.lift == (
        "pulsar-admin namespaces set-offload-threshold team-a/eu --size -1 --time -1 "
        "(or publish.coexist = true)"
    )


def test_all_refusals_are_told_at_once():
    decision = decide_publish(
        ready(
            {"bucket": "x", "deletion_lag_ms": 0, "threshold_bytes": 0},
            listed=None,
            clock_skew_s=99.0,
        )
    )
    assert isinstance(decision, NotNow)
    assert len(decision.reasons) == 5
    assert str(decision).count("To lift it:") == 5


@pytest.mark.parametrize("name", ["driver", "bucket", "region", "endpoint"])
def test_a_canary_is_bound_to_every_part_of_the_place(name):
    moved: dict[str, Any] = {name: "other"}
    assert place_digest(replace(POLICY, **moved)) != place_digest(POLICY)


def test_a_canary_outlives_changes_that_do_not_move_the_place():
    changed = replace(POLICY, deletion_lag_ms=5, threshold_bytes=1, origins={"bucket": "topic"})
    assert place_digest(changed) == place_digest(POLICY)


def test_a_policy_set_on_the_topic_is_lifted_there_first():
    """A namespace's setting lifts nothing while the topic's own policy hides it."""
    evidence = replace(
        READY,
        policy=replace(READY.policy, deletion_lag_ms=1000, origins={"deletion_lag_ms": "topic"}),
    )
    decision = decide_publish(evidence)
    assert isinstance(decision, NotNow)
    assert decision.reasons[0].lift.startswith(
        f"pulsar-admin topicPolicies remove-offload-policies {READY.topic} "
    )
