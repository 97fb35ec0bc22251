"""Do the two objects hold what their certificate says? Heads, the index, and block by block.

Owns: a block is judged by the independent decoder and by both digests, in chunks of any size, so
that memory is bounded by a chunk. A fault names its block; the entry, too, where the frames show
it. A flipped payload byte breaks the block's digests alone: the certificate has none for single
entries.
"""

from __future__ import annotations

from hashlib import sha256

from tiering_assets.audit.audit_findings import About, AuditFinding, FindingKind
from tiering_assets.look.ledger.verification import version_differences
from tiering_assets.offload_format.block import encode_block_header
from tiering_assets.offload_format.decoder import BlockWalker, decode_index
from tiering_assets.offload_format.digests import digest_of
from tiering_assets.records.models import BlockFacts, Certificate, ObjectFacts
from tiering_assets.resources.bookkeeper.ledger_metadata import decode_index_ledger_metadata
from tiering_assets.resources.errors import FormatError
from tiering_assets.resources.object_store.store import ObjectHead


def about_of(certificate: Certificate) -> About:
    return About(certificate.ledger.ledger_id, certificate.uid)


def judge_head(
    certificate: Certificate, facts: ObjectFacts, head: ObjectHead | None, *, missed: str | None
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


class BlockAudit:
    """Judges one block: `feed` its bytes in order, as many as there are, then `finish`."""

    def __init__(self, certificate: Certificate, block: BlockFacts) -> None:
        self._certificate, self._block = certificate, block
        self._walker = BlockWalker(
            block_length=block.block_length,
            first_entry_id=block.first_entry_id,
            entries_expected=block.last_entry_id - block.first_entry_id + 1,
            offset=block.offset,
        )
        self._bytes, self._length = sha256(), 0
        header = encode_block_header(
            block_length=block.block_length, first_entry_id=block.first_entry_id
        )
        self._entries = digest_of(certificate.block_digest, header)
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
        block, about, key = self._block, about_of(self._certificate), self._certificate.data.key
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
