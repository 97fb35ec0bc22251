"""One ledger is followed over a simulated cluster, and a proof that broke is told by its name."""

import pytest

from tests.support.sim_scene import TOPIC, flip_reads
from tiering_assets.notebook import ledger_trail
from tiering_assets.notebook.frames import agreed
from tiering_assets.resources.errors import CatalogueError, IntegrityError

PROOFS = ("rows_agree", "bytes_agree", "records_follow", "release_agrees")


def all_agree(trail):
    return [said for name in PROOFS for said in agreed(getattr(ledger_trail, name)(trail))["what"]]


@pytest.fixture
def released(scene):
    scene.publish(0)
    scene.past_the_lag()
    scene.release()
    return 0


def test_a_published_ledger_is_on_bookies_and_in_the_bucket(scene, looking):
    ledger_id = scene.fill(TOPIC, b"one", b"two", b"three")
    scene.publish(ledger_id)
    trail = ledger_trail.follow(looking(), ledger_id)
    [row] = ledger_trail.on_bookies(trail).to_dict("records")
    assert (row["ledger_id"], row["entries"], row["bytes"]) == (ledger_id, 3, 11)
    assert ledger_trail.steps(trail)["step"].tolist()[-1] == "published"
    [block] = ledger_trail.blocks(trail).to_dict("records")
    assert (block["first_entry_id"], block["last_entry_id"]) == (0, 2)
    said = all_agree(trail)
    assert any("equal its certificate and the bookies" in one for one in said)
    assert f"ledger {ledger_id}: nobody released it by a record, and BookKeeper has it" in said


def test_a_released_one_is_gone_from_bookies_by_the_rules(looking, released):
    trail = ledger_trail.follow(looking())  # the newest one that was released
    assert trail.ledger_id == released
    assert trail.row["state"] == "released"
    assert ledger_trail.on_bookies(trail).empty
    assert ledger_trail.steps(trail)["step"].tolist()[-1] == "released"
    folders = [key.split("/")[0] for key in ledger_trail.records(trail)["record"]]
    assert folders == [
        "attempts",
        "certificates",
        "outcomes",
        "publications",
        "releases",
        "releases",
    ]
    said = all_agree(trail)
    assert f"ledger {released}: BookKeeper does not have it any more" in said
    assert any(one.endswith("by the rules") for one in said)


def test_a_byte_that_changed_ends_the_cell_of_its_proof(scene, looking, released, monkeypatch):
    trail = ledger_trail.follow(looking(), released)
    flip_reads(scene, monkeypatch, times=100)
    with pytest.raises(IntegrityError, match=r"do not agree: block 1: "):
        agreed(ledger_trail.bytes_agree(trail))


def test_a_ledger_that_nobody_published_is_not_chosen(scene, looking):
    with pytest.raises(CatalogueError, match="no published ledger is in the catalogue"):
        ledger_trail.follow(looking())
    with pytest.raises(CatalogueError, match="ledger 4711 is not in the catalogue"):
        ledger_trail.follow(looking(), 4711)
