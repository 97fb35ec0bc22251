"""How `ledger offload` and `topic offload` show what became of each ledger, and how they end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tiering_assets.cli.shared.exit_codes import worst
from tiering_assets.cli.shared.output import print_error, print_line
from tiering_assets.cli.shared.session import Runner, Session
from tiering_assets.cli.terminal.columns import Column, ValueKind
from tiering_assets.resources.errors import TierkeeperError

if TYPE_CHECKING:
    from tiering_assets.batch.pipeline import LedgerOutcome

RunnerOption = Annotated[
    Runner, typer.Option("--runner", help="Where the tasks run: this process or Spark.")
]

OUTCOME_COLUMNS = (
    Column("LEDGER", ValueKind.ID),
    Column("STATE", ValueKind.STATE),
    Column("SIZE", ValueKind.SIZE),
    Column("DETAIL", ValueKind.FINDINGS),
)


def outcome_document(one: LedgerOutcome, error: TierkeeperError | None) -> dict[str, Any]:
    """One ledger for --json; `error` is why it failed, also where the step called it a wait."""
    certificate = None if one.certificate is None else one.certificate.record
    return {
        "ledger_id": one.ledger_id,
        "ml_name": one.ml_name,
        "state": one.state if error is None else "failed",
        "noop": one.noop,
        "copied": one.copied,
        "parts_sent": one.parts_sent,
        "verified": one.verified,
        "certificate": None if one.certificate is None else one.certificate.key,
        "data_key": None if certificate is None else certificate.data.key,
        "data_bytes": None if certificate is None else certificate.data.size,
        "publication": None if one.published is None else one.published.publication_key,
        "wait": None if one.wait is None else str(one.wait),
        "error": error,
        "notes": one.notes,
        "seconds": round(one.seconds, 3),
    }


def outcome_row(one: LedgerOutcome) -> tuple[object, ...]:
    """One row under OUTCOME_COLUMNS."""
    size = None if one.certificate is None else one.certificate.record.data.size
    if one.error is not None:
        detail = [type(one.error).__name__]
    elif one.wait is not None:
        detail = [f"waits: {one.wait}"]
    elif one.noop:
        detail = ["nothing was left to do"]
    else:
        detail = [*one.notes]
    return (one.ledger_id, one.state, size, detail)


def print_offloaded(outcomes: Sequence[LedgerOutcome], *, publishes: bool) -> None:
    """The last line: what was done, and what a copy that nobody reads still needs."""
    published = sum(one.state == "published" for one in outcomes)
    copied = sum(one.state == "verified" for one in outcomes)
    if publishes:
        print_line(f"{published} of {len(outcomes)} ledgers are published")
        return
    print_line(
        f"{copied} of {len(outcomes)} ledgers are copied, verified and not published; "
        f"nothing was published, --execute does it"
    )


def leave_with(session: Session, errors: dict[int, TierkeeperError]) -> None:
    """Tell every error on standard error and leave with the worst one's exit code."""
    for error in errors.values():
        if not session.as_json:
            print_error(error)
    if errors:
        raise typer.Exit(worst(errors.values()))
