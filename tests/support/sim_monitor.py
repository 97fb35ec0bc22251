"""The invariants of docs/design, judged at every remote effect by what is true in the simulation.

Owns: nothing here asks the code under test whether it did right. Readability is judged by the
metadata as it is at that instant, by the broker's memory, and by the objects' bytes decoded and
compared with what producers wrote; a delete is judged before it is applied, against the records that
lie in the bucket then.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any
from uuid import UUID

from resources.errors import FormatError
from resources.metastore.ledger_info import LedgerInfo, ManagedLedger, decode_managed_ledger
from resources.metastore.topic_names import managed_ledger_path
from resources.pulsar.admin import TopicLoad
from tests.support.sim_objects import decode_pair
from tiering_assets.offload_format.keys import data_key, index_key, parse_key
from tiering_assets.records import keys

if TYPE_CHECKING:
    from tests.support.sim_clients import Process, Site
    from tests.support.sim_world import World

CLOCKS_APART_S = 60.0  # two workers' skews, and the store's whole seconds


@dataclass(frozen=True, slots=True)
class Found:
    """One violation. `step` counts remote calls; `at` is true time in seconds."""

    step: int
    at: float
    invariant: str
    detail: str


class Monitor:
    def __init__(self, world: World) -> None:
        self.world = world
        self.found: list[Found] = []
        self.excused: set[tuple[str, int]] = set()
        self.damaged: set[UUID] = set()
        self._published_at: dict[tuple[str, int, str], float] = {}
        self._publications: dict[tuple[str, int, str], str] = {}  # the first record's key
        self._quarantined_at: dict[tuple[str, int, str], float] = {}
        self._stood: set[tuple[str, int, str]] = set()
        self._put_at: dict[str, float] = {}
        self._confirmed: dict[tuple[str, int, str], list[str]] = {}
        self._attempts: dict[str, str] = {}  # data key -> process that made the attempt
        self._disturbed: set[tuple[str, str]] = set()
        self._held_at: dict[tuple[str, int], float] = {}
        self._verdicts: dict[tuple[UUID, int], tuple[Any, Any, bool]] = {}
        self._node_before: bytes | None = None

    def report(self, invariant: str, detail: str) -> None:
        world = self.world
        self.found.append(Found(world.calls, round(world.scheduler.now, 3), invariant, detail))

    # ----- what our processes do

    def before(
        self, process: Process, room: str, method: str, args: tuple[Any, ...], kwargs: Any
    ) -> None:
        match room, method:
            case "metadata", "get":
                process.read_at[args[0]] = self.world.calls
            case "objects", "list_objects" if not args or not args[0]:
                process.listed_at = self.world.calls
            case "metadata", "check_and_delete" | "delete":
                self._before_delete(process, method, args, kwargs)
            case "metadata", "set":
                stored = process.site.cluster.metadata.nodes.get(args[0])
                self._node_before = None if stored is None else stored.data
            case "objects", "delete":
                self._before_object_delete(process, args[0], kwargs.get("version_id"))
            case "objects", "abort_upload":
                self._before_abort(process, args[0])
            case "objects", "put" | "complete_upload":
                self._before_put(method, args[0], kwargs)
            case "broker", "unload_topic":
                if (process.name, args[0]) not in self._disturbed:
                    self.report("I16", f"{args[0]} unloaded without a record of it")
            case _:
                pass

    def after(
        self, process: Process, room: str, method: str, args: tuple[Any, ...], kwargs: Any
    ) -> None:
        match room, method:
            case "metadata", "set":
                self._after_set(process, args[0], args[1])
            case "metadata", "check_and_delete" | "delete":
                self.check_site(process.site)
            case "objects", "delete":
                self.check_all()
            case "objects", "put":
                self._after_put(process, args[0], bytes(args[1]))
            case _:
                pass

    def _before_delete(
        self, process: Process, method: str, args: tuple[Any, ...], kwargs: Any
    ) -> None:
        nodes = process.site.cluster.metadata.nodes
        if method == "delete":
            checks: list[Any] = []
            paths, holds = [args[0]], True
        else:
            checks = list(kwargs["checks"])
            deletes = list(kwargs["deletes"])
            paths = [d.path for d in deletes]
            holds = kwargs.get("session_id") in (None, process.metadata.session_id()) and all(
                c.path in nodes and nodes[c.path].stat.version == c.version
                for c in (*checks, *deletes)
            )
        if not holds:
            return
        for path in paths:
            if path.startswith("/ledgers/L") and path in nodes:
                self._judge_release(process, int(path[10:]), {c.path for c in checks})

    def _judge_release(self, process: Process, ledger_id: int, checked: set[str]) -> None:
        cluster = process.site.cluster
        ml_name = cluster.owner[ledger_id]
        path = managed_ledger_path(ml_name)
        if path not in checked:
            self.report("I7", f"ledger {ledger_id} deleted without a check of its topic's node")
        topic = self._topic(process.site, ml_name)
        listed = None if topic is None else topic.ledger(ledger_id)
        context = None if listed is None else listed.offload
        if context is None or not context.complete or not context.bookkeeper_deleted:
            self.report("I1", f"ledger {ledger_id} deleted while its context is {context}")
            return
        uid, instance = context.uid, cluster.instance
        intent = self._record(instance, keys.release_intent(ledger_id, uid))
        if intent is None:
            self.report("I16", f"ledger {ledger_id} deleted without an intent for {uid}")
        certificate = self._record(instance, keys.certificate(ledger_id, uid))
        if certificate is None:
            self.report("I2", f"ledger {ledger_id} deleted without a certificate of {uid}")
        else:
            head = self.world.objects.peek_head(data_key(uid, ledger_id))
            if head is None or head.etag != certificate["data"]["etag"]:
                self.report("I2", f"ledger {ledger_id} deleted, its object is not the certified")
            if intent is not None and intent["certificate_sha256"] != self._digest(
                instance, keys.certificate(ledger_id, uid)
            ):
                self.report("I2", f"ledger {ledger_id}: the intent names another certificate")
        if not self.is_good(process.site, uid, ledger_id):
            self.report("I3", f"ledger {ledger_id} deleted, the object of {uid} is not its copy")
        outcome = self._record(instance, keys.outcome(ledger_id, uid))
        if outcome is None or outcome["outcome"] != "publish":
            self.report("I16", f"ledger {ledger_id} deleted, the outcome of {uid} is {outcome}")
        doubted = self._quarantined_at.get((instance, ledger_id, str(uid)))
        if doubted is not None and doubted < process.began_at:
            self.report("I2", f"ledger {ledger_id} deleted, attempt {uid} is quarantined")
        published = self._published_at.get((instance, ledger_id, str(uid)))
        lag_s = self.world.settings.release.deletion_lag_s
        # Two clocks that are ahead alike cannot be told from time that has passed.
        ahead_s = max(0.0, min(self.world.store_offset_s, process.skew_s))
        now = self.world.scheduler.now + ahead_s
        if published is None:
            self.report("I2", f"ledger {ledger_id} deleted, {uid} was never confirmed published")
        elif now - published < lag_s - CLOCKS_APART_S:
            self.report(
                "I5", f"ledger {ledger_id} deleted {now - published:.0f} s after publishing"
            )
        topic_name = "persistent://{}/{}/{}".format(*ml_name.replace("/persistent", "").split("/"))
        ends = {(ledger_id, 0), (ledger_id, len(cluster.written[ledger_id]) - 1)}
        known_idle = process.located.get(topic_name) is TopicLoad.NOT_LOADED
        if not known_idle and not ends <= process.rehearsed:
            self.report("I2", f"ledger {ledger_id} deleted, its broker was not asked to read it")
        held = self._held_at.get((instance, ledger_id))
        if held is not None and held < process.began_at:
            self.report("I11", f"ledger {ledger_id} deleted under a hold")

    def _before_object_delete(self, process: Process, key: str, version_id: str | None) -> None:
        current = self.world.objects.peek_head(key)
        if current is None or version_id not in (None, current.version_id):
            return  # an old version, or one that is hidden already
        parsed = parse_key(key)
        if parsed is None:
            if not key.startswith(f"tierkeeper/{process.site.cluster.instance}/failures/"):
                self.report("I16", f"{key} deleted, which is a record or foreign")
            return
        site, uid, ledger_id = process.site, parsed.uid, parsed.ledger_id
        instance = site.cluster.instance
        attempt = self._record(instance, keys.attempt(ledger_id, uid))
        for other in self.world.sites:
            for ml_name in other.broker.names():
                topic = self._topic(other, ml_name)
                if topic is not None and any(
                    i.offload is not None and i.offload.uid == uid for i in topic.ledgers
                ):
                    self.report("I9", f"{key} deleted, a context of {ml_name} names it")
        if attempt is None:
            self._judge_leftover(site, key, uid, ledger_id)
            return
        outcome = self._record(instance, keys.outcome(ledger_id, uid))
        abandoned = outcome is not None and outcome["outcome"] == "abandon"
        if not abandoned and not self._is_replaced(site, uid, ledger_id):
            self.report("I16", f"{key} deleted, its outcome is {outcome}")
        owner = managed_ledger_path(attempt["ml_name"])
        if process.read_at.get(owner, -1) < process.listed_at:
            self.report("I9", f"{key} deleted, {owner} was not read after the listing")
        if self._record(instance, keys.release_intent(ledger_id, uid)) is not None:
            self.report("I9", f"{key} deleted, a release was intended from it")
        if self._is_young(f"tierkeeper/{instance}/{keys.attempt(ledger_id, uid)}"):
            self.report("I9", f"{key} deleted within the guard age")
        if not key.endswith("-index") and self._is_last_copy(site, uid, ledger_id):
            self.report("I9", f"{key} deleted, which was the only copy of ledger {ledger_id}")

    def _is_young(self, record_key: str) -> bool:
        """Within the guard age by the store's clock, which may have stepped back, and in truth."""
        head = self.world.objects.peek_head(record_key)
        if head is None:
            return True
        told_s = (head.server_date - head.last_modified).total_seconds()
        true_s = self.world.scheduler.now - self._put_at.get(record_key, self.world.scheduler.now)
        return max(told_s, true_s) <= self.world.settings.release.guard_age_s

    def _judge_leftover(self, site: Site, key: str, uid: UUID, ledger_id: int) -> None:
        """What a broker left unfinished may go: noted a guard age ago, intended, still on bookies."""
        cluster = site.cluster
        if not self._is_intended(cluster.instance, ledger_id, uid):
            self.report("I6", f"{key} deleted, which no attempt of {cluster.instance} made")
            return
        note = f"tierkeeper/{cluster.instance}/leftovers/{ledger_id}/{uid}.json"
        if self._is_young(note):
            self.report("I9", f"{key} deleted, its broker was not known to be dead for long")
        if not (cluster.has_node(ledger_id) and ledger_id in cluster.bookies):
            self.report("I9", f"{key} deleted, which may be the only copy of ledger {ledger_id}")

    def _is_intended(self, instance: str, ledger_id: int, uid: UUID) -> bool:
        return self.has_record(instance, f"sweep-intents/{ledger_id}/{uid}.json")

    def _is_replaced(self, site: Site, uid: UUID, ledger_id: int) -> bool:
        """A damaged copy may go an hour after another one was confirmed in its place."""
        instance = site.cluster.instance
        if self._record(instance, keys.quarantine(ledger_id, uid)) is None:
            return False
        topic = self._topic(site, site.cluster.owner[ledger_id])
        listed = None if topic is None else topic.ledger(ledger_id)
        context = None if listed is None else listed.offload
        if context is None or not context.complete or context.uid == uid:
            return False
        key = self._publications.get((instance, ledger_id, str(context.uid)))
        head = None if key is None else self.world.objects.peek_head(key)
        return head is not None and (head.server_date - head.last_modified).total_seconds() > 3600

    def _is_last_copy(self, site: Site, uid: UUID, ledger_id: int) -> bool:
        cluster = site.cluster
        topic = self._topic(site, cluster.owner.get(ledger_id, ""))
        if topic is None or topic.ledger(ledger_id) is None or not cluster.written[ledger_id]:
            return False
        if cluster.has_node(ledger_id) and ledger_id in cluster.bookies:
            return False
        if not self.is_good(site, uid, ledger_id):
            return False
        others = {
            parsed.uid
            for key in self.world.objects.peek_keys()
            if (parsed := parse_key(key)) is not None and parsed.ledger_id == ledger_id
        }
        return not any(self.is_good(site, other, ledger_id) for other in others - {uid})

    def _before_abort(self, process: Process, key: str) -> None:
        parsed = parse_key(key)
        if parsed is None:
            return
        instance = process.site.cluster.instance
        attempt = self._record(instance, keys.attempt(parsed.ledger_id, parsed.uid))
        if attempt is None:
            if not self._is_intended(instance, parsed.ledger_id, parsed.uid):
                self.report("I6", f"upload of {key} aborted, which no attempt of {instance} made")
            return
        outcome = self._record(instance, keys.outcome(parsed.ledger_id, parsed.uid))
        certificate = self._record(instance, keys.certificate(parsed.ledger_id, parsed.uid))
        own = self._attempts.get(key) == process.name
        if not own and certificate is None and (outcome or {}).get("outcome") != "abandon":
            self.report("I13", f"upload of {key} aborted by {process.name}, nobody abandoned it")

    def _before_put(self, method: str, key: str, kwargs: Mapping[str, Any]) -> None:
        unconditional = (
            method == "put" and not kwargs.get("if_absent") and not kwargs.get("if_match")
        )
        if not unconditional:
            return
        if parse_key(key) is not None:
            self.report("I6", f"{key} written unconditionally")
        elif key.startswith("tierkeeper/"):
            self.report("I12", f"record {key} written unconditionally")

    def _after_put(self, process: Process, key: str, body: bytes) -> None:
        instance = process.site.cluster.instance
        prefix = f"tierkeeper/{instance}/"
        if not key.startswith(prefix):
            return
        self._put_at.setdefault(key, self.world.scheduler.now)
        kind = key.removeprefix(prefix).split("/")[0]
        match kind:
            case "attempts":
                self._attempts[json.loads(body)["data_key"]] = process.name
            case "certificates":
                record = json.loads(body)
                self._judge_certificate(process.site, UUID(record["uid"]), record)
            case "releases" if not key.endswith(".intent.json"):
                ledger_id = json.loads(body)["ledger_id"]
                if process.site.cluster.has_node(ledger_id) and not process.site.restored:
                    self.report("I8", f"ledger {ledger_id} recorded as released, its node is there")
            case "quarantines":
                record = json.loads(body)
                name = (instance, record["ledger_id"], record["uid"])
                self._quarantined_at.setdefault(name, self.world.scheduler.now)
            case "publications":
                publication = json.loads(body)
                for one in publication["ledgers"]:
                    name = (instance, one["ledger_id"], one["uid"])
                    self._confirmed.setdefault(name, [publication["confirmed_at"]])
                    if name not in self._stood:
                        self.report("I10", f"{name} recorded as published, no node ever named it")
                    self._published_at.setdefault(name, self.world.scheduler.now)
                    self._publications.setdefault(name, key)
            case "disturbances":
                tenant, namespace, _p, name = json.loads(body)["ml_name"].split("/")
                self._disturbed.add((process.name, f"persistent://{tenant}/{namespace}/{name}"))
            case _:
                pass

    def _judge_certificate(self, site: Site, uid: UUID, record: Mapping[str, Any]) -> None:
        ledger_id = record["ledger"]["ledger_id"]
        outcome = self._record(site.cluster.instance, keys.outcome(ledger_id, uid))
        if outcome is not None and outcome["outcome"] == "abandon":
            return  # a late certificate of what was swept: nobody can publish it any more
        truth = site.cluster.written[ledger_id]
        if record["entries"] != len(truth) or record["payload_bytes"] != sum(map(len, truth)):
            self.report("I3", f"certificate of ledger {ledger_id} counts {record['entries']}")
        if not self.is_good(site, uid, ledger_id):
            self.report("I3", f"certificate of {uid}: its object is not a copy of {ledger_id}")

    def _after_set(self, process: Process, path: str, data: bytes) -> None:
        before, self._node_before = self._node_before, None
        if before is None or not path.startswith("/managed-ledgers/"):
            return
        old, new = _decoded(before), _decoded(data)
        if _without_contexts(old) != _without_contexts(new):
            self.report("I7", f"{path}: more than contexts was changed")
        ours = process.site.cluster.instance
        for info in new.ledgers:
            was = old.ledger(info.ledger_id)
            had = None if was is None else was.offload
            has = info.offload
            if has == had:
                continue
            if had is not None and self._attempt_of(ours, info.ledger_id, had.uid) is None:
                taken_out = has is None and not had.complete
                if not taken_out or not self._is_intended(ours, info.ledger_id, had.uid):
                    self.report("I7", f"{path}: the context of {had.uid}, not ours, was changed")
            if has is not None and has.complete:
                self._stood.add((ours, info.ledger_id, str(has.uid)))
            if has is None or not has.complete or (had is not None and had.uid == has.uid):
                continue
            broken = not self.is_good(process.site, has.uid, info.ledger_id)
            if broken and has.uid not in self.damaged:
                self.report("I4", f"{path}: {has.uid} complete, its objects are not the ledger's")
            outcome = self._record(ours, keys.outcome(info.ledger_id, has.uid))
            if outcome is None or outcome["outcome"] != "publish":
                self.report("I10", f"{path}: {has.uid} complete, its outcome is {outcome}")
        self.check_site(process.site)

    # ----- readability

    def check_all(self) -> None:
        for site in self.world.sites:
            self.check_site(site)

    def check_site(self, site: Site) -> None:
        for ml_name in site.broker.names():
            self.check_topic(site, ml_name)

    def check_topic(self, site: Site, ml_name: str) -> None:
        """I1 and I4 of one topic, by metadata and by its broker's memory."""
        topic = self._topic(site, ml_name)
        if topic is None:
            return
        for info in topic.ledgers:
            if not self.readable(site, info):
                self.report("I1", f"ledger {info.ledger_id} of {ml_name} is in no tier: {info}")
                self.excused.add((site.cluster.instance, info.ledger_id))
        loaded = site.broker.topics.get(ml_name)
        if loaded is None:
            return
        listed = {info.ledger_id for info in topic.ledgers}
        for info in _decoded(loaded.message.SerializeToString()).ledgers:
            if info.ledger_id in listed and not self.readable(site, info):
                self.report(
                    "I1", f"a reader of ledger {info.ledger_id} of {ml_name} stalls: {info}"
                )
                self.excused.add((site.cluster.instance, info.ledger_id))

    def readable(self, site: Site, info: LedgerInfo) -> bool:
        cluster, context = site.cluster, info.offload
        truth = cluster.written.get(info.ledger_id)
        if not truth or (cluster.instance, info.ledger_id) in self.excused:
            return True
        on_bookies = cluster.has_node(info.ledger_id) and info.ledger_id in cluster.bookies
        if context is None or not context.complete:
            return on_bookies
        if site.broker.bookkeeper_first and not context.bookkeeper_deleted:
            return on_bookies
        if context.uid in self.damaged:
            # A broker's own lag asks for no proof; that we never do it is judged before a delete.
            return on_bookies or site.broker.lag_s is not None
        return self.is_good(site, context.uid, info.ledger_id)

    def is_good(self, site: Site, uid: UUID, ledger_id: int) -> bool:
        """Both objects are there, and decode to what producers wrote."""
        data = self.world.objects.peek(data_key(uid, ledger_id))
        index = self.world.objects.peek(index_key(uid, ledger_id))
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
        self._held_at[instance, ledger_id] = self.world.scheduler.now

    def held(self, instance: str) -> set[int]:
        return {i for name, i in self._held_at if name == instance}

    def has_record(self, instance: str, key: str) -> bool:
        return self._record(instance, key) is not None

    def is_dated_backwards(self, instance: str, ledger_id: int, uid: UUID) -> bool:
        """Proven before it was begun, or published before it was proven, by clocks a day apart.

        The suite of certificates holds it until a person has it copied again.
        """
        attempt = self._attempt_of(instance, ledger_id, uid)
        certificate = self._record(instance, keys.certificate(ledger_id, uid))
        if attempt is None or certificate is None:
            return False
        said = [attempt["started_at"], certificate["verified_at"]]
        said += self._confirmed.get((instance, ledger_id, str(uid)), [])
        dates = map(datetime.fromisoformat, said)
        return any((a - b).total_seconds() > CLOCKS_APART_S for a, b in pairwise(dates))

    def topics_of(self, site: Site) -> Iterable[tuple[str, ManagedLedger]]:
        for ml_name in site.broker.names():
            topic = self._topic(site, ml_name)
            if topic is not None:
                yield ml_name, topic

    def _topic(self, site: Site, ml_name: str) -> ManagedLedger | None:
        stored = site.cluster.metadata.nodes.get(managed_ledger_path(ml_name))
        return None if stored is None else _decoded(stored.data)

    def _attempt_of(self, instance: str, ledger_id: int, uid: UUID) -> Mapping[str, Any] | None:
        return self._record(instance, keys.attempt(ledger_id, uid))

    def _record(self, instance: str, key: str) -> Mapping[str, Any] | None:
        found = self.world.objects.peek(f"tierkeeper/{instance}/{key}")
        return None if found is None else json.loads(found[0])

    def _digest(self, instance: str, key: str) -> str | None:
        from hashlib import sha256

        found = self.world.objects.peek(f"tierkeeper/{instance}/{key}")
        return None if found is None else sha256(found[0]).hexdigest()


@lru_cache(maxsize=256)
def _decoded(data: bytes) -> ManagedLedger:
    return decode_managed_ledger(data)


def _without_contexts(topic: ManagedLedger) -> bytes:
    message = topic.message_copy()
    for info in message.ledgerInfo:
        info.ClearField("offloadContext")
    return message.SerializeToString()
