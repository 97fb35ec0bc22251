"""`tierkeeper scrub run|status`: look again at what brokers read, and heal what is broken."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tiering_assets.cli.grammar.command import ALWAYS, command
from tiering_assets.cli.grammar.consent import Consent, consent_options
from tiering_assets.cli.grammar.selected import names_of
from tiering_assets.cli.grammar.selection import Chosen, ledger_selection
from tiering_assets.cli.shared.exit_codes import FINDINGS, worst
from tiering_assets.cli.shared.output import (
    human_bytes,
    print_document,
    print_error,
    print_line,
    print_table,
)
from tiering_assets.cli.shared.session import Runner, Session
from tiering_assets.cli.terminal.columns import Column, ValueKind
from tiering_assets.resources.errors import TierkeeperError

if TYPE_CHECKING:
    from tiering_assets.records.models import EntryRange
    from tiering_assets.scrub.heal import HealResult
    from tiering_assets.scrub.plan import Candidate, ScrubPlan
    from tiering_assets.scrub.scrub import Looked, ScrubRun

app = typer.Typer(
    name="scrub", help="Verify again what brokers read, and heal it.", no_args_is_help=True
)
CHOSEN = ledger_selection(optional=True)
CONSENT = consent_options(
    does="Heal: put a new copy in the place of a broken one, while bookies have the ledger.",
    safe_half=True,
    plan_help="Print what would be looked at and healed, and end with 0; nothing is done.",
)
Deep = Annotated[
    bool, typer.Option("--deep", help="Read every byte again, due or not, as the budgets allow.")
]


@command(
    app,
    "run",
    examples=(
        "tierkeeper scrub run",
        "tierkeeper scrub run --plan",
        "tierkeeper scrub run --execute",
        "tierkeeper scrub run --deep --topic public/default/orders --execute",
    ),
    reads_only="with --plan",
)
def run_scrub(
    session: Session,
    *,
    chosen: Annotated[Chosen, CHOSEN],
    consent: Annotated[Consent, CONSENT],
    deep: Deep = False,
    runner: Annotated[
        Runner, typer.Option("--runner", help="Where blocks are read and copied.")
    ] = Runner.LOCAL,
) -> None:
    """Look at copies that are due; --execute heals.

    What is broken is put on record, which keeps its bookie copy. With --execute a new copy takes
    its place while bookies have the ledger; where they do not, the lost entries are printed. A run
    over all topics records which ledgers are gone from them, by which audits know that their
    objects may be missing. Ends with 1 if anything stays broken, or if too many ledgers are gone at
    once.
    """
    from tiering_assets.scrub.scrub import plan_run, scrub

    with session.stack(Runner.LOCAL if consent.plans_only else runner) as stack:
        names, only = names_of(stack, chosen), chosen.ledger_ids or None
        if consent.plans_only:
            _print_plan(session, plan_run(stack, names, only, deep=deep))
            return
        found = scrub(stack, names, only, deep=deep, heal=consent.acts)
    if session.as_json:
        print_document("scrub-run", {"executed": consent.acts, **_document(found)})
    else:
        _print_run(found)
        if not consent.acts:
            waits = sum(one.in_bookkeeper for one in found.broken)
            print_line(f"nothing was healed; {waits} broken copies can be: --execute does it")
    _end(session, found)


@command(
    app,
    "status",
    examples=("tierkeeper scrub status", "tierkeeper scrub status --json"),
    reads_only=ALWAYS,
)
def status(session: Session, *, chosen: Annotated[Chosen, CHOSEN]) -> None:
    """Print when each copy was last verified.

    Ends with 1 if one of them is known to be broken.
    """
    from tiering_assets.scrub.fleet import find_fleet

    with session.stack() as stack:
        fleet = find_fleet(stack, names_of(stack, chosen), chosen.ledger_ids or None)

    def age(at: Any) -> float | None:
        return None if at is None else (fleet.store_now - at).total_seconds()

    ordered = sorted(
        fleet.candidates,
        key=lambda c: (
            not c.failing,
            c.deep_at is not None,
            c.deep_at or fleet.store_now,
            c.ledger_id,
        ),
    )
    if session.as_json:
        rows = [
            {
                "ledger_id": c.ledger_id,
                "uid": c.uid,
                "ml_name": c.ml_name,
                "by": _by(c),
                "in_bookkeeper": c.in_bookkeeper,
                "broken": c.failing,
                "object_bytes": c.object_bytes,
                "shallow_age_s": age(c.shallow_at),
                "deep_age_s": age(c.deep_at),
            }
            for c in ordered
        ]
        print_document("scrub-status", {"ledgers": rows})
    else:
        print_table(
            (
                Column("LEDGER", ValueKind.ID),
                Column("STATE", ValueKind.STATE),
                Column("BY", ValueKind.TEXT),
                Column("SIZE", ValueKind.SIZE),
                Column("LAST LOOK", ValueKind.TIME),
                Column("LAST READ", ValueKind.TIME, 45),
                Column("ON BOOKIES", ValueKind.TEXT, 30),
            ),
            [
                (
                    c.ledger_id,
                    "broken" if c.failing else "ok" if c.shallow_at else "never looked at",
                    _by(c),
                    c.object_bytes,
                    c.shallow_at,
                    c.deep_at,
                    "yes" if c.in_bookkeeper else "no",
                )
                for c in ordered
            ],
        )
        broken = sum(c.failing for c in ordered)
        never = sum(c.deep_at is None for c in ordered)
        print_line(f"{len(ordered)} ledgers, {broken} broken, {never} never read back")
    if any(c.failing for c in ordered):
        raise typer.Exit(FINDINGS)


def _by(candidate: Candidate) -> str:
    return "tierkeeper" if candidate.certified else "broker"


def _print_plan(session: Session, plan: ScrubPlan) -> None:
    if session.as_json:
        looks = [
            {
                "ledger_id": look.candidate.ledger_id,
                "uid": look.candidate.uid,
                "depth": look.depth,
                "bytes": look.bytes_max,
                "whole": look.whole,
            }
            for look in plan.looks
        ]
        print_document(
            "scrub-plan",
            {
                "heal": [{"ledger_id": c.ledger_id, "uid": c.uid} for c in plan.heal],
                "looks": looks,
                "deferred": len(plan.deferred),
                "requests": plan.requests,
                "bytes": plan.bytes,
            },
        )
        return
    rows: list[Sequence[object]] = [(c.ledger_id, c.uid, "heal", "-") for c in plan.heal]
    rows += [
        (
            look.candidate.ledger_id,
            look.candidate.uid,
            look.depth,
            human_bytes(look.bytes_max) + ("" if look.whole else ", the rest next time"),
        )
        for look in plan.looks
    ]
    print_table(
        (
            Column("LEDGER", ValueKind.ID),
            Column("ATTEMPT", ValueKind.DIGEST),
            Column("WHAT", ValueKind.STATE),
            Column("READS", ValueKind.TEXT, 60),
        ),
        rows,
    )
    print_line(
        f"{len(plan.looks)} looks, {human_bytes(plan.bytes)}, about {plan.requests} requests; "
        f"{len(plan.deferred)} wait for the next run; nothing was done"
    )


def _document(run: ScrubRun) -> dict[str, Any]:
    return {
        "looked": [_looked(one) for one in run.looked],
        "healed": [_healed(i, one) for i, one in sorted(run.healed.items())],
        "deferred": len(run.deferred),
        "requests": run.requests,
        "bytes_read": run.bytes_read,
        "removed": [pair[0] for pair in run.removals.recorded],
        "removals_refused": run.removals.refused,
    }


def _looked(one: Looked) -> dict[str, Any]:
    return {
        "ledger_id": one.candidate.ledger_id,
        "uid": one.candidate.uid,
        "ml_name": one.candidate.ml_name,
        "by": _by(one.candidate),
        "depth": one.depth,
        "result": _verdict(one),
        "whole": one.whole,
        "findings": one.findings,
        "lost": one.lost,
        "on_bookies": one.in_bookkeeper,
        "error": one.error,
    }


def _verdict(one: Looked) -> str:
    if one.error is not None:
        return "failed"
    if one.moved:
        return "no longer published"
    return "broken" if one.findings else "ok"


def _healed(ledger_id: int, result: HealResult) -> dict[str, Any]:
    from tiering_assets.scrub.heal import Healed

    if isinstance(result, Healed):
        return {"ledger_id": ledger_id, "result": "healed", "uid": result.uid, "note": result.note}
    if isinstance(result, TierkeeperError):
        return {"ledger_id": ledger_id, "result": "failed", "error": result}
    return {"ledger_id": ledger_id, "result": "waits", "reason": str(result)}


def _print_run(run: ScrubRun) -> None:
    print_table(
        (
            Column("LEDGER", ValueKind.ID),
            Column("BY", ValueKind.TEXT),
            Column("DEPTH", ValueKind.TEXT, 30),
            Column("RESULT", ValueKind.STATE),
            Column("DETAIL", ValueKind.FINDINGS),
        ),
        [
            (one.candidate.ledger_id, _by(one.candidate), one.depth, _verdict(one), _detail(one))
            for one in run.looked
        ],
    )
    for ledger_id, result in sorted(run.healed.items()):
        said = _healed(ledger_id, result)
        more = said.get("uid") or said.get("reason") or said.get("error")
        print_line(f"ledger {ledger_id}: {said['result']}: {more} {said.get('note', '')}".rstrip())
    print_line(
        f"{len(run.looked)} looks, {human_bytes(run.bytes_read)} read, {run.requests} requests; "
        f"{len(run.deferred)} wait for the next run"
    )
    if run.removals.line:
        print_line(run.removals.line)


def _detail(one: Looked) -> list[str]:
    if one.error is not None:
        return [type(one.error).__name__]
    said = [*one.findings]
    if one.lost:
        said.append(f"LOST: entries {spans(one.lost)}")
    if not one.whole and one.checked is not None:
        said.append(f"{one.checked.blocks_read} of {one.checked.blocks} blocks so far")
    return said


def spans(lost: Sequence[EntryRange]) -> str:
    """`3, 7 to 9`."""
    return ", ".join(
        str(r.first_entry_id)
        if r.first_entry_id == r.last_entry_id
        else f"{r.first_entry_id} to {r.last_entry_id}"
        for r in lost
    )


def _end(session: Session, run: ScrubRun) -> None:
    from tiering_assets.scrub.heal import Healed

    errors = [one.error for one in run.looked if one.error is not None]
    errors += [one for one in run.healed.values() if isinstance(one, TierkeeperError)]
    for error in errors:
        if not session.as_json:
            print_error(error)
    if errors:
        raise typer.Exit(worst(errors))
    healed = {i for i, one in run.healed.items() if isinstance(one, Healed)}
    unhealed = [one for one in run.broken if one.candidate.ledger_id not in healed]
    if unhealed or len(healed) < len(run.healed) or run.removals.refused:
        raise typer.Exit(FINDINGS)
