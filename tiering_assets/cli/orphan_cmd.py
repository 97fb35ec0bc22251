"""`tierkeeper orphan list|sweep`: what abandoned attempts left in the bucket."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tiering_assets.cli.command import command
from tiering_assets.cli.output import human_bytes, print_document, print_line, print_table
from tiering_assets.cli.session import Session

if TYPE_CHECKING:
    from tiering_assets.steps.sweep import Leaving

app = typer.Typer(
    name="orphan", help="What abandoned attempts left in the bucket.", no_args_is_help=True
)


@command(app, "list", examples=("tierkeeper orphan list", "tierkeeper orphan list --json"))
def list_orphans(session: Session) -> None:
    """List what every attempt has in the bucket, and why it stays or may go."""
    from tiering_assets.steps.sweep import find_leavings

    with session.stack() as stack:
        leavings = find_leavings(stack)
    if session.as_json:
        print_document("orphan-list", {"attempts": _documents(leavings)})
    else:
        _print(leavings)


@command(app, "sweep", examples=("tierkeeper orphan sweep", "tierkeeper orphan sweep --execute"))
def sweep_orphans(
    session: Session,
    *,
    execute: Annotated[
        bool, typer.Option("--execute", help="Delete; without it only the plan is printed.")
    ] = False,
) -> None:
    """Delete the objects and uploads of attempts that nothing refers to. Records stay.

    Refuses if the metadata store went back in time, or if too much of the fleet would go.
    """
    from tiering_assets.steps.sweep import sweep

    with session.stack() as stack:
        leavings = sweep(stack, execute=execute)
    if session.as_json:
        print_document("orphan-sweep", {"executed": execute, "attempts": _documents(leavings)})
        return
    _print(leavings)
    going = [leaving for leaving in leavings if _goes(leaving)]
    said = "swept" if execute else "would be swept; nothing was done, --execute does it"
    print_line(f"{len(going)} attempts, {human_bytes(sum(one.bytes for one in going))} {said}")


def _goes(leaving: Leaving) -> bool:
    from tiering_assets.tiering.orphans import Sweep

    return isinstance(leaving.decision, Sweep)


def _reason(leaving: Leaving) -> str:
    from tiering_assets.tiering.orphans import Keep

    return leaving.decision.reason if isinstance(leaving.decision, Keep) else "nothing names it"


def _documents(leavings: Sequence[Leaving]) -> list[dict[str, Any]]:
    return [
        {
            "ledger_id": leaving.attempt.record.ledger.ledger_id,
            "uid": leaving.attempt.record.uid,
            "ml_name": leaving.attempt.record.ml_name,
            "decision": "sweep" if _goes(leaving) else "keep",
            "reason": _reason(leaving),
            "objects": leaving.objects,
            "uploads": leaving.uploads,
            "bytes": leaving.bytes,
        }
        for leaving in leavings
    ]


def _print(leavings: Sequence[Leaving]) -> None:
    print_table(
        ("LEDGER", "ATTEMPT", "DECISION", "OBJECTS", "UPLOADS", "SIZE", "REASON"),
        [
            (
                leaving.attempt.record.ledger.ledger_id,
                leaving.attempt.record.uid,
                "sweep" if _goes(leaving) else "keep",
                len(leaving.objects),
                len(leaving.uploads),
                human_bytes(leaving.bytes),
                _reason(leaving),
            )
            for leaving in leavings
        ],
    )
