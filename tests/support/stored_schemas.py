"""Schemas of topics as brokers store them, byte by byte by the field numbers of upstream's .proto.

Shares no code with resources/pulsar/schema_storage.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256

from tests.support.sim_cluster import SimCluster

AVRO, PROTOBUF, STRING, INT32 = 5, 4, 2, 9  # SchemaRegistryFormat.SchemaType


def varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def number(field_number: int, value: int) -> bytes:
    return varint(field_number << 3) + varint(value & (2**64 - 1))


def chunk(field_number: int, value: bytes) -> bytes:
    return varint(field_number << 3 | 2) + varint(len(value)) + value


def schema_info(
    kind: int,
    definition: bytes,
    properties: Mapping[str, str] | None = None,
    *,
    at_ms: int = 1,
    deleted: bool = False,
) -> bytes:
    """SchemaInfo of SchemaRegistryFormat.proto."""
    said = (
        chunk(7, chunk(1, k.encode()) + chunk(2, v.encode())) for k, v in (properties or {}).items()
    )
    return b"".join(
        (
            chunk(1, b"t/ns/orders"),
            chunk(2, b""),
            number(3, kind),
            chunk(4, definition),
            number(5, at_ms),
            number(6, int(deleted)),
            *said,
        )
    )


def index_entry(version: int, ledger_id: int, entry_id: int, digest: bytes) -> bytes:
    place = number(1, ledger_id) + number(2, entry_id)
    return number(1, version) + chunk(2, place) + chunk(3, digest)


def schema_entry(info: bytes, index: Sequence[bytes] = ()) -> bytes:
    """SchemaEntry of SchemaStorageFormat.proto."""
    return chunk(2, info) + b"".join(chunk(5, one) for one in index)


def locator(index: Sequence[bytes]) -> bytes:
    """SchemaLocator: the newest, then all of them."""
    return chunk(1, index[-1]) + b"".join(chunk(2, one) for one in index)


@dataclass
class Registry:
    """The schemas of one topic in a simulated cluster. `ledgers` are those of its entries."""

    cluster: SimCluster
    path: str
    index: list[bytes] = field(default_factory=list)
    ledgers: list[int] = field(default_factory=list)

    def register(
        self,
        definition: bytes,
        kind: int = AVRO,
        properties: Mapping[str, str] | None = None,
        *,
        version: int | None = None,
        deleted: bool = False,
        closes: bool = True,
    ) -> int:
        """Store one more version; its ledger stays open where the broker died before closing it."""
        version = len(self.index) if version is None else version
        ledger_id = self.cluster.create_ledger("schema")
        info = schema_info(kind, definition, properties, deleted=deleted)
        self.cluster.append(ledger_id, [schema_entry(info, self.index)])
        if closes:
            self.cluster.close_ledger(ledger_id)
        digest = b"" if deleted else sha256(definition).digest()
        self.index.append(index_entry(version, ledger_id, 0, digest))
        self.ledgers.append(ledger_id)
        self._write()
        return version

    def delete(self) -> None:
        """As an admin deletes it: a version that says so."""
        self.register(b"", 1, deleted=True)

    def forget(self) -> None:
        """As a broker that deletes the topic: node, ledgers and all."""
        del self.cluster.metadata.nodes[self.path]
        for ledger_id in self.ledgers:
            self.cluster.delete_ledger(ledger_id)
        self.cluster.collect()
        self.index, self.ledgers = [], []

    def _write(self) -> None:
        nodes, data = self.cluster.metadata.nodes, locator(self.index)
        if self.path not in nodes:
            self.cluster.metadata.put(self.path, data)
        else:
            version = nodes[self.path].stat.version
            self.cluster.metadata.client().set(self.path, data, expected_version=version)
