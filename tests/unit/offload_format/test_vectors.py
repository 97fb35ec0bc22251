"""Whole objects given as SHA-256, computed from the format's description by another hand."""

from hashlib import sha256

import pytest

from tests.support.layouts import plan_layout_from_sizes
from tiering_assets.offload_format.encoder import BlockEncoder, encode_index

# BookKeeper's LedgerMetadataFormat up to the ledger's length, and from the state on.
METADATA_HEAD = bytes.fromhex("08021002")
METADATA_TAIL = bytes.fromhex(
    "280332200a0d626f6f6b69652d313a333138310a0d626f6f6b69652d323a3331383110003803480250"
    "80d095ffbc315a1b0a09636f6d706f6e656e74120e6d616e616765642d6c65646765725a340a1570756c7361722f6d"
    "616e616765642d6c6564676572121b7075626c69632f64656661756c742f70657273697374656e742f745a150a0b61"
    "70706c69636174696f6e120670756c736172"
)


@pytest.mark.parametrize(
    ("entries", "block_bytes_max", "metadata_hex", "data_sha256", "index_sha256"),
    [
        pytest.param(
            [b"hello", b"", b"world!!"],
            64 * 1024 * 1024,
            "180c2002",
            "dfe4ad5f026b12557c49043458428fd9ebd70c67da5eacc55444e3607f54e342",
            "82ee6bdfe48d3a35a899293c22ed67e5a58b27e9729864d2abf8b7b4d3fc87c9",
            id="A",
        ),
        pytest.param(
            [b"A" * 50, b"B" * 50, b"C" * 50, b"D" * 50, b"E" * 50],
            256,
            "18fa012004",
            "a06022ba4bc976008ed9169fa10328aef6bdedd0ffc7183d730c8b4785a64519",
            "b2c35213b11f1c1f6a7ff7e8d33b65d86a88f77090cf27afcd5515b73dc1d7e3",
            id="B",
        ),
        pytest.param(
            [b"x" * 50, b"y" * 51],
            193,
            "18652001",
            "cbf45037832f7702ca4ac01a2ef58675a80a4310938ebde76ed5c2393f7ab067",
            "057e5e851fdd45543004ad840ad4e8ade08bd0f7bf93dcc21e4d5a18d79b999b",
            id="C",
        ),
    ],
)
def test_vector(entries, block_bytes_max, metadata_hex, data_sha256, index_sha256):
    plans = plan_layout_from_sizes(
        [len(entry) for entry in entries], block_bytes_max=block_bytes_max
    )
    encoder = BlockEncoder(bytearray(b"\xaa" * 1000))  # what a block before this one left behind
    data = b""
    for plan in plans:
        encoder.begin(plan)
        for entry_id in range(plan.first_entry_id, plan.last_entry_id + 1):
            encoder.add(entry_id, entries[entry_id])
        data += encoder.finish()
    assert sha256(data).hexdigest() == data_sha256
    metadata = METADATA_HEAD + bytes.fromhex(metadata_hex) + METADATA_TAIL
    assert sha256(encode_index(plans, metadata, len(data))).hexdigest() == index_sha256
