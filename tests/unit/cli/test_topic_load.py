"""`topic load-overdue` over simulated servers: who is loaded, who is not, and what is written."""

import json
from contextlib import contextmanager
from dataclasses import replace

import pytest

from tests.support.admin_sim import running_admin_simulator
from tests.support.idle_topics import ORDERS, PLAIN, IdleTopics
from tiering_assets.cli.main import run
from tiering_assets.cli.shared.session import Session
from tiering_assets.look.brakes.holds import hold
from tiering_assets.look.brakes.scopes import Scope, ledger_scope
from tiering_assets.records import keys
from tiering_assets.records.models import Claim, Disturbance
from tiering_assets.resources.errors import BrokerError, BrokerUnknownError
from tiering_assets.resources.pulsar.admin import TopicLoad, TopicPlace

ORDERS_TOPIC = "persistent://t/ns/orders"


@pytest.fixture
def cluster(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    with running_admin_simulator() as admin:
        cluster = IdleTopics(admin)
        # orders are overdue by a limit of an hour; plain keeps everything by its own policy
        forever = {"retentionTimeInMinutes": -1, "retentionSizeInMB": -1}
        admin.get("/persistent/t/ns/plain/retention", forever)

        @contextmanager
        def opened(_session, _runner=None):
            yield cluster.stack

        monkeypatch.setattr(Session, "stack", opened)
        yield cluster


def loaded(capsys, *words, code=0):
    capsys.readouterr()
    assert run(["topic", "load-overdue", *words, "--json"]) == code
    found = json.loads(capsys.readouterr().out)
    assert found["schema"] == "tierkeeper/topic-load-overdue/1"
    return {one["topic"]: one for one in found["topics"]}


def records(cluster):
    return [stored.record for stored in cluster.stack.book.iter_records(Disturbance, "loads/")]


def test_a_dry_run_names_the_topic_and_changes_nothing(cluster, capsys):
    before = {name: cluster.version(name) for name in (ORDERS, PLAIN)}
    found = loaded(capsys, "--plan")
    assert {name: one["state"] for name, one in found.items()} == {ORDERS_TOPIC: "would load"}
    assert found[ORDERS_TOPIC]["overdue"] == cluster.ids(ORDERS)[:2]
    assert (cluster.trimmer.asked, records(cluster)) == ([], [])
    assert {name: cluster.version(name) for name in before} == before


def test_nothing_is_loaded_while_bookies_are_short(cluster, capsys):
    cluster.stack.broker.namespace_ensemble = lambda _namespace: 2
    [one] = loaded(capsys, "--execute").values()
    assert one["state"] == "left alone"
    assert "bookies short: 1 writable bookies" in one["detail"]
    assert (cluster.trimmer.asked, records(cluster)) == ([], [])


def test_the_overdue_topic_is_loaded_and_trimmed_and_no_other(cluster, capsys):
    first, second, last = cluster.ids(ORDERS)
    untouched = cluster.version(PLAIN)
    [one] = loaded(capsys, "--execute").values()
    assert (one["state"], one["trimmed"]) == ("trimmed", [first, second])
    assert cluster.ids(ORDERS)[0] == last
    assert cluster.version(PLAIN) == untouched
    assert cluster.trimmer.asked == [ORDERS]
    [record] = records(cluster)
    assert record.ml_name == ORDERS
    assert record.why == "load: retention of 2 ledgers is overdue"
    assert list(cluster.stack.book.keys("disturbances/")) == []
    assert ORDERS_TOPIC not in loaded(capsys, "--execute")
    assert cluster.trimmer.asked == [ORDERS]


def test_the_budget_of_an_hour_holds_across_runs(cluster, capsys):
    cluster.admin.answers.pop("GET /admin/v2/persistent/t/ns/plain/retention")
    limits = replace(cluster.stack.settings.disturb, loads_hour_max=1)
    cluster.stack = replace(cluster.stack, settings=replace(cluster.stack.settings, disturb=limits))
    states = [one["state"] for one in loaded(capsys, "--plan").values()]
    assert sorted(states) == ["over budget", "would load"]
    states = [one["state"] for one in loaded(capsys, "--execute").values()]
    assert sorted(states) == ["over budget", "trimmed"]
    cluster.broker.restart()
    cluster.world.scheduler.now += 600
    [again] = loaded(capsys, "--execute").values()
    assert again["state"] == "over budget"
    assert "disturb.loads_hour_max = 1" in again["detail"]
    cluster.world.scheduler.now += 3600
    states = [one["state"] for one in loaded(capsys, "--execute").values()]
    assert sorted(states) == ["over budget", "trimmed"]  # the first one is overdue again


def test_max_bounds_a_run(cluster, capsys):
    cluster.admin.answers.pop("GET /admin/v2/persistent/t/ns/plain/retention")
    states = [one["state"] for one in loaded(capsys, "--execute", "--max", "1").values()]
    assert sorted(states) == ["over budget", "trimmed"]
    assert len(cluster.trimmer.asked) == 1


def hold_one(cluster):
    hold(cluster.stack, ledger_scope(cluster.ids(ORDERS)[1]), reason="court", author="ops")


def hold_all_of_it(cluster):
    hold(cluster.stack, Scope("topic", ORDERS), reason="court", author="ops")


def claim(cluster):
    now = cluster.stack.objects.server_time()
    ledger_id = cluster.ids(ORDERS)[0]
    record = Claim(
        ledger_id=ledger_id,
        run_id="other",
        attempt=None,
        expires_at=now.replace(year=now.year + 1),
    )
    cluster.stack.book.create(keys.claim(ledger_id), record)


def delete_inactive(cluster):
    cluster.trimmer.idle = replace(cluster.trimmer.idle, deletes_topic=True)


def tell_nothing(cluster):
    cluster.trimmer.idle = BrokerError("no answer")


def lose_the_topic_level(cluster):
    cluster.admin.get("/persistent/t/ns/orders/retention", {"reason": "no"}, status=500)


def somebody_loads(cluster):
    cluster.broker.load(ORDERS)
    cluster.world.scheduler.now += 120


@pytest.mark.parametrize(
    ("hinder", "said"),
    [
        (hold_one, "is held: court (ops)"),
        (hold_all_of_it, "is held: topic t/ns/persistent/orders: court (ops)"),
        (claim, "is being copied: run other"),
        (delete_inactive, "would soon delete the whole topic"),
        (tell_nothing, "could not be asked"),
        (lose_the_topic_level, "not certain"),
        (somebody_loads, "its broker has it loaded"),
    ],
)
def test_what_speaks_against_a_load_is_told_and_nothing_is_asked(cluster, capsys, hinder, said):
    hinder(cluster)
    one = loaded(capsys, "--execute", "t/ns/orders")[ORDERS_TOPIC]
    assert one["state"] == "left alone"
    assert said in one["detail"]
    assert (cluster.trimmer.asked, records(cluster)) == ([], [])


def test_a_topic_that_somebody_changed_meanwhile_is_left_alone(cluster, monkeypatch, capsys):
    policies = cluster.trimmer.idle

    def load_then_tell(_topic):
        cluster.broker.load(ORDERS)
        return policies

    monkeypatch.setattr(cluster.trimmer, "inactivity", load_then_tell)
    [one] = loaded(capsys, "--execute").values()
    assert one["state"] == "left alone"
    assert "changed the topic since" in one["detail"]
    assert (cluster.trimmer.asked, records(cluster)) == ([], [])


def place(monkeypatch, cluster, *answers):
    """What locate says of every topic, first to last."""
    said = iter(answers)
    monkeypatch.setattr(cluster.trimmer, "locate", lambda _topic, **_: next(said), raising=False)


OWNED = TopicPlace(TopicLoad.UNKNOWN, "127.0.0.1:8080")


def test_an_owned_bundle_is_looked_at_again_after_the_minute_a_listing_may_be_old(
    cluster, monkeypatch, capsys
):
    place(monkeypatch, cluster, OWNED, OWNED)
    before = cluster.world.scheduler.now
    one = loaded(capsys, "t/ns/orders", "--execute")[ORDERS_TOPIC]
    assert one["state"] == "trimmed"
    assert cluster.world.scheduler.now - before > 60


@pytest.mark.parametrize(
    ("second", "said"),
    [
        (TopicPlace(TopicLoad.LOADED, "127.0.0.1:8080"), "has it loaded"),
        (TopicPlace(TopicLoad.UNKNOWN), "not known"),
    ],
)
def test_what_the_second_look_does_not_show_idle_is_left_alone(
    cluster, monkeypatch, capsys, second, said
):
    place(monkeypatch, cluster, OWNED, second)
    one = loaded(capsys, "t/ns/orders", "--execute")[ORDERS_TOPIC]
    assert one["state"] == "left alone"
    assert said in one["detail"]


def test_a_broker_that_does_not_trim_is_a_finding(cluster, capsys):
    cluster.trimmer.deaf = True
    [one] = loaded(capsys, "--execute", "--timeout", "5", code=1).values()
    assert one["state"] == "not trimmed"
    assert one["trimmed"] == []
    assert "are still in its list" in one["detail"]
    assert len(records(cluster)) == 1  # it was asked, and that counts


def test_a_refusal_is_a_finding_and_a_lost_answer_is_judged_by_the_list(cluster, capsys):
    cluster.trimmer.refuses = BrokerUnknownError("sent, but no answer")
    [one] = loaded(capsys, "--execute", "--timeout", "2", code=1).values()
    assert one["state"] == "not trimmed"
    cluster.trimmer.refuses = BrokerError("POST …/trim: status 403")
    [one] = loaded(capsys, "--execute", code=1).values()
    assert one["state"] == "failed"
    assert "status 403" in one["detail"]


def test_the_table_says_how_to_go_on(cluster, capsys):
    assert run(["topic", "load-overdue", "--plan"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "nothing was loaded; --execute does it"
    assert cluster.trimmer.asked == []
