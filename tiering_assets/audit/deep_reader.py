"""Both objects of one attempt, by their heads and by every byte, for the judges of object_audit.py.

Owns: data is read by ranges, so that memory is bounded by one of them; what was found and how much
was read is put into the report at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tiering_assets.audit.attempt_sight import object_seen
from tiering_assets.audit.audit_findings import About, AuditFinding, AuditReport, FindingKind
from tiering_assets.audit.audit_sights import ObjectSeen
from tiering_assets.audit.object_audit import BlockAudit, judge_head, judge_index
from tiering_assets.look.ledger.verification import inconsistencies
from tiering_assets.offload_format.layout import INDEX_BYTES_MAX
from tiering_assets.records.models import BlockFacts, Certificate
from tiering_assets.resources.errors import ObjectStoreError
from tiering_assets.resources.garbage import no_collection
from tiering_assets.resources.object_store.store import ObjectHead, ObjectStore


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
        about = About(certificate.ledger.ledger_id, certificate.uid)
        both = (certificate.data, certificate.index)
        heads: dict[str, ObjectHead] = {}
        for facts in both:
            self._report.objects += 1
            try:
                head = self._objects.head(facts.key)
            except ObjectStoreError as error:
                self._say(about, facts.key, "an answer", error)
                continue
            self._report.findings += judge_head(certificate, facts, head, missed=missed)
            if head is not None:
                heads[facts.key] = head
        if self._report.deep and not inconsistencies(certificate):
            try:
                self._read(certificate, heads)
            except ObjectStoreError as error:
                self._say(about, certificate.data.key, "bytes", error)
        return tuple(object_seen(facts.key, heads.get(facts.key)) for facts in both)

    def _say(self, about: About, key: str, expected: str, found: ObjectStoreError) -> None:
        self._report.findings.append(
            about.finding(FindingKind.UNREADABLE, key, "reading it", expected, found)
        )

    def _read(self, certificate: Certificate, heads: Mapping[str, ObjectHead]) -> None:
        """Those of both objects that are there. ObjectStoreError ends it where it is."""
        if certificate.index.key in heads:
            self._read_index(certificate)
        if certificate.data.key in heads:
            self._read_data(certificate, heads[certificate.data.key])

    def _read_index(self, certificate: Certificate) -> None:
        stored = self._objects.get(certificate.index.key, bytes_max=INDEX_BYTES_MAX)
        if stored is not None:
            self._report.bytes_read += len(stored.body)
            self._report.findings += judge_index(certificate, stored.body)

    def _read_data(self, certificate: Certificate, head: ObjectHead) -> None:
        """Every byte that is there, by ranges; blocks that all fit make the whole's digest fit."""
        for block in certificate.blocks:
            self._report.findings += self._read_block(certificate, block, head)

    @no_collection()
    def _read_block(
        self, certificate: Certificate, block: BlockFacts, head: ObjectHead
    ) -> list[AuditFinding]:
        audit = BlockAudit(certificate, block)
        end = min(block.offset + block.block_length, head.size)
        for start in range(block.offset, end, self._range):
            length = min(self._range, end - start)
            audit.feed(
                self._objects.get_range(
                    head.key, start=start, length=length, version_id=head.version_id
                )
            )
            self._report.bytes_read += length
            self._narrate(f"{head.key}: block {block.part_number} of {len(certificate.blocks)}")
        return audit.finish()
