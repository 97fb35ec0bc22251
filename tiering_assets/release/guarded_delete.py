"""The one place where bookie copies are deleted: a transaction guarded by the topic's version.

Owns: the ledger nodes go only if the topic's node is still the version in which every context was
just seen complete, marked and of the certified attempt, and only if each ledger is still the one
that was certified. Nothing here decides; release.py has decided and rehearsed before.
"""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

from tiering_assets.change.confirm import require_confirmed
from tiering_assets.change.topic_edit import is_marked
from tiering_assets.ground.evidence import Dated, Effect, Kind
from tiering_assets.ground.stack import Stack, require_fresh
from tiering_assets.look.ledger.plan import facts_of
from tiering_assets.look.topic.topic_evidence import deleted, topic_of
from tiering_assets.records.models import LedgerFacts
from tiering_assets.resources.errors import MetadataConflictError, MetadataUnknownError
from tiering_assets.resources.metastore.store import Node, VersionedPath


def delete_ledgers(
    stack: Stack,
    ml_name: str,
    certified: Mapping[int, tuple[UUID, LedgerFacts]],
    *,
    czxid: int,
    evidence: Dated,
) -> None:
    """Delete these ledgers' nodes, at most release.check_to_delete_max_s after the last look.

    Raises:
        RefusedError: an undo of the topic is unconfirmed, or the topic was deleted meanwhile.
        MetadataConflictError: something moved and nothing was deleted; gate again from the start.
        StaleEvidenceError: what the delete stands on is too old; nothing was deleted.
        MetadataUnknownError: the answer was lost and some nodes are still there.
    """
    require_confirmed(stack, ml_name)
    node = _look(stack, ml_name, certified, czxid)
    deletes = [_expect(stack, ledger_id, facts) for ledger_id, (_uid, facts) in certified.items()]
    took_s, limit_s = (
        stack.monotonic() - node.read_at_s,
        stack.settings.release.check_to_delete_max_s,
    )
    if took_s > limit_s:
        raise MetadataConflictError(
            f"{topic_of(ml_name)}: {took_s:.1f} s since the last look, at most {limit_s:g} s are "
            f"allowed; run again"
        )
    looked = evidence.renewed(Dated.at(node.read_at_s, Kind.NODE, Kind.LEDGER))
    require_fresh(stack, Effect.DELETE, looked, what=topic_of(ml_name))
    try:
        stack.metadata.check_and_delete(
            checks=[VersionedPath(node.path, node.stat.version)],
            deletes=deletes,
            session_id=node.session_id,
        )
    except MetadataUnknownError:
        if any(stack.ledgers.read(ledger_id) is not None for ledger_id in certified):
            raise


def _look(
    stack: Stack, ml_name: str, certified: Mapping[int, tuple[UUID, LedgerFacts]], czxid: int
) -> Node:
    found = stack.topics.read(ml_name)
    if found is None or found[1].stat.czxid != czxid:
        raise deleted(ml_name, "deleted")
    topic, node = found
    changed = [i for i, (uid, _facts) in certified.items() if not is_marked(topic, i, uid)]
    if changed:
        raise MetadataConflictError(
            f"{topic_of(ml_name)}: the contexts of ledgers {changed} changed since they were marked"
        )
    return node


def _expect(stack: Stack, ledger_id: int, certified: LedgerFacts) -> VersionedPath:
    now = stack.ledgers.read(ledger_id)
    found = None if now is None else facts_of(now)
    if now is None or found != certified:
        raise MetadataConflictError(
            f"ledger {ledger_id}: expected {certified}, found {found}; gate again"
        )
    return VersionedPath(now.path, now.stat.version)
