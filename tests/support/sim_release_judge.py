"""Judges every delete of a bookie copy and every mark, at the instant before it is applied.

Owns: what must stand in the bucket before a ledger's node goes (certificate, outcome, publication,
intent), what must be so around its topic, and how old the evidence of it may be.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID

from tests.support.sim_evidence import (
    AGE_MAX_S,
    BOOKIES,
    BROKERS,
    HOLDS,
    SLACK_S,
    Question,
    bytes_of,
    node_of,
    object_at,
    policy_of,
    shadows_beside,
)
from tests.support.sim_truth import CLOCKS_APART_S, Truth
from tiering_assets.offload_format.keys import data_key, index_key
from tiering_assets.records import keys
from tiering_assets.resources.metastore.topic_names import managed_ledger_path
from tiering_assets.resources.pulsar.admin import TopicLoad

if TYPE_CHECKING:
    from tests.support.sim_clients import Process


class ReleaseJudge(Truth):
    """What may go from the bookies, and when."""

    def before_bookie_delete(
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
        topic = self.topic(process.site, ml_name)
        listed = None if topic is None else topic.ledger(ledger_id)
        context = None if listed is None else listed.offload
        if context is None or not context.complete or not context.bookkeeper_deleted:
            self.report("I1", f"ledger {ledger_id} deleted while its context is {context}")
            return
        uid, instance = context.uid, cluster.instance
        intent = self.record(instance, keys.release_intent(ledger_id, uid))
        if intent is None:
            self.report("I16", f"ledger {ledger_id} deleted without an intent for {uid}")
        certificate = self.record(instance, keys.certificate(ledger_id, uid))
        if certificate is None:
            self.report("I2", f"ledger {ledger_id} deleted without a certificate of {uid}")
        else:
            head = self.world.objects.peek_head(data_key(uid, ledger_id))
            changed = head is None or head.etag != certificate["data"]["etag"]
            if changed and self._could_know(process, uid, ledger_id):
                self.report("I2", f"ledger {ledger_id} deleted, its object is not the certified")
            if intent is not None and intent["certificate_sha256"] != self.digest(
                instance, keys.certificate(ledger_id, uid)
            ):
                self.report("I2", f"ledger {ledger_id}: the intent names another certificate")
        if not self.is_good(process.site, uid, ledger_id):
            if self._could_know(process, uid, ledger_id):
                self.report(
                    "I3", f"ledger {ledger_id} deleted, the object of {uid} is not its copy"
                )
            self.excused.add((instance, ledger_id))
        outcome = self.record(instance, keys.outcome(ledger_id, uid))
        if outcome is None or outcome["outcome"] != "publish":
            self.report("I16", f"ledger {ledger_id} deleted, the outcome of {uid} is {outcome}")
        doubted = self.quarantined_at.get((instance, ledger_id, str(uid)))
        if doubted is not None and doubted < process.began_at:
            self.report("I2", f"ledger {ledger_id} deleted, attempt {uid} is quarantined")
        name = (instance, ledger_id, str(uid))
        published = self.published_at.get((name, context.timestamp_ms))
        lag_s = self.world.settings.release.deletion_lag_s
        # Two clocks that are ahead alike cannot be told from time that has passed.
        ahead_s = max(0.0, min(self.world.store_offset_s, process.skew_s))
        now = self.world.scheduler.now + ahead_s
        if published is None and name in self.publications:
            self.report(
                "I5", f"ledger {ledger_id} deleted, {uid} stands anew and was not confirmed since"
            )
        elif published is None:
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
        held = self.held_at.get((instance, ledger_id))
        if held is not None and (held < process.began_at or self._saw_hold(process, held)):
            self.report("I11", f"ledger {ledger_id} deleted under a hold")
        self.judge_age(
            process, f"bookie copy of {ledger_id} deleted", self._needs(ml_name, uid, ledger_id)
        )
        self.judge_surroundings(process, ml_name, f"ledger {ledger_id} deleted")

    def _could_know(self, process: Process, uid: UUID, ledger_id: int) -> bool:
        """Whether objects were broken already when the process last looked at what tells it."""
        data, index = data_key(uid, ledger_id), index_key(uid, ledger_id)
        broken_at, rotted = self.broken_at.get(uid), self.rotted.get(uid)
        if broken_at is None and rotted is not None:
            return rotted.was_read_by(process, data)
        return any(self.knew(process, object_at(key), broken_at or 0.0) for key in (data, index))

    def _saw_hold(self, process: Process, held_at: float) -> bool:
        return not process.misled and self.knew(process, HOLDS, held_at)

    def judge_mark(self, process: Process, ml_name: str, uid: UUID, ledger_id: int) -> None:
        """A mark is the beginning of a delete: brokers with a lag of their own go on from it."""
        self.judge_age(process, f"ledger {ledger_id} marked", self._needs(ml_name, uid, ledger_id))
        self.judge_surroundings(process, ml_name, f"ledger {ledger_id} marked")

    def judge_surroundings(self, process: Process, ml_name: str, effect: str) -> None:
        """Whatever keeps readers from the object, and was so when the process asked."""
        site = process.site
        offloader, since = site.broker.offloader, site.changed_at
        namespace = keys.namespace_of(ml_name)
        wrong = []
        if offloader.skips and self.knew(process, BROKERS, since.get("skips", 0.0)):
            wrong.append("a broker skips what it fails to read")
        if not offloader.reads_ours(namespace):
            asked = policy_of(ml_name) if since.get("policy", -1.0) >= 0.0 else BROKERS
            changed = max(since.get("policy", 0.0), since.get("driver", 0.0))
            if self.knew(process, asked, changed):
                wrong.append(f"brokers read {offloader.place_of(namespace)}")
        shadowed = ml_name in site.broker.shadows.values()
        if shadowed and self.knew(process, shadows_beside(ml_name), since.get("shadow", 0.0)):
            wrong.append("a shadow reads the bookie copy alone")
        for one in wrong:
            self.report("I1", f"{effect} while {one}")

    def judge_stall(self, process: Process, ml_name: str, effect: str) -> None:
        """A loaded topic goes on being read while bookies are short; one that reloads does not."""
        site = process.site
        if not site.cluster.is_short or ml_name not in site.broker.topics:
            return
        since = site.changed_at.get("bookies", 0.0)
        asked = process.asked.get(BOOKIES)
        fresh = asked is not None and self.world.scheduler.now - asked <= AGE_MAX_S + SLACK_S
        if not fresh or self.knew(process, BOOKIES, since):
            self.report("I1", f"{ml_name} {effect} while bookies are short: its readers stall")

    def _needs(self, ml_name: str, uid: UUID, ledger_id: int) -> list[Question]:
        """What a mark and a delete of a bookie copy stand on."""
        settings = self.world.settings
        # Certificates of the simulation are never signed: a key is accepted, and none has signed.
        free = not settings.sign.public_key_files or not settings.sign.require
        unsigned = free and settings.release.reread_without_key
        return [
            *([bytes_of(data_key(uid, ledger_id))] if unsigned else []),
            object_at(data_key(uid, ledger_id)),
            object_at(index_key(uid, ledger_id)),
            node_of(ml_name),
            HOLDS,
            BROKERS,
            policy_of(ml_name),
            shadows_beside(ml_name),
        ]
