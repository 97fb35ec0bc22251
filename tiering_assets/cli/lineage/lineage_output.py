"""How answers of lineage look: blocks, entries with their messages, and what a proof compared."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import typer

from tiering_assets.cli.shared.exit_codes import FINDINGS
from tiering_assets.cli.shared.output import (
    human_bytes,
    human_time,
    print_facts,
    print_line,
    print_table,
)
from tiering_assets.cli.terminal.columns import Column, ValueKind

if TYPE_CHECKING:
    from tiering_assets.lineage.placed_block import PlacedBlock
    from tiering_assets.lineage.proof_rules import TruthCompared
    from tiering_assets.lineage.shown_entry import ReadCost, ShownEntry
    from tiering_assets.offload_format.message_decoder import DecodedEntry, EntryMessage

PAYLOAD_SHOWN_MAX: Final = 1000  # characters of text, or bytes as hex; --json has all
_IN_TABLE_MAX: Final = 60


def print_block(block: PlacedBlock) -> None:
    """Everything that a row says, one fact a line."""
    print_facts(
        {
            "topic": block.topic,
            "ledger": f"{block.ledger_id}, {block.state}",
            "block": f"part {block.part}, entries {block.first_entry_id} to {block.last_entry_id}",
            "published": published(block),
            "messages": block.messages,
            "bucket": block.bucket,
            "object": block.data_key,
            "version": block.version_id,
            "bytes": f"{block.offset} to {block.end - 1} ({human_bytes(block.length)})",
            "sha256": block.sha256,
            "attempt": block.uid if block.counts else f"{block.uid}, not the one that counts",
            "written by": _written_by(block),
            "certificate": block.certificate_sha256,
            "bookie copy": block.bookie_copy,
        }
    )


def _written_by(block: PlacedBlock) -> str:
    if block.by_broker:
        return f"{block.written_by}, and read back by run {block.run_id}"
    return f"{block.written_by}, run {block.run_id}"


def published(block: PlacedBlock) -> str:
    if block.publish_min is None or block.publish_max is None:
        return "not known"
    return f"{human_time(block.publish_min)} to {human_time(block.publish_max)}"


def print_blocks(blocks: Sequence[PlacedBlock]) -> None:
    print_table(
        (
            Column("LEDGER", ValueKind.ID),
            Column("PART", ValueKind.ID),
            Column("FIRST ENTRY", ValueKind.NUMBER, weight=99),
            Column("LAST ENTRY", ValueKind.NUMBER, weight=99),
            Column("PUBLISHED FROM", ValueKind.TIME),
            Column("TO", ValueKind.TIME),
            Column("MESSAGES", ValueKind.NUMBER),
            Column("OFFSET", ValueKind.NUMBER),
            Column("BYTES", ValueKind.NUMBER),
            Column("OBJECT", ValueKind.TEXT),
        ),
        [
            (
                one.ledger_id,
                one.part,
                one.first_entry_id,
                one.last_entry_id,
                one.publish_min,
                one.publish_max,
                one.messages,
                one.offset,
                one.length,
                one.data_key,
            )
            for one in blocks
        ],
    )


def block_document(block: PlacedBlock) -> dict[str, Any]:
    return asdict(block)


def print_entry(entry: ShownEntry) -> None:
    """The entry, then its messages: one with all its facts, more as a table."""
    stored, decoded, messages = entry.stored, entry.decoded, entry.messages
    place = (
        f"{stored.entry_id}, {len(stored.payload)} bytes in a frame at byte {stored.offset}; "
        f"{cost_text(stored.cost)}"
    )
    if decoded is None:
        print_facts({"entry": place})
        print_line(f"finding: {entry.problem}", lead="finding")
        return
    print_facts(
        {
            "entry": place,
            "published at": _time(decoded.publish_time_ms),
            "producer": decoded.producer,
            "holds": holds(decoded),
            "checksum": _checksum(decoded),
        }
    )
    if len(messages) == 1:
        [only] = messages
        print_facts(_facts_of(only))
        return
    print_table(
        (
            Column("INDEX", ValueKind.ID),
            Column("SEQUENCE", ValueKind.NUMBER),
            Column("EVENT TIME", ValueKind.TIME),
            Column("KEY"),
            Column("BYTES", ValueKind.NUMBER),
            Column("PAYLOAD", ValueKind.TEXT, weight=99),
        ),
        [
            (
                one.batch_index,
                one.sequence_id,
                _time(one.event_time_ms),
                one.key,
                len(one.payload),
                shown(one, _IN_TABLE_MAX),
            )
            for one in messages
        ],
    )


def cost_text(cost: ReadCost) -> str:
    """What a read took."""
    return f"{cost.requests} requests for {cost.bytes_read} bytes, index cache {cost.index_cache}"


def _facts_of(message: EntryMessage) -> Mapping[str, object]:
    ordering = message.ordering_key
    return {
        "index": message.batch_index,
        "sequence id": message.sequence_id,
        "event time": _time(message.event_time_ms),
        "key": f"{message.key} (base64)" if message.key_is_base64 else message.key,
        "ordering key": None if ordering is None else ordering.hex(),
        "properties": ", ".join(f"{k}={v}" for k, v in message.properties.items()) or None,
        "payload": f"{len(message.payload)} bytes: {shown(message, PAYLOAD_SHOWN_MAX)}",
    }


def holds(decoded: DecodedEntry) -> str:
    """What is in an entry, in words."""
    one = "a message" if decoded.batch_size is None else f"a batch of {decoded.batch_size}"
    said = [one, f"codec {decoded.codec}"]
    if decoded.chunk is not None:
        number, of, uuid = decoded.chunk
        said = [f"chunk {number + 1} of {of} of message {uuid}, not joined", *said[1:]]
    if decoded.encrypted:
        said.append("encrypted, payload as stored")
    if decoded.marker is not None:
        said.append(f"a marker of type {decoded.marker}, which no consumer sees")
    if decoded.transaction is not None:
        said.append(f"of transaction {decoded.transaction[0]}:{decoded.transaction[1]}")
    return ", ".join(said)


def shown(message: EntryMessage, limit: int) -> str:
    """Text where it is text, else hex; cut, and said so."""
    if message.compacted_out:
        return "(compacted out)"
    if message.null_value:
        return "(null)"
    try:
        text = message.payload.decode()
    except UnicodeDecodeError:
        text = ""
    if text.isprintable() and (text or not message.payload):
        return text if len(text) <= limit else f"{text[:limit]}... ({len(text) - limit} more)"
    rest = len(message.payload) - limit
    return f"0x{message.payload[:limit].hex()}" + (f"... ({rest} more bytes)" if rest > 0 else "")


def entry_document(entry: ShownEntry) -> dict[str, Any]:
    """Payloads, ordering keys and schema versions are base64."""
    stored, decoded = entry.stored, entry.decoded
    found: dict[str, Any] = {
        "entry_id": stored.entry_id,
        "offset": stored.offset,
        "bytes": len(stored.payload),
        **asdict(stored.cost),
        "problem": entry.problem,
    }
    if decoded is None:
        return found | {"messages": [], "payload": _base64(stored.payload)}
    told = {name: value for name, value in asdict(decoded).items() if name != "messages"}
    return {
        **found,
        **told,
        "schema_version": _base64(decoded.schema_version),
        "messages": [
            {
                **asdict(one),
                "payload": _base64(one.payload),
                "ordering_key": _base64(one.ordering_key),
            }
            for one in entry.messages
        ],
    }


def print_proof(proof: Sequence[TruthCompared]) -> None:
    for one in proof:
        lead = "" if one.agrees else "finding"
        print_line(f"{'proven' if one.agrees else 'finding'}: {one.what}", lead=lead)


def end_by(proof: Sequence[TruthCompared], entry: ShownEntry | None = None) -> None:
    """Exit code 1 where the truth says something else, or an entry shows no message."""
    if not all(one.agrees for one in proof) or (entry is not None and entry.problem):
        raise typer.Exit(FINDINGS)


def _base64(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()


def _time(ms: int | None) -> str | None:
    """As text: an event time may be one that no calendar has."""
    try:
        return None if ms is None else human_time(datetime.fromtimestamp(ms / 1000, UTC))
    except (OverflowError, ValueError, OSError):
        return f"{ms} ms"


def _checksum(decoded: DecodedEntry) -> str:
    if decoded.checksum is None:
        return "none"
    return "fits" if decoded.checksum else "does not fit"
