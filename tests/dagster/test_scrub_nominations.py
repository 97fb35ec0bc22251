"""The job `scrub` looks at what rows nominate, once the catalogue is proven and the fleet large."""

from dataclasses import replace

import pytest

from tests.dagster.test_nominations import catch_up, plant, proven, run  # noqa: F401 - a fixture
from tests.dagster.test_sensors import TOPIC, site  # noqa: F401 - a fixture
from tests.support.default_cluster import SCRUBBED_LEDGERS
from tests.support.sim_clients import Process
from tests.support.sim_dagster import hand_out
from tiering_assets.batch.pipeline import offload_batch
from tiering_assets.definitions import defs
from tiering_assets.defs import nominated_copies
from tiering_assets.ground.record_book import RecordBook
from tiering_assets.look.ledger.resume import attempts_of
from tiering_assets.offload_format.keys import data_key

NODE = SCRUBBED_LEDGERS.to_python_identifier()
DAY_S = 24 * 3600
OF_LISTING = {"deferred", "ledgers", "looked", "oldest_deep_seconds", "removed_ledgers"}


@pytest.fixture
def large(proven, monkeypatch):  # noqa: F811
    """A published copy in a fleet that is taken for one that nobody lists."""
    run(proven, lambda stack: offload_batch(stack, [0]))
    proven.later(2 * DAY_S)
    catch_up(proven)
    monkeypatch.setattr(nominated_copies, "LISTED_IN_THE_TIME", 0)
    return proven


@pytest.fixture
def listed(monkeypatch):
    """Folders that are listed as a whole from now on."""
    seen = []
    really = RecordBook.listed

    def listing(book, prefix, **how):
        seen.append(prefix)
        return really(book, prefix, **how)

    monkeypatch.setattr(RecordBook, "listed", listing)
    return seen


def scrubbed(site, monkeypatch, **config):  # noqa: F811
    """One run of the job; what it told of all copies."""
    stack = Process(site.world, "scrub", site.site).stack()
    said: list[str] = []
    stack = replace(stack, settings=site.stack.settings, narrate=said.append)
    with monkeypatch.context() as given:
        hand_out(given, stack)
        done = defs.resolve_job_def("scrub").execute_in_process(
            run_config={"ops": {NODE: {"config": config}}},
            instance=site.instance,
            raise_on_error=False,
        )
    stack.book.close_page()
    catch_up(site)
    [told] = done.asset_materializations_for_node(NODE)
    return done.success, {name: one.value for name, one in told.metadata.items()}, said


def test_what_is_due_is_looked_at_without_a_listing_of_the_bucket(large, monkeypatch, listed):
    success, told, _said = scrubbed(large, monkeypatch)
    assert success
    assert (told["ledgers"], told["nominated"], told["looked"], told["not_due"]) == (1, 1, 1, 0)
    assert told["as_of"].startswith("as of page ")
    assert not {"scrubs/", "certificates/", "quarantines/", "damage/"} & {*listed}
    _success, told, _said = scrubbed(large, monkeypatch)
    assert (told["nominated"], told["looked"], told["deferred"]) == (0, 0, 0)


def test_what_is_broken_is_healed_and_told(large, monkeypatch):
    [attempt] = attempts_of(large.stack, 0)
    key = data_key(attempt.record.uid, 0)
    large.world.monitor.damaged.add(attempt.record.uid)
    large.world.monitor.excused.add(("alpha", 0))
    large.world.objects.delete(key)
    success, told, _said = scrubbed(large, monkeypatch)
    assert success
    assert (told["found_broken"], told["broken_ledgers"]) == (1, 0)  # rows of before the run
    success, told, _said = scrubbed(large, monkeypatch)
    assert success
    assert (told["found_broken"], told["broken_ledgers"]) == (0, 0)


def test_a_row_that_lies_is_told_and_posted_again(large, monkeypatch):
    scrubbed(large, monkeypatch)
    plant(large, 0, certified_at=None, verified_at=None, verified_depth=None, deep_at=None)
    success, told, said = scrubbed(large, monkeypatch)
    assert success
    assert (told["looked"], told["ledgers"]) == (0, 1)
    assert "1 nominated copies are not due: all copies are listed" in said
    assert "1 copies were not due, as the catalogue said" in said
    _success, told, _said = scrubbed(large, monkeypatch)
    assert told["nominated"] == 0


def test_topics_that_are_named_are_listed(large, monkeypatch, listed):
    _success, told, _said = scrubbed(large, monkeypatch, topics=["persistent://t/ns/orders"])
    assert "nominated" not in told
    assert "scrubs/" in listed
    assert told.keys() >= OF_LISTING


def test_a_small_fleet_is_listed(large, monkeypatch, listed):
    monkeypatch.setattr(nominated_copies, "LISTED_IN_THE_TIME", 20)
    _success, told, _said = scrubbed(large, monkeypatch)
    assert "nominated" not in told
    assert "scrubs/" in listed
    assert told.keys() >= OF_LISTING
