"""Read the records of all streams in one pass, and have each segment and its objects judged.

Owns: keys of a stream count down, so segments are listed from the newest to the first. In memory is
one of them, and the link of the one behind it, however long a stream is. What is missed is looked
for once more by its key before it is told: it may have come since it was listed.

What it costs: one listing, one GET for each record, two HEAD for each certificate.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Final

from tiering_assets.audit.attempt_sight import topic_of
from tiering_assets.audit.audit_findings import About, AuditReport, FindingKind
from tiering_assets.audit.deep_reader import ObjectReader
from tiering_assets.audit.record_audit import ReadRecord
from tiering_assets.audit.record_reader import RecordReader
from tiering_assets.audit.streams.certified import contradictions
from tiering_assets.audit.streams.segment_judge import SegmentRecords, StreamJudge
from tiering_assets.audit.streams.stream_faults import StreamFault, StreamWrong
from tiering_assets.audit.streams.stream_place import (
    StreamPlace,
    parse_stream_key,
    segment_name,
)
from tiering_assets.records import keys
from tiering_assets.records.signature import PublicKeys
from tiering_assets.records.stream_models import (
    SegmentAttempt,
    SegmentFailed,
    SegmentGivenUp,
    SegmentOffloaded,
)
from tiering_assets.resources.object_store.store import ObjectSummary

_KINDS: Final[Mapping[StreamWrong, FindingKind]] = {
    StreamWrong.LINK: FindingKind.CHAIN_BROKEN,
    StreamWrong.FACT: FindingKind.FACTS_DIFFER,
    StreamWrong.MISSING: FindingKind.RECORD_MISSING,
    StreamWrong.CONTRADICTION: FindingKind.CERTIFICATE_INCONSISTENT,
}
_Listed = tuple[StreamPlace, ObjectSummary]


class StreamAudit:
    def __init__(
        self,
        records: RecordReader,
        objects: ObjectReader,
        report: AuditReport,
        public_keys: PublicKeys,
    ) -> None:
        self._records, self._objects = records, objects
        self._report, self._public_keys = report, public_keys

    def judge_all(self) -> None:
        """ObjectStoreError where the store does not list."""
        before = self._report.records
        for prefix, listed in groupby(self._listed(), lambda one: one[0].prefix):
            self._judge(prefix, listed)
        self._report.stream_records += self._report.records - before

    def _listed(self) -> Iterator[_Listed]:
        for summary in self._records.listed(keys.STREAMS):
            place = parse_stream_key(self._records.key_of(summary))
            if place is None:
                self._records.read(summary)  # a key that no record has
            else:
                yield place, summary

    def _judge(self, prefix: str, listed: Iterator[_Listed]) -> None:
        judge, topic, stream = StreamJudge(prefix), "", ""
        opened, opening_listed = None, False
        for number, group in groupby(listed, lambda one: one[0].number):
            some = [*group]
            stream = some[0][0].stream
            if number is None:
                opening_listed, opened = True, self._records.read(some[0][1])
                topic = topic or _topic_of(opened)
                continue
            found, read = self._segment(prefix, number, some)
            topic = topic or next((name for one in read if (name := _topic_of(one))), "")
            self._tell(judge.segment(found), stream, topic)
            proof = next((one for one in read if isinstance(one.record, SegmentOffloaded)), None)
            self._certified(proof, segment_name(stream, number, topic), found.ledger_id)
            self._report.segments += not found.ends
        self._tell(judge.end(opened, listed=opening_listed), stream, topic)

    def _segment(
        self, prefix: str, number: int, listed: Iterable[_Listed]
    ) -> tuple[SegmentRecords, list[ReadRecord]]:
        found, readable = SegmentRecords(prefix=prefix, number=number), []
        for place, summary in listed:
            found.listed.add(self._records.key_of(summary))
            read = self._records.read(summary)
            if read is None:
                continue
            readable.append(read)
            record = read.record
            if isinstance(record, SegmentAttempt) and place.uid is not None:
                found.attempts[place.uid] = read
            elif isinstance(record, SegmentFailed) and place.uid is not None:
                found.failed[place.uid] = read
            elif isinstance(record, SegmentOffloaded):
                found.offloaded = read
            elif isinstance(record, SegmentGivenUp):
                found.given_up = read
            else:
                found.link = read
        return found, readable

    def _certified(self, proof: ReadRecord | None, of: str, ledger_id: int | None) -> None:
        """Its signature, and both objects."""
        if proof is None:
            return
        unsigned = self._public_keys.refusal(proof.body)
        if unsigned is not None:
            self._report.findings.append(
                About(ledger_id, None, of).finding(
                    FindingKind.UNSIGNED, proof.key, "signature", "of an accepted key", unsigned
                )
            )
        self._objects.look_at_segment(proof.record, sound=not contradictions(proof.record))

    def _tell(self, faults: Iterable[StreamFault], stream: str, topic: str) -> None:
        for one in faults:
            if one.wrong is StreamWrong.MISSING and self._records.is_there(one.key):
                continue
            number = keys.segment_number(keys.stream_and_rest(one.key)[1])
            about = About(one.ledger_id, None, segment_name(stream, number, topic))
            self._report.findings.append(
                about.finding(_KINDS[one.wrong], one.key, one.what, one.expected, one.found)
            )


def _topic_of(read: ReadRecord | None) -> str:
    return "" if read is None else topic_of(read.record.ml_name)
