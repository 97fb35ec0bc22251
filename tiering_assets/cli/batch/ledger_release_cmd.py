"""`tierkeeper ledger release`: the only command that deletes bookie copies.

Owns: what goes is exactly a plan, the one just made and shown, or one that was written before and
read by people.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tiering_assets.cli.explain.ledger_cmd import app
from tiering_assets.cli.grammar.command import command
from tiering_assets.cli.grammar.consent import Consent, consent_options
from tiering_assets.cli.grammar.selected import by_topic, names_of
from tiering_assets.cli.grammar.selection import Chosen, ledger_selection
from tiering_assets.cli.shared.exit_codes import worst
from tiering_assets.cli.shared.output import (
    human_bytes,
    print_document,
    print_error,
    print_line,
    print_table,
)
from tiering_assets.cli.shared.session import Session
from tiering_assets.cli.shared.usage import UsageError
from tiering_assets.cli.terminal.columns import Column, ValueKind
from tiering_assets.cli.terminal.words import by_finding
from tiering_assets.resources.errors import TierkeeperError

if TYPE_CHECKING:
    from tiering_assets.batch.release_batch import ReleaseOutcome
    from tiering_assets.batch.release_plan import Written
    from tiering_assets.ground.stack import Stack

CHOSEN = ledger_selection(optional=True)
CONSENT = consent_options(
    does="Delete the bookie copies that the plan lists.", plan_file=True, approved="FILE"
)


@command(
    app,
    "release",
    examples=(
        "tierkeeper ledger release --due --plan",
        "tierkeeper ledger release --due --plan-file plan.json",
        "tierkeeper ledger release --approved plan.json --execute",
        "tierkeeper ledger release --due --execute",
        "tierkeeper ledger release 12345 --execute",
    ),
)
def release(
    session: Session,
    *,
    chosen: Annotated[Chosen, CHOSEN],
    due: Annotated[
        bool,
        typer.Option(
            "--due", help="Only ledgers whose deletion lag has passed; alone, all of those."
        ),
    ] = False,
    consent: Annotated[Consent, CONSENT],
    acknowledge: Annotated[
        str | None,
        typer.Option(
            "--acknowledge",
            metavar="WHO_AND_WHY",
            help="Accept in the plan that so much of the fleet goes at once.",
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
    """Delete the bookie copies of published ledgers.

    With --plan nothing is changed; the gate asks brokers about the topics all the same, and one may
    load them for it.

    Each ledger's evidence is gathered afresh and every condition must hold: certificate, objects,
    chain of records, lag by two clocks, holds, caps, replication. Safe to repeat.
    """
    approved = consent.approved
    if approved is not None and (not chosen.everything or due or acknowledge):
        raise UsageError("--approved FILE says which ledgers go; drop the others")
    if approved is None and chosen.everything and not due:
        raise UsageError("choose ledgers by one of ID, --ids, --topic, --namespace, --due")
    if chosen.ledger_ids and due:
        raise UsageError("--due chooses of topics and namespaces; ids choose by themselves")
    with session.stack() as stack:
        from tiering_assets.batch.release_plan import execute_plan, make_plan, read_plan, write_plan

        if approved is not None:
            written = read_plan(Path(approved))
        else:
            groups = _groups(stack, chosen, due=due)
            written = make_plan(stack, groups, acknowledged=acknowledge)
        if consent.plan_file is not None:
            write_plan(written, consent.plan_file)
        may_act = consent.given(
            session,
            show=lambda: _print_plan(session, written, consent),
            question=_question(written),
        )
        if may_act:
            done = execute_plan(stack, written, publish_waiting=publish_waiting)
            _print_done(session, done.outcomes)


def _question(written: Written) -> str:
    going = written.plan.release
    if not going and not written.finished:
        return ""
    size = human_bytes(sum(one.bytes for one in going))
    return f"Delete the bookie copies of {len(going)} ledgers, {size}?"


def _groups(stack: Stack, chosen: Chosen, *, due: bool) -> dict[str, list[int]]:
    from tiering_assets.automation.choices import due_by_topic, published_by_topic

    if chosen.ledger_ids:
        return by_topic(stack, chosen.ledger_ids)
    names = names_of(stack, chosen)
    return due_by_topic(stack, names) if due else published_by_topic(stack, names)


def _print_plan(session: Session, written: Written, consent: Consent) -> None:
    found = written.plan
    bytes_released = sum(one.bytes for one in found.release)
    if session.as_json:
        print_document(
            "ledger-release",
            {
                "executed": False,
                "plan": consent.approved or consent.plan_file,
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
    print_line(
        f"{len(found.release)} of {len(rows)} ledgers would be released, "
        f"{human_bytes(bytes_released)}{_next_step(consent)}"
    )


def _next_step(consent: Consent) -> str:
    if not consent.plans_only:
        return ""
    file = consent.approved or consent.plan_file
    does = "--execute" if file is None else f"`--approved {file} --execute`"
    return f"; nothing was done, {does} does it"


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
