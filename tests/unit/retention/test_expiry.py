"""What is said of a topic's retention: of each ledger by what is so, and of no topic that is not
ours.
"""

from dataclasses import replace

import pytest

from tests.support.admin_sim import running_admin_simulator
from tests.support.idle_topics import ORDERS, PLAIN, IdleTopics
from tiering_assets.resources.bookkeeper.ledger import BookKeeperState
from tiering_assets.resources.metastore.ledger_info import (
    decode_managed_ledger,
    encode_managed_ledger,
)
from tiering_assets.resources.metastore.topic_names import managed_ledger_path
from tiering_assets.resources.pulsar.admin import TopicLoad, TopicPlace
from tiering_assets.retention.expiry import AgingTopic, judge_by, read_node, survey_expiry
from tiering_assets.retention.expiry_rules import Kept

PATH = managed_ledger_path(ORDERS)


@pytest.fixture
def cluster():
    with running_admin_simulator() as admin:
        yield IdleTopics(admin)


def survey(cluster, ml_names=None):
    return {one.ml_name: one for one in survey_expiry(cluster.stack, ml_names)}


def edit(cluster, change, path=PATH):
    """What somebody else has written into the topic's node."""
    nodes = cluster.site.cluster.metadata.nodes
    found = decode_managed_ledger(nodes[path].data)
    message = found.message_copy()
    change(message)
    data = encode_managed_ledger(found.with_message(message))
    nodes[path] = replace(nodes[path], data=data)


def kept(cluster):
    """Of each ledger of orders, oldest first, with nothing to be kept by retention."""
    cluster.retain(0, 0)
    found = survey(cluster)[ORDERS]
    assert found.error is None
    return [one.kept for one in found.expiry.ledgers]


# ----- which topics


def test_topics_of_pulsar_itself_are_none_of_ours(cluster):
    cluster.broker.create_topic("t/ns/persistent/__change_events")
    assert "t/ns/persistent/__change_events" not in survey(cluster)


def test_a_shadow_is_none_of_ours_even_when_it_is_named(cluster):
    shadow = cluster.broker.make_shadow(ORDERS)
    assert shadow not in survey(cluster)
    assert survey(cluster, [shadow]) == {}


def test_a_topic_that_is_named_and_gone_is_told(cluster):
    [found] = survey(cluster, ["t/ns/persistent/none"]).values()
    assert found.error == "the topic is gone"
    assert read_node(cluster.stack, "t/ns/persistent/none") is None


def test_of_one_that_cannot_be_read_no_policy_is_asked(cluster):
    """Asking would make a broker own its bundle."""
    cluster.site.cluster.metadata.put(PATH, b"\xff\xff")
    found = survey(cluster, [ORDERS, PLAIN])
    assert "ManagedLedgerInfo" in found[ORDERS].error
    assert found[ORDERS].policy is None
    assert found[PLAIN].overdue
    assert not [line for line, _auth in cluster.admin.requests if "/orders/" in line]


def test_only_the_topics_that_are_named_are_looked_at(cluster):
    assert set(survey(cluster, [ORDERS])) == {ORDERS}
    assert set(survey(cluster)) == {ORDERS, PLAIN}


def test_no_broker_is_asked_where_a_topic_is_of_which_nothing_is_overdue(cluster):
    asked = []

    def locate(topic, **how):
        asked.append(topic)
        return cluster.broker.locate(topic, **how)

    cluster.trimmer.locate = locate
    cluster.retain(-1, -1)
    survey(cluster)
    assert asked == []
    cluster.retain(60, -1)
    survey(cluster)
    assert len(asked) == 2


# ----- the last ledger


def test_the_last_ledger_of_an_idle_topic_closes_when_it_is_loaded(cluster):
    assert kept(cluster) == [Kept.OVERDUE] * 3


def loaded(cluster):
    cluster.stack.broker.locate = lambda _topic, **_how: TopicPlace(TopicLoad.LOADED, "b:8080")


def terminated(cluster):
    """No load closes it in the list."""

    def change(message):
        message.terminatedPosition.ledgerId, message.terminatedPosition.entryId = 2, 1

    edit(cluster, change)


def written_to(cluster):
    """By a broker that no broker's list names yet."""
    last = cluster.ids(ORDERS)[-1]
    simulated = cluster.site.cluster
    simulated._write(last, simulated._metadata(last, closed=False))


def in_recovery(cluster):
    """A broker that loads the topic is about to close it."""
    last = cluster.ids(ORDERS)[-1]
    simulated = cluster.site.cluster
    metadata = replace(simulated._metadata(last, closed=True), state=BookKeeperState.IN_RECOVERY)
    simulated._write(last, metadata)


def without_node(cluster):
    cluster.site.cluster.delete_ledger(cluster.ids(ORDERS)[-1])


@pytest.mark.parametrize("change", [loaded, terminated, written_to, in_recovery, without_node])
def test_the_last_ledger_stays_where_no_load_closes_it(cluster, change):
    change(cluster)
    assert kept(cluster) == [Kept.OVERDUE, Kept.OVERDUE, Kept.OPEN]


def test_a_ledger_without_a_closing_time_that_is_not_the_last_stays(cluster):
    def change(message):
        message.ledgerInfo[0].timestamp = 0

    edit(cluster, change)
    assert kept(cluster)[0] is Kept.OPEN


def test_a_last_ledger_that_is_listed_as_closed_has_the_time_that_is_listed(cluster):
    """It does not close when it is loaded: an hour of retention is over long since."""

    def change(message):
        first, last = message.ledgerInfo[0], message.ledgerInfo[-1]
        last.timestamp, last.entries, last.size = first.timestamp, 2, 9

    edit(cluster, change)
    found = survey(cluster)[ORDERS]
    assert [one.kept for one in found.expiry.ledgers] == [Kept.OVERDUE] * 3


def test_a_ledger_that_does_not_say_how_much_it_has_counts_as_nothing(cluster):
    """A cursor at its first entry may have more to read."""

    def change(message):
        message.ledgerInfo[0].ClearField("entries")
        message.ledgerInfo[0].ClearField("size")

    edit(cluster, change)
    found = survey(cluster)[ORDERS]
    assert [one.bytes for one in found.expiry.ledgers] == [0, 9, 9]
    cluster.subscribe(ORDERS, "slow", (cluster.ids(ORDERS)[0], 0))
    assert kept(cluster)[0] is Kept.NOT_CONSUMED


# ----- limits


def test_without_a_ttl_nothing_is_past_it(cluster):
    cluster.retain(-1, -1)
    cluster.subscribe(ORDERS, "slow", (cluster.ids(ORDERS)[0], 0))
    assert survey(cluster, [ORDERS])[ORDERS].expiry.ttl == ()


@pytest.fixture
def judged(cluster):
    found = survey(cluster, [ORDERS])[ORDERS]
    assert found.expiry is not None
    return cluster, replace(found, expiry=None)


def test_it_takes_a_list_and_a_policy_to_judge_by(judged):
    cluster, found = judged
    for missing in (replace(found, policy=None), AgingTopic(ml_name=ORDERS, policy=found.policy)):
        assert judge_by(cluster.stack, missing) == missing


@pytest.mark.parametrize("limit", ["retention_minutes", "retention_megabytes"])
@pytest.mark.parametrize(
    ("unknown", "said"),
    [
        (("topic: no answer", "brokers: none"), "topic: no answer; brokers: none"),
        ((), "no level sets it"),
    ],
)
def test_a_limit_that_is_not_known_lets_go_of_nothing(judged, limit, unknown, said):
    cluster, found = judged
    value = replace(getattr(found.policy, limit), value=None)
    policy = replace(found.policy, unknown=unknown, **{limit: value})
    answer = judge_by(cluster.stack, replace(found, policy=policy))
    assert answer.error == f"its retention is not known: {said}"
    assert answer.overdue == ()
