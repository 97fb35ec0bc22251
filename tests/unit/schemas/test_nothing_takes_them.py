"""Clean-up, expired copies and forgotten ledgers leave archived schemas alone."""

from tests.support.sim_scene import TOPIC
from tests.support.stored_schemas import Registry
from tests.unit.retention.test_forget import OTHER, Gone
from tiering_assets.clean.sweep import sweep
from tiering_assets.records import keys
from tiering_assets.schemas.archive import archive_schemas


def schemas_of(gone):
    book = gone.scene.stack.book
    return {key: book.read_any(key).sha256 for key in book.keys(keys.SCHEMAS)}


def test_records_of_a_topic_that_is_gone_keep_its_schemas():
    gone = Gone()
    for name in (TOPIC, OTHER):
        path = f"/schemas/t/ns/{name.rpartition('/')[2]}"
        registry = Registry(gone.scene.cluster, path)
        registry.register(b"{}")
        registry.register(b"[]")
        archive_schemas(gone.scene.process("archive"), name, ())
    before = schemas_of(gone)
    assert len(before) == 4
    gone.scene.broker.delete_topic(TOPIC)
    gone.scene.wait(31 * 86400)
    sweep(gone.scene.process("sweep"), execute=True)
    gone.execute(gone.plan())
    assert gone.records(0) == []
    assert schemas_of(gone) == before
