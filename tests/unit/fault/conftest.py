"""A quiet simulated cluster that a test brings into the state it wants; the monitor judges every
effect.
"""

import pytest

from tests.support.sim_scene import Scene


@pytest.fixture
def scene():
    """One topic with a closed ledger 0; whatever a test does, no invariant may break."""
    scene = Scene()
    yield scene
    assert scene.world.monitor.found == []
