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
from tiering_assets.records.bucket_models import NamedRecord
from tiering_assets.records.models import Certificate, Publication, PublishedLedger, Release
from tiering_assets.records.stored import Stored
from tiering_assets.resources.errors import FormatError
from tiering_assets.resources.metastore.topic_names import parse_managed_ledger_name

LEDGER_FACET: Final = "tierkeeper_ledger"
PUBLICATION_FACET: Final = "tierkeeper_publication"
RELEASE_FACET: Final = "tierkeeper_release"
_OBJECTS: Final = ("s3", "pulsar-offload")
_TABLES: Final = ("delta", "parquet")
_Published = tuple[str, int, UUID]  # key of the publication, ledger, attempt


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
    """`found` has all records that its lines name, by key."""
    published = _published(found)
    told = [one for line in event.lines if (one := _told(line, found, event.page)) is not None]
    missing = {one.key for line in event.lines for one in line.named if _is_missing(one, found)}
    return SaidEvent(
        type=event.type,
        at=event.at,
        run_id=told_run_id(place.instance, event.run, event.since, event.job),
        job=event.job,
        run={
            "instance": place.instance,
            "run": event.run,
            "command": event.command,
            "page": event.page,
            "ledgersInWork": event.in_work,
            "ledgers": len(told),
            "missingRecords": sorted(place.records + key for key in missing),
        },
        inputs=[*_topics(told, place)],
        outputs=[one.written(published, place.bucket) for one in told],
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
    """What is known of a ledger's line: one of the three at least."""

    line: LedgerLine
    page: int
    ml_name: str
    certificate: Stored[Certificate] | None
    publication: Stored[Publication] | None
    release: Stored[Release] | None

    @property
    def payload_bytes(self) -> int | None:
        return None if self.certificate is None else self.certificate.record.payload_bytes

    @property
    def messages(self) -> int | None:
        """None where a block's entries are none of Pulsar's, or an older version wrote it."""
        if self.certificate is None:
            return None
        return _sum(block.messages for block in self.certificate.record.blocks)

    def written(
        self, published: Mapping[_Published, PublishedLedger], bucket: str
    ) -> WrittenDataset:
        """An object that this run did not write is named by what its key is made of."""
        own = dict(self._own(published))
        if self.certificate is None:
            key = data_key(self.line.uid, self.line.ledger_id)
            return WrittenDataset(namespace=f"s3://{bucket}", name=key, storage=_OBJECTS, own=own)
        proven = self.certificate.record
        return WrittenDataset(
            namespace=f"s3://{proven.bucket}",
            name=proven.data.key,
            storage=_OBJECTS,
            bytes=proven.data.size,
            messages=self.messages,
            version=proven.data.version_id,
            own=own,
        )

    def _own(
        self, published: Mapping[_Published, PublishedLedger]
    ) -> Iterator[tuple[str, dict[str, Any]]]:
        ledger_id, uid = self.line.ledger_id, self.line.uid
        which: dict[str, Any] = {"ledgerId": ledger_id, "uid": str(uid), "page": self.page}
        which["topic"] = _topic(self.ml_name)
        if self.certificate is not None:
            proven = self.certificate.record
            facts = {
                "certificateSha256": self.certificate.sha256,
                "certifiedAt": proven.verified_at.isoformat(),
                "entries": proven.entries,
                "payloadBytes": proven.payload_bytes,
            }
            yield LEDGER_FACET, which | facts
        if self.publication is not None:
            named = published[self.publication.key, ledger_id, uid]
            facts = {
                "certificateSha256": named.certificate_sha256,
                "confirmedAt": self.publication.record.confirmed_at.isoformat(),
            }
            yield PUBLICATION_FACET, which | facts
        if self.release is not None:
            facts = {
                "releasedAt": self.release.record.released_at.isoformat(),
                "bytesReleased": self.release.record.bytes_released,
            }
            yield RELEASE_FACET, which | facts


def _told(line: LedgerLine, found: Mapping[str, FoundRecord], page: int) -> _Told | None:
    """None where no record of it is left."""

    def stored(named: NamedRecord | None) -> Stored[Any] | None:
        return None if named is None else found[named.key].stored

    records = stored(line.certificate), stored(line.publication), stored(line.release)
    first = next(filter(None, records), None)
    if first is None:
        return None
    certificate, publication, release = records
    return _Told(
        line=line,
        page=page,
        ml_name=first.record.ml_name,
        certificate=certificate,
        publication=publication,
        release=release,
    )


def _is_missing(named: NamedRecord, found: Mapping[str, FoundRecord]) -> bool:
    return found[named.key].stored is None


def _published(found: Mapping[str, FoundRecord]) -> dict[_Published, PublishedLedger]:
    """What the publications among these records say of each ledger and attempt."""
    return {
        (key, ledger.ledger_id, ledger.uid): ledger
        for key, one in found.items()
        if one.stored is not None and isinstance(one.stored.record, Publication)
        for ledger in one.stored.record.ledgers
    }


def _topics(told: Iterable[_Told], place: EventPlace) -> Iterator[ReadDataset]:
    """Each topic once, whatever its partitions; what was read of it where each ledger tells."""
    by_topic: dict[str, list[_Told]] = {}
    for one in told:
        by_topic.setdefault(_whole_topic(one.ml_name), []).append(one)
    for name, some in by_topic.items():
        yield ReadDataset(
            namespace=place.topics,
            name=name,
            bytes=_sum(one.payload_bytes for one in some),
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
