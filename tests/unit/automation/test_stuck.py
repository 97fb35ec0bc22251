"""What stands still is told where it is so, and no broker is asked about any other topic."""

from dataclasses import replace

import pytest

from tests.support.admin_sim import running_admin_simulator
from tests.support.idle_topics import ORDERS, IdleTopics
from tiering_assets.automation.stuck import StuckTopics
from tiering_assets.automation.stuck_rules import StuckKind
from tiering_assets.look.topic.user_topics import Topic
from tiering_assets.policy.policies import open_policies
from tiering_assets.resources.metastore.ledger_info import (
    decode_managed_ledger,
    encode_managed_ledger,
)
from tiering_assets.resources.metastore.topic_names import managed_ledger_path
from tiering_assets.resources.pulsar.admin import TopicLoad, TopicPlace

PATH = managed_ledger_path(ORDERS)
HOUR_S = 3600
OPEN, OVERDUE = StuckKind.OPEN_TOO_LONG, StuckKind.RETENTION_OVERDUE


class Cluster(IdleTopics):
    """Orders' closed ledgers and its open one are a day old; retention is an hour."""

    def __init__(self, admin):
        super().__init__(admin)
        self.asked: list[str] = []
        self.place: TopicPlace | None = None

        def locate(topic, **how):
            self.asked.append(topic)
            return self.place or self.broker.locate(topic, **how)

        vars(self.trimmer)["locate"] = locate


@pytest.fixture
def cluster():
    with running_admin_simulator() as admin:
        yield Cluster(admin)


def look(cluster, ml_name=ORDERS):
    cluster.admin.requests.clear()
    found = cluster.stack.topics.read(ml_name)
    assert found is not None
    with open_policies(cluster.stack) as policies:
        said = StuckTopics(cluster.stack, policies).look(Topic(ml_name, *found))
    return {one.kind: one for one in said}


def edit(cluster, change):
    nodes = cluster.site.cluster.metadata.nodes
    found = decode_managed_ledger(nodes[PATH].data)
    message = found.message_copy()
    change(message)
    data = encode_managed_ledger(found.with_message(message))
    nodes[PATH] = replace(nodes[PATH], data=data)


def keep_all(cluster):
    cluster.retain(-1, -1)


def close_last(cluster):
    def change(message):
        last, first = message.ledgerInfo[-1], message.ledgerInfo[0]
        last.timestamp, last.entries, last.size = first.timestamp, 2, 9

    edit(cluster, change)


def terminate(cluster):
    def change(message):
        message.terminatedPosition.ledgerId, message.terminatedPosition.entryId = 2, 1

    edit(cluster, change)


def lose_last(cluster):
    cluster.site.cluster.delete_ledger(cluster.ids(ORDERS)[-1])


def just_closed(cluster):
    """The ledger before the open one was closed a moment ago."""

    def change(message):
        now_ms = int(cluster.stack.now().timestamp() * 1000)
        for one in message.ledgerInfo:
            one.timestamp = now_ms if one.timestamp else 0

    edit(cluster, change)


def test_an_old_open_ledger_and_overdue_retention_are_told_of_an_idle_topic(cluster):
    found = look(cluster)
    assert set(found) == {OPEN, OVERDUE}
    last = cluster.ids(ORDERS)[-1]
    assert found[OPEN].subject == str(last)
    assert "no broker has the topic loaded" in found[OPEN].detail
    assert "Its retention of 1.0 h is over" in found[OPEN].detail
    assert found[OVERDUE].detail.startswith("2 ledgers")
    assert cluster.asked == ["persistent://t/ns/orders"]


# ----- the open ledger


@pytest.mark.parametrize("change", [close_last, terminate, lose_last])
def test_a_topic_that_writes_to_no_ledger_has_none_open_too_long(cluster, change):
    change(cluster)
    assert set(look(cluster)) == {OVERDUE}


def test_without_retention_the_limit_of_hours_counts(cluster):
    keep_all(cluster)
    found = look(cluster)
    assert set(found) == {OPEN}
    assert "retention" not in found[OPEN].detail


def test_one_past_its_retention_is_told_before_the_limit_of_hours(cluster):
    limit = replace(cluster.stack.settings.auto, open_after_s=48 * HOUR_S)
    cluster.stack = replace(cluster.stack, settings=replace(cluster.stack.settings, auto=limit))
    assert OPEN in look(cluster)
    keep_all(cluster)
    assert look(cluster) == {}


def test_one_that_was_opened_a_moment_ago_is_not_told_and_nobody_is_asked(cluster):
    """A ledger is opened after the one before was closed."""
    just_closed(cluster)
    before = len(cluster.site.cluster.metadata.nodes)
    assert look(cluster) == {}
    assert cluster.asked == []
    assert len(cluster.site.cluster.metadata.nodes) == before


# ----- retention


def test_a_topic_that_a_broker_has_loaded_is_trimmed_by_it(cluster):
    cluster.place = TopicPlace(TopicLoad.LOADED, "127.0.0.1:8080")
    found = look(cluster)
    assert set(found) == {OPEN}
    assert "no broker has the topic loaded" not in found[OPEN].detail


def test_what_a_cursor_keeps_is_not_overdue(cluster):
    cluster.subscribe(ORDERS, "slow", (cluster.ids(ORDERS)[0], -1))
    assert set(look(cluster)) == {OPEN}


def test_ledgers_within_their_retention_are_not_told_and_nobody_is_asked(cluster):
    cluster.retain(48 * 60, -1)
    terminate(cluster)
    assert look(cluster) == {}
    assert cluster.asked == []


@pytest.mark.parametrize("minutes", [-1, 0])
def test_where_retention_has_no_time_none_is_over(cluster, minutes):
    """Unlimited, or none at all: then nothing waits for it."""
    cluster.retain(minutes, -1)
    terminate(cluster)
    assert look(cluster) == {}
    assert cluster.asked == []


def test_of_a_topic_whose_policy_cannot_be_read_nothing_is_overdue(cluster):
    cluster.admin.get("/namespaces/t/ns", {"retention_policies": "odd"})
    found = look(cluster)
    assert set(found) == {OPEN}
    assert "retention" not in found[OPEN].detail


def test_a_topic_without_ledgers_is_not_looked_at(cluster):
    edit(cluster, lambda message: message.ClearField("ledgerInfo"))
    assert look(cluster) == {}
    assert cluster.asked == []
    assert [line for line, _auth in cluster.admin.requests if "namespaces" in line] == []


def test_of_a_terminated_topic_the_last_ledger_is_not_past_its_retention(cluster):
    """It has no closing time, and no broker trims it."""
    terminate(cluster)
    edit(cluster, lambda message: message.ledgerInfo.__delitem__(slice(0, 2)))
    assert look(cluster) == {}
    assert cluster.asked == []
