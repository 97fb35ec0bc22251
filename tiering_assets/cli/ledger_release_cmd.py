"""`tierkeeper ledger release`: the only command that deletes bookie copies.

Owns: without --execute it prints its plan and does nothing; the plan is the decision of the same
code that would release.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from resources.errors import TierkeeperError
from tiering_assets.cli.command import command
from tiering_assets.cli.exit_codes import worst
from tiering_assets.cli.ledger_cmd import app
from tiering_assets.cli.output import human_bytes, print_document, print_line, print_table
from tiering_assets.cli.selection import (
    LedgerIds,
    Topic,
    by_topic,
    managed_ledgers,
    require_one_choice,
)
from tiering_assets.cli.session import Session

if TYPE_CHECKING:
    from tiering_assets.steps.release import ReleasePlanItem, ReleaseResult
    from tiering_assets.steps.stack import Stack


@command(
    app,
    "release",
    examples=(
        "tierkeeper ledger release --due",
        "tierkeeper ledger release --due --execute",
        "tierkeeper ledger release 12345 --execute",
    ),
)
def release(
    session: Session,
    *,
    ledger_ids: LedgerIds = None,
    topic: Topic = None,
    due: Annotated[
        bool, typer.Option("--due", help="Every ledger whose deletion lag has passed.")
    ] = False,
    execute: Annotated[
        bool, typer.Option("--execute", help="Delete; without it only the plan is printed.")
    ] = False,
) -> None:
    """Delete the bookie copies of published ledgers, or print which would go and why not.

    Each ledger's evidence is gathered afresh and every condition must hold: certificate, objects,
    chain of records, lag by two clocks, holds, replication. Safe to repeat.
    """
    require_one_choice(ID=ledger_ids, **{"--topic": topic, "--due": due})
    with session.stack() as stack:
        groups = (
            by_topic(stack, ledger_ids) if ledger_ids is not None else _published(stack, topic, due)
        )
        if execute:
            _execute(session, stack, groups)
        else:
            _plan(session, stack, groups)


def _published(stack: Stack, topic: str | None, due: bool) -> dict[str, list[int]]:
    from tiering_assets.steps.survey import survey
    from tiering_assets.tiering.states import LedgerState

    states = {LedgerState.RELEASE_DUE, LedgerState.RELEASING}
    if not due:
        states |= {LedgerState.PUBLISHED, LedgerState.HELD}
    groups: dict[str, list[int]] = {}
    for view in survey(stack, None if topic is None else managed_ledgers(stack, topic)):
        if view.state in states:
            groups.setdefault(view.ml_name, []).append(view.ledger_id)
    return groups


def _plan(session: Session, stack: Stack, groups: dict[str, list[int]]) -> None:
    from tiering_assets.steps.release import plan_release
    from tiering_assets.tiering.release_gate import Release

    items = [item for name, ids in groups.items() for item in plan_release(stack, name, ids)]
    going = [item for item in items if isinstance(item.decision, Release)]
    if session.as_json:
        print_document(
            "ledger-release",
            {
                "executed": False,
                "ledgers": [_plan_document(item) for item in items],
                "bytes_to_release": sum(item.bytes for item in going),
            },
        )
        return
    print_table(
        ("LEDGER", "DECISION", "SIZE", "MANAGED LEDGER", "REASONS"),
        [
            (
                item.ledger_id,
                "release" if isinstance(item.decision, Release) else "wait",
                human_bytes(item.bytes),
                item.ml_name,
                "" if isinstance(item.decision, Release) else "; ".join(item.decision.reasons),
            )
            for item in items
        ],
    )
    print_line(
        f"{len(going)} of {len(items)} ledgers would be released, "
        f"{human_bytes(sum(item.bytes for item in going))}; nothing was done, --execute does it"
    )


def _plan_document(item: ReleasePlanItem) -> dict[str, Any]:
    from tiering_assets.tiering.release_gate import Release

    releases = isinstance(item.decision, Release)
    return {
        "ledger_id": item.ledger_id,
        "ml_name": item.ml_name,
        "decision": "release" if releases else "wait",
        "reasons": [] if isinstance(item.decision, Release) else item.decision.reasons,
        "bytes": item.bytes,
    }


def _execute(session: Session, stack: Stack, groups: dict[str, list[int]]) -> None:
    from tiering_assets.steps.release import release_topic

    results: dict[int, ReleaseResult] = {}
    for name, ids in groups.items():
        try:
            results |= release_topic(stack, name, ids)
        except TierkeeperError as error:
            results |= dict.fromkeys(ids, error)
    errors = {i: result for i, result in results.items() if isinstance(result, TierkeeperError)}
    rows = [(i, *_result(result)) for i, result in sorted(results.items())]
    if session.as_json:
        names = ("ledger_id", "result", "bytes_released", "detail")
        print_document(
            "ledger-release",
            {
                "executed": True,
                "ledgers": [
                    dict(zip(names, row, strict=True)) | {"error": errors.get(row[0])}
                    for row in rows
                ],
            },
        )
    else:
        print_table(
            ("LEDGER", "RESULT", "SIZE", "DETAIL"),
            [(i, result, human_bytes(size), detail) for i, result, size, detail in rows],
        )
        for said in sorted({str(error) for error in errors.values()}):
            sys.stderr.write(f"error: {said}\n")
    if errors:
        raise typer.Exit(worst(errors.values()))


def _result(result: ReleaseResult) -> tuple[str, int | None, str]:
    """(result, bytes, detail)"""
    from tiering_assets.steps.release import Released

    if isinstance(result, Released):
        return "released", result.bytes_released, "by an earlier run" if result.noop else ""
    if isinstance(result, TierkeeperError):
        return "failed", None, type(result).__name__
    return "waits", None, "; ".join(result.reasons)
