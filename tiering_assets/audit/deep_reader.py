"""Both objects of one attempt, or segment, by heads and by every byte, for object_audit.py.

Owns: data is read by ranges, so that memory is bounded by one of them; what was found and how much
was read is put into the report at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tiering_assets.audit.attempt_sight import object_seen
from tiering_assets.audit.audit_findings import About, AuditFinding, AuditReport, FindingKind
from tiering_assets.audit.audit_sights import ObjectSeen
from tiering_assets.audit.object_audit import (
    BlockAudit,
    Proof,
    about_of,
    judge_head,
    judge_index,
    judge_segment_index,
)
from tiering_assets.look.ledger.verification import inconsistencies
from tiering_assets.offload_format.layout import INDEX_BYTES_MAX
from tiering_assets.records.models import BlockFacts, Certificate
from tiering_assets.records.stream_models import SegmentOffloaded
from tiering_assets.resources.errors import ObjectStoreError
from tiering_assets.resources.garbage import no_collection
from tiering_assets.resources.object_store.store import ObjectHead, ObjectStore

Blocks = Sequence[tuple[int | None, BlockFacts]]
"""Each block with its ledger where it is one of a segment, which has that in its header."""


class ObjectReader:
    def __init__(
        self,
        objects: ObjectStore,
        report: AuditReport,
        *,
        range_bytes: int,
        narrate: Callable[[str], None],
    ) -> None:
        self._objects, self._report = objects, report
        self._range, self._narrate = range_bytes, narrate

    def look(self, certificate: Certificate, missed: str | None) -> tuple[ObjectSeen, ...]:
        """Judge both by their heads, and in a deep audit by their bytes.

        `missed` says why an object that is away is missed; None where it is not.
        """
        return self._look(
            certificate,
            missed,
            sound=not inconsistencies(certificate),
            blocks=[(None, block) for block in certificate.blocks],
        )

    def look_at_segment(self, proof: SegmentOffloaded, *, sound: bool) -> None:
        """The same for a segment, whose objects are missed wherever they are away.

        Bytes are read where its certificate is `sound`.
        """
        self._look(
            proof,
            "no record says that its objects may be gone",
            sound=sound,
            blocks=[(one.ledger_id, block) for one in proof.ledgers for block in one.blocks],
        )

    def _look(
        self, proof: Proof, missed: str | None, *, sound: bool, blocks: Blocks
    ) -> tuple[ObjectSeen, ...]:
        about = about_of(proof)
        both = (proof.data, proof.index)
        heads: dict[str, ObjectHead] = {}
        for facts in both:
            self._report.objects += 1
            try:
                head = self._objects.head(facts.key)
            except ObjectStoreError as error:
                self._say(about, facts.key, "an answer", error)
                continue
            self._report.findings += judge_head(proof, facts, head, missed=missed)
            if head is not None:
                heads[facts.key] = head
        if self._report.deep and sound:
            try:
                self._read(proof, blocks, heads)
            except ObjectStoreError as error:
                self._say(about, proof.data.key, "bytes", error)
        return tuple(object_seen(facts.key, heads.get(facts.key)) for facts in both)

    def _say(self, about: About, key: str, expected: str, found: ObjectStoreError) -> None:
        self._report.findings.append(
            about.finding(FindingKind.UNREADABLE, key, "reading it", expected, found)
        )

    def _read(self, proof: Proof, blocks: Blocks, heads: Mapping[str, ObjectHead]) -> None:
        """Those of both objects that are there. ObjectStoreError ends it where it is."""
        if proof.index.key in heads:
            self._read_index(proof)
        if proof.data.key in heads:
            self._read_data(proof, blocks, heads[proof.data.key])

    def _read_index(self, proof: Proof) -> None:
        stored = self._objects.get(proof.index.key, bytes_max=INDEX_BYTES_MAX)
        if stored is None:
            return
        self._report.bytes_read += len(stored.body)
        if isinstance(proof, Certificate):
            self._report.findings += judge_index(proof, stored.body)
        else:
            self._report.findings += judge_segment_index(proof, stored.body)

    def _read_data(self, proof: Proof, blocks: Blocks, head: ObjectHead) -> None:
        """Every byte that is there, by ranges; blocks that all fit make the whole's digest fit."""
        for ledger_id, block in blocks:
            audit = BlockAudit(proof, block, ledger_id)
            where = f"{head.key}: block {block.part_number} of {len(blocks)}"
            self._report.findings += self._read_block(audit, block, head, where)

    @no_collection()
    def _read_block(
        self, audit: BlockAudit, block: BlockFacts, head: ObjectHead, where: str
    ) -> list[AuditFinding]:
        end = min(block.offset + block.block_length, head.size)
        for start in range(block.offset, end, self._range):
            length = min(self._range, end - start)
            audit.feed(
                self._objects.get_range(
                    head.key, start=start, length=length, version_id=head.version_id
                )
            )
            self._report.bytes_read += length
            self._narrate(where)
        return audit.finish()
