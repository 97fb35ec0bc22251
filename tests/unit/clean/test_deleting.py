"""What is deleted is what was named, and what is told of it is what happened."""

from uuid import UUID

import pytest

from tests.support.sim_scene import TOPIC, Scene
from tiering_assets.clean.deleting import Going, delete_leavings, record_swept
from tiering_assets.ground.evidence import Effect, Kind
from tiering_assets.ground.stack import asking
from tiering_assets.offload_format.keys import data_key, index_key
from tiering_assets.records import keys
from tiering_assets.records.sweep_models import NamedVersion, Swept
from tiering_assets.resources.errors import ObjectStoreError

UID = UUID(int=9)
DATA, INDEX = data_key(UID, 7), index_key(UID, 7)  # of a ledger that nothing knows


@pytest.fixture
def scene():
    """Objects of an attempt: three bytes of data, two of index."""
    scene = Scene()
    scene.world.objects.put(DATA, b"abc")
    scene.world.objects.put(INDEX, b"de")
    return scene


def going(scene, *objects, versions=None):
    return Going(
        ledger_id=7,
        uid=UID,
        ml_name=TOPIC,
        objects=objects,
        uploads=(),
        intent="",
        effect=Effect.SWEEP,
        evidence=asking(scene.stack, *Kind),
        versions=versions,
    )


def there(scene):
    return [key for key in (DATA, INDEX) if scene.world.objects.peek(key) is not None]


def recorded(scene):
    return scene.stack.book.read(Swept, keys.swept(7, UID))


def refuse(scene, key, monkeypatch):
    """The store deletes everything else."""
    really = scene.world.objects.delete

    def delete(wanted, **how):
        if wanted == key:
            raise ObjectStoreError(f"{key}: locked")
        return really(wanted, **how)

    monkeypatch.setattr(scene.world.objects, "delete", delete)


def test_what_could_not_be_deleted_is_an_error_and_not_told_to_be_gone(scene, monkeypatch):
    refuse(scene, DATA, monkeypatch)
    with pytest.raises(ObjectStoreError, match=r"1 of 2 leavings of attempt .* locked"):
        delete_leavings(scene.stack, going(scene, DATA, INDEX))
    assert there(scene) == [DATA]
    assert recorded(scene) is None


def test_versions_go_of_the_key_that_they_were_named_of(scene):
    """A bucket without versions gives all of them one name."""
    named = (NamedVersion(DATA, "another"), NamedVersion(INDEX, "null"))
    done = delete_leavings(scene.stack, going(scene, DATA, INDEX, versions=named))
    assert there(scene) == [DATA]
    assert done.bytes_freed == 2


def test_why_versions_stay_is_told_whichever_key_they_are_of(monkeypatch):
    scene = next(s for s in map(Scene, range(50)) if s.world.objects._versioning)
    for key, body in ((DATA, b"abc"), (INDEX, b"de")):
        scene.world.objects.put(key, body)
    really = scene.world.objects.delete

    def delete(key, *, version_id=None):
        if key == INDEX and version_id is not None:
            raise ObjectStoreError("a lock until May")
        return really(key, version_id=version_id)

    monkeypatch.setattr(scene.world.objects, "delete", delete)
    done = delete_leavings(scene.stack, going(scene, DATA, INDEX))
    assert (done.bytes_freed, done.bytes_stay, done.why_stay) == (3, 2, "a lock until May")
    assert [one.key for one in done.stay] == [INDEX]


# ----- the record


def record(scene, *objects, freed):
    record_swept(scene.stack, going(scene, *objects), bytes_freed=freed, bytes_stay=0)
    return recorded(scene).record


def test_a_first_record_counts_once(scene):
    assert record(scene, DATA, freed=3).bytes_freed == 3


def test_what_came_late_is_added_to_it(scene):
    record(scene, DATA, freed=3)
    both = record(scene, DATA, INDEX, freed=2)
    assert (set(both.objects), both.bytes_freed) == ({DATA, INDEX}, 5)


def test_an_object_that_came_late_is_named_whether_or_not_its_size_is_known(scene):
    record(scene, DATA, freed=3)
    both = record(scene, INDEX, freed=None)
    assert (set(both.objects), both.bytes_freed) == ({DATA, INDEX}, 3)


def test_bytes_that_came_late_under_a_known_key_are_counted(scene):
    record(scene, DATA, freed=3)
    assert record(scene, DATA, freed=4).bytes_freed == 7


def test_a_run_that_found_nothing_left_changes_nothing(scene):
    first = record(scene, DATA, freed=3)
    scene.wait(60)
    assert record(scene, DATA, freed=0) == first
    assert record(scene, freed=None) == first
