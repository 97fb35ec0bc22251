"""The invariants of docs/design, judged at every remote effect by what is true in the simulation.

Owns: which effect goes to which judge, before it is applied and after. sim_truth.py says what is
true, sim_release_judge.py and sim_object_judge.py what may go; what is written is judged here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from uuid import UUID

from tests.support.sim_day_book import DayBookJudge
from tests.support.sim_evidence import node_of, object_at
from tests.support.sim_object_judge import ObjectJudge
from tests.support.sim_release_judge import ReleaseJudge
from tests.support.sim_truth import Found, Name, decoded, without_contexts
from tiering_assets.offload_format.keys import data_key, index_key, parse_key
from tiering_assets.records import keys
from tiering_assets.resources.metastore.ledger_info import LedgerInfo
from tiering_assets.resources.metastore.offload_context import OffloadContext
from tiering_assets.resources.metastore.topic_names import parse_topic_name

if TYPE_CHECKING:
    from tests.support.sim_clients import Process, Site
    from tests.support.sim_world import World

__all__ = ["Found", "Monitor"]


class Monitor(ReleaseJudge, ObjectJudge, DayBookJudge):
    """Told of every remote call of ours by the world."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._stood: dict[Name, int] = {}  # the context's timestamp, of the newest stand
        self._disturbed: set[tuple[str, str]] = set()
        self._node_before: bytes | None = None

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
                self.before_bookie_delete(process, method, args, kwargs)
            case "metadata", "set":
                stored = process.site.cluster.metadata.nodes.get(args[0])
                self._node_before = None if stored is None else stored.data
            case "objects", "delete":
                self.before_object_delete(process, args[0], kwargs.get("version_id"))
            case "objects", "abort_upload":
                self.before_abort(process, args[0])
            case "objects", "put" | "complete_upload":
                self._before_put(method, args[0], kwargs)
            case "broker", "unload_topic":
                if (process.name, args[0]) not in self._disturbed:
                    self.report("I16", f"{args[0]} unloaded without a record of it")
                ml_name = parse_topic_name(args[0]).managed_ledger_name
                self.judge_stall(process, ml_name, "unloaded")
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
        self.put_at.setdefault(key, self.world.scheduler.now)
        self.judge_record_put(process, key.removeprefix(prefix), body)
        kind = key.removeprefix(prefix).split("/")[0]
        match kind:
            case "attempts":
                self.attempts[json.loads(body)["data_key"]] = process.name
            case "certificates":
                record = json.loads(body)
                self._judge_certificate(process.site, UUID(record["uid"]), record)
            case "releases" if not key.endswith(".intent.json"):
                ledger_id = json.loads(body)["ledger_id"]
                if process.site.cluster.has_node(ledger_id) and not process.site.restored:
                    self.report("I8", f"ledger {ledger_id} recorded as released, its node is there")
            case "quarantines":
                record = json.loads(body)
                self._judge_quarantine(process, record["ledger_id"], UUID(record["uid"]))
                name = (instance, record["ledger_id"], record["uid"])
                self.quarantined_at.setdefault(name, self.world.scheduler.now)
            case "outcomes":
                self.judge_outcome(process, json.loads(body))
            case "publications":
                publication = json.loads(body)
                for one in publication["ledgers"]:
                    name = (instance, one["ledger_id"], one["uid"])
                    self._confirmed.setdefault(name, [publication["confirmed_at"]])
                    if name not in self._stood:
                        self.report("I10", f"{name} recorded as published, no node ever named it")
                    stand = self._stand(process.site, publication["ml_name"], name)
                    self.published_at.setdefault((name, stand), self.world.scheduler.now)
                    self.publications.setdefault(name, key)
            case "disturbances":
                tenant, namespace, _p, name = json.loads(body)["ml_name"].split("/")
                self._disturbed.add((process.name, f"persistent://{tenant}/{namespace}/{name}"))
            case _:
                pass

    def _stand(self, site: Site, ml_name: str, name: Name) -> int:
        """Which stand of a context is confirmed: the present one, or else the newest of ours."""
        topic = self.topic(site, ml_name)
        listed = None if topic is None else topic.ledger(name[1])
        context = None if listed is None else listed.offload
        if context is not None and str(context.uid) == name[2]:
            return context.timestamp_ms
        return self._stood.get(name, 0)

    def _judge_certificate(self, site: Site, uid: UUID, record: Mapping[str, Any]) -> None:
        ledger_id = record["ledger"]["ledger_id"]
        outcome = self.record(site.cluster.instance, keys.outcome(ledger_id, uid))
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
        old, new = decoded(before), decoded(data)
        if without_contexts(old) != without_contexts(new):
            self.report("I7", f"{path}: more than contexts was changed")
        ours = process.site.cluster.instance
        ml_name, gains = path.removeprefix("/managed-ledgers/"), False
        for info in new.ledgers:
            was = old.ledger(info.ledger_id)
            had = None if was is None else was.offload
            has = info.offload
            if has == had:
                continue
            self._judge_unmarked(process, path, info, had)
            if had is not None and self.attempt_of(ours, info.ledger_id, had.uid) is None:
                taken_out = has is None and not had.complete
                healed = (
                    has is not None and has.complete and self._is_broken(process, had.uid, info)
                )
                if not healed and (
                    not taken_out or not self.is_intended(ours, info.ledger_id, had.uid)
                ):
                    self.report("I7", f"{path}: the context of {had.uid}, not ours, was changed")
            if has is not None and has.complete:
                self._stood[ours, info.ledger_id, str(has.uid)] = has.timestamp_ms
            marked = has is not None and has.bookkeeper_deleted
            if has is not None and marked and not (had is not None and had.bookkeeper_deleted):
                self.judge_mark(process, ml_name, has.uid, info.ledger_id)
            anew = has is not None and (had is None or had.uid != has.uid)
            gains = gains or anew or (marked and not (had is not None and had.bookkeeper_deleted))
            if has is None or not has.complete or (had is not None and had.uid == has.uid):
                continue
            self._judge_publication(process, ml_name, has.uid, info.ledger_id)
            outcome = self.record(ours, keys.outcome(info.ledger_id, has.uid))
            if outcome is None or outcome["outcome"] != "publish":
                self.report("I10", f"{path}: {has.uid} complete, its outcome is {outcome}")
        if gains:
            self.judge_stall(process, ml_name, "changed")
        self.check_site(process.site)

    def _judge_publication(self, process: Process, ml_name: str, uid: UUID, ledger_id: int) -> None:
        """Readers get the object from now on: it was looked at just before, and was sound then."""
        pair = [object_at(data_key(uid, ledger_id)), object_at(index_key(uid, ledger_id))]
        needs = [*pair, node_of(ml_name)]
        self.judge_age(process, f"attempt {uid} of {ledger_id} published", needs)
        if self.is_good(process.site, uid, ledger_id) or uid in self.damaged:
            return
        broken_at = self.broken_at.get(uid, 0.0)
        if any(self.knew(process, one, broken_at) for one in pair):
            self.report(
                "I4", f"{ml_name}: {uid} complete, its objects are not those of ledger {ledger_id}"
            )
        self.damaged.add(uid)

    def _judge_unmarked(
        self, process: Process, path: str, info: LedgerInfo, had: OffloadContext | None
    ) -> None:
        """Without its mark a ledger is looked for on bookies, which must have it."""
        marked = info.offload is not None and info.offload.bookkeeper_deleted
        if had is None or not had.bookkeeper_deleted or marked:
            return
        if not process.site.cluster.has_node(info.ledger_id):
            self.report("I1", f"{path}: mark of {info.ledger_id} taken off, bookies lost it")

    def _is_broken(self, process: Process, uid: UUID, info: LedgerInfo) -> bool:
        """A copy of a broker's own that a sound one may take the place of."""
        if uid in self.broken_at or not self.is_good(process.site, uid, info.ledger_id):
            return True
        if process.misled:
            return True  # by bytes that changed on their way; what takes its place is proven
        pair = data_key(uid, info.ledger_id), index_key(uid, info.ledger_id)
        heads = [self.world.objects.peek_head(key) for key in pair]
        return any(head is not None and head.expiration is not None for head in heads)

    def _judge_quarantine(self, process: Process, ledger_id: int, uid: UUID) -> None:
        """I19: a scrub raises no alarm about a certified copy that is sound and is served."""
        site, objects = process.site, self.world.objects
        head = objects.peek_head(data_key(uid, ledger_id))
        moved = head is not None and head.storage_class is not None and head.expiration is None
        if process.misled or not moved or uid in self.broken_at or uid in self.damaged:
            return
        found = self.record(site.cluster.instance, keys.quarantine(ledger_id, uid)) or {}
        if "class" in found.get("reason", "") and self.is_good(site, uid, ledger_id):
            said = f"in class {head.storage_class if head else None} is sound"
            self.report("I19", f"attempt {uid} of ledger {ledger_id} {said}, and quarantined")
