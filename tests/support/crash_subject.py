"""One topic that a process dies over: what was written to it, and what it costs to send it.

Owns: what the audit compares with is taken down before any of our code runs: the digest of every
entry as bookies serve it, and the topic's ledger list. The S3 endpoint is a proxy that counts the
parts that arrive, so the namespace's policy names it to the broker, too.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from hashlib import sha256
from urllib.parse import parse_qs, urlsplit

from tests.support.fault_lab import YOUNGEST_S, Lab, Topic, ml_name_of
from tests.support.http_proxy import Do, HttpProxy, Rule
from tests.support.sim_judge import judge, judge_ledgers
from tiering_assets.ground.stack import Stack
from tiering_assets.resources.bookkeeper.pool import BookiePool
from tiering_assets.resources.bookkeeper.reader import LedgerReader
from tiering_assets.resources.devstack.traffic import TopicSpec, produce
from tiering_assets.resources.object_store.s3 import S3ObjectStore

_DATA_KEY = re.compile(r"/[0-9a-f-]{36}-ledger-(?P<ledger_id>\d+)$")
_LEDGER_ENTRIES_MAX = 2000  # of the development stack's broker


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """`entries` are digests of payloads by ledger, in order of their ids; `blocks` counts parts."""

    topic: Topic
    ledger_ids: tuple[int, ...]
    entries: Mapping[int, tuple[bytes, ...]]
    blocks: int

    @property
    def ml_name(self) -> str:
        return self.topic.ml_name


class Workshop:
    """Makes subjects, by way of a proxy that counts parts and may be told to fail."""

    def __init__(self, lab: Lab, proxy: HttpProxy) -> None:
        self.lab = lab
        self.proxy = proxy
        self._sent: Counter[int] = Counter()
        settings = lab.settings
        self.settings = replace(
            settings,
            store=replace(settings.store, endpoint=proxy.url, attempts_max=2),
            offload=replace(settings.offload, claim_ttl_s=YOUNGEST_S),
        )
        self.on_part: Callable[[], None] = lambda: None
        self.obey(None)

    def obey(self, rule: Rule | None) -> None:
        """From now on every request is counted, and then treated by the rule."""

        def counted(method: str, path: str) -> Do:
            doing = Do.PASS if rule is None else rule(method, path)
            ledger_id = _sends_block_of(method, path)
            if ledger_id is not None and doing is not Do.REFUSE:
                self._sent[ledger_id] += 1
                self.on_part()
            return doing

        self.proxy.rule = counted

    def sent(self, subject: Subject) -> int:
        """Blocks of the subject that have arrived in the bucket, those sent again included."""
        return sum(self._sent[i] for i in subject.ledger_ids)

    def multi_block(self) -> Subject:
        """One ledger of two blocks."""
        namespace = self.namespace()
        topic = self.lab.multi_block_topic(namespace)
        return self._subject(topic, (topic.ledger_id,), blocks=2)

    def two_ledgers(self) -> Subject:
        """Two ledgers of one block each."""
        full = f"{self.namespace()}/two"
        spec = TopicSpec(topic=full, messages=_LEDGER_ENTRIES_MAX + 50, payload_bytes=64)
        produce(self.lab.endpoints, spec)
        ids = tuple(self.lab.close_current(full))
        if len(ids) != 2:
            raise RuntimeError(f"{full} has closed ledgers {ids}, expected two")
        topic = Topic(spec=spec, ml_name=ml_name_of(full), ledger_id=ids[0])
        return self._subject(topic, ids, blocks=2)

    def one_block(self) -> Subject:
        topic = self.lab.topic(self.namespace())
        return self._subject(topic, (topic.ledger_id,), blocks=1)

    def namespace(self) -> str:
        """A namespace of its own for each case, so that each has its canary."""
        namespace = self.lab.namespace("crash")
        self.let_read(namespace)
        return namespace

    def let_read(self, namespace: str, *, credentials: bool = True) -> None:
        """The broker reads by way of the proxy; or, without credentials, not at all."""
        policies = {
            **self.lab.offload_policies(),
            "s3ManagedLedgerOffloadServiceEndpoint": self.proxy.url,
        }
        if not credentials:
            policies["s3ManagedLedgerOffloadCredentialId"] = "nobody"
            policies["s3ManagedLedgerOffloadCredentialSecret"] = "no-secret-of-ours"
        self.lab.admin("POST", f"/namespaces/{namespace}/offloadPolicies", policies)

    @contextmanager
    def open(self) -> Iterator[Stack]:
        """For what nobody kills: the settings name the proxy, as contexts do; requests avoid it."""
        with self.lab.open(self.settings, judge=judge, judge_ledgers=judge_ledgers) as stack:
            objects = S3ObjectStore(self.lab.settings.store)
            yield replace(stack, objects=objects, book=stack.book.over(objects))

    def _subject(self, topic: Topic, ledger_ids: tuple[int, ...], *, blocks: int) -> Subject:
        with self.open() as stack:
            entries = {i: tuple(bookie_entries(stack, i)) for i in ledger_ids}
        return Subject(topic=topic, ledger_ids=ledger_ids, entries=entries, blocks=blocks)


def bookie_entries(stack: Stack, ledger_id: int) -> Iterator[bytes]:
    """Digest of every payload of a ledger, in order, as the bookies serve it now."""
    node = stack.ledgers.read(ledger_id)
    if node is None:
        return
    settings = stack.settings.bookies
    with BookiePool(settings, stack.ledgers.resolve) as pool:
        batches = LedgerReader(node.metadata, pool, settings).iter_batches(
            first_entry_id=0, last_entry_id=node.metadata.last_entry_id
        )
        for batch in batches:
            for _entry_id, payload, _length in batch:
                yield sha256(payload).digest()


def _sends_block_of(method: str, path: str) -> int | None:
    """The ledger whose block this request carries, or None."""
    parts = urlsplit(path)
    found = _DATA_KEY.search(parts.path)
    if method != "PUT" or found is None:
        return None
    asked = parse_qs(parts.query)
    return int(found["ledger_id"]) if not asked or "partNumber" in asked else None
