"""`tierkeeper ledger release`: the only command that deletes bookie copies.

Owns: without --execute it prints or writes its plan and deletes nothing; what --execute does is a
plan, the one just made or one that was written before and read by people.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tiering_assets.cli.explain.ledger_cmd import app
from tiering_assets.cli.shared.command import command
from tiering_assets.cli.shared.exit_codes import worst
from tiering_assets.cli.shared.output import (
    human_bytes,
    print_document,
    print_error,
    print_line,
    print_table,
)
from tiering_assets.cli.shared.selection import (
    LedgerIds,
    Topic,
    by_topic,
    managed_ledgers,
    require_one_choice,
)
from tiering_assets.cli.shared.session import Session
from tiering_assets.cli.terminal.columns import Column, ValueKind
from tiering_assets.cli.terminal.words import by_finding
from tiering_assets.resources.errors import TierkeeperError

if TYPE_CHECKING:
    from tiering_assets.batch.release_batch import ReleaseOutcome
    from tiering_assets.batch.release_plan import Written
    from tiering_assets.ground.stack import Stack

NOW = "now"


def with_plan(arguments: Sequence[str]) -> list[str]:
    """The command line with `now` after each --execute of a release that names no plan.

    An option's value cannot be left out otherwise. A number is a ledger id, no plan.
    """
    found = [*arguments]
    if "release" in found:
        for i in reversed([i for i, word in enumerate(found) if word == "--execute"]):
            value = found[i + 1] if i + 1 < len(found) else "-"
            if value.startswith("-") or value.isdecimal():
                found.insert(i + 1, NOW)
    return found


@command(
    app,
    "release",
    examples=(
        "tierkeeper ledger release --due",
        "tierkeeper ledger release --due --plan plan.json",
        "tierkeeper ledger release --execute plan.json",
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
    plan: Annotated[
        Path | None,
        typer.Option("--plan", metavar="FILE", help="Write the plan to a new file, for review."),
    ] = None,
    acknowledge: Annotated[
        str | None,
        typer.Option(
            "--acknowledge",
            metavar="WHO_AND_WHY",
            help="Accept in the plan that so much of the fleet goes at once.",
        ),
    ] = None,
    execute: Annotated[
        str | None,
        typer.Option(
            "--execute",
            metavar="[PLAN]",
            help="Delete: exactly what a written plan lists, or what the plan of now says.",
        ),
    ] = None,
    publish_waiting: Annotated[
        bool,
        typer.Option(
            "--publish-waiting",
            help="Publish what waits of the topics that are reloaded, with the same reload.",
        ),
    ] = False,
) -> None:
    """Delete the bookie copies of published ledgers, or say which would go and why not.

    Without --execute nothing is changed; the gate asks brokers about the topics all the same, and
    one may load them for it.

    Each ledger's evidence is gathered afresh and every condition must hold: certificate, objects,
    chain of records, lag by two clocks, holds, caps, replication. Safe to repeat.
    """
    file = None if execute in (None, NOW) else Path(str(execute))
    if file is not None and (plan is not None or ledger_ids or topic or due):
        raise typer.BadParameter("--execute PLAN says by itself which ledgers go; drop the others")
    if file is None:
        require_one_choice(ID=ledger_ids, **{"--topic": topic, "--due": due})
    with session.stack() as stack:
        from tiering_assets.batch.release_plan import execute_plan, make_plan, read_plan, write_plan

        if file is not None:
            written = read_plan(file)
        else:
            groups = (
                by_topic(stack, ledger_ids)
                if ledger_ids is not None
                else _published(stack, topic, due)
            )
            written = make_plan(stack, groups, acknowledged=acknowledge)
        if plan is not None:
            write_plan(written, plan)
        if execute is None:
            _print_plan(session, written, plan)
        else:
            done = execute_plan(stack, written, publish_waiting=publish_waiting)
            _print_done(session, done.outcomes)


def _published(stack: Stack, topic: str | None, due: bool) -> dict[str, list[int]]:
    from tiering_assets.automation.choices import due_by_topic, published_by_topic

    names = None if topic is None else managed_ledgers(stack, topic)
    return due_by_topic(stack, names) if due else published_by_topic(stack, names)


def _print_plan(session: Session, written: Written, file: Path | None) -> None:
    found = written.plan
    bytes_released = sum(one.bytes for one in found.release)
    if session.as_json:
        print_document(
            "ledger-release",
            {
                "executed": False,
                "plan": None if file is None else str(file),
                "ledgers": _plan_documents(written),
                "bytes_to_release": bytes_released,
                "tripwire": found.tripwire,
                "acknowledged": found.acknowledged,
            },
        )
        return
    rows = [(p.ledger_id, "release", p.bytes, p.ml_name, [p.allowed_by]) for p in found.release]
    rows += [
        (
            n.ledger_id,
            "wait",
            n.bytes,
            n.ml_name,
            [line for why in n.reasons for line in by_finding(why)],
        )
        for n in found.not_released
    ]
    print_table(
        (
            Column("LEDGER", ValueKind.ID),
            Column("DECISION", ValueKind.STATE),
            Column("SIZE", ValueKind.SIZE),
            Column("MANAGED LEDGER", ValueKind.TOPIC),
            Column("REASONS", ValueKind.FINDINGS),
        ),
        sorted(rows),
    )
    if found.tripwire is not None:
        print_line(f"{found.tripwire}; acknowledged: {found.acknowledged or 'no'}")
    then = "--execute does it" if file is None else f"--execute {file} does it"
    print_line(
        f"{len(found.release)} of {len(rows)} ledgers would be released, "
        f"{human_bytes(bytes_released)}; nothing was done, {then}"
    )


def _plan_documents(written: Written) -> list[dict[str, Any]]:
    found = written.plan
    going = [
        {
            "ledger_id": p.ledger_id,
            "ml_name": p.ml_name,
            "decision": "release",
            "reasons": [],
            "bytes": p.bytes,
            "age_s": p.age_s,
            "uid": p.uid,
            "certificate": p.certificate,
            "allowed_by": p.allowed_by,
        }
        for p in found.release
    ]
    waiting = [
        {
            "ledger_id": n.ledger_id,
            "ml_name": n.ml_name,
            "decision": "wait",
            "reasons": n.reasons,
            "bytes": n.bytes,
        }
        for n in found.not_released
    ]
    return [*going, *waiting]


def _print_done(session: Session, outcomes: Sequence[ReleaseOutcome]) -> None:
    errors = {o.ledger_id: o.result for o in outcomes if isinstance(o.result, TierkeeperError)}
    rows = [(outcome.ledger_id, *_result(outcome)) for outcome in outcomes]
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
            (
                Column("LEDGER", ValueKind.ID),
                Column("RESULT", ValueKind.STATE),
                Column("SIZE", ValueKind.SIZE),
                Column("DETAIL", ValueKind.FINDINGS),
            ),
            [(*row[:3], _lines(outcome)) for row, outcome in zip(rows, outcomes, strict=True)],
        )
        for said in sorted({str(error) for error in errors.values()}):
            print_error(said)
    if errors:
        raise typer.Exit(worst(errors.values()))


def _result(outcome: ReleaseOutcome) -> tuple[str, int | None, str]:
    """(result, bytes, detail)"""
    from tiering_assets.ground.reasons import NotNow
    from tiering_assets.release.work import Released

    match outcome.result:
        case Released(bytes_released=size, noop=noop):
            return "released", size, "by an earlier run" if noop else ""
        case NotNow(reasons=reasons):
            return "waits", None, "; ".join(reasons)
        case error:
            return "failed", None, type(error).__name__


def _lines(outcome: ReleaseOutcome) -> list[str]:
    """The detail for people: each reason by itself."""
    from tiering_assets.ground.reasons import NotNow

    if isinstance(outcome.result, NotNow):
        return [line for why in outcome.result.reasons for line in by_finding(why)]
    return [_result(outcome)[2]]
