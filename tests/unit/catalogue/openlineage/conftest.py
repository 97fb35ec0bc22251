import pytest

from tests.support.lineage_server import lineage_server
from tests.unit.catalogue.openlineage.outbox import Outbox


@pytest.fixture
def server():
    with lineage_server() as server:
        yield server


@pytest.fixture
def outbox(desk, catalogue, server):
    """Events are switched on, and have begun: everything that is written from now on is told."""
    outbox = Outbox(desk, catalogue, server.url)
    outbox.tell()
    return outbox
