"""`tierkeeper orphan records`: records of ledgers that are gone, objects and all."""

from __future__ import annotations

from typing import TYPE_CHECKING

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
    from tiering_assets.retention.forget import GoneLedger


@command(
    app,
    "records",
    examples=(
        "tierkeeper orphan records",
        "tierkeeper orphan records --plan",
        "tierkeeper orphan records --execute PLAN",
    ),
    reads_only="without --plan and --execute",
)
def records(session: Session, *, plan: Plan = False, execute: Execute = None) -> None:
    """List records of ledgers that were trimmed, or deleted with their topic; delete by approved
    plan.

    Only where no object, upload or locked version of the ledger is left, and its newest record is
    older than release.records_kept_s. A plan may be carried out an hour after it was recorded, and
    looks at each ledger again. The plan stays. Ends with 1 when something could not be deleted.
    """
    from tiering_assets.retention.forget import execute_forget, find_gone, plan_forget

    digest, found = find_plan_or_execute(
        session,
        plan=plan,
        execute=execute,
        find=find_gone,
        record=plan_forget,
        carry_out=execute_forget,
    )
    if session.as_json:
        ledgers = [{**_facts(one), "deleted": one.deleted} for one in found]
        print_document(
            "orphan-records",
            {"executed": execute is not None, "plan": digest, "ledgers": ledgers},
        )
    else:
        rows = [tuple(_facts(one).values()) for one in found]
        print_table(
            (
                Column("LEDGER", ValueKind.ID),
                Column("DECISION", ValueKind.STATE),
                Column("WHY", ValueKind.FINDINGS),
                Column("ATTEMPTS", ValueKind.NUMBER),
                Column("RECORDS", ValueKind.NUMBER),
                Column("MANAGED LEDGER", ValueKind.TOPIC),
            ),
            rows,
        )
        if plan and digest is not None:
            print_next_step("orphan records", digest)
    if any(one.error for one in found):
        raise typer.Exit(1)


def _facts(one: GoneLedger) -> dict[str, str | int]:
    decision, reason = decision_and_reason(one, done=one.deleted is not None)
    return {
        "ledger_id": one.ledger_id,
        "decision": decision,
        "reason": reason,
        "attempts": len(one.uids),
        "records": len(one.records),
        "ml_name": one.ml_name,
    }
