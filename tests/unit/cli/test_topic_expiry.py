"""`topic expiry` over simulated servers: a broker's answers by HTTP, and nothing loaded by
looking.
"""

import json
from contextlib import contextmanager

import pytest

from tests.support.admin_sim import running_admin_simulator
from tests.support.idle_topics import ORDERS, PLAIN, IdleTopics
from tiering_assets.cli.main import run
from tiering_assets.cli.shared.session import Session
from tiering_assets.resources.metastore.topic_names import managed_ledger_path


@pytest.fixture
def cluster(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    with running_admin_simulator() as admin:
        cluster = IdleTopics(admin)

        @contextmanager
        def opened(_session, _runner=None):
            yield cluster.stack

        monkeypatch.setattr(Session, "stack", opened)
        yield cluster


def document(capsys, *words, code=0):
    capsys.readouterr()
    assert run(["topic", "expiry", *words, "--json"]) == code
    found = json.loads(capsys.readouterr().out)
    assert found["schema"] == "tierkeeper/topic-expiry/1"
    return {one["ml_name"]: one for one in found["topics"]}


def test_looking_loads_nothing_and_says_what_is_overdue(cluster, capsys):
    before = {name: cluster.version(name) for name in (ORDERS, PLAIN)}
    found = document(capsys)[ORDERS]
    first, second, _last = cluster.ids(ORDERS)
    assert (found["overdue"], found["overdue_bytes"]) == ([first, second], 18)
    assert (found["listed"], found["load"], found["kept_by"]) == (3, "not loaded", [])
    assert found["retention_minutes"] == {"value": 60, "origin": "namespace", "certain": False}
    assert found["certain"] is False
    assert {name: cluster.version(name) for name in before} == before
    assert cluster.broker.topics == {}


def test_a_named_topics_own_retention_beats_the_namespaces(cluster, capsys):
    path = "/persistent/t/ns/orders/retention"
    cluster.admin.get(path, {"retentionTimeInMinutes": -1, "retentionSizeInMB": -1})
    unasked = document(capsys, "t/ns/orders")[ORDERS]  # no broker owns its bundle
    assert unasked["certain"] is False
    found = document(capsys, "t/ns/orders", "--ask-topics")[ORDERS]
    assert found["certain"] is True
    assert found["overdue"] == []
    assert found["retention_minutes"]["origin"] == "topic"
    assert [one["kept"] for one in found["ledgers"]] == ["in retention"] * 3


def test_a_subscription_keeps_what_it_has_not_consumed(cluster, capsys):
    first, second, last = cluster.ids(ORDERS)
    cluster.subscribe(ORDERS, "slow", (first, 1))
    cluster.subscribe(ORDERS, "fast", (last, 1))
    found = document(capsys, "t/ns/orders")[ORDERS]
    assert found["overdue"] == [first]
    assert found["kept_by"] == ["slow"]
    assert [one["kept"] for one in found["ledgers"]][1:] == ["not consumed"] * 2
    cluster.subscribe(ORDERS, "unknown", None)
    found = document(capsys, "t/ns/orders")[ORDERS]
    assert (found["overdue"], found["kept_by"]) == ([], ["unknown"])
    assert second not in found["overdue"]


def test_the_last_ledger_of_an_idle_topic_goes_too_where_nothing_is_kept(cluster, capsys):
    cluster.retain(0, 0)
    assert document(capsys)[ORDERS]["overdue"] == cluster.ids(ORDERS)
    cluster.broker.load(PLAIN)
    found = document(capsys)[PLAIN]  # loaded: what it writes to is its own
    assert found["load"] == "unknown"
    assert found["overdue"] == cluster.ids(PLAIN)[:-1]


def test_ttl_that_nobody_applies_is_told(cluster, capsys):
    cluster.retain(-1, -1, ttl_s=3600)
    first, second, _last = cluster.ids(ORDERS)
    cluster.subscribe(ORDERS, "slow", (first, 0))
    [late] = document(capsys, "t/ns/orders")[ORDERS]["ttl_backlogs"]
    assert late == {"subscription": "slow", "ledgers": 2, "entries": 3, "bytes": 18}
    assert run(["topic", "expiry", "t/ns/orders"]) == 0
    said = capsys.readouterr().out
    assert "subscription slow has 3 entries in 2 ledgers (18 B) past their TTL" in said
    assert "unlimited min (namespace), unlimited MB (namespace)" in said
    assert second > first


def test_a_topic_that_cannot_be_read_is_told_and_the_others_go_on(cluster, capsys):
    cluster.site.cluster.metadata.put(managed_ledger_path(PLAIN), b"\xff\xff")
    cluster.subscribe(ORDERS, "done", (cluster.ids(ORDERS)[0], 1))
    found = document(capsys, code=1)
    assert "ManagedLedgerInfo" in found[PLAIN]["error"]
    assert "overdue" not in found[PLAIN]
    assert found[ORDERS]["overdue"] == cluster.ids(ORDERS)[:1]
    path = f"{managed_ledger_path(ORDERS)}/broken"
    cluster.site.cluster.metadata.put(path, b"\xff\xff")
    found = document(capsys, "t/ns/orders", code=1)
    assert "ManagedCursorInfo" in found[ORDERS]["error"]


def test_without_a_brokers_answer_the_namespaces_node_counts_and_is_not_certain(cluster, capsys):
    cluster.admin.answers.clear()
    node = json.dumps(cluster.namespace).encode()
    cluster.site.cluster.metadata.put("/admin/policies/t/ns", node)
    found = document(capsys, "t/ns/orders")[ORDERS]
    assert found["certain"] is False
    assert found["overdue"] == cluster.ids(ORDERS)[:2]
