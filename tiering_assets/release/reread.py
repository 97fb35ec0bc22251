"""A certificate that no accepted key signed is only a claim: read every byte again before its
source may go.

Runs between the release intent and the first change of the topic, for all due ledgers at once, with
the tasks and the decoder of the first verification: what the bookies serve now, and then the
object, against that and its certificate. The object is read last, for it alone stays.

Some ledgers are read at a time (CHUNK_BYTES), as long as the first of them will still count as read
when the next chunk is; the others wait for the next run. Each counts as old as the beginning of its
chunk's reading; one that is a chunk of its own as the end of it, or a long one would never go.

Owns: a copy that differs is quarantined for good and its ledger waits; what could not be read says
nothing about the copy and makes the ledger wait for the next run. Which copies are read again is
decided in gate.py.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from tiering_assets.ground.effects import reach
from tiering_assets.ground.evidence import Dated, Kind
from tiering_assets.ground.reasons import NotNow
from tiering_assets.ground.signing import has_public_keys
from tiering_assets.ground.stack import Stack, asking, bounds_of, is_young
from tiering_assets.ground.task_progress import telling
from tiering_assets.look.ledger.plan import source_of
from tiering_assets.look.ledger.quarantine import quarantine
from tiering_assets.look.ledger.verification import (
    certificate_differences,
    find_differences,
    rows_by_part,
)
from tiering_assets.offload_format.layout import INDEX_BYTES_MAX
from tiering_assets.records.models import Certificate
from tiering_assets.records.stored import Stored
from tiering_assets.resources.errors import IntegrityError, TierkeeperError
from tiering_assets.resources.metastore.ledgers import LedgerNode
from tiering_assets.resources.settings import Settings
from tiering_assets.tasks.descriptors import BlockRow, BlockTask, TaskKind
from tiering_assets.tasks.runner import split_task
from tiering_assets.verify.reverify import plan_of

Due = Mapping[int, tuple[Stored[Certificate], LedgerNode]]
LATER = NotNow(("there was no time to read every byte of it: the next run goes on from here",))
CHUNK_BYTES = 8 * 1024**3  # work for 32 tasks; at 50 MB/s for less than three minutes
_READING = {
    TaskKind.READ_SOURCE: "reading bookies again",
    TaskKind.READ_BACK: "reading copies again",
}
_NAMED_MAX = 5  # differences in a quarantine record and a reason


def reread_possible(settings: Settings) -> bool:
    """Whether a release with these settings may read every byte, and so needs a task runner."""
    signed = has_public_keys(settings) and settings.sign.require
    return settings.release.reread_without_key and not signed


@dataclass(frozen=True, slots=True)
class Reread:
    """Ledgers that must wait, each with its reason, and when the others were read.

    Those that wait differ (quarantined now), could not be read, or were not read in time. No date
    where nothing had to be read.
    """

    waiting: Mapping[int, NotNow[str]] = field(default_factory=dict)
    read: Mapping[int, Dated] = field(default_factory=dict)

    def dated(self, ledger_id: int) -> Dated:
        return self.read.get(ledger_id, Dated())


def reread_before_release(stack: Stack, due: Due) -> Reread:
    """Those of these ledgers that must not go, each with its reason. No key vouches for them."""
    if not due:
        return Reread()
    why = (
        "no accepted key signed them" if has_public_keys(stack.settings) else "no key is configured"
    )
    stack.narrate(
        f"{why}: reading {len(due)} ledgers, "
        f"{sum(stored.record.data.size for stored, _node in due.values())} bytes, and their bookies"
    )
    return reread_copies(stack, due, before="release")


def reread_copies(stack: Stack, due: Due, *, before: str) -> Reread:
    """Read sources and copies; `before` is what the copies are read again for."""
    waiting: dict[int, NotNow[str]] = {}
    read: dict[int, Dated] = {}
    took_s = 0.0
    for chunk in _chunks(due):
        if not _have_time(stack, read, took_s):
            break
        began = stack.monotonic()
        found, dated = _read_chunk(stack, chunk, before)
        waiting.update(found)
        read.update(dict.fromkeys(chunk, dated))
        took_s = stack.monotonic() - began
    late = {i for i in due if i not in read or not is_young(stack, read[i], Kind.BYTES)}
    return Reread(dict.fromkeys(late, LATER) | waiting, read)


def _chunks(due: Due) -> Iterator[Due]:
    """All of them, in id order, so many bytes of objects at a time and one ledger at least."""
    chunk: dict[int, tuple[Stored[Certificate], LedgerNode]] = {}
    size = 0
    for ledger_id, (stored, node) in sorted(due.items()):
        if chunk and size + stored.record.data.size > CHUNK_BYTES:
            yield chunk
            chunk, size = {}, 0
        chunk[ledger_id] = stored, node
        size += stored.record.data.size
    if chunk:
        yield chunk


def _have_time(stack: Stack, read: Mapping[int, Dated], seconds: float) -> bool:
    """Whether what was read will still be young in so many seconds: what the last chunk took."""
    then, bounds = stack.monotonic() + seconds, bounds_of(stack)
    return all(one.is_young(Kind.BYTES, now_s=then, bounds=bounds) for one in read.values())


def _read_chunk(stack: Stack, due: Due, before: str) -> tuple[dict[int, NotNow[str]], Dated]:
    waiting: dict[int, NotNow[str]] = {}
    tasks: list[BlockTask] = []
    for ledger_id, (stored, node) in due.items():
        try:
            tasks += _tasks(stack, stored.record, node)
        except TierkeeperError as error:
            waiting[ledger_id] = _unread(error)
    rows: dict[int, list[BlockRow]] = defaultdict(list)

    def read_all(kind: TaskKind) -> None:
        if some := [task for task in tasks if task.kind is kind]:
            with telling(stack, _READING[kind], some) as count:
                read = stack.runner.run(some, progress=count)
            for row in read:
                rows[row.ledger_id].append(row)

    read_all(TaskKind.READ_SOURCE)
    dated = asking(stack, Kind.BYTES)
    read_all(TaskKind.READ_BACK)
    if len(due) == 1:
        dated = asking(stack, Kind.BYTES)
    for ledger_id, (stored, _node) in due.items():
        if ledger_id not in waiting:
            reason = _judge(stack, stored, rows[ledger_id], before)
            if reason is not None:
                waiting[ledger_id] = reason
    return waiting, dated


def _tasks(stack: Stack, certificate: Certificate, node: LedgerNode) -> list[BlockTask]:
    whole = BlockTask(
        kind=TaskKind.READ_BACK,
        attempt=str(certificate.uid),
        source=source_of(stack, node),
        data_key=certificate.data.key,
        blocks=tuple(plan_of(certificate)),
        version_id=certificate.data.version_id,
        topic=certificate.ml_name,
        budget_key=stack.budget_key,
        digest=certificate.block_digest,
    )
    pieces = split_task(whole, bytes_max=stack.settings.offload.task_bytes)
    return [*pieces, *(replace(p, kind=TaskKind.READ_SOURCE, version_id=None) for p in pieces)]


def _judge(
    stack: Stack, stored: Stored[Certificate], rows: list[BlockRow], before: str
) -> NotNow[str] | None:
    certificate = stored.record
    outage = next(
        (r for r in rows if r.error and (r.retryable or r.kind is TaskKind.READ_SOURCE)), None
    )
    if outage is not None:
        return _unread(f"block {outage.part_number}: {outage.error}")
    missing = _without_row(certificate, rows)
    if missing and not any(r.error for r in rows):  # a task stops at its first bad block
        return _unread(f"its tasks ended without a row for blocks {missing[:10]}")
    try:
        found = [f"block {r.part_number}: {r.error}" for r in rows if r.error]
        found += _differences(stack, certificate, rows)
    except IntegrityError as error:  # one block read twice, with different results
        found = [str(error)]
    except TierkeeperError as error:
        return _unread(error)
    if not found:
        return None
    said = "; ".join(found[:_NAMED_MAX])
    _quarantine(stack, stored, f"read again before its {before}: {said}")
    return NotNow((f"read again before the {before}, the copy differs: {said}; quarantined",))


def _without_row(certificate: Certificate, rows: list[BlockRow]) -> list[int]:
    """Blocks that one of the two kinds of task said nothing about: a lost task is no difference."""
    wanted = {block.part_number for block in certificate.blocks}
    seen = [
        {r.part_number for r in rows if r.kind is kind}
        for kind in (TaskKind.READ_BACK, TaskKind.READ_SOURCE)
    ]
    return sorted(wanted - (seen[0] & seen[1]))


def _differences(stack: Stack, certificate: Certificate, rows: list[BlockRow]) -> list[str]:
    back = rows_by_part(r for r in rows if r.kind is TaskKind.READ_BACK)
    data = stack.objects.head(certificate.data.key)
    index = stack.objects.get(certificate.index.key, bytes_max=INDEX_BYTES_MAX)
    return certificate_differences(
        certificate, data=data, index=index, rows=back
    ) + find_differences(
        plan=tuple(plan_of(certificate)),
        source=rows_by_part(r for r in rows if r.kind is TaskKind.READ_SOURCE),
        stored=back,
        last_entry_id=certificate.ledger.last_entry_id,
    )


def _unread(why: object) -> NotNow[str]:
    return NotNow((f"could not be read again: {why}",))


def _quarantine(stack: Stack, stored: Stored[Certificate], reason: str) -> None:
    record = stored.record
    quarantine(
        stack,
        record.ledger.ledger_id,
        record.uid,
        ml_name=record.ml_name,
        reason=reason,
        previous=record.previous,
    )
    reach("release.quarantined", record.ledger.ledger_id, topic=record.ml_name, attempt=record.uid)
