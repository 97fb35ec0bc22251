"""Data and index objects in a simulated store, for a simulated broker and for the monitor."""

from __future__ import annotations

from itertools import accumulate
from uuid import UUID

from tests.support.layouts import plan_layout_from_sizes
from tests.support.object_store_sim import SimulatedObjectStore
from tiering_assets.offload_format.decoder import block_lengths, decode_index, iter_block_entries
from tiering_assets.offload_format.encoder import BlockEncoder, encode_index
from tiering_assets.offload_format.keys import (
    check_format_version,
    data_key,
    index_key,
    user_metadata,
)
from tiering_assets.resources.errors import FormatError

BLOCK_BYTES = 400


def entries_of(objects: SimulatedObjectStore, uid: UUID, ledger_id: int) -> list[bytes]:
    """Every entry of an attempt's two objects. FormatError when one is missing or damaged."""
    data = objects.served(data_key(uid, ledger_id))
    index = objects.served(index_key(uid, ledger_id))
    if data is None or index is None:
        raise FormatError(f"attempt {uid} of ledger {ledger_id}: an object is missing")
    for _body, metadata in (data, index):
        check_format_version(metadata)
    return decode_pair(data[0], index[0])


def decode_pair(data: bytes, index_body: bytes) -> list[bytes]:
    """Every entry, by the independent decoder."""
    index = decode_index(index_body)
    if index.data_object_length != len(data):
        raise FormatError("the index describes another data object")
    found: list[bytes] = []
    for block in block_lengths(index):
        expected = None if block.last_entry_id is None else block.last_entry_id + 1 - len(found)
        found += [
            bytes(payload)
            for _entry_id, payload in iter_block_entries(
                data[block.offset : block.offset + block.length],
                first_entry_id=block.first_entry_id,
                entries_expected=expected,
            )
        ]
    return found


def write_pair(
    objects: SimulatedObjectStore,
    *,
    uid: UUID,
    ledger_id: int,
    ml_name: str,
    payloads: list[bytes],
    metadata: bytes,
) -> None:
    """What a broker's own offloader writes of one ledger."""
    plans = plan_layout_from_sizes([len(p) for p in payloads], block_bytes_max=BLOCK_BYTES)
    body = b""
    for plan in plans:
        encoder = BlockEncoder(plan.block_length)
        encoder.begin(plan)
        encoder.add_many(
            plan.first_entry_id, payloads[plan.first_entry_id : plan.last_entry_id + 1]
        )
        body += bytes(encoder.finish())
    for key, part in (
        (data_key(uid, ledger_id), body),
        (index_key(uid, ledger_id), encode_index(plans, metadata, len(body))),
    ):
        role = "index" if key.endswith("-index") else "data"
        tags = user_metadata(
            role="index" if role == "index" else "data",
            ml_name=ml_name,
            software_version="4.0.8",
            git_sha="broker",
            instance="none",
        )
        objects.put(key, part, metadata=tags)


def cumulative(payloads: list[bytes]) -> list[int]:
    return list(accumulate(map(len, payloads)))
