"""What steps make of policies: our file, a terminated topic's last ledger, and no broker at all.

Simulated servers, a broker address where nobody listens, and nodes that a real broker wrote.
"""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.admin_sim import running_admin_simulator
from tests.support.selected import select_from_topic, selected_ids
from tests.support.sim_clients import Process
from tests.support.sim_world import World
from tests.support.topic_halves import release_topic
from tiering_assets.batch.pipeline import offload_batch
from tiering_assets.ground.own_policy import OwnPolicies, OwnPolicy
from tiering_assets.ground.stack import read_own_policies
from tiering_assets.policy.policies import check_policies, user_topics
from tiering_assets.policy.policy import Origin, effective_policy
from tiering_assets.policy.selection import NotSelected
from tiering_assets.release.work import Released
from tiering_assets.resources.errors import BrokerError, SettingsError
from tiering_assets.resources.metastore.ledger_info import (
    decode_managed_ledger,
    encode_managed_ledger,
)
from tiering_assets.resources.metastore.topic_names import managed_ledger_path
from tiering_assets.resources.pulsar.admin import HttpBrokerAdmin
from tiering_assets.resources.pulsar.policy_levels import PolicyLevel, PulsarLevels
from tiering_assets.resources.settings import BrokerSettings, PolicySettings, ReleaseSettings

TOPIC = "t/ns/persistent/orders"
GOLDEN = Path(__file__).parents[2] / "golden" / "terminated"


@pytest.fixture
def world():
    return World(1)


@pytest.fixture
def site(world):
    site = world.add_site("alpha", lag_s=None, bookkeeper_first=False)
    site.broker.create_topic(TOPIC)
    site.broker.produce(TOPIC, [b"first", b"last"])
    site.broker.roll_over(TOPIC)
    return site


@pytest.fixture
def stack(world, site):
    return Process(world, "policies", site).stack()


@pytest.fixture
def lonely(stack):
    """The same stack when no broker answers."""
    with running_admin_simulator() as gone:
        address = BrokerSettings(admin_url=gone.url, timeout_s=2)
    admin = HttpBrokerAdmin(address)
    yield replace(stack, broker=admin, settings=replace(stack.settings, broker=address))
    admin.close()


def listed_version(stack):
    return stack.topics.read(TOPIC)[1].stat.version


# ----- no broker


def test_nothing_is_published_without_a_broker(lonely, site):
    before = listed_version(lonely)
    [outcome] = offload_batch(lonely, [0])
    assert outcome.published is None
    assert isinstance(outcome.error, BrokerError)
    assert listed_version(lonely) == before
    assert site.cluster.has_node(0)


def test_nothing_is_released_without_a_broker(stack, lonely, site, world):
    [outcome] = offload_batch(stack, [0])
    assert outcome.published is not None
    world.scheduler.now += 30 * 24 * 3600
    before = listed_version(lonely)
    with pytest.raises(BrokerError, match="cannot reach the broker"):
        release_topic(lonely, TOPIC, [0])
    assert listed_version(lonely) == before
    assert site.cluster.has_node(0)
    assert not [key for key in world.objects.peek_keys() if "/releases/" in key]
    [released] = release_topic(
        stack, TOPIC, [0]
    ).values()  # with one, nothing else stood in the way
    assert isinstance(released, Released)


def test_the_policy_is_shown_from_the_namespaces_node_and_is_not_complete(lonely, site):
    policies = {"offload_threshold": 5, "retention_policies": None}
    site.cluster.metadata.put("/admin/policies/t/ns", json.dumps(policies).encode())
    [found] = check_policies(lonely, user_topics(lonely))
    assert found.topic == "persistent://t/ns/orders"
    assert found.policy is not None
    assert found.policy.threshold_bytes.value == 5
    assert not found.policy.complete
    assert not found.refused


def test_a_policy_that_cannot_be_read_is_an_answer_about_its_topic_alone(lonely, site):
    site.broker.create_topic("t/other/persistent/fine")
    site.cluster.metadata.put("/admin/policies/t/ns", b'{"offload_threshold": "5"}')
    site.cluster.metadata.put("/admin/policies/t/other", b"{}")
    found = {one.topic: one for one in check_policies(lonely, user_topics(lonely))}
    broken = found["persistent://t/ns/orders"]
    assert broken.refused
    assert broken.error is not None
    assert "/admin/policies/t/ns: offload_threshold: expected a whole number" in broken.error
    assert not found["persistent://t/other/fine"].refused


# ----- tiering.toml


def test_our_file_is_optional_but_one_that_is_named_is_not(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert read_own_policies(PolicySettings()) == OwnPolicies()
    (tmp_path / "tiering.toml").write_text("[default]\noffloadTimeInMinutes = 2\n")
    found = read_own_policies(PolicySettings())
    assert found.default == OwnPolicy(threshold_seconds=120)
    with pytest.raises(SettingsError, match=r"policy\.file missing\.toml: there is no such file"):
        read_own_policies(PolicySettings(file="missing.toml"))


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(SettingsError, match="policy file"):
        read_own_policies(PolicySettings(file=str(tmp_path)))
    binary = tmp_path / "binary.toml"
    binary.write_bytes(b"\xff\xfe")
    with pytest.raises(SettingsError, match=r"binary\.toml: not UTF-8"):
        read_own_policies(PolicySettings(file=str(binary)))


# ----- selection from nodes


def policy_of(size):
    own = OwnPolicies(default=OwnPolicy(threshold_bytes=size))
    levels = PulsarLevels(topic=PolicyLevel(), namespace=PolicyLevel(), broker=PolicyLevel())
    return effective_policy("persistent://t/ns/orders", levels, own, deletion_lag_s=1)


def select(stack, ml_name, size, **rules):
    settings = replace(stack.settings, policy=PolicySettings(**rules))
    return select_from_topic(
        replace(stack, settings=settings), ml_name, policy_of(size), now_ms=2**62, loaded=None
    )


def test_a_closed_ledger_is_selected_from_the_topics_node(stack):
    assert selected_ids(select(stack, TOPIC, 8)) == [0]
    assert selected_ids(select(stack, TOPIC, 9)) == []  # "first" and "last" are nine bytes
    assert selected_ids(select(stack, TOPIC, 0, unloaded_topics=False)) == []


def test_a_topic_that_is_gone_has_no_ledgers(stack):
    assert select(stack, "t/ns/persistent/gone", 0) == ()


def test_a_terminated_topics_last_ledger_is_measured_in_bookkeeper(stack, site):
    """Its list says neither size nor time, and BookKeeper has it closed with 1,590 bytes."""
    name = "t/ns/persistent/ended"
    metadata = site.cluster.metadata
    metadata.put(managed_ledger_path(name), (GOLDEN / "ml.before.bin").read_bytes())
    metadata.put(site.cluster.path(49), (GOLDEN / "ledger-48.znode.bin").read_bytes())
    verdicts = select(stack, name, 0)
    assert [v.why_not for v in verdicts] == [None, NotSelected.TERMINATED]
    verdicts = select(stack, name, 1589, terminated_last_ledger=True)
    assert selected_ids(verdicts) == [48, 49]
    assert [v.bytes_from_here for v in verdicts] == [3180, 1590]
    assert selected_ids(select(stack, name, 1590, terminated_last_ledger=True)) == [48]


def test_a_terminated_topics_last_ledger_that_bookkeeper_lost_is_not_selected(stack, site):
    name = "t/ns/persistent/ended"
    node = (GOLDEN / "ml.before.bin").read_bytes()
    site.cluster.metadata.put(managed_ledger_path(name), node)
    verdicts = select(stack, name, 0, terminated_last_ledger=True)
    assert selected_ids(verdicts) == [48]


def verdict(stack, size=0, **rules):
    """Of ledger 0."""
    return select(stack, TOPIC, size, **rules)[0]


def test_what_brokers_read_from_the_store_is_offloaded(stack, site):
    site.broker.offload(TOPIC)
    assert verdict(stack).why_not is NotSelected.OFFLOADED


def test_what_a_broker_has_only_begun_is_not_offloaded(stack, site):
    site.broker.offload(TOPIC, stops_after=1)
    assert verdict(stack).why_not is None


def test_a_ledger_whose_size_is_not_listed_has_none(stack, site):
    path = managed_ledger_path(TOPIC)
    found = decode_managed_ledger(site.cluster.metadata.nodes[path].data)
    message = found.message_copy()
    message.ledgerInfo[0].ClearField("size")
    site.cluster.metadata.put(path, encode_managed_ledger(found.with_message(message)))
    assert verdict(stack).bytes_from_here == 0


def test_a_terminated_topics_last_ledger_that_is_not_closed_is_not_selected(stack, site):
    """A broker may be closing it."""
    name = "t/ns/persistent/ended"
    node = (GOLDEN / "ml.before.bin").read_bytes()
    site.cluster.metadata.put(managed_ledger_path(name), node)
    site.cluster.written[49], site.cluster.owner[49] = [b"x" * 99], name
    site.cluster._write(49, site.cluster._metadata(49, closed=False))
    verdicts = select(stack, name, 0, terminated_last_ledger=True)
    assert [v.why_not for v in verdicts] == [None, NotSelected.TERMINATED]
    site.cluster._write(49, site.cluster._metadata(49, closed=True))
    assert selected_ids(select(stack, name, 0, terminated_last_ledger=True)) == [48, 49]


@pytest.mark.parametrize(("lag_s", "origin"), [(None, "default"), (7.0, "setting")])
def test_a_lag_that_was_set_is_told_to_be_a_setting(lonely, site, lag_s, origin):
    site.cluster.metadata.put("/admin/policies/t/ns", b"{}")
    release = ReleaseSettings() if lag_s is None else ReleaseSettings(deletion_lag_s=lag_s)
    stack = replace(lonely, settings=replace(lonely.settings, release=release))
    [found] = check_policies(stack, [TOPIC])
    assert found.policy is not None
    assert found.policy.deletion_lag_s.origin.value == Origin[origin.upper()].value
