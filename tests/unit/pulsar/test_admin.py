"""Canned answers in the documented shapes of Pulsar 4.0."""

import threading
import zlib
from dataclasses import replace

import pytest
import requests

from tests.support.admin_sim import running_admin_simulator
from tiering_assets.resources.errors import BrokerError, BrokerNotFoundError, BrokerUnknownError
from tiering_assets.resources.pulsar.activity import TopicActivity
from tiering_assets.resources.pulsar.admin import HttpBrokerAdmin, TopicLoad, TopicPlace
from tiering_assets.resources.pulsar.http import AdminHttp
from tiering_assets.resources.settings import BrokerSettings

TOPIC = "persistent://public/default/orders"
NS = "/namespaces/public/default"
TOKEN = "tok-5f1c2a"


def half_with(topic, *, wrong=False):
    low = (zlib.crc32(topic.encode()) < 0x80000000) != wrong
    return f"public/default/{'0x00000000_0x80000000' if low else '0x80000000_0xffffffff'}"


def test_a_topic_in_the_brokers_stats_is_loaded(broker, admin):
    bundle = half_with(TOPIC).rpartition("/")[2]
    stats: dict[str, object] = {
        "public/default": {bundle: {"persistent": {TOPIC: {"publishers": []}}}}
    }
    broker.get("/broker-stats/topics", stats)
    broker.own([half_with(TOPIC)])
    assert admin.locate(TOPIC) == TopicPlace(TopicLoad.LOADED, broker.address)
    assert admin.locate("persistent://public/default/other-1").load is not TopicLoad.LOADED


def test_the_clusters_name_is_asked_for_once(broker, admin):
    """A batch that is published and released asked for it 16 times."""
    known = admin.list_brokers()
    broker.get("/brokers/configuration/runtime", {"reason": "boom"}, status=500)
    assert admin.list_brokers() == known
    with pytest.raises(BrokerError):
        admin.runtime_config()


def test_a_topic_whose_bundle_nobody_owns_is_not_loaded(broker, admin):
    broker.own([half_with(TOPIC, wrong=True), "pulsar/c1/127.0.0.1:8/0x00000000_0xffffffff"])
    assert admin.locate(TOPIC).load is TopicLoad.NOT_LOADED


def test_owned_but_not_listed_is_unknown_for_stats_are_a_minute_old(broker, admin):
    broker.own([half_with(TOPIC)])
    assert admin.locate(TOPIC) == TopicPlace(TopicLoad.UNKNOWN, broker.address)


@pytest.mark.parametrize("damage", ["stats", "owned", "shape", "bundle", "nobody"])
def test_a_broker_that_does_not_answer_well_leaves_it_unknown(broker, admin, damage):
    match damage:
        case "stats":
            broker.get("/broker-stats/topics", {"reason": "boom"}, status=500)
        case "owned":
            broker.own([], status=500)
        case "shape":
            broker.get("/broker-stats/topics", [1, 2])
        case "bundle":
            broker.own(["public/default/what"])
        case _:
            broker.get("/brokers/c1", [])
    assert admin.locate(TOPIC).load is TopicLoad.UNKNOWN


def test_a_second_broker_that_is_down_may_be_the_owner(broker, admin):
    broker.get("/brokers/c1", [broker.address, "127.0.0.1:1"])
    assert admin.locate(TOPIC).load is TopicLoad.UNKNOWN


def test_every_live_broker_tells_its_own_settings(broker, admin):
    with running_admin_simulator() as other:
        broker.get("/brokers/c1", [broker.address, other.address])
        other.get("/brokers/configuration/runtime", {"managedLedgerOffloadDriver": "aws-s3"})
        assert admin.runtime_configs() == {
            broker.address: {"clusterName": "c1", "webServicePort": "8"},
            other.address: {"managedLedgerOffloadDriver": "aws-s3"},
        }
        assert other.requests == [
            ("GET /admin/v2/brokers/configuration/runtime", f"Bearer {TOKEN}")
        ]


def test_a_broker_that_does_not_tell_its_settings_is_an_error_unless_one_speaks_for_all(
    broker, admin
):
    broker.get("/brokers/c1", [broker.address, "127.0.0.1:1"])
    with pytest.raises(
        BrokerError, match=r"127\.0\.0\.1:1 does not tell .* broker.ask_each = false"
    ):
        admin.runtime_configs()
    broker.get("/brokers/c1", [])
    with pytest.raises(BrokerError, match="lists no live broker"):
        admin.runtime_configs()
    alike = HttpBrokerAdmin(BrokerSettings(admin_url=broker.url, ask_each=False))
    assert set(alike.runtime_configs()) == {broker.address}
    alike.close()


def test_asking_whether_it_is_loaded_never_touches_the_topic(broker, admin):
    broker.own([half_with(TOPIC)])
    admin.locate(TOPIC)
    assert not [line for line, _ in broker.requests if "/persistent/" in line]


def test_an_entry_is_read_as_it_is(broker, admin):
    broker.get("/persistent/public/default/orders/ledger/7/entry/0", b"\x00payload\xff")
    assert admin.read_entry(TOPIC, 7, 0) == b"\x00payload\xff"


def test_names_with_odd_characters_reach_the_right_topic(broker, admin):
    broker.get("/persistent/public/default/a%20b%2Bc%25/internalStats", {"ledgers": []})
    assert admin.internal_stats("persistent://public/default/a b+c%") == {"ledgers": []}


def test_unload_is_a_put_and_its_refusal_names_status_path_and_reason(broker, admin):
    path = "/admin/v2/persistent/public/default/orders/unload"
    broker.answers[f"PUT {path}"] = replace_answer(broker, status=204)
    admin.unload_topic(TOPIC)
    broker.answers[f"PUT {path}"] = replace_answer(
        broker, {"reason": f"role\nof {TOKEN} may not"}, status=403
    )
    with pytest.raises(BrokerError, match=r"PUT /persistent/.*/unload: status 403: role of") as e:
        admin.unload_topic(TOPIC)
    assert TOKEN not in str(e.value)


def test_trim_is_a_post_to_one_topic(broker, admin):
    path = "/admin/v2/persistent/public/default/orders-partition-3/trim"
    broker.answers[f"POST {path}"] = replace_answer(broker, status=204)
    admin.trim_topic(f"{TOPIC}-partition-3")
    assert broker.requests[-1][0] == f"POST {path}"


def test_what_becomes_of_idle_topics_is_asked_of_the_whole_topic_then_of_its_namespace(
    broker, admin
):
    applied = "/persistent/public/default/orders/inactiveTopicPolicies?applied=true"
    policy = {
        "inactiveTopicDeleteMode": "delete_when_no_subscriptions",
        "maxInactiveDurationSeconds": 60,
        "deleteWhileInactive": True,
    }
    config = {"clusterName": "c1", "subscriptionExpirationTimeMinutes": "9"}
    broker.get("/brokers/configuration/runtime", config)
    broker.get(f"{NS}/subscriptionExpirationTime")
    broker.get(applied, policy)
    found = admin.inactivity(f"{TOPIC}-partition-0")
    assert (found.deletes_topic, found.without_subscriptions) == (True, True)
    assert found.subscription_minutes == 9
    broker.get(applied, status=405)  # topic policies are switched off
    broker.get(f"{NS}/inactiveTopicPolicies", policy | {"deleteWhileInactive": False})
    broker.get(f"{NS}/subscriptionExpirationTime", 0)
    found = admin.inactivity(f"{TOPIC}-partition-0")
    assert (found.deletes_topic, found.subscription_minutes) == (False, 0)


def replace_answer(broker, body=None, **fields):
    return replace(broker.answers["GET /admin/v2/broker-stats/topics"], body=body, **fields)


def test_a_404_can_be_told_apart(broker, admin):
    with pytest.raises(BrokerNotFoundError, match="Topic not found"):
        admin.read_entry(TOPIC, 7, 99)


def test_a_lost_answer_is_unknown(broker, admin):
    line = "PUT /admin/v2/persistent/public/default/orders/unload"
    broker.answers[line] = replace_answer(broker, hang_up=True)
    with pytest.raises(BrokerUnknownError, match="unknown"):
        admin.unload_topic(TOPIC)
    release = threading.Event()
    broker.answers[line] = replace_answer(broker, release=release)
    try:
        with pytest.raises(BrokerUnknownError, match="no answer within"):
            admin.unload_topic(TOPIC)
    finally:
        release.set()


def test_a_broker_that_is_not_there_is_no_unknown_outcome():
    admin = HttpBrokerAdmin(BrokerSettings(admin_url="http://127.0.0.1:1", timeout_s=1))
    with pytest.raises(BrokerError, match=r"cannot reach the broker at 127\.0\.0\.1:1") as caught:
        admin.unload_topic(TOPIC)
    assert not isinstance(caught.value, BrokerUnknownError)


@pytest.mark.parametrize(
    ("base", "url", "sent"),
    [
        ("https://b:8443", "https://b:8443/admin", True),
        ("https://b:8443", "http://b:8443/admin", False),  # the same host and port, in clear
        ("https://b:8443", "https://c:8443/admin", False),
        ("http://b:8080", "http://b:8080/admin", True),
        ("http://b:8080", "https://b:8080/admin", True),
    ],
)
def test_the_token_never_goes_in_clear_where_the_address_is_not(monkeypatch, base, url, sent):
    http = AdminHttp(BrokerSettings(admin_url=base, token=TOKEN))
    given = []

    def request(_method, _url, *, auth, **_how):
        given.append(auth(requests.Request("GET", url).prepare()).headers.get("Authorization"))
        raise requests.exceptions.ConnectTimeout

    with http._session() as session:
        monkeypatch.setattr(session, "request", request)
    with pytest.raises(BrokerError):
        http.send("GET", "/brokers", base=url.removesuffix("/admin"))
    http.close()
    assert given == [f"Bearer {TOKEN}" if sent else None]


def test_the_token_follows_a_redirect_to_a_broker_of_the_cluster_only(broker, admin):
    with running_admin_simulator() as other:
        path = "/persistent/public/default"
        broker.get(path, status=307, location=f"{other.url}/admin/v2{path}")
        other.get(path, [TOPIC])
        assert admin.list_topics("public/default") == [TOPIC]
        assert other.requests[-1][1] is None
        broker.get("/brokers/c1", [broker.address, other.address])
        admin.list_brokers()
        admin.list_topics("public/default")
        assert other.requests[-1][1] == f"Bearer {TOKEN}"


def test_topics_are_listed(broker, admin):
    broker.get("/persistent/public/default", [TOPIC, f"{TOPIC}-2-partition-0"])
    assert admin.list_topics("public/default") == [TOPIC, f"{TOPIC}-2-partition-0"]


def test_policies_are_gathered_from_every_level_and_from_the_whole_topic(broker, admin):
    broker.get(
        "/brokers/configuration/runtime",
        {"clusterName": "c1", "managedLedgerOffloadDriver": "aws-s3", "x": None},
    )
    broker.get("/persistent/public/default/orders/offloadPolicies")
    broker.get(
        "/persistent/public/default/orders/offloadPolicies?applied=true",
        {"managedLedgerOffloadDriver": "aws-s3", "s3ManagedLedgerOffloadBucket": "b"},
    )
    broker.get(f"{NS}/offloadPolicies", {"managedLedgerOffloadDriver": "aws-s3"})
    broker.get(f"{NS}/offloadDeletionLagMs", 60000)
    broker.get(f"{NS}/offloadThreshold", -1)
    found = admin.effective_offload_policies(f"{TOPIC}-partition-0")
    assert (found.driver, found.bucket, found.deletion_lag_ms) == ("aws-s3", "b", 60000)
    assert found.origins == {
        "driver": "namespace",
        "bucket": "broker",
        "deletion_lag_ms": "namespace",
    }


def test_switched_off_topic_policies_are_no_policies(broker, admin):
    for query in ("", "?applied=true"):
        broker.get(f"/persistent/public/default/orders/offloadPolicies{query}", status=405)
    broker.get(f"{NS}/offloadPolicies")
    broker.get(f"{NS}/offloadDeletionLagMs")
    broker.get(f"{NS}/offloadThreshold", -1)
    assert admin.effective_offload_policies(TOPIC).driver is None


@pytest.mark.parametrize("body", [b"<html>", b"[1]", b"7"])
def test_an_answer_of_another_shape_is_a_broker_error(broker, admin, body):
    broker.get("/persistent/public/default/orders/internalStats", body)
    with pytest.raises(BrokerError, match="internalStats"):
        admin.internal_stats(TOPIC)


def stats(**changes):
    subscription = {"consumers": [{}, {}], "msgDelayed": 5}
    return {
        "subscriptions": {"a": subscription, "b": {"consumers": [{}], "msgDelayed": 2}},
        "ongoingTxnCount": 1,
        "abortedTxnCount": 2,
        "committedTxnCount": 3,
        **changes,
    }


def test_activity_counts_over_all_subscriptions(broker, admin):
    broker.get("/persistent/public/default/orders/stats", stats())
    assert admin.activity(TOPIC) == TopicActivity(consumers=3, delayed_messages=7, transactions=6)


@pytest.mark.parametrize(
    "changes",
    [
        {"subscriptions": None},
        {"subscriptions": {"a": {}}},
        {"subscriptions": {"a": {"consumers": []}}},
        {"ongoingTxnCount": None},
        {"committedTxnCount": True},
    ],
)
def test_stats_without_what_limits_judge_are_an_error_not_zero(broker, admin, changes):
    broker.get("/persistent/public/default/orders/stats", stats(**changes))
    with pytest.raises(BrokerError, match="persistent://public/default/orders"):
        admin.activity(TOPIC)
