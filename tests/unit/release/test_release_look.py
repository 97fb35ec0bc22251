"""A look at one ledger: a second one in the same run reads again only what shows another
version.
"""

from collections import Counter
from dataclasses import replace

import pytest
from cryptography.hazmat.primitives import serialization as pem
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from tests.support.sim_scene import TOPIC, Scene
from tiering_assets.change.disturb import see
from tiering_assets.ground.evidence import Kind
from tiering_assets.look.topic.topic_evidence import find_shadows
from tiering_assets.records.signature import PublicKeys
from tiering_assets.release.look import gather_topic, look_at_ledger


@pytest.fixture
def scene():
    return Scene()


@pytest.fixture
def due(scene):
    certificate = scene.publish().certificate
    scene.past_the_lag()
    return certificate.record


@pytest.fixture
def reads(scene, monkeypatch):
    """How often each object was read, but not how often it was asked for its head."""
    found: Counter[str] = Counter()
    store = type(scene.world.objects)
    for name in ("get", "get_range"):
        really = getattr(store, name)

        def read(self, key, *args, _really=really, **how):
            found[key] += 1
            return _really(self, key, *args, **how)

        monkeypatch.setattr(store, name, read)
    return found


@pytest.fixture
def look(scene, due, reads):
    """Looks at ledger 0, behind another look if one is given."""
    stack = scene.process("release")
    topic, _node = stack.topics.read(TOPIC)
    about = gather_topic(stack, TOPIC, topic, find_shadows(stack), see(stack, TOPIC))

    def look(before=None, *, settings=stack.settings, **surroundings):
        asking = replace(stack, settings=settings)
        return look_at_ledger(asking, replace(about, **surroundings), 0, before, hold=None)

    return look


def write_again(scene, key):
    body, metadata = scene.world.objects.peek(key)
    scene.wait(5)
    scene.world.objects.put(key, body, metadata=metadata)


def test_a_second_look_reads_neither_object_again(look, due, reads):
    first = look()
    assert reads[due.index.key] == 1
    assert reads[due.data.key] > 0
    reads.clear()
    second = look(first)
    assert reads[due.index.key] == reads[due.data.key] == 0
    assert second.index_now is first.index_now
    assert second.index_body is first.index_body


def test_a_data_object_of_another_time_has_its_headers_read_again(scene, look, due, reads):
    first = look()
    write_again(scene, due.data.key)
    reads.clear()
    look(first)
    assert reads[due.data.key] > 0
    assert reads[due.index.key] == 0


def test_an_index_of_another_time_is_read_again_and_the_headers_too(scene, look, due, reads):
    first = look()
    write_again(scene, due.index.key)
    reads.clear()
    look(first)
    assert reads[due.index.key] == 1
    assert reads[due.data.key] > 0


def test_an_index_that_could_not_be_read_before_is_read_with_what_else_is(scene, look, due):
    scene.world.objects.move(due.index.key, "GLACIER")
    first = look()
    assert first.index_body is None
    scene.world.objects.move(due.index.key, "STANDARD")
    write_again(scene, due.data.key)
    second = look(first)
    assert second.index_body is not None
    assert second.index_now.agrees


def test_the_bytes_count_as_read_only_where_nobody_reads_them_again(scene, look):
    settings = scene.stack.settings
    believing = replace(settings, release=replace(settings.release, reread_without_key=False))
    assert Kind.BYTES not in look().evidence.asked_at_s
    assert Kind.BYTES in look(settings=believing).evidence.asked_at_s


def test_a_certificate_that_nobody_signed_is_at_fault_where_keys_are_configured(look):
    key = Ed25519PrivateKey.from_private_bytes(bytes(32)).public_key()
    keys = PublicKeys([key.public_bytes(pem.Encoding.PEM, pem.PublicFormat.SubjectPublicKeyInfo)])
    assert look().facts.certificate_faults == ()
    assert look(public_keys=keys).facts.certificate_faults == (
        "the certificate does not count: it is not signed",
    )
