"""What an event says of data: topics that were read, objects that were written, and their proof.

Owns: a fact that no record gives is left out, and a record that is gone or damaged is named in the
event, not guessed. Facets replace each other as wholes. So what a certificate, a publication and a
release say are three facets, each of which is sent by the run that wrote its record.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from tiering_assets.catalogue.facts.read_pages import FoundRecord
from tiering_assets.catalogue.openlineage.page_events import EventType, LedgerLine, PageEvent
from tiering_assets.catalogue.openlineage.runs_told import ToldJob, told_run_id
from tiering_assets.offload_format.keys import data_key
from tiering_assets.records.models import Certificate, Publication, PublishedLedger, Release
from tiering_assets.resources.errors import FormatError
from tiering_assets.resources.metastore.topic_names import parse_managed_ledger_name

LEDGER_FACET: Final = "tierkeeper_ledger"
PUBLICATION_FACET: Final = "tierkeeper_publication"
RELEASE_FACET: Final = "tierkeeper_release"
_OBJECTS: Final = ("s3", "pulsar-offload")
_TABLES: Final = ("delta", "parquet")
_Pair = tuple[int, UUID]


@dataclass(frozen=True, slots=True, kw_only=True)
class EventPlace:
    """Whose runs and data they are. `topics` is a namespace, `root` where the tables lie."""

    instance: str
    bucket: str
    topics: str
    root: str
    records: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadDataset:
    """An input. Bytes and messages of it that were read, where all records tell."""

    namespace: str
    name: str
    bytes: int | None = None
    messages: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenDataset:
    """An output. `own` are our facets by name; `storage` is its layer and the form of its files."""

    namespace: str
    name: str
    storage: tuple[str, str]
    bytes: int | None = None
    messages: int | None = None
    version: str | None = None
    own: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class SaidEvent:
    """An event with all that it says, before it is JSON. `run` are the fields of our run facet."""

    type: EventType
    at: datetime
    run_id: UUID
    job: ToldJob
    run: Mapping[str, Any]
    inputs: Sequence[ReadDataset] = ()
    outputs: Sequence[WrittenDataset] = ()
    why: str | None = None


def said_event(event: PageEvent, found: Mapping[str, FoundRecord], place: EventPlace) -> SaidEvent:
    """`found` has the records that its lines name, by key."""
    named = _published(found)
    told = [_Told.of(line, found, named, event.page, place.records) for line in event.lines]
    known = [one for one in told if one.ml_name is not None]
    missing = sorted({key for one in told for key in one.missing})
    run: dict[str, Any] = {
        "instance": place.instance,
        "run": event.run,
        "page": event.page,
        "ledgersInWork": event.in_work,
        "ledgers": len(known),
    }
    if event.command:
        run["command"] = event.command
    if missing:
        run["missingRecords"] = missing
    return SaidEvent(
        type=event.type,
        at=event.at,
        run_id=told_run_id(place.instance, event.run, event.since, event.job),
        job=event.job,
        run=run,
        inputs=[*_topics(known, place)],
        outputs=[one.written(event.job, place) for one in known],
        why=event.why,
    )


def posting_events(after: int, upto: int, at: datetime, place: EventPlace) -> list[SaidEvent]:
    """START and COMPLETE of a posting: pages behind `after`, up to this one, are in the tables."""
    name = f"pages {after + 1} to {upto}"
    return [
        SaidEvent(
            type=type_,
            at=at,
            run_id=told_run_id(place.instance, name, at, ToldJob.POSTING),
            job=ToldJob.POSTING,
            run={
                "instance": place.instance,
                "run": name,
                "command": "catalogue post",
                "page": upto,
                "afterPage": after,
            },
            inputs=[ReadDataset(namespace=f"s3://{place.bucket}", name=place.records.rstrip("/"))],
            outputs=[] if type_ is EventType.START else [*_tables(place)],
        )
        for type_ in (EventType.START, EventType.COMPLETE)
    ]


def _tables(place: EventPlace) -> Iterator[WrittenDataset]:
    scheme, is_address, rest = place.root.partition("://")
    bucket, _, path = rest.partition("/")
    for name in ("blocks", "events", "ledgers"):
        yield WrittenDataset(
            namespace=f"{scheme}://{bucket}" if is_address else "file",
            name=f"{path if is_address else place.root}/{name}",
            storage=_TABLES,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Told:
    """What is known of a ledger's line. `ml_name` is None where no record of it is left."""

    line: LedgerLine
    page: int
    ml_name: str | None
    missing: tuple[str, ...]
    certificate: Certificate | None
    certificate_sha256: str | None
    publication: Publication | None
    published: PublishedLedger | None
    release: Release | None

    @classmethod
    def of(
        cls,
        line: LedgerLine,
        found: Mapping[str, FoundRecord],
        published: Mapping[str, Mapping[_Pair, PublishedLedger]],
        page: int,
        records: str,
    ) -> _Told:
        named = [one.key for one in line.named] + ([line.publication] if line.publication else [])
        stored = {key: one.stored for key in named if (one := found.get(key)) and one.stored}
        certificate = stored.get(line.certificate.key) if line.certificate else None
        publication = stored.get(line.publication) if line.publication else None
        release = stored.get(line.release.key) if line.release else None
        first = certificate or publication or release
        return cls(
            line=line,
            page=page,
            ml_name=None if first is None else first.record.ml_name,
            missing=tuple(records + key for key in named if key not in stored),
            certificate=None if certificate is None else certificate.record,
            certificate_sha256=None if certificate is None else certificate.sha256,
            publication=None if publication is None else publication.record,
            published=published.get(line.publication or "", {}).get((line.ledger_id, line.uid)),
            release=None if release is None else release.record,
        )

    @property
    def messages(self) -> int | None:
        """None where a block's entries are none of Pulsar's, or an older version wrote it."""
        if self.certificate is None:
            return None
        found = [block.messages for block in self.certificate.blocks]
        return None if None in found else sum(one or 0 for one in found)

    def written(self, job: ToldJob, place: EventPlace) -> WrittenDataset:
        proven = self.certificate
        bucket, key = place.bucket, data_key(self.line.uid, self.line.ledger_id)
        if proven is not None:
            bucket, key = proven.bucket, proven.data.key
        return WrittenDataset(
            namespace=f"s3://{bucket}",
            name=key,
            storage=_OBJECTS,
            bytes=None if proven is None else proven.data.size,
            messages=self.messages,
            version=None if proven is None else proven.data.version_id,
            own=dict(self._own(job)),
        )

    def _own(self, job: ToldJob) -> Iterator[tuple[str, dict[str, Any]]]:
        which = {"ledgerId": self.line.ledger_id, "uid": str(self.line.uid), "page": self.page}
        which["topic"] = _topic(self.ml_name or "")
        if (proven := self.certificate) is not None:
            yield (
                LEDGER_FACET,
                {
                    **which,
                    "certificateSha256": self.certificate_sha256,
                    "certifiedAt": proven.verified_at.isoformat(),
                    "entries": proven.entries,
                    "payloadBytes": proven.payload_bytes,
                },
            )
        if self.publication is not None and (named := self.published) is not None:
            yield (
                PUBLICATION_FACET,
                {
                    **which,
                    "certificateSha256": named.certificate_sha256,
                    "confirmedAt": self.publication.confirmed_at.isoformat(),
                },
            )
        if self.release is not None and job is ToldJob.RELEASE:
            yield (
                RELEASE_FACET,
                {
                    **which,
                    "releasedAt": self.release.released_at.isoformat(),
                    "bytesReleased": self.release.bytes_released,
                },
            )


def _published(
    found: Mapping[str, FoundRecord],
) -> dict[str, dict[_Pair, PublishedLedger]]:
    """What each publication among these records names, by ledger and attempt."""
    records = {key: one.stored.record for key, one in found.items() if one.stored is not None}
    return {
        key: {(one.ledger_id, one.uid): one for one in record.ledgers}
        for key, record in records.items()
        if isinstance(record, Publication)
    }


def _topics(told: Iterable[_Told], place: EventPlace) -> Iterator[ReadDataset]:
    """Each topic once, whatever its partitions; what was read of it where each ledger tells."""
    by_topic: dict[str, list[_Told]] = {}
    for one in told:
        by_topic.setdefault(_whole_topic(one.ml_name or ""), []).append(one)
    for name, some in by_topic.items():
        read = [one.certificate for one in some]
        yield ReadDataset(
            namespace=place.topics,
            name=name,
            bytes=_sum(None if one is None else one.payload_bytes for one in read),
            messages=_sum(one.messages for one in some),
        )


def _sum(found: Iterable[int | None]) -> int | None:
    total = 0
    for one in found:
        if one is None:
            return None
        total += one
    return total


def _topic(ml_name: str) -> str:
    """As clients name it; a name that is none of Pulsar's stays as it is."""
    try:
        return str(parse_managed_ledger_name(ml_name))
    except FormatError:
        return ml_name


def _whole_topic(ml_name: str) -> str:
    try:
        return str(parse_managed_ledger_name(ml_name).unpartitioned)
    except FormatError:
        return ml_name
