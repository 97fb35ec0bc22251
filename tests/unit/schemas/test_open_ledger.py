"""What a schema's ledger is asked for, over the wire: one entry, without fencing, closed or not."""

from dataclasses import replace
from hashlib import sha256

import pytest

from tests.support.bookie_sim import BookieSim
from tests.support.sim_cluster import BOOKIE
from tests.support.sim_scene import TOPIC, Scene
from tests.support.stored_schemas import Registry
from tiering_assets.resources.bookkeeper.ledger import DigestType
from tiering_assets.resources.bookkeeper.ledger_metadata import encode_ledger_metadata
from tiering_assets.resources.bookkeeper.stored_entry import EntryCodec
from tiering_assets.schemas.archive import archive_schemas
from tiering_assets.tasks.point_reads import stored_points

ONE = b'{"type":"string"}'


@pytest.mark.parametrize("closes", [True, False])
@pytest.mark.parametrize("digest_type", [DigestType.CRC32C, DigestType.HMAC])
def test_one_entry_is_read_and_nothing_is_fenced(closes, digest_type):
    scene = Scene()
    registry = Registry(scene.cluster, "/schemas/t/ns/orders")
    registry.register(ONE, closes=closes)
    [ledger_id] = registry.ledgers
    node = scene.stack.ledgers.read(ledger_id)
    assert node is not None
    scene.cluster.metadata.client().set(
        node.path,
        encode_ledger_metadata(replace(node.metadata, digest_type=digest_type)),
        expected_version=node.stat.version,
    )
    [payload] = scene.cluster.bookies[ledger_id]
    codec = EntryCodec(ledger_id=ledger_id, digest_type=digest_type, password=b"")  # a broker's own
    with BookieSim(BOOKIE) as bookie:
        bookie.entries[ledger_id, 0] = codec.encode(
            entry_id=0, last_add_confirmed=-1, cumulative_length=len(payload), payload=payload
        )

        def open_points(settings, source):
            return stored_points(settings, replace(source, addresses={BOOKIE: bookie.address}))

        stack = scene.process("archive")
        bookies = replace(stack.settings.bookies, password="of other ledgers")
        stack = replace(
            stack,
            open_points=open_points,
            settings=replace(stack.settings, bookies=bookies),
        )
        [record] = archive_schemas(stack, TOPIC, ()).written
    assert record.sha256 == sha256(ONE).hexdigest()
    assert {(one.ledger_id, one.entry_id, one.flags) for one in bookie.seen} == {(ledger_id, 0, 0)}
