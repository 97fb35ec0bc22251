"""Verify copies again and write down what is broken: for the CLI and the Dagster job alike.

Owns: the bits may have flipped on the way here, and a finding costs a copy, so damage is what two
looks in a row find. Only a copy that stands is recorded: one that was replaced meanwhile is
nobody's damage.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from uuid import UUID

from tiering_assets.ground.stack import Stack
from tiering_assets.look.ledger.plan import LedgerSight, look_at
from tiering_assets.resources.errors import TierkeeperError
from tiering_assets.verify.damage import Broken, record_damage
from tiering_assets.verify.object_check import ObjectCheck, check_object, topic_spending
from tiering_assets.verify.reverify import Reverified, reverify_ledgers


def verify_again(
    stack: Stack, ledger_ids: Iterable[int], *, source: bool, found_by: str
) -> dict[int, Reverified | TierkeeperError]:
    """Read back what is certified of each ledger, twice where it differs; damage is recorded."""
    results = reverify_ledgers(stack, ledger_ids, source=source)
    doubtful = {
        i: one for i, one in results.items() if isinstance(one, Reverified) and one.findings
    }
    for ledger_id, again in reverify_ledgers(stack, doubtful, source=source).items():
        results[ledger_id] = _second(stack, doubtful[ledger_id], again, found_by=found_by)
    return results


def _second(
    stack: Stack, first: Reverified, again: Reverified | TierkeeperError, *, found_by: str
) -> Reverified | TierkeeperError:
    if not isinstance(again, Reverified):
        return again
    if again.uid != first.uid or not again.findings:
        said = f"a first look found otherwise: {'; '.join(first.findings[:3])}"
        return replace(again, notes=(*again.notes, said))
    broken = Broken(
        ledger_id=again.ledger_id,
        uid=again.uid,
        ml_name=again.ml_name,
        findings=again.findings,
        found_by=found_by,
    )
    return replace(again, new=_record(stack, broken))


def verify_object(stack: Stack, key: str) -> ObjectCheck:
    """Look at both objects of one attempt, whoever wrote them. Raises as `check_object`."""
    check = check_object(stack, key)
    if check.findings:
        check = check_object(stack, key)
    sight = check.sight
    if not check.findings:
        return check
    standing = look_at(stack, sight.ledger_id, ml_name=topic_spending(sight) or None)
    if sight.certificate is None and not _is_named(standing, sight.uid):
        return check  # somebody may be writing it just now
    broken = Broken(
        ledger_id=sight.ledger_id,
        uid=sight.uid,
        ml_name=standing.ml_name,
        findings=check.findings,
        found_by="object verify",
    )
    _record(stack, broken)
    return check


def _record(stack: Stack, broken: Broken) -> bool:
    """As `record_damage`; a store that takes no record hides nothing of what was found."""
    try:
        return record_damage(stack, broken)
    except TierkeeperError as error:
        stack.tell(
            f"ledger {broken.ledger_id}: its damage could not be recorded: {error}",
            broken.ledger_id,
        )
        return True


def _is_named(standing: LedgerSight, uid: UUID) -> bool:
    context = None if standing.listed is None else standing.listed.offload
    return context is not None and context.complete and context.uid == uid
