"""A look at a simulated cluster whose catalogue has all that was written."""

from contextlib import ExitStack

import pytest

from tests.unit.lineage.conftest import catalogue, desk, posted, scene
from tiering_assets.catalogue.scan.scan import scan
from tiering_assets.catalogue.view import least
from tiering_assets.notebook.look import ClusterLook

__all__ = ["catalogue", "desk", "posted", "scene"]


@pytest.fixture
def looking(scene, catalogue, posted):
    def now():
        posted()
        scan(scene.stack, catalogue)
        tables = catalogue.opened()
        as_of = least(catalogue, tables)
        return ClusterLook(stack=scene.stack, tables=tables, as_of=as_of, _opened=ExitStack())

    return now
