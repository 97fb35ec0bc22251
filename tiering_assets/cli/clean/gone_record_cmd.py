"""`tierkeeper gone-record list|delete`: records of ledgers that are gone, objects and all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from tiering_assets.cli.grammar.approved_plan import CONSENT, decision_and_reason, delete_by_plan
from tiering_assets.cli.grammar.command import ALWAYS, command
from tiering_assets.cli.grammar.consent import Consent
from tiering_assets.cli.shared.output import print_document, print_table
from tiering_assets.cli.shared.session import Session
from tiering_assets.cli.terminal.columns import Column, ValueKind

if TYPE_CHECKING:
    from tiering_assets.retention.forget import GoneLedger

app = typer.Typer(
    name="gone-record",
    help="Records of ledgers that are gone, objects and all.",
    no_args_is_help=True,
)


@command(
    app,
    "list",
    examples=("tierkeeper gone-record list", "tierkeeper gone-record list --json"),
    reads_only=ALWAYS,
)
def list_records(session: Session) -> None:
    """List ledgers that are gone, and whose records may go."""
    from tiering_assets.retention.forget import find_gone

    with session.stack() as stack:
        found = find_gone(stack)
    if session.as_json:
        print_document("gone-record-list", {"ledgers": [_facts(one) for one in found]})
    else:
        _print(found)


@command(
    app,
    "delete",
    examples=(
        "tierkeeper gone-record delete --plan",
        "tierkeeper gone-record delete --approved PLAN --plan",
        "tierkeeper gone-record delete --approved PLAN --execute",
    ),
)
def delete_records(session: Session, *, consent: Annotated[Consent, CONSENT]) -> None:
    """Delete records of ledgers that are gone, by plan.

    Only where no object, upload or locked version of the ledger is left, and its newest record is
    older than release.records_kept_s. A plan may be carried out an hour after it was recorded, and
    looks at each ledger again. The plan stays. Ends with 1 when something could not be deleted.
    """
    from tiering_assets.retention.forget import execute_forget, plan_forget, preview_forget

    def show(digest: str | None, found: Sequence[GoneLedger], executed: bool) -> None:
        if session.as_json:
            ledgers = [{**_facts(one), "deleted": one.deleted} for one in found]
            print_document(
                "gone-record-delete", {"executed": executed, "plan": digest, "ledgers": ledgers}
            )
        else:
            _print(found)

    delete_by_plan(
        session,
        consent,
        command="gone-record delete",
        record=plan_forget,
        preview=preview_forget,
        carry_out=execute_forget,
        name_of=lambda one: one.ledger_id,
        show=show,
    )


def _print(found: Sequence[GoneLedger]) -> None:
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
