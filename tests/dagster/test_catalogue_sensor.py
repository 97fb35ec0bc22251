"""The sensor `catalogue`: tables follow runs and topics; what is wrong delays them alone."""

import json
import sys
from dataclasses import replace

import dagster as dg
import pytest

from tests.dagster.test_sensors import TOPIC, Site, add_topic
from tests.support.default_cluster import CLUSTER
from tests.support.lineage_server import lineage_server
from tests.support.lineage_spec import problems
from tests.support.sim_clients import Process
from tests.support.sim_world import World
from tests.support.stored_schemas import Registry
from tiering_assets.batch.pipeline import offload_batch
from tiering_assets.catalogue.scan import scan as scanning
from tiering_assets.catalogue.upkeep import keep as keeping
from tiering_assets.catalogue.view import Catalogue, answer
from tiering_assets.defs.automation.catalogue import MISSING, OFF
from tiering_assets.look.topic.archived_schemas import archived_schemas
from tiering_assets.resources.settings import AutoSettings, CatalogueSettings
from tiering_assets.resources.settings_lineage import OpenLineageSettings


@pytest.fixture
def site(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    world = World(1)
    site = world.add_site("alpha", lag_s=None, bookkeeper_first=False)
    add_topic(site, TOPIC)
    stack = Process(world, "sensors", site).stack()
    settings = replace(
        stack.settings,
        auto=AutoSettings(enabled=True),
        catalogue=CatalogueSettings(root=str(tmp_path / "tables")),
    )
    with dg.DagsterInstance.ephemeral() as instance:
        yield Site(instance, world, site, replace(stack, settings=settings), None)


def states(site):
    found = answer(Catalogue.of(site.stack).opened(), "select ledger_id, state from ledgers")
    return {row["ledger_id"]: row["state"] for row in found.to_pylist()}


def test_tables_follow_what_topics_list_and_runs_write(site):
    said = site.tick("catalogue").skip_message
    assert "posted 0 pages up to 0; of 1 topics 1 were asked, 1 had moved, 2 ledgers" in said
    assert states(site) == {0: "sealed", 1: "open"}
    run = Process(site.world, "run", site.site).stack()
    offload_batch(run, [0], publish=False)
    run.book.close_page()
    said = site.tick("catalogue").skip_message
    assert "posted 2 pages up to 2; of 1 topics 1 were asked, 0 had moved" in said
    assert states(site) == {0: "verified", 1: "open"}
    assert CLUSTER.name in site.cursors["catalogue"]


def test_a_tick_goes_on_where_the_last_one_had_no_time_left(site, monkeypatch):
    for number in range(3):
        add_topic(site.site, f"t/ns/persistent/n{number}")
    monkeypatch.setattr(scanning, "_STATS", 1)
    site.set(tick_budget_s=1e-9)
    said = [site.tick("catalogue").skip_message for _ in range(4)]
    assert ["goes on behind" in one for one in said] == [True, True, True, False]
    assert len(states(site)) == 8
    assert "goes on behind t/ns/persistent/n0" in site.tick("catalogue").skip_message


def test_small_files_of_many_ticks_become_few(site, monkeypatch):
    monkeypatch.setattr(keeping, "SMALL_MAX", 3)
    for _ in range(6):
        add_topic(site.site, f"t/ns/persistent/n{site.world.rng.random()}")
        site.tick("catalogue")
    before = states(site)
    assert len(before) == 14
    tables = Catalogue.of(site.stack).opened()
    assert len(tables["topic_changes"].sizes) <= 4
    site.tick("catalogue")
    assert states(site) == before


def test_switched_off_it_posts_nothing(site, tmp_path):
    settings = site.stack.settings
    off = replace(settings, catalogue=replace(settings.catalogue, enabled=False))
    site.stack = replace(site.stack, settings=off)
    assert site.tick("catalogue").skip_message == OFF
    assert not (tmp_path / "tables").exists()


def test_without_its_package_nothing_is_posted_and_the_tick_says_which(site, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "deltalake", None)
    assert site.tick("catalogue").skip_message == MISSING.format("deltalake")
    assert not (tmp_path / "tables").exists()


def test_tables_that_cannot_be_read_fail_who_asks_them_and_no_other(site, tmp_path):
    site.tick("catalogue")
    for path in (tmp_path / "tables").glob("*/_delta_log/*.json"):
        path.write_text("no log\n")
    for name in ("catalogue", "ledger_rollover", "offload_threshold"):
        with pytest.raises(dg.Failure, match="cannot be opened"):
            site.tick(name)
    [told] = site.tick("stuck").asset_events
    assert "cannot be opened" in told.metadata["what"].value
    for name in ("verify_due", "backlog_due"):
        assert len(site.tick(name).run_requests) == 1


def offload(site):
    run = Process(site.world, "run", site.site).stack()
    offload_batch(run, [0])
    run.book.close_page()


def send_to(site, url):
    settings = replace(site.stack.settings, openlineage=OpenLineageSettings(url=url))
    site.stack = replace(site.stack, settings=settings)


def test_events_of_what_is_posted_are_sent(site):
    with lineage_server() as server:
        send_to(site, server.url)
        assert "they begin behind page 0" in site.tick("catalogue").skip_message
        offload(site)
        said = site.tick("catalogue").skip_message
        assert "posted 2 pages up to 2" in said
        assert said.endswith("4 OpenLineage events sent: told up to page 2")
        assert server.told[:2] == ["offload START 0", "offload COMPLETE 1"]
        assert [why for event in server.events for why in problems(event)] == []
        assert site.tick("catalogue").skip_message.endswith("told up to page 2")
        assert len(server.events) == 4


def test_a_dead_address_and_a_missing_client_fail_no_tick(site, monkeypatch):
    send_to(site, "http://127.0.0.1:9")  # nobody listens there
    site.tick("catalogue")
    offload(site)
    said = site.tick("catalogue").skip_message
    assert "posted 2 pages up to 2; of 1 topics" in said
    assert "no answer from 127.0.0.1" in said
    monkeypatch.setitem(sys.modules, "openlineage", None)
    said = site.tick("catalogue").skip_message
    assert "no OpenLineage events: openlineage.url is set, and package" in said
    assert states(site)[0] == "published"


def test_switched_off_a_tick_says_and_writes_nothing_of_events(site):
    offload(site)
    assert "OpenLineage" not in site.tick("catalogue").skip_message
    assert not any("openlineage" in one.key for one in site.stack.objects.list_objects())


def archived(site):
    found = archived_schemas(site.stack.book, TOPIC, lambda _key, _error: None)
    return [one.record.version for one in found]


def publish(site, ledger_id=0):
    run = Process(site.world, "run", site.site).stack()
    [done] = offload_batch(run, [ledger_id])
    assert done.state == "published"
    run.book.close_page()


def test_schemas_follow_a_publication(site):
    registry = Registry(site.site.cluster, "/schemas/t/ns/orders")
    registry.register(b"{}")
    site.tick("catalogue")
    assert archived(site) == []  # `schema archive --all` is for what was published before
    publish(site)
    site.tick("catalogue")
    assert archived(site) == [0]
    registry.register(b"[]")
    site.tick("catalogue")
    assert archived(site) == [0]  # until its next publication


def test_schemas_that_cannot_be_archived_delay_and_fail_nothing(site):
    site.tick("catalogue")
    site.site.cluster.metadata.put("/schemas/t/ns/orders", b"\xff")
    publish(site)
    assert "posted" in site.tick("catalogue").skip_message
    assert states(site)[0] == "published"
    posted = site.cursors["catalogue"]
    site.tick("catalogue")
    assert (
        json.loads(site.cursors["catalogue"])["schemas_page"] == json.loads(posted)["schemas_page"]
    )


def test_a_tick_without_time_goes_on_with_the_next_publication(site):
    other = "t/ns/persistent/payments"
    add_topic(site.site, other)
    for name in (TOPIC, other):
        path = f"/schemas/t/ns/{name.rpartition('/')[2]}"
        Registry(site.site.cluster, path).register(b"{}")
    site.tick("catalogue")
    publish(site)
    publish(site, 2)
    site.set(tick_budget_s=1e-9)
    found = []
    for _ in range(8):
        site.tick("catalogue")
        every = (archived_schemas(site.stack.book, n, lambda *_: None) for n in (TOPIC, other))
        found.append(sum(map(len, every)))
    assert sorted(set(found)) in ([0, 1, 2], [1, 2])
