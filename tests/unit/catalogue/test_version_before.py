"""The version before works in the bucket again, and the catalogue takes up what it wrote.

Owns: it is played by a run without a scribe, as it neither reads nor writes pages and tables.
"""

from dataclasses import replace
from datetime import timedelta

import pytest

from tests.support.fleet_compared import differences
from tests.support.sim_scene import TOPIC, is_released
from tests.support.two_checkers import second_opinion
from tests.unit.catalogue.conftest import Booked
from tiering_assets.audit.audit import audit_store
from tiering_assets.batch.pipeline import offload_batch
from tiering_assets.catalogue.post import post
from tiering_assets.catalogue.prove import prove
from tiering_assets.catalogue.scan.scan import scan
from tiering_assets.catalogue.upkeep.rebuild import rebuild
from tiering_assets.catalogue.view import Catalogue, answer
from tiering_assets.fleet.source import tables_to_ask
from tiering_assets.ground.record_book import RecordBook
from tiering_assets.records import keys
from tiering_assets.records.key_kinds import TABLES, is_record_key
from tiering_assets.resources.settings import CatalogueSettings

OURS = (  # as tables and a rebuild leave them beside the records
    f"{TABLES}1/ledgers/_delta_log/00000000000000000000.json",
    f"{TABLES}1/ledgers/part-00000.zstd.parquet",
    f"{TABLES}current.json",
)


@pytest.fixture
def scene():
    """Whoever writes no page breaks what the book promises, and nothing else."""
    scene = Booked()
    yield scene
    assert {one.invariant for one in scene.world.monitor.found} <= {"K3"}


@pytest.fixture
def asker(scene, tmp_path):
    """Who asks the catalogue. Its tables lie in a folder, as delta-rs knows no simulated store."""
    stack = scene.process("asker")
    tables = CatalogueSettings(root=str(tmp_path / "tables"))
    return replace(stack, settings=replace(stack.settings, catalogue=tables))


def before(scene, name):
    """A run of the version before."""
    stack = scene.process(name)
    return replace(stack, book=RecordBook(stack.objects, stack.instance))


def states(stack):
    rows = answer(Catalogue.of(stack).opened(), "select ledger_id, state from ledgers")
    return {row["ledger_id"]: row["state"] for row in rows.to_pylist()}


def test_it_goes_on_beside_pages_and_tables_and_what_it_wrote_is_posted_by_a_proof(scene, asker):
    second = scene.fill(TOPIC)
    scene.publish()
    scene.end()
    rebuild(asker)  # so that there is a current.json
    scan(asker, Catalogue.of(asker))
    for key in OURS[:2]:
        scene.stack.objects.put(scene.stack.book.prefix + key, b"a table", if_absent=True)
    pages = [*scene.stack.book.keys(keys.DAY_BOOK)]
    scene.past_the_lag()

    [outcome] = offload_batch(before(scene, "old-offload"), [second])
    assert outcome.state == "published"
    assert is_released(scene.release(stack=before(scene, "old-release")))
    assert [*scene.stack.book.keys(keys.DAY_BOOK)] == pages

    post(asker, Catalogue.of(asker))
    assert states(asker)[0] == "published"  # nobody has told of it yet
    prove(asker, Catalogue.of(asker))
    scan(asker, Catalogue.of(asker))
    assert (states(asker)[0], states(asker)[second]) == ("released", "published")
    assert tables_to_ask(asker, fresh=timedelta(hours=1)) is not None
    assert [*differences(asker)] == []


def test_tables_beside_the_records_are_no_finding_of_a_checker(scene):
    scene.publish()
    scene.end()
    stack = scene.stack
    for key in OURS:
        assert not is_record_key(key)
        stack.objects.put(stack.book.prefix + key, b"a table", if_absent=True)
    report = audit_store(stack.objects, stack.settings, instance=stack.instance)
    assert report.findings == []
    assert second_opinion(stack.objects, stack.instance) == (set(), 0)
