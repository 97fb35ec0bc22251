"""What the simulator says of a delete depends on what its process could know."""

import pytest

from tests.support.copies import Copy
from tests.support.sim_scene import TOPIC
from tiering_assets.offload_format.keys import data_key
from tiering_assets.scrub.scrub import scrub


def healed():
    """A copy that was found broken, and whose successor has been read for two hours."""
    copy = Copy()
    broken = copy.uid
    copy.flip()
    copy.scene.wait(86_400 * 90)
    scrub(copy.scene.process())
    assert copy.uid != broken
    copy.scene.fill(TOPIC)
    copy.scene.wait(7_200)
    return copy, broken


@pytest.mark.parametrize(("asks_again", "said"), [(False, []), (True, ["I16"])])
def test_a_replaced_copy_may_go_unless_it_was_known_that_the_topic_lost_the_ledger(
    asks_again, said
):
    copy, broken = healed()
    process = copy.scene.process("sweep")
    process.topics.read(TOPIC)
    copy.scene.wait(1)
    assert copy.scene.broker.trim(TOPIC) == copy.ledger_id
    copy.scene.wait(1)
    if asks_again:
        process.topics.read(TOPIC)
    monitor = copy.scene.world.monitor
    monitor.found.clear()
    process.objects.delete(data_key(broken, copy.ledger_id))
    assert [one.invariant for one in monitor.found if one.invariant == "I16"] == said
