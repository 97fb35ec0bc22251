"""A listing of the bucket names what attempts left, by attempt, and nothing else."""

from uuid import UUID

from tests.support.sim_scene import TOPIC, Scene
from tiering_assets.look.topic.bucket_listing import list_bucket
from tiering_assets.look.topic.contexts import read_contexts
from tiering_assets.offload_format.keys import data_key, index_key
from tiering_assets.resources.metastore.topics import TopicDirectory

PAIR = 7, UUID(int=9)
DATA, INDEX = data_key(PAIR[1], PAIR[0]), index_key(PAIR[1], PAIR[0])


def test_objects_and_uploads_are_listed_by_attempt():
    scene = Scene()
    objects = scene.world.objects
    objects.put(DATA, b"abc")
    objects.put(INDEX, b"de")
    objects.put("somebody/elses", b"x")
    upload = objects.create_upload(DATA, metadata={})
    objects.create_upload(INDEX, metadata={})  # nobody writes an index in parts
    objects.create_upload("somebody/elses", metadata={})
    found = list_bucket(scene.process())
    assert found.pairs() == {PAIR}
    assert found.keys_of(PAIR) == (DATA, INDEX)
    assert found.bytes_of(PAIR) == 5
    assert found.uploads_of(PAIR) == (upload,)


def test_an_upload_alone_is_listed_too():
    scene = Scene()
    upload = scene.world.objects.create_upload(DATA, metadata={})
    found = list_bucket(scene.process())
    assert (found.pairs(), found.uploads_of(PAIR)) == ({PAIR}, (upload,))


def test_a_topic_that_goes_while_all_are_read_names_nothing(monkeypatch):
    scene = Scene()
    scene.publish()
    uid = scene.context().uid
    really = TopicDirectory.read_all
    gone = [("t/ns/persistent/gone", None)]
    monkeypatch.setattr(TopicDirectory, "read_all", lambda topics: [*gone, *really(topics)])
    named = read_contexts(scene.process())
    assert [(pair, one.ml_name, one.complete) for pair, one in named.items()] == [
        ((0, uid), TOPIC, True)
    ]
