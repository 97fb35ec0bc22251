"""Every byte of one attempt's objects, fed to the judges of object_audit.py.

Owns: data is read by ranges, so that memory is bounded by one of them; what was found and how much
was read is put into the report at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tiering_assets.audit.audit_findings import AuditFinding, AuditReport
from tiering_assets.audit.object_audit import BlockAudit, judge_index
from tiering_assets.offload_format.layout import INDEX_BYTES_MAX
from tiering_assets.records.models import BlockFacts, Certificate
from tiering_assets.resources.garbage import no_collection
from tiering_assets.resources.object_store.store import ObjectHead, ObjectStore


class DeepReader:
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

    def read(self, certificate: Certificate, heads: Mapping[str, ObjectHead]) -> None:
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
