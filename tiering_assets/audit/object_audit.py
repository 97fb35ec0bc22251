"""Do the two objects hold what their certificate says? Heads, the index, and block by block.

Owns: a block is judged by the independent decoder and by both digests, in chunks of any size, so
that memory is bounded by a chunk. A fault names its block; the entry, too, where the frames show
it. A flipped payload byte breaks the block's digests alone: the certificate has none for single
entries.
"""

from __future__ import annotations

from hashlib import sha256

from tiering_assets.audit.attempt_sight import topic_of
from tiering_assets.audit.audit_findings import About, AuditFinding, FindingKind
from tiering_assets.audit.streams.stream_place import segment_name
from tiering_assets.look.ledger.verification import version_differences
from tiering_assets.offload_format.block import encode_block_header
from tiering_assets.offload_format.decoder import BlockWalker, decode_index
from tiering_assets.offload_format.digests import digest_of
from tiering_assets.offload_format.segments.block import SegmentBlock
from tiering_assets.offload_format.segments.decoder import decode_segment_index
from tiering_assets.records.models import BlockFacts, Certificate, ObjectFacts
from tiering_assets.records.stream_models import SegmentOffloaded
from tiering_assets.resources.bookkeeper.ledger_metadata import decode_index_ledger_metadata
from tiering_assets.resources.errors import FormatError
from tiering_assets.resources.object_store.store import ObjectHead

Proof = Certificate | SegmentOffloaded


def about_of(certificate: Proof, ledger_id: int | None = None) -> About:
    """Of a segment's certificate: that ledger of it, or its first one."""
    if isinstance(certificate, Certificate):
        return About(certificate.ledger.ledger_id, certificate.uid)
    of = segment_name(certificate.stream, certificate.number, topic_of(certificate.ml_name))
    first = certificate.ledgers[0].ledger_id if certificate.ledgers else None
    return About(first if ledger_id is None else ledger_id, None, of)


def judge_head(
    certificate: Proof, facts: ObjectFacts, head: ObjectHead | None, *, missed: str | None
) -> list[AuditFinding]:
    """Is the object there, and the certified version of it?

    `missed` says why one that is not there is missed; None where it went with its ledger.
    """
    about = about_of(certificate)
    if head is None:
        gone, found = f"{facts.size} bytes", f"nothing; {missed}"
        kind = FindingKind.OBJECT_MISSING
        return [] if missed is None else [about.finding(kind, facts.key, "object", gone, found)]
    return [
        about.finding(FindingKind.OBJECT_DIFFERS, facts.key, what, expected, found)
        for what, expected, found in version_differences(facts, head)
    ]


def judge_index(certificate: Certificate, body: bytes) -> list[AuditFinding]:
    """Every byte of the index, by its digest; then what it says, to name the block that is
    wrong.
    """
    about, key = about_of(certificate), certificate.index.key
    kind = FindingKind.INDEX_DIFFERS
    findings = []
    digest = sha256(body).hexdigest()
    if digest != certificate.index.sha256:
        want = certificate.index.sha256
        findings.append(about.finding(kind, key, "SHA-256", want, digest))
    try:
        index = decode_index(body)
        metadata = decode_index_ledger_metadata(index.ledger_metadata)
    except FormatError as error:
        return [*findings, about.finding(kind, key, "index", "one that decodes", error)]
    facts = certificate.ledger
    findings += [
        about.finding(kind, key, what, expected, found)
        for what, expected, found in (
            ("data object length", certificate.data.size, index.data_object_length),
            ("blocks", len(certificate.blocks), len(index.entries)),
            ("last entry", facts.last_entry_id, metadata.last_entry_id),
            ("ledger length", facts.length, metadata.length),
        )
        if expected != found
    ]
    for block, entry in zip(certificate.blocks, index.entries, strict=False):
        want_row = (block.first_entry_id, block.part_number, block.offset)
        if want_row != tuple(entry):
            findings.append(
                about.finding(
                    kind,
                    key,
                    "first entry, part number, offset",
                    want_row,
                    tuple(entry),
                    block=block.part_number,
                )
            )
    return findings


def judge_segment_index(proof: SegmentOffloaded, body: bytes) -> list[AuditFinding]:
    """Every byte of a segment's index, by its digest; then what it says of ledgers and blocks."""
    about, key, kind = about_of(proof), proof.index.key, FindingKind.INDEX_DIFFERS
    digest = sha256(body).hexdigest()
    wanted: list[tuple[About, str, object, object, int | None]] = [
        (about, "SHA-256", proof.index.sha256, digest, None)
    ]
    try:
        index = decode_segment_index(body)
    except FormatError as error:
        wanted.append((about, "index", "one that decodes", error, None))
    else:
        named = [one.ledger_id for one in proof.ledgers]
        wanted += [
            (about, "data object length", proof.data.size, index.data_object_length, None),
            (about, "ledgers", named, [one.ledger_id for one in index.ledgers], None),
        ]
        for want, have in zip(proof.ledgers, index.ledgers, strict=False):
            of_ledger = about_of(proof, want.ledger_id)
            held = (want.info_hex, want.last_entry_id + 1, want.bytes_upto)
            said = (have.info.hex(), have.entries, have.size)
            wanted.append((of_ledger, "LedgerInfo (bytes, entries, size)", held, said, None))
            wanted.append((of_ledger, "blocks", len(want.blocks), len(have.blocks), None))
            for block, place in zip(want.blocks, have.blocks, strict=False):
                row = (block.first_entry_id, block.part_number, block.offset)
                found = (place.first_entry_id, place.part_number, place.offset)
                what = "first entry, part number, offset"
                wanted.append((of_ledger, what, row, found, block.part_number))
    return [
        which.finding(kind, key, what, expected, found, block=block)
        for which, what, expected, found, block in wanted
        if expected != found
    ]


class BlockAudit:
    """Judges one block: `feed` its bytes in order, as many as there are, then `finish`.

    `ledger_id` is that of a segment's block, which has it in its header.
    """

    def __init__(self, certificate: Proof, block: BlockFacts, ledger_id: int | None = None) -> None:
        self._certificate, self._block, self._ledger_id = certificate, block, ledger_id
        self._walker = BlockWalker(
            block_length=block.block_length,
            first_entry_id=block.first_entry_id,
            entries_expected=block.last_entry_id - block.first_entry_id + 1,
            offset=block.offset,
            ledger_id=ledger_id,
        )
        self._bytes, self._length = sha256(), 0
        self._entries = digest_of(certificate.block_digest, _header(block, ledger_id))
        self._broken: FormatError | None = None

    def feed(self, chunk: bytes) -> None:
        self._bytes.update(chunk)
        self._length += len(chunk)
        if self._broken is not None:
            return
        try:
            for entry_id, payload in self._walker.feed(chunk):
                self._entries.update(entry_id, payload)
        except FormatError as error:
            self._broken = error

    def finish(self) -> list[AuditFinding]:
        """All differences of this block."""
        about, key = about_of(self._certificate, self._ledger_id), self._certificate.data.key
        block = self._block
        kind, number = FindingKind.BLOCK_DIFFERS, block.part_number
        if self._broken is None:
            try:
                self._walker.finish()
            except FormatError as error:
                self._broken = error
        findings = []
        if self._broken is not None:
            entry = min(block.first_entry_id + self._entries.entries, block.last_entry_id)
            decodes = "one that decodes"
            findings.append(
                about.finding(kind, key, "block", decodes, self._broken, block=number, entry=entry)
            )
        wanted: list[tuple[str, object, object]] = [
            ("length", block.block_length, self._length),
            ("SHA-256", block.sha256, self._bytes.hexdigest()),
        ]
        if self._broken is None:
            wanted += [
                ("payload bytes", block.payload_bytes, self._entries.payload_bytes),
                ("entries digest", block.entries_sha256, self._entries.hexdigest()),
            ]
        return findings + [
            about.finding(kind, key, what, expected, found, block=number)
            for what, expected, found in wanted
            if expected != found
        ]


def _header(block: BlockFacts, ledger_id: int | None) -> bytes:
    if ledger_id is None:
        return encode_block_header(
            block_length=block.block_length, first_entry_id=block.first_entry_id
        )
    return SegmentBlock(
        ledger_id=ledger_id,
        part_number=block.part_number,
        first_entry_id=block.first_entry_id,
        last_entry_id=block.last_entry_id,
        offset=block.offset,
        block_length=block.block_length,
        payload_bytes=block.payload_bytes,
    ).header()
