"""What a report's facts speak of and an audit of its ledgers does not look at. Reads only.

Owns: an object is accounted for by the record of a removal that fits its chain, of a sweep, or of a
plan of people to delete copies of ledgers that are gone.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from uuid import UUID

from tiering_assets.audit.attempt_sight import object_seen, topic_of
from tiering_assets.audit.audit_sights import ObjectSeen, PublicationSeen, Sights
from tiering_assets.ground.record_book import RecordBook
from tiering_assets.records import keys
from tiering_assets.records.models import Publication
from tiering_assets.records.sweep_models import ExpiredPlan, Swept
from tiering_assets.resources.errors import FormatError
from tiering_assets.resources.object_store.store import ObjectStore

_Object = tuple[int, UUID, str]


class BucketLook:
    """The bucket of `sights`, looked at again where that is needed."""

    def __init__(
        self, objects: ObjectStore, instance: str, sights: Sights, narrate: Callable[[str], None]
    ) -> None:
        self._objects, self._book = objects, RecordBook(objects, instance)
        self._removals = {(one.ledger_id, one.uid): one.removal for one in sights.attempts}
        self._narrate = narrate

    def object_now(self, key: str) -> ObjectSeen:
        return object_seen(key, self._objects.head(key))

    def publication_now(self, key: str) -> PublicationSeen | None:
        found = self._book.read_readable(Publication, key, self._passed_over)
        if found is None:
            return None
        topic = topic_of(found.record.ml_name)
        return PublicationSeen(key=key, sha256=found.sha256, topic=topic, stored_at=found.stored_at)

    def why_gone(self, ledger_id: int, uid: UUID, key: str) -> str | None:
        removal = self._removals.get((ledger_id, uid))
        if removal is not None:
            return removal
        swept = self._book.read_readable(Swept, keys.swept(ledger_id, uid), self._passed_over)
        if swept is not None and key in swept.record.objects:
            return swept.key
        return self._planned.get((ledger_id, uid, key))

    @cached_property
    def _planned(self) -> dict[_Object, str]:
        """Objects of copies that a plan of people takes, and the key of that plan."""
        plans = self._book.iter_readable(ExpiredPlan, "expired-plans/", self._passed_over)
        return {
            (one.ledger_id, one.uid, key): plan.key
            for plan in plans
            for one in plan.record.copies
            for key in one.objects
        }

    def _passed_over(self, key: str, error: FormatError) -> None:
        self._narrate(f"{key}: passed over: {error}")
