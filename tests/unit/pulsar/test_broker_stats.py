"""What brokers say they have in memory: how often they are asked, and whom."""

import pytest

from tests.support.admin_sim import running_admin_simulator
from tiering_assets.resources.pulsar.admin import HttpBrokerAdmin, TopicLoad, TopicPlace
from tiering_assets.resources.settings import BrokerSettings

TOPIC = "persistent://public/default/orders"
TOKEN = "tok-5f1c2a"
QUIET_S = 3600.0


@pytest.fixture
def away():
    """A broker that nobody has registered, and that answers without the topic."""
    with running_admin_simulator() as simulator:
        simulator.get("/broker-stats/topics", {})
        yield simulator


def stats_asked(simulator):
    return sum(line == "GET /admin/v2/broker-stats/topics" for line, _ in simulator.requests)


def test_a_broker_that_is_not_registered_any_more_may_have_the_topic(broker, admin, away):
    bundle: dict[str, object] = {"0x0_0xf": {"persistent": {TOPIC: {}}}}
    away.get("/broker-stats/topics", {"public/default": bundle})
    assert admin.locate(TOPIC).load is TopicLoad.NOT_LOADED
    place = admin.locate(TOPIC, remembered=[away.address], quiet_s=QUIET_S)
    assert place == TopicPlace(TopicLoad.LOADED, away.address)


def test_one_that_does_not_answer_makes_the_topic_unknown_and_is_asked_once(broker, admin, away):
    away.get("/broker-stats/topics", hang_up=True)
    for _ in range(3):
        place = admin.locate(TOPIC, remembered=[away.address], quiet_s=QUIET_S)
        assert place.load is TopicLoad.UNKNOWN
        assert place.silent == (away.address,)
    assert stats_asked(away) == 1


def test_one_that_answers_without_the_topic_is_asked_once_a_run(broker, admin, away):
    for _ in range(3):
        place = admin.locate(TOPIC, remembered=[away.address], quiet_s=QUIET_S)
        assert place.load is TopicLoad.NOT_LOADED
    assert stats_asked(away) == 1
    assert stats_asked(broker) == 1


def test_bundle_ownership_is_asked_anew_each_time(broker, admin, away):
    assert admin.locate(TOPIC, remembered=[away.address], quiet_s=QUIET_S).load == "not loaded"
    broker.own(["public/default/0x00000000_0xffffffff"])
    place = admin.locate(TOPIC, remembered=[away.address], quiet_s=QUIET_S)
    assert place == TopicPlace(TopicLoad.UNKNOWN, broker.address)


def test_an_answer_from_before_the_topic_was_last_written_is_asked_for_again(away, broker):
    clock = [1000.0]
    settings = BrokerSettings(admin_url=broker.url, timeout_s=5)
    admin = HttpBrokerAdmin(settings, monotonic=lambda: clock[0])
    for age_s, quiet_s, times in ((0, 3600.0, 1), (580, 701.0, 1), (580, 699.0, 2)):
        clock[0] = 1000.0 + age_s
        admin.locate(TOPIC, remembered=[away.address], quiet_s=quiet_s)
        assert (stats_asked(broker), stats_asked(away)) == (times, times)
    admin.close()


@pytest.mark.parametrize(("age_s", "times"), [(59.0, 1), (60.0, 2)])
def test_topics_that_a_broker_has_are_found_by_one_answer_a_minute(broker, age_s, times):
    topics = [f"{TOPIC}-{number}" for number in range(200)]
    bundle: dict[str, object] = {"0x0_0xf": {"persistent": {topic: {} for topic in topics}}}
    broker.get("/broker-stats/topics", {"public/default": bundle})
    clock = [1000.0]
    admin = HttpBrokerAdmin(
        BrokerSettings(admin_url=broker.url, timeout_s=5), monotonic=lambda: clock[0]
    )
    assert {admin.locate(topic).load for topic in topics[:-1]} == {TopicLoad.LOADED}
    clock[0] += age_s
    assert admin.locate(topics[-1]).load is TopicLoad.LOADED
    assert stats_asked(broker) == times
    admin.close()


def test_stats_that_may_be_older_than_the_last_write_prove_nothing_of_one_away(broker, admin, away):
    """Its bundles nobody tells, so the minute that stats lag behind has to pass."""
    assert admin.locate(TOPIC, remembered=[away.address], quiet_s=119.0).load == "unknown"
    assert admin.locate(TOPIC, remembered=[away.address], quiet_s=121.0).load == "not loaded"
    assert admin.locate(TOPIC, quiet_s=0.0).load == "not loaded"


def test_one_that_is_registered_is_not_asked_twice_for_being_remembered(broker, admin):
    assert admin.locate(TOPIC, remembered=[broker.address], quiet_s=0.0).load == "not loaded"
    assert stats_asked(broker) == 1


def test_the_token_goes_to_remembered_brokers(broker, admin, away):
    admin.locate(TOPIC, remembered=[away.address], quiet_s=QUIET_S)
    assert {token for _, token in away.requests} == {f"Bearer {TOKEN}"}
