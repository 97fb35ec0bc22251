"""Streaming segments that Pulsar's own writer made, and the entries that it was given."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from struct import Struct
from typing import Any

from tiering_assets.offload_format.segments.decoder import decode_segment_index, walker_of

GOLDEN = Path(__file__).parents[1] / "golden" / "segments"
_ENTRY = Struct(">qqi")
Entries = dict[tuple[int, int], bytes]
"""Payloads by ledger and entry."""


@dataclass(frozen=True)
class GoldenSegment:
    """`said` is its part of the manifest; `refused` what a strict decoder has to refuse."""

    case: str
    said: dict[str, Any]
    settings: dict[str, Any]
    infos: dict[int, dict[str, Any]]

    def __str__(self) -> str:
        return f"{self.case}-{self.said['uuid'][:8]}"

    @property
    def refused(self) -> bool:
        return str(self.said.get("strict_decoder", "right")).startswith("REFUSED")

    @property
    def by_upstream(self) -> bool:
        return not self.case.startswith("own-")

    @property
    def data(self) -> bytes:
        return _read(self.case, self.said["data"]["file"])

    @property
    def index(self) -> bytes:
        return _read(self.case, self.said["index"]["file"])

    @property
    def entries(self) -> Entries:
        """Those that are its own, of what the writer was given."""
        given = given_entries(self.case)
        return {
            (one["ledger"], entry_id): given[one["ledger"], entry_id]
            for one in self.said["ranges"]
            for entry_id in range(one["first"], one["last"] + 1)
        }


def golden_segments() -> list[GoldenSegment]:
    found = []
    for path in sorted(GOLDEN.glob("*/manifest.json")):
        manifest = json.loads(path.read_text())
        infos = {int(ledger): info for ledger, info in manifest["ledger_infos"].items()}
        found += [
            GoldenSegment(path.parent.name, said, manifest["settings"], infos)
            for said in manifest["segments"]
        ]
    return found


def given_entries(case: str) -> Entries:
    name = "entries.bin" if (GOLDEN / case / "entries.bin").exists() else "entries.bin.gz"
    data, at, found = _read(case, name), 0, Entries()
    while at < len(data):
        ledger_id, entry_id, length = _ENTRY.unpack_from(data, at)
        at += _ENTRY.size
        found[ledger_id, entry_id] = data[at : at + length]
        at += length
    return found


def decoded_entries(index: bytes, data: bytes) -> Iterator[tuple[tuple[int, int], bytes]]:
    """All entries of a segment by its index, block by block; FormatError where it does not hold."""
    for block in decode_segment_index(index).blocks:
        walker = walker_of(block)
        for entry_id, payload in walker.feed(data[block.offset : block.offset + block.length]):
            yield (block.ledger_id, entry_id), bytes(payload)
        walker.finish()


def _read(case: str, name: str) -> bytes:
    data = (GOLDEN / case / name).read_bytes()
    return gzip.decompress(data) if name.endswith(".gz") else data
