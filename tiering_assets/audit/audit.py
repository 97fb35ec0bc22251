"""Check records and objects again from the bucket alone: no cluster, no broker, no Dagster. Reads
only.

Owns: what cannot be read is a finding, and the audit goes on; only a bucket that cannot be listed
stops it. Memory is bounded by the keys, by what the day book names, one attempt's or segment's
records and one range of a data object.

The order is the contract: pages of the day book are read first, as a record is written before the
page that names it. Records are listed before they are read and objects looked at last, so that
work under way shows as work under way.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable
from datetime import timedelta
from itertools import chain
from uuid import UUID

from tiering_assets.audit.attempt_sight import (
    publication_seen,
    records_seen,
    signer_of,
    topic_seen,
)
from tiering_assets.audit.audit_findings import About, AuditReport, FindingKind
from tiering_assets.audit.audit_sights import AttemptSeen, ObjectSeen, Sights
from tiering_assets.audit.chain_audit import AttemptHistory, judge_history, judge_ledger
from tiering_assets.audit.deep_reader import ObjectReader
from tiering_assets.audit.record_audit import FOLDERS, ReadRecord, parse_place
from tiering_assets.audit.record_reader import RecordReader
from tiering_assets.audit.stream_audit import StreamAudit
from tiering_assets.audit.topic_figures import figures_by_topic
from tiering_assets.ground.signing import load_public_keys
from tiering_assets.records import keys
from tiering_assets.records.key_kinds import is_record_key, what_a_stray_may_be
from tiering_assets.records.models import (
    Attempt,
    Certificate,
    Outcome,
    Publication,
    PublishedLedger,
    Quarantine,
    Release,
    ReleaseIntent,
)
from tiering_assets.records.sweep_models import Removal
from tiering_assets.resources.errors import RefusedError
from tiering_assets.resources.object_store.s3 import S3ObjectStore
from tiering_assets.resources.object_store.store import ObjectStore, ObjectSummary
from tiering_assets.resources.settings import Settings
from tiering_assets.resources.settings_sources import require_store

ROOT = "tierkeeper/"
IN_FLIGHT_S = 3600.0
_PROGRESS_S = 5.0
_INSTANCE = re.compile(r"[A-Za-z0-9._=+@-]+")


def audit_bucket(
    settings: Settings,
    *,
    ledger_ids: Iterable[int] | None = None,
    instance: str = "",
    deep: bool = False,
    in_flight_s: float = IN_FLIGHT_S,
    narrate: Callable[[str], None] = lambda _line: None,
) -> AuditReport:
    """Audit these ledgers, or with None all of the instance; an empty instance is looked for.

    Raises:
        RefusedError: no instance was named, and the bucket has none or several.
        ObjectStoreError: the bucket cannot be listed.
    """
    require_store(settings)
    return audit_store(
        S3ObjectStore(settings.store),
        settings,
        ledger_ids=ledger_ids,
        instance=instance,
        deep=deep,
        in_flight_s=in_flight_s,
        narrate=narrate,
    )


def audit_store(
    objects: ObjectStore,
    settings: Settings,
    *,
    ledger_ids: Iterable[int] | None = None,
    instance: str = "",
    deep: bool = False,
    in_flight_s: float = IN_FLIGHT_S,
    narrate: Callable[[str], None] = lambda _line: None,
) -> AuditReport:
    """The same over any object store."""
    name = instance or find_instance(objects)
    if _INSTANCE.fullmatch(name) is None:
        raise RefusedError(f"{name!r} is not the name of an instance")
    run = _Run(settings, objects, name, deep=deep, in_flight_s=in_flight_s, narrate=narrate)
    return run.all() if ledger_ids is None else run.some(sorted(set(ledger_ids)))


def find_instance(objects: ObjectStore) -> str:
    """The one instance that has records in the bucket. RefusedError for none or several."""
    found: set[str] = set()
    for summary in objects.list_objects(ROOT):
        if summary.key.startswith(keys.PROBES):
            continue  # a doctor tries the store just now
        found.add(summary.key.removeprefix(ROOT).partition("/")[0])
        if len(found) > 1:
            break
    if len(found) == 1:
        return found.pop()
    said = "several instances" if found else "no records of tierkeeper"
    raise RefusedError(f"bucket {objects.bucket!r} has {said} below {ROOT}: name one by --instance")


Attempts = dict[UUID, list[ObjectSummary]]


class _Run:
    """One audit. Publications are kept by the (ledger, attempt) that they name."""

    def __init__(
        self,
        settings: Settings,
        objects: ObjectStore,
        instance: str,
        *,
        deep: bool,
        in_flight_s: float,
        narrate: Callable[[str], None],
    ) -> None:
        self._keys = load_public_keys(settings)
        self._in_flight = timedelta(seconds=in_flight_s)
        self._share_max = settings.release.fleet_share_max
        self._narrate = narrate
        self._sights = Sights(
            bucket=objects.bucket, began_at=objects.server_time(), key_ids=self._keys.key_ids
        )
        self._report = AuditReport(instance=instance, deep=deep, sights=self._sights)
        range_bytes = settings.offload.read_range_bytes
        self._reader = ObjectReader(
            objects, self._report, range_bytes=range_bytes, narrate=self._narrate_progress
        )
        skew = timedelta(seconds=settings.publish.clock_skew_max_s)
        self._records = RecordReader(
            objects,
            f"{ROOT}{instance}/",
            self._report,
            skew=skew,
            narrate=self._narrate_progress,
        )
        self._streams = StreamAudit(self._records, self._reader, self._report, self._keys)
        self._list, self._read = self._records.listed, self._records.read
        self._published: dict[tuple[int, UUID], list[tuple[ReadRecord, PublishedLedger]]] = {}
        self._topics: set[str] = set()
        self._forgotten = self._sights.forgotten
        self._started = self._told = time.monotonic()

    def all(self) -> AuditReport:
        self._records.judge_pages()
        self._read_forget_plans()
        self._report.forgotten = len(self._forgotten)
        found: dict[int, Attempts] = {}
        for summary in chain.from_iterable(self._list(f"{folder}/") for folder in FOLDERS):
            self._file(found, summary)
        self._read_failures(keys.FAILURES)
        self._find_strays("holds/")
        return self._audit(found, whole=True)

    def some(self, ledger_ids: list[int]) -> AuditReport:
        self._records.read_pages_for(ledger_ids)
        self._read_forget_plans()
        gone = {ledger_id for ledger_id, _uid in self._forgotten}
        self._report.forgotten = sum(ledger_id in ledger_ids for ledger_id, _uid in self._forgotten)
        found: dict[int, Attempts] = {i: {} for i in ledger_ids}
        for ledger_id in ledger_ids:
            for folder in FOLDERS[:-1]:
                for summary in self._list(f"{folder}/{ledger_id}/"):
                    self._file(found, summary)
            self._read_failures(keys.failure(ledger_id))
            if not found[ledger_id] and ledger_id not in gone:
                self._report.findings.append(
                    About(ledger_id, None).finding(
                        FindingKind.RECORD_MISSING,
                        keys.attempts_of(ledger_id),
                        "records of this ledger",
                        "some",
                        "none",
                    )
                )
        return self._audit(found, whole=False)

    def _read_forget_plans(self) -> None:
        for summary in self._list(keys.FORGET_PLANS):
            read = self._read(summary)
            if read is not None:
                for ledger in read.record.ledgers:
                    self._forgotten.update(((ledger.ledger_id, u), read.key) for u in ledger.uids)

    def _read_failures(self, prefix: str) -> None:
        """Each is judged by itself: it proves nothing, so no chain has it."""
        for summary in self._list(prefix):
            self._read(summary)

    def _find_strays(self, prefix: str) -> None:
        """Where a stray may be a person's wish that has no effect, it is told."""
        for summary in self._list(prefix):
            key = self._records.key_of(summary)
            if not is_record_key(key):
                found = f"another: {what_a_stray_may_be(key)}"
                about = About(None, None)
                kind = FindingKind.RECORD_MISPLACED
                self._report.findings.append(
                    about.finding(kind, key, "key", "one of a record's", found)
                )

    def _file(self, found: dict[int, Attempts], summary: ObjectSummary) -> None:
        key = self._records.key_of(summary)
        place = parse_place(key)
        if place is not None and place.topic is not None:
            self._topics.add(f"{key.rpartition('/')[0]}/")
        if place is None or place.about.ledger_id is None or place.about.uid is None:
            read = self._read(summary)  # a publication, or a key that no record has
            if read is not None:
                self._remember(read)
        else:
            attempts = found.setdefault(place.about.ledger_id, {})
            attempts.setdefault(place.about.uid, []).append(summary)

    def _remember(self, read: ReadRecord) -> None:
        self._sights.publications.append(publication_seen(read))
        for entry in read.record.ledgers:
            self._published.setdefault((entry.ledger_id, entry.uid), []).append((read, entry))

    def _audit(self, found: dict[int, Attempts], *, whole: bool) -> AuditReport:
        report = self._report
        for ledger_id, uid in self._published:  # published, and all of its own records gone
            if whole or ledger_id in found:
                found.setdefault(ledger_id, {}).setdefault(uid, [])
        for number, (ledger_id, attempts) in enumerate(sorted(found.items()), start=1):
            certificates = []
            for uid, summaries in sorted(attempts.items()):
                if (ledger_id, uid) in self._forgotten:
                    continue
                history = self._history(ledger_id, uid, summaries)
                self._sights.attempts.append(self._judge(history, uid))
                if history.certificate is not None:
                    certificates.append(history.certificate)
            report.findings += judge_ledger(certificates)
            report.ledgers += 1
            self._narrate_progress(f"{number} of {len(found)} ledgers")
        if whole:
            self._streams.judge_all()
        report.findings += self._records.missed(self._forgotten.keys())
        report.topics = figures_by_topic(
            self._sights.attempts,
            self._sights.publications,
            report.findings,
            ledgers=report.ledgers,
        )
        report.seconds = round(time.monotonic() - self._started, 3)
        return report

    def _judge(self, history: AttemptHistory, uid: UUID) -> AttemptSeen:
        report, found = self._report, history.certificate
        report.attempts += 1
        report.findings += judge_history(
            history,
            store_now=self._sights.began_at,
            in_flight=self._in_flight,
            public_keys=self._keys,
        )
        missed: str | None = ""
        objects: tuple[ObjectSeen, ...] = ()
        read_before = report.bytes_read
        if found is not None and history.objects_expected:
            missed = history.why_missed(self._share_max)
            report.removed += missed is None
            objects = self._reader.look(found.record, missed)
        signed = found is not None and bool(self._keys) and self._keys.problem(found.body) is None
        return AttemptSeen(
            ledger_id=history.ledger_id,
            uid=uid,
            topic=topic_seen(history),
            records=records_seen(history),
            objects=objects,
            bytes_read=report.bytes_read - read_before,
            removal=None if missed is not None or not history.removal else history.removal.key,
            signed_by=signer_of(found.body) if found is not None and signed else None,
        )

    def _history(self, ledger_id: int, uid: UUID, summaries: list[ObjectSummary]) -> AttemptHistory:
        reads: dict[type, ReadRecord] = {}
        unreadable = set()
        for summary in summaries:
            read = self._read(summary)
            if read is None:
                unreadable.add(self._records.key_of(summary))
                continue
            reads[type(read.record)] = read
            name = getattr(read.record, "ml_name", None)
            if isinstance(name, str):
                self._read_publications(name)
        return AttemptHistory(
            ledger_id=ledger_id,
            about=About(ledger_id, uid),
            attempt=reads.get(Attempt),
            certificate=reads.get(Certificate),
            quarantine=reads.get(Quarantine),
            outcome=reads.get(Outcome),
            published=tuple(self._published.get((ledger_id, uid), ())),
            intent=reads.get(ReleaseIntent),
            release=reads.get(Release),
            removal=reads.get(Removal),
            unreadable=frozenset(unreadable),
        )

    def _read_publications(self, ml_name: str) -> None:
        """Of one topic, once; in an audit of all ledgers they are read already."""
        prefix = keys.publications_of(ml_name)
        if prefix in self._topics:
            return
        self._topics.add(prefix)
        for summary in self._list(prefix):
            read = self._read(summary)
            if read is not None and isinstance(read.record, Publication):
                self._remember(read)

    def _narrate_progress(self, where: str) -> None:
        now = time.monotonic()
        if now - self._told < _PROGRESS_S:
            return
        self._told = now
        report = self._report
        self._narrate(
            f"{where}; {report.records} records, {report.bytes_read} bytes read, "
            f"{len(report.findings)} findings"
        )
