"""What commands print of segments that they made."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from tiering_assets.cli.shared.output import human_bytes, print_line

if TYPE_CHECKING:
    from tiering_assets.records.stored import Stored
    from tiering_assets.records.stream_models import SegmentOffloaded


def segment_document(one: Stored[SegmentOffloaded]) -> dict[str, Any]:
    record, last = one.record, one.record.ledgers[-1]
    return {
        "number": record.number,
        "uid": record.uid,
        "entries": record.entries,
        "bytes": record.data.size,
        "last_position": f"{last.ledger_id}:{last.last_entry_id}",
        "offloaded_at": record.offloaded_at,
        "certificate": one.key,
    }


def print_segments(topic: str, segments: Iterable[Mapping[str, Any]]) -> None:
    for one in segments:
        print_line(
            f"{topic}: segment {one['number']}, {one['entries']:,} entries up to "
            f"{one['last_position']}, {human_bytes(one['bytes'])}, is proven"
        )
