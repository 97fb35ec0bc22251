"""`tierkeeper orphan expired`: published copies whose ledgers retention or a deletion took."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import typer

from tiering_assets.cli.clean.orphan_cmd import app
from tiering_assets.cli.shared.approved_plan import (
    Execute,
    Plan,
    decision_and_reason,
    find_plan_or_execute,
    print_next_step,
)
from tiering_assets.cli.shared.command import command
from tiering_assets.cli.shared.output import print_document, print_table
from tiering_assets.cli.shared.session import Session
from tiering_assets.cli.terminal.columns import Column, ValueKind

if TYPE_CHECKING:
    from tiering_assets.retention.expired import ExpiredCopy


@command(
    app,
    "expired",
    examples=(
        "tierkeeper orphan expired",
        "tierkeeper orphan expired --plan",
        "tierkeeper orphan expired --execute PLAN",
    ),
    reads_only="without --plan and --execute",
)
def expired(session: Session, *, plan: Plan = False, execute: Execute = None) -> None:
    """List copies whose ledgers were trimmed, or deleted with their topic; delete by approved plan.

    Brokers delete such objects themselves; these are those that they left. A plan may be carried
    out an hour after it was recorded, and proves each copy again. Records stay. docs/retention.md
    says what must hold. Ends with 1 when something could not be deleted.
    """
    from tiering_assets.retention.expired import execute_expired, find_expired, plan_expired

    digest, found = find_plan_or_execute(
        session,
        plan=plan,
        execute=execute,
        find=find_expired,
        record=plan_expired,
        carry_out=execute_expired,
    )
    if session.as_json:
        document = {
            "executed": execute is not None,
            "plan": digest,
            "copies": [_document(one) for one in found],
        }
        print_document("orphan-expired", document)
    else:
        _print(found)
        if plan and digest is not None:
            print_next_step("orphan expired", digest)
    if any(one.error for one in found):
        raise typer.Exit(1)


def _print(found: Sequence[ExpiredCopy]) -> None:
    rows = []
    for one in found:
        record = one.attempt.record
        only = "yes" if one.only_copy else "no"
        rows.append((record.ledger.ledger_id, *_decision_of(one), one.bytes, only, record.ml_name))
    print_table(
        (
            Column("LEDGER", ValueKind.ID),
            Column("DECISION", ValueKind.STATE),
            Column("WHY", ValueKind.FINDINGS),
            Column("SIZE", ValueKind.SIZE),
            Column("ONLY COPY", ValueKind.TEXT),
            Column("MANAGED LEDGER", ValueKind.TOPIC),
        ),
        rows,
    )


def _decision_of(one: ExpiredCopy) -> tuple[str, str]:
    gone = "" if one.fate is None else one.fate.value
    return decision_and_reason(one, done=one.done is not None, gone=gone)


def _document(one: ExpiredCopy) -> dict[str, Any]:
    decision, reason = _decision_of(one)
    return {
        "ledger_id": one.attempt.record.ledger.ledger_id,
        "uid": one.attempt.record.uid,
        "ml_name": one.attempt.record.ml_name,
        "decision": decision,
        "reason": reason,
        "only_copy": one.only_copy,
        "objects": one.objects,
        "bytes": one.bytes,
        "bytes_freed": None if one.done is None else one.done.bytes_freed,
    }
