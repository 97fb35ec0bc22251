"""A fleet of any size that is there already: topics in a real ZooKeeper, rows in real tables.

Of each topic's ledgers the last is open, the one before it is sealed and below its threshold, the
one before that is in its deletion lag, and all others are released. So nothing is due. Records and
objects are not there: who lists or reads them by the ledger is seen by the requests that it makes
(scale.py), and at 10,000 ledgers with all their records by benchmarks/fleet.py.
"""

from __future__ import annotations

import json
import time
import urllib.request
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.fleet_records import Pattern, real_pattern
from tests.support.sim_broker_memory import halves
from tiering_assets.catalogue.columns import POSTED, TABLES
from tiering_assets.catalogue.scans_told import ScansTold
from tiering_assets.catalogue.upkeep.settle import settle
from tiering_assets.catalogue.view import Catalogue, Tables
from tiering_assets.ground.stack import Stack
from tiering_assets.records import keys
from tiering_assets.records.codec import encode_record
from tiering_assets.records.signature import with_digest
from tiering_assets.resources._proto import MLDataFormats_pb2 as ml_pb2
from tiering_assets.resources.metastore.store import NodeStat
from tiering_assets.resources.metastore.topic_names import managed_ledger_path
from tiering_assets.resources.object_store.records import encode_record as encode_json
from tiering_assets.resources.tables import Table

FIRST_ID: Final = 10**6
NAMESPACES: Final = 100
_LOT: Final = 500_000  # rows of one file
_ENTRIES: Final = 1000
_IN_FLIGHT: Final = 1000
_US: Final = pa.timestamp("us", "UTC")
_BYTES: Final = 1_000_000
_HOUR_US: Final = 3_600_000_000
_DAY_US: Final = 24 * _HOUR_US


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleFleet:
    """So many topics with so many ledgers each. Ids rise with time, so they go round the topics.

    Each copied ledger has so many blocks. Topics list their newest ledgers, `listed` of each.
    """

    topics: int
    per_topic: int
    now: datetime
    blocks: int = 1
    listed: int = 1000

    @property
    def ledgers(self) -> int:
        return self.topics * self.per_topic

    def name(self, topic: int) -> str:
        return f"fleet/ns{topic % NAMESPACES:02d}/persistent/t{topic:06d}"

    def ids_of(self, topic: int) -> list[int]:
        return [FIRST_ID + nth * self.topics + topic for nth in range(self.per_topic)]

    @property
    def middle(self) -> tuple[int, int]:
        """A topic, and a ledger of it that was released long ago."""
        topic = self.topics // 2
        return topic, self.ids_of(topic)[self.per_topic // 2]

    def closed_at(self, ledger_id: int) -> datetime:
        closed = _closed_us(self, np.array([ledger_id - FIRST_ID]))[0]
        return datetime.fromtimestamp(float(closed) / 1e6, UTC)


def write_nodes(stack: Stack, fleet: ScaleFleet, *, narrate: Callable[[str], None]) -> None:
    """A node of every topic, and one in BookKeeper of every ledger that is not released."""
    began, client = time.perf_counter(), stack.metadata._client  # type: ignore[attr-defined]
    pattern, waiting = real_pattern(), deque[Any]()
    metadata = bytes.fromhex(pattern.intent.ledger_metadata_hex)
    for number in range(NAMESPACES):
        client.ensure_path(managed_ledger_path(f"fleet/ns{number:02d}/persistent"))
    parents = set[str]()
    for path, data in _nodes(stack, fleet, pattern, metadata):
        parent = path.rpartition("/")[0]
        if parent not in parents:
            client.ensure_path(parent)
            parents.add(parent)
        waiting.append(client.create_async(path, data))
        if len(waiting) > _IN_FLIGHT:
            waiting.popleft().get()
    for one in waiting:
        one.get()
    narrate(f"{fleet.topics} topics in ZooKeeper in {time.perf_counter() - began:.0f} s")


def make_namespaces(admin_url: str) -> None:
    """By a broker, which is asked for policies of their topics later."""

    def put(path: str, body: object) -> None:
        request = urllib.request.Request(
            f"{admin_url}/admin/v2/{path}",
            data=json.dumps(body).encode(),
            headers={"Content-Type": "application/json"},
            method="PUT",
        )
        urllib.request.urlopen(request, timeout=60).close()

    put("tenants/fleet", {"adminRoles": [], "allowedClusters": ["local"]})
    for number in range(NAMESPACES):
        put(f"namespaces/fleet/ns{number:02d}", {"replication_clusters": ["local"]})


def _nodes(
    stack: Stack, fleet: ScaleFleet, pattern: Pattern, metadata: bytes
) -> Iterator[tuple[str, bytes]]:
    for topic in range(fleet.topics):
        message = ml_pb2.ManagedLedgerInfo()
        ids = fleet.ids_of(topic)[-fleet.listed :]
        for nth, ledger_id in enumerate(ids):
            left = len(ids) - 1 - nth
            info = message.ledgerInfo.add()
            if left == 0:
                info.ledgerId = ledger_id
                continue
            info.CopyFrom((pattern.released if left > 2 else pattern.published).ledgerInfo[0])
            info.ledgerId, info.size, info.entries = ledger_id, _BYTES, _ENTRIES
            info.timestamp = int(fleet.closed_at(ledger_id).timestamp() * 1000)
            if left == 1:
                info.ClearField("offloadContext")
            else:
                halved = halves(UUID(int=ledger_id))
                info.offloadContext.uidMsb, info.offloadContext.uidLsb = halved
            if left <= 2:
                yield stack.ledgers.path(ledger_id), metadata
        yield managed_ledger_path(fleet.name(topic)), message.SerializeToString()


def _closed_us(fleet: ScaleFleet, numbers: Any) -> Any:
    """Spread over 300 days, but for the last two of a topic: one and three hours ago."""
    left = fleet.per_topic - 1 - numbers // fleet.topics
    now_us = int(fleet.now.timestamp() * 1e6)
    days_us = 300 * _DAY_US * (1 - numbers / max(1, fleet.ledgers))
    spread = now_us - 4 * _HOUR_US - days_us.astype(int)
    hours = np.where(left == 1, 1, 3)
    closed = np.where(left <= 2, now_us - hours * _HOUR_US, spread)
    return closed // 1000 * 1000  # as nodes have it, else a scan finds each to be another one


def write_rows(stack: Stack, fleet: ScaleFleet, *, narrate: Callable[[str], None]) -> None:
    """Settled tables of the fleet, proven and scanned just now. Topics have the nodes they have."""
    began = time.perf_counter()
    stack.book.name_found(())  # the page that the tables go to
    stack.book.close_page()
    catalogue = Catalogue.of(stack)
    tables = catalogue.opened(make=True)
    for first in range(0, fleet.ledgers, _LOT):
        rows = ledger_rows(fleet, np.arange(first, min(fleet.ledgers, first + _LOT)))
        _append(tables.settled["ledgers"], rows)
        for some in range(0, len(rows), _LOT // fleet.blocks):
            _append(tables["blocks"], block_rows(fleet, rows.slice(some, _LOT // fleet.blocks)))
    _append(tables.settled["topics"], _topic_rows(stack, fleet))
    call_proven(tables, fleet.now)
    for name in tables.settled:
        settle(catalogue, name, at=fleet.now, tail_max=-1)  # as tables are once they were rebuilt
    narrate(f"{fleet.ledgers} rows in {time.perf_counter() - began:.0f} s")


def write_attempt(stack: Stack, fleet: ScaleFleet, topic: int, ledger_id: int) -> None:
    """The record that tells whose ledger it is, once BookKeeper has it no more."""
    pattern, uid = real_pattern().attempt, UUID(int=ledger_id)
    facts = replace(pattern.ledger, ledger_id=ledger_id)
    record = replace(pattern, ml_name=fleet.name(topic), uid=uid, ledger=facts)
    body = encode_json(with_digest(encode_record(record)))
    stack.objects.put(stack.book.prefix + keys.attempt(ledger_id, uid), body)


def call_proven(tables: Tables, now: datetime) -> None:
    """As a proof and a whole scan of now would."""
    then = now.isoformat()
    told = {"page": "1", "in_work": "{}", "proven_at": then, "written_at": then}
    for name in POSTED:
        tables[name].append(TABLES[name].empty_table(), mark=1, told=told)
    topics = tables["topic_changes"]
    topics.append(TABLES["topic_changes"].empty_table(), told=ScansTold(now, 0).told())


def _append(table: Table, rows: pa.Table) -> None:
    if not table.again().append(rows, told={}):
        raise SystemExit(f"{table.name}: somebody else writes")


def ledger_rows(fleet: ScaleFleet, numbers: Any) -> pa.Table:
    """Rows of so-manieth ledgers, in columns."""
    count, topic = len(numbers), numbers % fleet.topics
    left = fleet.per_topic - 1 - numbers // fleet.topics
    ids = numbers + FIRST_ID
    copied, released = left > 1, left > 2
    closed = _closed_us(fleet, numbers)
    published = closed + _HOUR_US // 2
    uids = [str(UUID(int=int(i))) if some else None for i, some in zip(ids, copied, strict=True)]
    choose = (left == 0, left == 1, left == 2)

    def moments(values: Any, where: Any) -> Any:
        every = pa.array(values.astype("int64")).cast(_US)
        return pc.if_else(pa.array(where), every, pa.nulls(count, _US))

    columns: dict[str, Any] = {
        "ledger_id": ids,
        "topic": [fleet.name(int(one)) for one in topic],
        "tenant": ["fleet"] * count,
        "namespace": [f"fleet/ns{int(one) % NAMESPACES:02d}" for one in topic],
        "state": np.select(choose, ("open", "sealed", "published"), "released"),
        "entries": np.full(count, _ENTRIES),
        "bytes": np.where(left == 0, 0, _BYTES),
        "object_bytes": np.full(count, _BYTES),
        "closed_at": moments(closed, left > 0),
        "listed_as": np.select(choose, ("open", "bookies", "offloaded"), "marked"),
        "context_uid": uids,
        "ml_version": np.zeros(count, int),
        "seen_at": [fleet.now] * count,
        "uid": uids,
        "offloaded_by": ["tierkeeper" if some else None for some in copied],
        "bookie_copy": np.where(released, "deleted", "live"),
        "attempts": copied.astype(int),
        "certified_at": moments(published, copied),
        "certificate_sha256": [
            f"{i:064x}" if some else None for i, some in zip(ids, copied, strict=True)
        ],
        "published_at": moments(published, copied),
        "released_at": moments(closed + 2 * _DAY_US, released),
        "verified_at": moments(published, copied),
        "deep_at": moments(published, copied),
        "page": np.zeros(count, int),
        "turn": np.zeros(count, int),
    }
    return _table(columns, "ledger_changes", count)


def block_rows(fleet: ScaleFleet, ledgers: pa.Table) -> pa.Table:
    """Blocks of each copied ledger, alike in size, with a message a second up to its end."""
    copied = ledgers.filter(pc.is_valid(ledgers["uid"]))
    ids: list[Any] = copied["ledger_id"].to_pylist()
    keys = [f"{uid}-ledger-{i}" for uid, i in zip(copied["uid"].to_pylist(), ids, strict=True)]
    copied = copied.append_column("data_key", pa.array(keys))
    copied = copied.append_column("run_id", pa.array([f"run-{i % 1000}" for i in ids]))
    nth = np.tile(np.arange(fleet.blocks), copied.num_rows)
    of_ledger: Any = pa.array(np.repeat(np.arange(copied.num_rows), fleet.blocks))
    copied = copied.take(of_ledger)
    count, entries, payload = len(nth), _ENTRIES // fleet.blocks, _BYTES // fleet.blocks
    columns: dict[str, Any] = {
        **{name: copied[name] for name in ("topic", "ledger_id", "data_key", "run_id", "uid")},
        "part": nth + 1,
        "first_entry_id": nth * entries,
        "last_entry_id": nth * entries + entries - 1,
        "publish_min": _before(copied["closed_at"], _ENTRIES - nth * entries),
        "publish_max": _before(copied["closed_at"], _ENTRIES - (nth + 1) * entries),
        "messages": np.full(count, entries),
        "bucket": ["tierkeeper"] * count,
        "offset": nth * (payload + 128),
        "length": np.full(count, payload + 128),
        "payload_bytes": np.full(count, payload),
        "sha256": copied["certificate_sha256"],
        "certificate_sha256": copied["certificate_sha256"],
        "written_by": ["tierkeeper"] * count,
        "page": np.ones(count, int),
    }
    return _table(columns, "blocks", count)


def _before(moments: Any, seconds: Any) -> Any:
    return pc.subtract(moments, pa.array(seconds * 1_000_000).cast(pa.duration("us")))


def _topic_rows(stack: Stack, fleet: ScaleFleet) -> pa.Table:
    names = [fleet.name(topic) for topic in range(fleet.topics)]
    found = stack.metadata.stat_many(map(managed_ledger_path, names))
    none = NodeStat(version=0, czxid=0, mzxid=0, ctime_ms=0, mtime_ms=0)
    stats = [one or none for one in found]
    count = fleet.topics
    columns: dict[str, Any] = {
        "topic": names,
        "tenant": ["fleet"] * count,
        "namespace": [f"fleet/ns{topic % NAMESPACES:02d}" for topic in range(count)],
        "czxid": [one.czxid for one in stats],
        "mzxid": [one.mzxid for one in stats],
        "ml_version": [one.version for one in stats],
        "written_at": [datetime.fromtimestamp(one.mtime_ms / 1000, UTC) for one in stats],
        "ledgers": [fleet.per_topic] * count,
        "on_bookies": [1] * count,
        "on_bookies_bytes": [_BYTES] * count,
        "offloaded": [fleet.per_topic - 2] * count,
        "terminated": [False] * count,
        "seen_at": [fleet.now] * count,
        "turn": [0] * count,
    }
    return _table(columns, "topic_changes", count)


def _table(columns: dict[str, Any], name: str, count: int) -> pa.Table:
    schema = TABLES[name]
    arrays = [_column(columns.get(one.name), one.type, count) for one in schema]
    return pa.Table.from_arrays(arrays, schema=schema)


def _column(values: Any, kind: Any, count: int) -> Any:
    if values is None:
        return pa.nulls(count, kind)
    return values if isinstance(values, pa.ChunkedArray) else pa.array(values, kind)
