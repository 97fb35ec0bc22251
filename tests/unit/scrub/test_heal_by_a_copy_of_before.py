"""A heal that was killed goes on with the copy that it had certified, while that is still what it
was.
"""

from hashlib import sha256

import pytest

from tests.support.sim_scene import TOPIC, Scene
from tiering_assets.look.ledger.quarantine import quarantine
from tiering_assets.scrub import heal
from tiering_assets.scrub.heal import Healed, heal_topic


class _KilledError(Exception):
    pass


@pytest.fixture
def certified(monkeypatch):
    """Ledger 0's copy is broken; a heal has certified another one and was killed before it
    published.
    """
    scene = Scene()
    published = scene.publish().certificate
    assert published is not None
    broken = published.record
    scene.world.monitor.damaged.add(broken.uid)
    scene.world.rot(broken.data.key)
    quarantine(scene.stack, 0, broken.uid, ml_name=TOPIC, reason="rot", previous=broken.previous)
    given = []

    def killed(_stack, _ml_name, certificates, *_rest):
        given.append(certificates[0].record)
        raise _KilledError

    with monkeypatch.context() as patch:
        patch.setattr(heal, "_publish", killed)
        with pytest.raises(_KilledError):
            heal_topic(scene.process(), TOPIC, {0: broken.uid})
    scene.wait(2 * 86400)
    return scene, broken.uid, given[0]


def test_it_is_published_as_it_is(certified):
    scene, broken, record = certified
    result = heal_topic(scene.process(), TOPIC, {0: broken})[0]
    assert isinstance(result, Healed), result
    assert result.uid == record.uid


@pytest.mark.parametrize("changed", ["data", "index"])
@pytest.mark.parametrize("gone", [False, True])
def test_one_that_changed_is_copied_anew(certified, changed, gone):
    scene, broken, record = certified
    key = getattr(record, changed).key
    scene.world.monitor.damaged.add(record.uid)
    if gone:
        scene.world.objects.delete(key)
    else:
        scene.world.objects.overwrite(key, scene.world.objects.peek(key)[0] + b"!")
    result = heal_topic(scene.process(), TOPIC, {0: broken})[0]
    assert isinstance(result, Healed), result
    assert scene.context().uid == result.uid
    if changed == "index" and gone:
        # The resumed attempt wrote it again, from what it was made of.
        assert sha256(scene.world.objects.get(key).body).hexdigest() == record.index.sha256
    else:
        assert result.uid != record.uid
