"""A copy that a broker wrote is told of by its blocks, once a deep look has read all of it."""

from dataclasses import replace

import pytest

from tests.support.pulsar_entries import message
from tests.support.sim_scene import TOPIC
from tiering_assets.catalogue.columns import BLOCKS
from tiering_assets.catalogue.post import post
from tiering_assets.catalogue.scan.scan import scan
from tiering_assets.catalogue.upkeep import rebuild as rebuilding
from tiering_assets.catalogue.upkeep.rebuild import rebuild
from tiering_assets.catalogue.view import Catalogue, answer
from tiering_assets.lineage.find import blocks_of_ledgers
from tiering_assets.offload_format.keys import data_key
from tiering_assets.records import keys
from tiering_assets.resources.errors import CatalogueError
from tiering_assets.resources.settings import CatalogueSettings
from tiering_assets.scrub.scrub import scrub

TIME = 1_795_247_080_670
ENTRIES = [message(TIME + n, payload=b"hello %d" % n) for n in range(3)]


@pytest.fixture
def ledger(scene, posted, catalogue):
    """Offloaded by a broker, and seen so by a scan; nobody has looked at it."""
    scene.publish(0)
    found = scene.fill(TOPIC, *ENTRIES)
    assert scene.broker.offload(TOPIC)
    posted()
    scan(scene.stack, catalogue)
    return found


@pytest.fixture
def looked(scene, ledger, posted, catalogue):
    """After a deep look, which is posted."""
    scene.wait(60)
    assert scrub(scene.process("scrub"), deep=True).broken == []
    posted()
    scan(scene.stack, catalogue)
    return ledger


def test_before_a_deep_look_nothing_is_known_of_its_blocks(told, ledger):
    lines = told("message", f"{ledger}:0", code=CatalogueError.exit_code)
    assert "no deep look that read all of it" in "\n".join(lines)
    found = told.document("coverage", "t/ns/orders")
    assert found["ledgers"] == {"covered": 1, "on_bookies": 0, "by_brokers": 1, "in_work": 0}


def test_a_message_is_followed_to_its_bytes_and_who_read_them(told, looked, scene):
    uid = scene.context(looked).uid
    text = "\n".join(told("message", f"{looked}:1", "--show", "--prove"))
    for part in (
        f"{uid}-ledger-{looked}",
        "entries 0 to 2",
        "broker, and read back by run",
        f"proven: ledger {looked}, part 1: record: agrees",
        f"proven: ledger {looked}, part 1: object: agrees",
        "7 bytes: hello 1",
    ):
        assert part in text
    block = told.document("message", f"{looked}:1")["block"]
    assert (block["written_by"], block["certificate_sha256"]) == ("broker", None)
    assert (block["messages"], block["uid"]) == (3, str(uid))


def test_a_time_and_a_byte_are_found(told, looked, scene):
    found = told.document("topic", "t/ns/orders", "--at", "2026-11-21", "--prove")
    assert [one["ledger_id"] for one in found["blocks"] if one["written_by"] == "broker"] == [
        looked
    ]
    assert all(one["agrees"] for one in found["proof"])
    key = data_key(scene.context(looked).uid, looked)
    found = told.document("object", key, "--offset", 130)
    assert (found["belongs_to"], found["block"]["ledger_id"]) == ("entry", looked)


def test_coverage_compares_its_blocks_as_it_does_ours(told, looked):
    found = told.document("coverage", "t/ns/orders")
    assert found["ledgers"] == {"covered": 2, "on_bookies": 0, "by_brokers": 0, "in_work": 0}
    assert found["findings"] == 0


def test_a_block_of_it_that_is_there_twice_is_found(told, looked, posted):
    tables, _as_of = posted()
    blocks = tables["blocks"]
    row = answer(tables, f"select * from blocks where ledger_id = {looked}")
    assert blocks.append(row.cast(BLOCKS), mark=blocks.mark + 1, told={})
    lines = told("coverage", "t/ns/orders", "--prove", code=1)
    assert any(f"finding: ledger {looked}: duplicate: part 1" in line for line in lines)
    assert sum(line.startswith(f"proven: ledger {looked}") for line in lines) == 4


def test_a_look_that_comes_again_adds_no_block(scene, looked, catalogue, posted):
    before = answer(catalogue.opened(), "select * from blocks").num_rows
    scene.wait(60)
    scrub(scene.process("again"), deep=True)
    tables, _as_of = posted()
    assert answer(tables, "select * from blocks").num_rows == before
    assert len(blocks_of_ledgers(tables, [looked])) == 1


def test_a_record_or_object_that_is_gone_is_told(told, looked, scene):
    uid = scene.context(looked).uid
    scene.world.objects.delete(scene.stack.book.prefix + keys.broker_copy(looked, uid))
    lines = told("message", f"{looked}:0", "--prove", code=1)
    assert f"finding: ledger {looked}, part 1: record: it is not there" in "\n".join(lines)


def test_tables_made_anew_have_the_same_blocks(scene, looked, catalogue, tmp_path, monkeypatch):
    monkeypatch.setattr(rebuilding, "SHARD", 1)
    ask = "select * from blocks order by ledger_id, part"
    before = answer(catalogue.opened(), ask).to_pylist()
    assert {row["written_by"] for row in before} == {"tierkeeper", "broker"}
    place = CatalogueSettings(root=str(tmp_path / "anew"))
    stack = replace(scene.stack, settings=replace(scene.stack.settings, catalogue=place))
    post(stack, Catalogue.of(stack))
    rebuild(stack)
    assert answer(Catalogue.of(stack).opened(), ask).to_pylist() == before
