"""Find every damaged object of the bucket, whoever wrote it. Reads only, and needs no cluster.

Owns: what is damaged is decided by object_check and entry_loss, and named by object_damage;
here the bucket is walked, one pair at a time in key order, so memory is bounded by the largest
object's blocks. The cluster is asked only about what is damaged: whether BookKeeper still has the
ledger, and whether a topic reads the object. Where it cannot be asked the answer is unknown.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn, cast

from tiering_assets.audit.audit import find_instance
from tiering_assets.audit.scan.object_damage import (
    BookieCopy,
    DamageKind,
    Readers,
    SeenObjects,
    kind_of,
    next_step,
)
from tiering_assets.ground.record_book import RecordBook
from tiering_assets.ground.stack import Narrate, Stack, open_stack
from tiering_assets.look.ledger.plan import LedgerSight, look_at
from tiering_assets.look.topic.topic_evidence import topic_of
from tiering_assets.offload_format.decoder import Index, decode_index_fields
from tiering_assets.offload_format.keys import INSTANCE_KEY, ML_NAME_KEY, data_key, parse_key
from tiering_assets.records.models import EntryRange
from tiering_assets.resources.bookkeeper.ledger import LedgerMetadata
from tiering_assets.resources.bookkeeper.ledger_metadata import decode_index_ledger_metadata
from tiering_assets.resources.errors import (
    BookieError,
    FormatError,
    MetadataError,
    ObjectNotFoundError,
    ObjectStoreError,
    RefusedError,
)
from tiering_assets.resources.metastore.ledgers import LedgerDirectory
from tiering_assets.resources.metastore.store import MetadataStore
from tiering_assets.resources.metastore.topics import TopicDirectory
from tiering_assets.resources.object_store.s3 import S3ObjectStore
from tiering_assets.resources.pulsar.admin import HttpBrokerAdmin
from tiering_assets.resources.settings import Settings
from tiering_assets.resources.settings_sources import require_store
from tiering_assets.tasks.runner import LocalRunner
from tiering_assets.verify.entry_loss import lost_entries
from tiering_assets.verify.object_check import (
    ObjectSight,
    check_object,
    look_at_object,
    topic_spending,
)

UNREAD_IN_A_ROW = 10
_PROGRESS_S = 5.0
_NO_INSTANCE = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class DamagedAttempt:
    """One damaged attempt. `unreadable` are entries that this copy does not give; None if nothing
    says how many there were. They are `lost` where the bookie copy is gone.
    """

    ledger_id: int
    key: str
    kind: DamageKind
    findings: tuple[str, ...]
    topic: str | None
    written_by: str
    entries: int | None
    unreadable: tuple[EntryRange, ...] | None
    bookie_copy: BookieCopy
    readers: Readers
    next_step: str

    @property
    def lost(self) -> tuple[EntryRange, ...] | None:
        return self.unreadable if self.bookie_copy is BookieCopy.GONE else ()


@dataclass(frozen=True, slots=True)
class Unread:
    """An attempt that the store did not give: archived, denied or away. Says nothing about it."""

    key: str
    error: str


@dataclass(slots=True, kw_only=True)
class ScanCounts:
    """What was looked at so far."""

    pairs: int = 0
    others: int = 0
    bytes: int = 0
    damaged: int = 0
    listed: int = 0
    unread: list[Unread] = field(default_factory=list)


@contextmanager
def open_bucket(settings: Settings, *, narrate: Narrate) -> Iterator[tuple[Stack, str | None]]:
    """The bucket with its cluster or, with the reason why, without: all metadata is unknown
    then.
    """
    with ExitStack() as exits:
        away = None
        try:
            stack = exits.enter_context(open_stack(settings, narrate=narrate))
        except MetadataError as error:
            stack, away = _without_cluster(settings, error, narrate), str(error)
        yield stack, away


def scan_objects(
    stack: Stack, counts: ScanCounts, *, prefix: str = "", shallow: bool = False
) -> Iterator[DamagedAttempt]:
    """Each damaged attempt whose keys begin with `prefix`; `counts` is kept up to date.

    Every byte is read, unless `shallow`: then both HEADs and the index alone, which show a missing
    half, an index that does not decode and a truncation, but no bad bytes.

    Raises:
        ObjectStoreError: the store cannot be listed, or gave none of UNREAD_IN_A_ROW attempts.
    """
    quiet = replace(stack, narrate=lambda _line: None)
    told = stack.monotonic()
    last, in_a_row = "", 0
    for summary in stack.objects.list_objects(prefix):
        counts.listed += 1
        counts.bytes += summary.size
        parsed = parse_key(summary.key)
        if parsed is None:
            counts.others += 1
            continue
        key = data_key(parsed.uid, parsed.ledger_id)
        if key != last:  # an index follows its data object, unless that is missing
            last = key
            counts.pairs += 1
            try:
                found = _look(quiet, key, shallow=shallow)
            except ObjectNotFoundError:
                continue  # deleted meanwhile
            except ObjectStoreError as error:
                in_a_row += 1
                if in_a_row >= UNREAD_IN_A_ROW:
                    raise
                counts.unread.append(Unread(key, str(error)))
                continue
            in_a_row = 0
            if found is not None:
                counts.damaged += 1
                yield found
        now = stack.monotonic()
        if now - told >= _PROGRESS_S:
            told = now
            stack.narrate(
                f"{counts.pairs} attempts, {counts.bytes / 1e9:.2f} GB, {counts.damaged} damaged; "
                f"at {summary.key}"
            )


def _look(stack: Stack, key: str, *, shallow: bool) -> DamagedAttempt | None:
    if shallow:
        sight = look_at_object(stack, key)
        findings: tuple[str, ...] = sight.problems
    else:
        check = check_object(stack, key)
        sight, findings = check.sight, check.findings
    if not findings:
        return None
    fields = _fields(sight)
    written = _metadata(sight, fields)
    ml_name = _ml_name(sight)
    ledger, bookies = _in_bookkeeper(stack, sight, written, ml_name)
    last_entry_id = None if written is None else written.last_entry_id
    if last_entry_id is None and sight.certificate is not None:
        last_entry_id = sight.certificate.record.ledger.last_entry_id
    if last_entry_id is None and ledger is not None and ledger.node is not None:
        known = ledger.node.metadata.last_entry_id
        last_entry_id = known if known >= 0 else None
    readers = _readers(sight, ledger)
    topic = None if ml_name is None else topic_of(ml_name)
    return DamagedAttempt(
        ledger_id=sight.ledger_id,
        key=sight.data_key,
        kind=kind_of(_facts(sight, fields)),
        findings=findings,
        topic=topic,
        written_by=_writer(stack, sight),
        entries=None if last_entry_id is None else last_entry_id + 1,
        unreadable=None
        if last_entry_id is None
        else lost_entries(stack, sight, last_entry_id=last_entry_id),
        bookie_copy=bookies,
        readers=readers,
        next_step=next_step(
            ledger_id=sight.ledger_id, topic=topic, bookies=bookies, readers=readers
        ),
    )


# ----- what the objects say


def _fields(sight: ObjectSight) -> Index | None:
    """The index's fields, of a truncated one too."""
    if sight.index is None:
        return None
    try:
        return decode_index_fields(sight.index.body)
    except FormatError:
        return None


def _metadata(sight: ObjectSight, fields: Index | None) -> LedgerMetadata | None:
    if sight.metadata is not None or fields is None:
        return sight.metadata
    try:
        return decode_index_ledger_metadata(fields.ledger_metadata)
    except FormatError:
        return None


def _facts(sight: ObjectSight, fields: Index | None) -> SeenObjects:
    empty = False
    if fields is not None and fields.entries:
        empty = fields.entries[-1].offset >= fields.data_object_length
    return SeenObjects(
        data_bytes=None if sight.data is None else sight.data.size,
        index_there=sight.index is not None,
        indexed_bytes=None if fields is None else fields.data_object_length,
        last_block_empty=empty,
        index_decodes=sight.decoded is not None and sight.metadata is not None,
    )


def _user_metadata(sight: ObjectSight, name: str) -> str | None:
    heads = (sight.data, None if sight.index is None else sight.index.head)
    return next((h.metadata[name] for h in heads if h is not None and name in h.metadata), None)


def _ml_name(sight: ObjectSight) -> str | None:
    """The topic's managed ledger, by the objects' metadata or what the index says."""
    name = _user_metadata(sight, ML_NAME_KEY) or topic_spending(sight)
    return name if name and name.count("/") >= 3 else None


def _writer(stack: Stack, sight: ObjectSight) -> str:
    instance = _user_metadata(sight, INSTANCE_KEY)
    if instance is None:
        return "broker"
    return "tierkeeper" if instance == stack.instance else f"tierkeeper of instance {instance}"


# ----- what the cluster says


def _in_bookkeeper(
    stack: Stack, sight: ObjectSight, written: LedgerMetadata | None, ml_name: str | None
) -> tuple[LedgerSight | None, BookieCopy]:
    """The ledger as both trees show it. Another cluster's ledger of the same id tells nothing."""
    instance = _user_metadata(sight, INSTANCE_KEY)
    if instance is not None and instance != stack.instance:
        return None, BookieCopy.UNKNOWN
    try:
        found = look_at(stack, sight.ledger_id, ml_name=ml_name)
    except (MetadataError, FormatError, BookieError):
        return None, BookieCopy.UNKNOWN
    if found.node is None:
        # A cluster that does not know the topic may not be the one that wrote the object.
        known = found.topic is not None or instance is not None
        return found, BookieCopy.GONE if known else BookieCopy.UNKNOWN
    there = found.node.metadata
    if written is not None and (there.last_entry_id, there.length) != (
        written.last_entry_id,
        written.length,
    ):
        return None, BookieCopy.UNKNOWN
    return found, BookieCopy.LIVES


def _readers(sight: ObjectSight, found: LedgerSight | None) -> Readers:
    if found is None:
        return Readers.UNKNOWN
    listed = found.listed
    if listed is None or listed.offload is None or listed.offload.uid != sight.uid:
        return Readers.NO
    return Readers.YES


class _Away:
    """A metadata store that cannot be asked: every question is the error of the connection."""

    def __init__(self, error: MetadataError) -> None:
        self._error = error

    def __getattr__(self, _name: str) -> Any:
        def refuse(*_args: object, **_options: object) -> NoReturn:
            raise self._error

        return refuse


def _without_cluster(settings: Settings, away: MetadataError, narrate: Narrate) -> Stack:
    require_store(settings)
    metadata = cast(MetadataStore, _Away(away))
    objects = S3ObjectStore(settings.store)
    try:
        instance = find_instance(objects)
    except RefusedError:  # no records, or those of several: nothing is compared with certificates
        instance = _NO_INSTANCE
    return Stack(
        settings=settings,
        metadata=metadata,
        ledgers=LedgerDirectory(metadata, settings.metadata.ledgers_root),
        topics=TopicDirectory(metadata),
        objects=objects,
        book=RecordBook(objects, instance),
        broker=HttpBrokerAdmin(settings.broker),
        runner=LocalRunner(settings),
        instance=instance,
        run_id="scan",
        narrate=narrate,
    )
