"""Whose the objects are that no attempt of ours made: a broker's, another instance's, or nobody's
we know.
"""

from uuid import UUID

import pytest

from tests.support.sim_scene import TOPIC, Scene
from tiering_assets.clean import foreign
from tiering_assets.clean.clean_up import clean_up
from tiering_assets.clean.foreign import Owner
from tiering_assets.offload_format.keys import INSTANCE_KEY, data_key, index_key

UIDS = [UUID(int=number) for number in range(1, 4)]


@pytest.fixture
def scene():
    return Scene()


def put(scene, uid=UIDS[0], *, instance=None, key=data_key):
    metadata = {} if instance is None else {INSTANCE_KEY: instance}
    scene.world.objects.put(key(uid, 7), b"x" * 10, metadata=metadata)


def found(scene):
    return {
        one.pair[1]: (one.owner, one.detail)
        for one in clean_up(scene.process(), execute=True).foreign
    }


def test_a_brokers_whole_copy_is_its_topics(scene):
    assert scene.broker.offload(TOPIC)
    assert found(scene) == {scene.context().uid: (Owner.BROKER, TOPIC)}


@pytest.mark.parametrize(
    ("instance", "owner", "detail"),
    [
        (None, Owner.UNKNOWN, ""),
        ("another", Owner.OTHER_INSTANCE, "another"),
        ("alpha", Owner.NO_RECORD, ""),
    ],
)
def test_others_are_told_by_what_their_objects_say(scene, instance, owner, detail):
    put(scene, instance=instance)
    assert found(scene) == {UIDS[0]: (owner, detail)}


def test_an_object_that_goes_before_it_is_asked_is_unknown(scene, monkeypatch):
    put(scene, instance="another")
    monkeypatch.setattr(type(scene.world.objects), "head", lambda *_a, **_how: None)
    assert found(scene) == {UIDS[0]: (Owner.UNKNOWN, "")}


def test_an_upload_alone_cannot_be_asked(scene):
    scene.world.objects.create_upload(data_key(UIDS[0], 7), metadata={INSTANCE_KEY: "another"})
    assert found(scene) == {UIDS[0]: (Owner.UNKNOWN, "")}


def test_so_many_are_asked_and_no_more(scene, monkeypatch):
    monkeypatch.setattr(foreign, "ASKED_MAX", 2)
    asked = []
    really = type(scene.world.objects).head

    def head(store, key, *args, **how):
        if "-ledger-7" in key:
            asked.append(key)
        return really(store, key, *args, **how)

    monkeypatch.setattr(type(scene.world.objects), "head", head)
    for uid in UIDS:
        put(scene, uid, instance="another")
        put(scene, uid, key=index_key)
    assert found(scene) == {
        UIDS[0]: (Owner.OTHER_INSTANCE, "another"),
        UIDS[1]: (Owner.OTHER_INSTANCE, "another"),
        UIDS[2]: (Owner.UNKNOWN, "not asked, after 2 others"),
    }
    assert len(asked) == 2
