"""`tierkeeper expired-copy list|delete`: copies whose ledgers retention or a deletion took."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tiering_assets.cli.grammar.approved_plan import CONSENT, decision_and_reason, delete_by_plan
from tiering_assets.cli.grammar.command import ALWAYS, command
from tiering_assets.cli.grammar.consent import Consent
from tiering_assets.cli.shared.output import print_document, print_table
from tiering_assets.cli.shared.session import Session
from tiering_assets.cli.terminal.columns import Column, ValueKind

if TYPE_CHECKING:
    from tiering_assets.retention.expired import ExpiredCopy

app = typer.Typer(
    name="expired-copy",
    help="Copies whose ledgers retention or a deletion took.",
    no_args_is_help=True,
)


@command(
    app,
    "list",
    examples=("tierkeeper expired-copy list", "tierkeeper expired-copy list --json"),
    reads_only=ALWAYS,
)
def list_copies(session: Session) -> None:
    """List copies whose ledgers are gone, and which may go.

    Brokers delete such objects themselves; these are those that they left. docs/retention.md says
    what must hold.
    """
    from tiering_assets.retention.expired import find_expired

    with session.stack() as stack:
        found = find_expired(stack)
    if session.as_json:
        print_document("expired-copy-list", {"copies": [_document(one) for one in found]})
    else:
        _print(found)


@command(
    app,
    "delete",
    examples=(
        "tierkeeper expired-copy delete --plan",
        "tierkeeper expired-copy delete --approved PLAN --plan",
        "tierkeeper expired-copy delete --approved PLAN --execute",
    ),
)
def delete_copies(session: Session, *, consent: Annotated[Consent, CONSENT]) -> None:
    """Delete copies whose ledgers are gone, by plan.

    A plan may be carried out an hour after it was recorded, and proves each copy again. Records
    stay. Ends with 1 when something could not be deleted.
    """
    from tiering_assets.retention.expired import execute_expired, plan_expired, preview_expired

    def show(digest: str | None, found: Sequence[ExpiredCopy], executed: bool) -> None:
        if session.as_json:
            document = {
                "executed": executed,
                "plan": digest,
                "copies": [_document(one) for one in found],
            }
            print_document("expired-copy-delete", document)
        else:
            _print(found)

    delete_by_plan(
        session,
        consent,
        command="expired-copy delete",
        record=plan_expired,
        preview=preview_expired,
        carry_out=execute_expired,
        name_of=lambda one: one.pair,
        show=show,
    )


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
