"""What a run's survey remembers of publications is no evidence for its releases."""

import json

from tests.support.sim_scene import TOPIC, is_released
from tiering_assets.look.ledger.survey import survey
from tiering_assets.records import keys
from tiering_assets.resources.errors import FormatError


def test_a_publication_is_read_again_before_its_ledger_is_released(scene):
    scene.publish()
    scene.past_the_lag()
    stack = scene.process("release")
    assert list(survey(stack))
    key = stack.book.prefix + keys.publication(TOPIC, 1)
    record = json.loads(scene.world.objects.peek(key)[0])
    record["schema"] = "tierkeeper/publication/9"
    scene.world.objects.overwrite(key, json.dumps(record).encode())
    try:
        result = scene.release(stack=stack)
    except FormatError as error:
        result = error
    assert not is_released(result)
    assert scene.cluster.has_node(0)
