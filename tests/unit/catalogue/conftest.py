import pytest

from tests.support.sim_scene import Scene
from tests.unit.catalogue.desk import Desk
from tiering_assets.catalogue.view import Catalogue
from tiering_assets.resources.table_place import TablePlace


class Booked(Scene):
    """One whose runs can be ended: they write their close pages then, as a command does."""

    def __init__(self):
        self.stacks = []
        super().__init__()

    def process(self, name="run"):
        stack = super().process(name)
        self.stacks.append(stack)
        return stack

    def end(self):
        for stack in self.stacks:
            stack.book.close_page()


@pytest.fixture
def scene():
    """One topic with a closed ledger 0; whatever a test does, no invariant may break."""
    scene = Booked()
    yield scene
    assert scene.world.monitor.found == []


@pytest.fixture
def desk():
    return Desk()


@pytest.fixture
def catalogue(tmp_path):
    """Tables in a folder: delta-rs is the real one."""
    return Catalogue(TablePlace(root=str(tmp_path / "catalogue"), options={}))
