"""The shared real stack as the interop tests use it: seal, offload, release, and ask every side.

Nothing here is the product. Traffic comes from the public client, the broker's own offloader is
asked over admin REST, and what bookies, bucket and metadata hold is read anew for each question.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

from tests.support.bookie_admin import CollectingBookie
from tests.support.topic_halves import release_topic
from tiering_assets.batch.pipeline import LedgerOutcome, offload_batch
from tiering_assets.catalogue.post import post
from tiering_assets.catalogue.view import Catalogue
from tiering_assets.copy.ask_first import require_proven
from tiering_assets.ground.reasons import NotNow
from tiering_assets.ground.stack import Stack, open_stack
from tiering_assets.look.ledger.survey import LedgerView, survey
from tiering_assets.offload_format.decoder import Index, block_lengths, decode_index
from tiering_assets.offload_format.keys import data_key, index_key
from tiering_assets.offload_format.walker import iter_block_entries
from tiering_assets.release.work import Released
from tiering_assets.resources.bookkeeper.ledger import LedgerMetadata
from tiering_assets.resources.bookkeeper.pool import BookiePool
from tiering_assets.resources.bookkeeper.reader import LedgerReader
from tiering_assets.resources.bookkeeper.wire_v2 import ReadEntry
from tiering_assets.resources.devstack.endpoints import Endpoints
from tiering_assets.resources.devstack.probes import http_call
from tiering_assets.resources.devstack.stack import DevStack
from tiering_assets.resources.devstack.traffic import (
    Content,
    TopicSpec,
    consume_all,
    content_of,
    iter_messages,
    produce,
    seal,
)
from tiering_assets.resources.errors import BookieError, LedgerNotOnBookieError
from tiering_assets.resources.metastore.ledger_info import ManagedLedger
from tiering_assets.resources.object_store.s3 import S3ObjectStore
from tiering_assets.tasks.runner import LocalRunner

LAG_S = 1.0  # the shortest that still makes a release wait
PATIENCE_S = 180.0


def wait_until(is_so: Callable[[], object], what: str, *, timeout_s: float = PATIENCE_S) -> None:
    """Look five times a second until it is so; AssertionError after `timeout_s`."""
    deadline = time.monotonic() + timeout_s
    while not is_so():
        assert time.monotonic() < deadline, f"not so after {timeout_s:.0f} s: {what}"
        time.sleep(0.2)


@dataclass(frozen=True)
class BrokerObjects:
    """Both objects of one ledger as they lie in the bucket."""

    data: bytes
    index: bytes


@dataclass(frozen=True)
class TieredCluster:
    """A running DevStack and the steps' view of it, with a deletion lag of a second."""

    running: DevStack
    steps: Stack

    @property
    def endpoints(self) -> Endpoints:
        return self.running.endpoints

    # ----- topics

    def fill(self, *specs: TopicSpec) -> Content:
        """Send the specs one after the other, each into ledgers of its own; return all content."""
        for spec in specs:
            produce(self.endpoints, spec)
            self.seal(spec)
        return content_of(chain.from_iterable(iter_messages(spec) for spec in specs))

    def seal(self, spec: TopicSpec) -> None:
        """Close the current ledgers and load the topics again, which lists them as closed."""
        seal(self.endpoints, spec)
        for topic in spec.physical_topics():
            self.steps.broker.internal_stats(topic)

    def content(self, spec: TopicSpec) -> Content:
        """What a new reader gets from the topic, from its first message to its last."""
        return consume_all(self.endpoints, spec, check=False)

    def views(self, spec: TopicSpec) -> list[LedgerView]:
        return list(survey(self.steps, ml_names(spec)))

    def ledger_ids(self, spec: TopicSpec, *states: str) -> list[int]:
        """Ids of the topic's ledgers in these states, ascending; SEALED if none is named."""
        wanted = states or ("sealed",)
        return sorted(v.ledger_id for v in self.views(spec) if v.state.value in wanted)

    def managed_ledger(self, spec: TopicSpec) -> ManagedLedger:
        [ml_name] = ml_names(spec)
        found = self.steps.topics.read(ml_name)
        assert found is not None
        return found[0]

    def admin(self, method: str, path: str, body: bytes | None = None) -> Any:
        """One admin call below /admin/v2; its JSON answer, or None."""
        port = urlsplit(self.endpoints.admin_url).port
        assert port is not None
        status, said = http_call(port, method, f"/admin/v2{path}", body=body, timeout_s=60)
        assert status in (200, 204), f"{method} {path} answered {status}: {said[:300]!r}"
        return json.loads(said) if said else None

    def make_namespace(self, namespace: str, **policies: object) -> None:
        """Create a namespace; each policy is the body of a POST to its path."""
        self.admin("PUT", f"/namespaces/{namespace}")
        for path, value in policies.items():
            self.admin("POST", f"/namespaces/{namespace}/{path}", json.dumps(value).encode())

    def broker_offloads(self, spec: TopicSpec) -> dict[str, Any]:
        """Have the broker's own offloader take all closed ledgers; return its last status."""
        path = f"/persistent/{spec.topic}"
        # The start of the open ledger: with the last message's place, its own ledger is not taken.
        [open_ledger] = self.ledger_ids(spec, "open")
        until = {"ledgerId": open_ledger, "entryId": 0, "partitionIndex": -1}
        self.admin("PUT", f"{path}/offload", json.dumps(until).encode())
        wait_until(lambda: self.admin("GET", f"{path}/offload")["status"] != "RUNNING", "offload")
        status: dict[str, Any] = self.admin("GET", f"{path}/offload")
        return status

    def restart_broker(self, **broker_conf: str) -> None:
        self.running.stop_server("broker")
        self.running.start_server("broker", broker_conf=broker_conf)

    # ----- the path under test

    def offload(self, ledger_ids: Iterable[int], *, publish: bool = True) -> list[LedgerOutcome]:
        """Copy, verify and publish; every ledger must make it, or have made it and more."""
        outcomes = offload_batch(self.steps, ledger_ids, publish=publish)
        wanted = {"published", "released"} if publish else {"verified"}
        for outcome in outcomes:
            assert outcome.error is None, outcome
            assert outcome.state in wanted, outcome
        return outcomes

    def release(self, spec: TopicSpec, ledger_ids: Sequence[int]) -> None:
        """Release all ledgers as soon as the lag has passed; none may be refused for another
        reason.
        """
        for ml_name in ml_names(spec):
            owned = {v.ledger_id for v in survey(self.steps, [ml_name])}
            waiting = [i for i in ledger_ids if i in owned]
            deadline = time.monotonic() + PATIENCE_S
            while waiting:
                results = release_topic(self.steps, ml_name, waiting)
                for ledger_id, result in results.items():
                    if isinstance(result, NotNow):
                        assert "lag has not elapsed" in str(result), (ledger_id, str(result))
                    else:
                        assert isinstance(result, Released), (ledger_id, result)
                waiting = [i for i in waiting if isinstance(results[i], NotNow)]
                assert not waiting or time.monotonic() < deadline, f"never due: {waiting}"
                time.sleep(0.3 if waiting else 0)
        for ledger_id in ledger_ids:
            assert self.steps.ledgers.read(ledger_id) is None

    # ----- what each side holds

    def ledger(self, ledger_id: int) -> LedgerMetadata:
        node = self.steps.ledgers.read(ledger_id)
        assert node is not None, f"ledger {ledger_id} is not in BookKeeper's metadata"
        return node.metadata

    def bookie_entries(self, ledger_id: int) -> Iterator[tuple[int, bytes]]:
        """(id, payload) of every entry, as the bookies serve it now."""
        metadata = self.ledger(ledger_id)
        settings = self.steps.settings.bookies
        with BookiePool(settings, self.steps.ledgers.resolve) as pool:
            batches = LedgerReader(metadata, pool, settings).iter_batches(
                first_entry_id=0, last_entry_id=metadata.last_entry_id
            )
            for batch in batches:
                for entry_id, payload, _cumulative_length in batch:
                    yield entry_id, bytes(payload)

    def objects(self, ledger_id: int, uid: UUID) -> BrokerObjects:
        bodies = []
        for key in (data_key(uid, ledger_id), index_key(uid, ledger_id)):
            found = self.steps.objects.get(key)
            assert found is not None, f"{key} is not in the bucket"
            bodies.append(found.body)
        return BrokerObjects(*bodies)

    def context_uid(self, spec: TopicSpec, ledger_id: int) -> UUID:
        """The attempt that the topic's metadata names for a ledger."""
        listed = self.managed_ledger(spec).ledger(ledger_id)
        assert listed is not None
        assert listed.offload is not None
        assert listed.offload.complete
        return listed.offload.uid

    def require_gone_from_bookies(self, ledger_ids: Iterable[int]) -> None:
        """Every bookie says that it has no such ledger, once it has collected its garbage."""
        left = set(ledger_ids)

        def all_gone() -> bool:
            for host, port in self.endpoints.bookie_http.values():
                with CollectingBookie(f"http://{host}:{port}") as admin:
                    if not admin.gc_running():
                        admin.trigger_gc()
            left.difference_update([i for i in left if self._is_gone(i)])
            return not left

        wait_until(all_gone, f"ledgers {sorted(left)} are gone from every bookie")

    def _is_gone(self, ledger_id: int) -> bool:
        with BookiePool(self.steps.settings.bookies, dict(self.endpoints.bookies)) as pool:
            for bookie_id in self.endpoints.bookies:
                try:
                    pool.connection(bookie_id).read(ReadEntry(ledger_id, 0))
                except LedgerNotOnBookieError:
                    continue
                except BookieError:  # known, and another entry of it is here
                    return False
                return False
        return True


@contextmanager
def tiered_cluster(
    running: DevStack, *, catalogue_root: str = "", bucket: str = ""
) -> Iterator[TieredCluster]:
    """Connect the steps to a running stack, with a runner in this process, the bucket proven.

    With `bucket` that is a new one, for tests that read all records again and again.
    """
    settings = running.settings()
    if bucket:
        settings = replace(settings, store=replace(settings.store, bucket=bucket))
        S3ObjectStore(settings.store).create_bucket()
    settings = replace(
        settings,
        catalogue=replace(settings.catalogue, root=catalogue_root),
        release=replace(settings.release, deletion_lag_s=LAG_S),
        # A broker's first read from the bucket loads its offloader, which takes long on a busy
        # machine.
        publish=replace(settings.publish, confirm_timeout_s=PATIENCE_S),
        broker=replace(settings.broker, timeout_s=PATIENCE_S),
    )
    with open_stack(settings, runner=LocalRunner(settings)) as steps:
        require_proven(steps)
        yield TieredCluster(running, steps)


def tables_apart(running: DevStack, name: str) -> str:
    """A place for a catalogue that other tests on this stack do not ask: they list what was sealed
    a second ago, and rows are as old as their posting.
    """
    return f"s3://{running.endpoints.s3_bucket}/tables-of-{name}"


def post_all(steps: Stack) -> None:
    """What runs wrote up to now is in the catalogue."""
    steps.book.close_page()
    catalogue = Catalogue.of(steps)
    while post(steps, catalogue).pages:
        pass


def ml_names(spec: TopicSpec) -> list[str]:
    """Managed ledgers of the spec's topics; the names of test topics need no escaping."""
    names = [topic.removeprefix("persistent://") for topic in spec.physical_topics()]
    return ["{}/{}/persistent/{}".format(*name.split("/")) for name in names]


def object_entries(objects: BrokerObjects, last_entry_id: int) -> Iterator[tuple[int, memoryview]]:
    """(id, payload) of every entry of a data object, by our decoder."""
    index: Index = decode_index(objects.index)
    assert index.data_object_length == len(objects.data)
    for block in block_lengths(index):
        last = last_entry_id if block.last_entry_id is None else block.last_entry_id
        yield from iter_block_entries(
            objects.data[block.offset : block.offset + block.length],
            first_entry_id=block.first_entry_id,
            entries_expected=last - block.first_entry_id + 1,
        )
