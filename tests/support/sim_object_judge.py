"""Judges every delete of an object, a version or a record, at the instant before it is applied.

Owns: a version that is named by its id counts like the object itself, hidden by a marker or not. It
may go only if no topic names it, and if nobody ever meant to release from it or a person approved.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from uuid import UUID

from tests.support.sim_evidence import HOLDS, node_of, object_at
from tests.support.sim_truth import Truth, decoded
from tiering_assets.offload_format.keys import parse_key
from tiering_assets.records import keys
from tiering_assets.resources.metastore.topic_names import managed_ledger_path
from tiering_assets.resources.object_store.store import ObjectHead

if TYPE_CHECKING:
    from tests.support.sim_clients import Process, Site


class ObjectJudge(Truth):
    """What may go from the bucket, and when."""

    def before_object_delete(self, process: Process, key: str, version_id: str | None) -> None:
        objects, parsed = self.world.objects, parse_key(key)
        current = objects.peek_head(key)
        hits_current = current is not None and version_id in (None, current.version_id)
        if parsed is None:
            if hits_current and not key.startswith(keys.PROBES):  # those are thrown away
                self._judge_record(process, key)
            return
        if not hits_current and objects.peek_version(key, version_id) is None:
            return  # a marker, or what is gone already
        site, uid, ledger_id = process.site, parsed.uid, parsed.ledger_id
        instance = site.cluster.instance
        for ml_name in self._naming(process, uid):
            self.report("I9", f"{key} deleted, a context of {ml_name} names it")
        attempt = self.record(instance, keys.attempt(ledger_id, uid))
        if attempt is None:
            if hits_current:
                self._judge_leftover(process, key, uid, ledger_id)
            return
        owner = attempt["ml_name"]
        effect = f"{key} deleted" if version_id is None else f"{key} deleted, version {version_id}"
        self.judge_age(process, effect, [node_of(owner), HOLDS])
        planned = self._is_planned(instance, ledger_id, uid)
        asked_before = not self.knew(process, node_of(owner), site.changed_at.get("restored", 0.0))
        if asked_before:  # on its way for an hour: nothing can call back a delete that was sent
            self.excused.add((instance, ledger_id))
        if not planned:
            self._judge_unplanned(process, key, uid, ledger_id)
            read = process.read_at.get(managed_ledger_path(owner), -1)
            if hits_current and read < process.listed_at:
                self.report("I9", f"{key} deleted, {owner} was not read after the listing")
        intended = self.record(instance, keys.release_intent(ledger_id, uid)) is not None
        if intended and not planned:
            self.report("I9", f"{effect}, a release was intended from it")
        if not hits_current:
            return
        if self._is_young(f"tierkeeper/{instance}/{keys.attempt(ledger_id, uid)}"):
            self.report("I9", f"{key} deleted within the guard age")
        last = not key.endswith("-index") and self._is_last_copy(site, uid, ledger_id)
        if last and not asked_before:
            self.report("I9", f"{key} deleted, which was the only copy of ledger {ledger_id}")

    def _naming(self, process: Process, uid: UUID) -> list[str]:
        """Topics whose context names an attempt, and did when this process last read their
        nodes.
        """
        return [
            ml_name
            for site in self.world.sites
            for ml_name, topic in self.topics_of(site)
            if any(i.offload is not None and i.offload.uid == uid for i in topic.ledgers)
            and self.knew(process, node_of(ml_name), self.named_since.get(uid, 0.0))
        ]

    def _is_planned(self, instance: str, ledger_id: int, uid: UUID) -> bool:
        """A person approved a plan that names it, and the plan is in date."""
        return any(
            (one["ledger_id"], one["uid"]) == (ledger_id, str(uid))
            for plan in self.approved(instance, "expired_plan")
            for one in plan["copies"]
        )

    def _judge_unplanned(self, process: Process, key: str, uid: UUID, ledger_id: int) -> None:
        site = process.site
        outcome = self.record(site.cluster.instance, keys.outcome(ledger_id, uid))
        abandoned = outcome is not None and outcome["outcome"] == "abandon"
        never_stood = self._never_stood(site, uid, ledger_id)
        if not abandoned and not never_stood and not self._is_replaced(process, uid, ledger_id):
            self.report("I16", f"{key} deleted, its outcome is {outcome}")

    def judge_outcome(self, process: Process, outcome: Mapping[str, Any]) -> None:
        """Who gives a proven copy up that waits has it made again, and again."""
        ledger_id, uid = outcome["ledger_id"], UUID(outcome["uid"])
        swept = outcome["outcome"] == "abandon" and outcome["reason"].startswith("swept")
        if swept and self._is_waiting(process, uid, ledger_id):
            said = f"attempt {uid} of ledger {ledger_id}"
            self.report("waste", f"{said} given up, a proven copy that waits to be published")

    def _never_stood(self, site: Site, uid: UUID, ledger_id: int) -> bool:
        """It won the right to be published, was quarantined, and nobody ever confirmed it."""
        instance = site.cluster.instance
        key = f"tierkeeper/{instance}/{keys.quarantine(ledger_id, uid)}"
        if self.record(instance, keys.quarantine(ledger_id, uid)) is None or self._is_young(key):
            return False
        return (instance, ledger_id, str(uid)) not in self.publications

    def _is_waiting(self, process: Process, uid: UUID, ledger_id: int) -> bool:
        """The one proven copy of a ledger that its topic lists and nobody else offloaded."""
        site = process.site
        instance = site.cluster.instance
        attempt = self.attempt_of(instance, ledger_id, uid)
        stored = site.cluster.metadata.nodes.get(managed_ledger_path(site.cluster.owner[ledger_id]))
        topic = self.topic(site, site.cluster.owner[ledger_id])
        listed = None if topic is None else topic.ledger(ledger_id)
        if attempt is None or stored is None or listed is None or listed.offload is not None:
            return False
        if attempt["ml_czxid"] != stored.stat.czxid or not self.is_good(site, uid, ledger_id):
            return False
        if self.record(instance, keys.quarantine(ledger_id, uid)) is not None:
            return False
        prefix = f"tierkeeper/{instance}/"
        proven_at = self.put_at.get(f"{prefix}{keys.certificate(ledger_id, uid)}")
        if proven_at is None:
            return False
        asked = object_at(f"{prefix}{keys.certificate(ledger_id, uid)}")
        another = self._proven(instance, ledger_id) - {uid}
        listed_since = site.changed_at.get("restored", 0.0)
        return (
            not another
            and self.knew(process, asked, proven_at)
            and self.knew(process, node_of(site.cluster.owner[ledger_id]), listed_since)
        )

    def _proven(self, instance: str, ledger_id: int) -> set[UUID]:
        """Attempts that were proven and that nobody doubts or gave up."""
        prefix = f"tierkeeper/{instance}/{keys.certificates_of(ledger_id)}"
        uids = {
            UUID(key.rpartition("/")[2].removesuffix(".json"))
            for key in self.put_at
            if key.startswith(prefix)
        }
        return {
            uid
            for uid in uids
            if self.record(instance, keys.quarantine(ledger_id, uid)) is None
            and (self.record(instance, keys.outcome(ledger_id, uid)) or {}).get("outcome")
            != "abandon"
        }

    def _judge_record(self, process: Process, key: str) -> None:
        """Of our records only failures and pauses end, and what a person approved to be
        forgotten.
        """
        instance = process.site.cluster.instance
        prefix = f"tierkeeper/{instance}/"
        kind, _slash, rest = key.removeprefix(prefix).partition("/")
        if key.startswith(prefix) and (kind == "failures" or (kind == "pauses" and process.steady)):
            return
        number = rest.split("/")[0].removesuffix(".json")
        plans = self.approved(instance, "forget_plan") if number.isdecimal() else []
        named = [p for p in plans if any(o["ledger_id"] == int(number) for o in p["ledgers"])]
        if not named or not key.startswith(prefix):
            self.report("I16", f"{key} deleted, which is a record or foreign")
            return
        ledger_id = int(number)
        owner = process.site.cluster.owner[ledger_id]
        self.judge_age(process, f"{key} forgotten", [node_of(owner), HOLDS])
        topic = self.topic(process.site, owner)
        listed = topic is not None and topic.ledger(ledger_id) is not None
        since = process.site.changed_at.get("restored", 0.0)
        if listed and self.knew(process, node_of(owner), since):
            self.report("I16", f"{key} forgotten, {owner} lists ledger {ledger_id}")
        held = self.held_at.get((instance, ledger_id))
        if held is not None and not process.misled and self.knew(process, HOLDS, held):
            self.report("I11", f"{key} forgotten under a hold")

    def _is_young(self, record_key: str) -> bool:
        """Within the guard age by the store's clock, which may have stepped back, and in truth."""
        head = self.world.objects.peek_head(record_key)
        if head is None:
            return True
        told_s = _age_s(head)
        true_s = self.world.scheduler.now - self.put_at.get(record_key, self.world.scheduler.now)
        return max(told_s, true_s) <= self.world.settings.release.guard_age_s

    def _judge_leftover(self, process: Process, key: str, uid: UUID, ledger_id: int) -> None:
        """What a broker left unfinished may go: noted a guard age ago, intended, still on bookies.

        What it finished and a check found broken goes once another copy is read in its place.
        """
        site, cluster = process.site, process.site.cluster
        if not self.is_intended(cluster.instance, ledger_id, uid):
            self.report("I6", f"{key} deleted, which no attempt of {cluster.instance} made")
            return
        note = f"tierkeeper/{cluster.instance}/leftovers/{ledger_id}/{uid}.json"
        if self.record(cluster.instance, keys.damage(ledger_id, uid)) is not None:
            if not self._is_replaced(process, uid, ledger_id):
                self.report("I9", f"{key} deleted, nothing is read in its place for an hour")
            if self._is_last_copy(site, uid, ledger_id):
                self.report("I9", f"{key} deleted, which was the only copy of ledger {ledger_id}")
            return
        if self._is_young(note):
            self.report("I9", f"{key} deleted, its broker was not known to be dead for long")
        if not cluster.has_copy(ledger_id):
            self.report("I9", f"{key} deleted, which may be the only copy of ledger {ledger_id}")

    def is_intended(self, instance: str, ledger_id: int, uid: UUID) -> bool:
        return self.has_record(instance, f"sweep-intents/{ledger_id}/{uid}.json")

    def _is_replaced(self, process: Process, uid: UUID, ledger_id: int) -> bool:
        """A damaged copy may go an hour after another one was confirmed in its place.

        A ledger that its broker took since the process read its topic counts as listed.
        """
        site = process.site
        instance, owner = site.cluster.instance, site.cluster.owner[ledger_id]
        found = (keys.quarantine(ledger_id, uid), keys.damage(ledger_id, uid))
        if all(self.record(instance, key) is None for key in found):
            return False
        topic = self.topic(site, owner)
        listed = None if topic is None else topic.ledger(ledger_id)
        if listed is None and ledger_id in site.cluster.taken:
            taken_ms, node = site.cluster.taken[ledger_id]
            if not self.knew(process, node_of(owner), self.world.since(taken_ms)):
                listed = decoded(node).ledger(ledger_id)
        context = None if listed is None else listed.offload
        if context is None or not context.complete or context.uid == uid:
            return False
        key = self.publications.get((instance, ledger_id, str(context.uid)))
        head = None if key is None else self.world.objects.peek_head(key)
        return head is not None and _age_s(head) > 3600

    def _is_last_copy(self, site: Site, uid: UUID, ledger_id: int) -> bool:
        cluster = site.cluster
        topic = self.topic(site, cluster.owner.get(ledger_id, ""))
        if topic is None or topic.ledger(ledger_id) is None or not cluster.written[ledger_id]:
            return False
        if cluster.has_copy(ledger_id):
            return False
        if not self.is_good(site, uid, ledger_id):
            return False
        others = {
            parsed.uid
            for key in self.world.objects.peek_keys()
            if (parsed := parse_key(key)) is not None and parsed.ledger_id == ledger_id
        }
        return not any(self.is_good(site, other, ledger_id) for other in others - {uid})

    def before_abort(self, process: Process, key: str) -> None:
        parsed = parse_key(key)
        if parsed is None:
            return
        instance = process.site.cluster.instance
        attempt = self.record(instance, keys.attempt(parsed.ledger_id, parsed.uid))
        if attempt is None:
            if not self.is_intended(instance, parsed.ledger_id, parsed.uid):
                self.report("I6", f"upload of {key} aborted, which no attempt of {instance} made")
            return
        outcome = self.record(instance, keys.outcome(parsed.ledger_id, parsed.uid))
        certificate = self.record(instance, keys.certificate(parsed.ledger_id, parsed.uid))
        own = self.attempts.get(key) == process.name
        if not own and certificate is None and (outcome or {}).get("outcome") != "abandon":
            self.report("I13", f"upload of {key} aborted by {process.name}, nobody abandoned it")


def _age_s(head: ObjectHead) -> float:
    """By the store's clock."""
    assert head.server_date is not None
    return (head.server_date - head.last_modified).total_seconds()
