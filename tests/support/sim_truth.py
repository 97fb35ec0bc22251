"""What is true in the simulation: records as they lie there, topics, and whether readers can read.

Owns: nothing here asks the code under test whether it did right. Readability is judged by the
metadata as it is at that instant, by the broker's memory, and by the objects' bytes decoded and
compared with what producers wrote.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from hashlib import sha256
from itertools import pairwise
from typing import TYPE_CHECKING, Any
from uuid import UUID

from tests.support.sim_evidence import Bounds, Question, too_old
from tests.support.sim_objects import decode_pair
from tiering_assets.offload_format.keys import data_key, index_key
from tiering_assets.records import keys
from tiering_assets.resources.errors import FormatError
from tiering_assets.resources.metastore.ledger_info import (
    LedgerInfo,
    ManagedLedger,
    decode_managed_ledger,
)
from tiering_assets.resources.metastore.topic_names import managed_ledger_path

if TYPE_CHECKING:
    from tests.support.sim_clients import Process, Site
    from tests.support.sim_world import World

CLOCKS_APART_S = 60.0  # two workers' skews, and the store's whole seconds
Name = tuple[str, int, str]  # instance, ledger, attempt


@dataclass(frozen=True, slots=True)
class Found:
    """One violation. `step` counts remote calls; `at` is true time in seconds."""

    step: int
    at: float
    invariant: str
    detail: str


@dataclass(frozen=True, slots=True)
class Rotted:
    """A byte that changed where it lies. Size, ETag and times stay: only who reads it can know."""

    offset: int
    at: float

    def was_read_by(self, process: Process, key: str) -> bool:
        spans = process.ranges.get(key, {}).items()
        return any(start <= self.offset < end and at > self.at for (start, end), at in spans)


class Truth:
    """What the judges share. `damaged` are attempts whose objects somebody else broke."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.found: list[Found] = []
        self.aside: frozenset[str] = frozenset()  # invariants that nobody asks about in this run
        self.excused: set[tuple[str, int]] = set()
        self.damaged: set[UUID] = set()
        self.broken_at: dict[UUID, float] = {}  # people took or replaced objects of it
        self.rotted: dict[UUID, Rotted] = {}
        self.published_at: dict[tuple[Name, int], float] = {}  # by the context's timestamp
        self.publications: dict[Name, str] = {}  # the first record's key
        self.quarantined_at: dict[Name, float] = {}
        self.held_at: dict[tuple[str, int], float] = {}
        self.put_at: dict[str, float] = {}
        self.attempts: dict[str, str] = {}  # data key -> process that made the attempt
        self.named_since: dict[UUID, float] = {}  # a restored node names it from then on
        self._confirmed: dict[Name, list[str]] = {}
        self._approved: dict[tuple[str, str], float] = {}
        self._verdicts: dict[tuple[UUID, int], tuple[Any, Any, bool]] = {}

    def report(self, invariant: str, detail: str) -> None:
        world = self.world
        if invariant in self.aside:
            return
        self.found.append(Found(world.calls, round(world.scheduler.now, 3), invariant, detail))

    def judge_age(self, process: Process, effect: str, needs: Iterable[Question]) -> None:
        """I21: every effect stands on evidence that its process asked for a short time before."""
        bounds = Bounds.of(self.world.settings)
        for fault in too_old(bounds, process.asked, needs, began=process.call_began):
            self.report("I21", f"{effect}: {fault}")

    def knew(self, process: Process, question: Question, since: float) -> bool:
        """Whether what is so since then was so when the process asked; it must have asked.

        Topics side by side each stand on what was answered to their own thread, if it asked.
        """
        own = process.asked_by.get((self.world.scheduler.current, question))
        asked = process.asked.get(question) if own is None else own
        return asked is None or asked >= since

    # ----- readability

    def check_all(self) -> None:
        for site in self.world.sites:
            self.check_site(site)

    def check_site(self, site: Site) -> None:
        for ml_name in site.broker.names():
            self.check_topic(site, ml_name)

    def check_topic(self, site: Site, ml_name: str) -> None:
        """I1 and I4 of one topic, by metadata and by its broker's memory."""
        topic = self.topic(site, ml_name)
        if topic is None:
            return
        for info in topic.ledgers:
            if not self.readable(site, info):
                self.report("I1", f"ledger {info.ledger_id} of {ml_name} is in no tier: {info}")
            elif not self._lost_before(site, info):
                continue
            self.excused.add((site.cluster.instance, info.ledger_id))
        loaded = site.broker.topics.get(ml_name)
        if loaded is None:
            return
        listed = {info.ledger_id for info in topic.ledgers}
        for info in decoded(loaded.message.SerializeToString()).ledgers:
            if info.ledger_id in listed and not self.readable(site, info):
                self.report(
                    "I1", f"a reader of ledger {info.ledger_id} of {ml_name} stalls: {info}"
                )
                self.excused.add((site.cluster.instance, info.ledger_id))

    def _lost_before(self, site: Site, info: LedgerInfo) -> bool:
        """Neither bookies nor the store have it, by no doing of ours: a context that goes loses
        nothing.
        """
        context, ledger_id = info.offload, info.ledger_id
        if context is None or not context.complete or not site.cluster.written.get(ledger_id):
            return False
        good = self.is_good(site, context.uid, ledger_id)
        return not (site.cluster.has_copy(ledger_id) or good)

    def readable(self, site: Site, info: LedgerInfo) -> bool:
        cluster, context = site.cluster, info.offload
        truth = cluster.written.get(info.ledger_id)
        if not truth or (cluster.instance, info.ledger_id) in self.excused:
            return True
        on_bookies = cluster.has_copy(info.ledger_id)
        if context is None or not context.complete:
            return on_bookies
        if site.broker.bookkeeper_first and not context.bookkeeper_deleted:
            return on_bookies
        if self.is_good(site, context.uid, info.ledger_id):
            return True
        # A broker's own lag asks for no proof; that we never do it is judged before a delete.
        damaged = context.uid in self.damaged
        return damaged and (on_bookies or site.broker.lag_s is not None)

    def is_good(self, site: Site, uid: UUID, ledger_id: int) -> bool:
        """Both objects are there, are served, and decode to what producers wrote."""
        data = self.world.objects.served(data_key(uid, ledger_id))
        index = self.world.objects.served(index_key(uid, ledger_id))
        if data is None or index is None:
            return False
        known = self._verdicts.get((uid, ledger_id))
        if known is not None and known[0] is data[0] and known[1] is index[0]:
            return known[2]
        try:
            good = decode_pair(data[0], index[0]) == site.cluster.written.get(ledger_id)
        except FormatError:
            good = False
        self._verdicts[uid, ledger_id] = (data[0], index[0], good)
        return good

    # ----- what lies there

    def hold(self, instance: str, ledger_id: int) -> None:
        self.held_at[instance, ledger_id] = self.world.scheduler.now

    def held(self, instance: str) -> set[int]:
        return {i for name, i in self.held_at if name == instance}

    def approve(self, site: Site, digest: str) -> None:
        """A person had a plan carried out."""
        self._approved[site.cluster.instance, digest] = self.world.scheduler.now

    def approved(self, instance: str, kind: str) -> list[Mapping[str, Any]]:
        """Plans (of kind `expired_plan` or `forget_plan`) that were approved and are in date."""
        found = []
        valid_s = self.world.settings.release.plan_valid_s + CLOCKS_APART_S
        for name, digest in self._approved:
            key = getattr(keys, kind)(digest)
            put_at = self.put_at.get(f"tierkeeper/{instance}/{key}")
            plan = self.record(instance, key) if name == instance else None
            if plan is None or put_at is None:
                continue
            if self.world.scheduler.now - put_at <= valid_s:
                found.append(plan)
        return found

    def has_record(self, instance: str, key: str) -> bool:
        return self.record(instance, key) is not None

    def is_dated_backwards(self, instance: str, ledger_id: int, uid: UUID) -> bool:
        """Proven before it was begun, or published before it was proven, by clocks a day apart.

        The suite of certificates holds it until a person has it copied again.
        """
        attempt = self.attempt_of(instance, ledger_id, uid)
        certificate = self.record(instance, keys.certificate(ledger_id, uid))
        if attempt is None or certificate is None:
            return False
        said = [attempt["started_at"], certificate["verified_at"]]
        said += self._confirmed.get((instance, ledger_id, str(uid)), [])
        dates = map(datetime.fromisoformat, said)
        return any((a - b).total_seconds() > CLOCKS_APART_S for a, b in pairwise(dates))

    def topics_of(self, site: Site) -> Iterable[tuple[str, ManagedLedger]]:
        for ml_name in site.broker.names():
            topic = self.topic(site, ml_name)
            if topic is not None:
                yield ml_name, topic

    def topic(self, site: Site, ml_name: str) -> ManagedLedger | None:
        stored = site.cluster.metadata.nodes.get(managed_ledger_path(ml_name))
        try:
            return None if stored is None else decoded(stored.data)
        except FormatError:  # nobody can say what it lists
            return None

    def attempt_of(self, instance: str, ledger_id: int, uid: UUID) -> Mapping[str, Any] | None:
        return self.record(instance, keys.attempt(ledger_id, uid))

    def record(self, instance: str, key: str) -> Mapping[str, Any] | None:
        found = self.world.objects.peek(f"tierkeeper/{instance}/{key}")
        return None if found is None else json.loads(found[0])

    def digest(self, instance: str, key: str) -> str | None:
        found = self.world.objects.peek(f"tierkeeper/{instance}/{key}")
        return None if found is None else sha256(found[0]).hexdigest()


@lru_cache(maxsize=256)
def decoded(data: bytes) -> ManagedLedger:
    return decode_managed_ledger(data)


def without_contexts(topic: ManagedLedger) -> bytes:
    message = topic.message_copy()
    for info in message.ledgerInfo:
        info.ClearField("offloadContext")
    return message.SerializeToString()
