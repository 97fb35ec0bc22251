"""Listing topics from metadata alone: what is asked, what is unknown, and how much it costs."""

import time
from dataclasses import replace

import pytest

from tests.support.admin_sim import running_admin_simulator, tell_broker
from tests.support.sim_clients import Process
from tests.support.sim_world import World
from tiering_assets.explain.topic_list import list_topics
from tiering_assets.resources.errors import MetadataError
from tiering_assets.resources.metastore.topics import TopicDirectory

TOPIC = "t/ns/persistent/orders"
MANY = 10_000


class Site:
    def __init__(self, admin):
        self.world = World(1)
        self.site = self.world.add_site("alpha", lag_s=None, bookkeeper_first=False)
        self.site.broker.create_topic(TOPIC)
        for _ in range(2):
            self.site.broker.produce(TOPIC, [b"first", b"later"])
            self.site.broker.roll_over(TOPIC)
        stack = Process(self.world, "cli", self.site).stack()
        tell_broker(admin, stack.settings)
        broker = replace(stack.settings.broker, admin_url=admin.url, timeout_s=5)
        self.stack = replace(stack, settings=replace(stack.settings, broker=broker))


@pytest.fixture
def admin():
    with running_admin_simulator() as simulator:
        yield simulator


@pytest.fixture
def site(admin):
    return Site(admin)


def test_a_topics_ledgers_are_counted_and_its_own_policy_is_not_asked(admin, site):
    [found] = list_topics(site.stack)
    assert (found.topic, found.policy, found.error) == ("persistent://t/ns/orders", "no", None)
    assert found.counts is not None
    assert (found.counts.every.ledgers, found.counts.sealed.ledgers) == (3, 2)
    assert found.counts.bookies_only.bytes == found.counts.sealed.bytes == 20
    assert not [line for line, _token in admin.requests if "/persistent/" in line]
    admin.get("/namespaces/t/ns", {"offload_policies": {"managedLedgerOffloadThresholdInBytes": 0}})
    [found] = list_topics(site.stack)
    assert found.policy == "yes"


def test_a_node_that_cannot_be_read_is_unknown_and_hides_no_other(site):
    site.site.broker.create_topic("t/ns/persistent/secret")
    real = site.stack.topics

    class Denied(TopicDirectory):
        def __init__(self):
            pass

        def iter_managed_ledgers(self):
            return real.iter_managed_ledgers()

        def read(self, ml_name):
            if ml_name.endswith("secret"):
                raise MetadataError("its ACL denies us to read it")
            return real.read(ml_name)

        def read_many(self, ml_names):
            for name in ml_names:
                found = self.read(name)
                yield name, None if found is None else found[1]

    found = {one.ml_name: one for one in list_topics(replace(site.stack, topics=Denied()))}
    assert found["t/ns/persistent/secret"].counts is None
    assert found["t/ns/persistent/secret"].error == "its ACL denies us to read it"
    assert found[TOPIC].counts is not None


def test_only_what_is_named_is_listed(site):
    site.site.broker.create_topic("t/other/persistent/x")
    assert [one.ml_name for one in list_topics(site.stack, [TOPIC])] == [TOPIC]


def test_ten_thousand_topics_are_one_read_each_and_one_question_of_the_namespace(admin, site):
    body = site.stack.topics.read(TOPIC)[1].data
    for number in range(MANY - 1):
        path = f"/managed-ledgers/t/ns/persistent/many-{number:05d}"
        site.site.cluster.metadata.put(path, body)
    told: list[str] = []
    admin.requests.clear()
    started = time.monotonic()
    found = list(list_topics(replace(site.stack, narrate=told.append)))
    took = time.monotonic() - started
    assert len(found) == MANY
    assert told[0] == f"{MANY} topics to read"
    assert len(admin.requests) < 10
    assert took < 120  # a few seconds where nothing else runs
