import pytest

from tests.support.metastore_contract import MetadataStoreContract
from tests.support.metastore_sim import Cluster
from tiering_assets.resources.errors import MetadataConflictError, MetadataUnknownError


@pytest.fixture
def cluster():
    return Cluster()


@pytest.fixture
def store(cluster):
    return cluster.client()


@pytest.fixture
def other(cluster):
    return cluster.client()


@pytest.fixture
def root():
    return "/root"


class TestSimulatedStore(MetadataStoreContract):
    pass


@pytest.mark.parametrize("applied", [True, False])
def test_a_lost_answer_tells_nothing(store, root, applied):
    store.create(root, b"0")
    store.lose_answer(applied=applied)
    with pytest.raises(MetadataUnknownError):
        store.set(root, b"1", expected_version=0)
    assert store.get(root).data == (b"1" if applied else b"0")


def test_a_new_session_refuses_what_the_old_one_read(store, root):
    store.create(root, b"0")
    store.create(f"{root}/mine", b"", ephemeral=True)
    node = store.get(root)
    store.drop_session()
    assert store.children(root) == []
    with pytest.raises(MetadataConflictError):
        store.set(root, b"1", expected_version=0, session_id=node.session_id)
