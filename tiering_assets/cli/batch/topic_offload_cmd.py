"""`tierkeeper topic offload`: offload all of a topic before a position, as PIP-17 has it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from tiering_assets.cli.batch.estimate_output import estimate_document, print_estimate
from tiering_assets.cli.batch.offload_output import (
    OUTCOME_COLUMNS,
    RunnerOption,
    leave_with,
    outcome_document,
    outcome_row,
    print_offloaded,
)
from tiering_assets.cli.explain.topic_cmd import app
from tiering_assets.cli.grammar.command import command
from tiering_assets.cli.grammar.completion import topics_like
from tiering_assets.cli.grammar.consent import Consent, consent_options
from tiering_assets.cli.grammar.quantities import duration_option, size_option
from tiering_assets.cli.grammar.selected import managed_ledgers
from tiering_assets.cli.shared.exit_codes import FINDINGS
from tiering_assets.cli.shared.output import (
    human_bytes,
    print_document,
    print_error,
    print_line,
    print_table,
)
from tiering_assets.cli.shared.segment_output import print_segments, segment_document
from tiering_assets.cli.shared.session import Runner, Session
from tiering_assets.cli.shared.usage import UsageError
from tiering_assets.cli.terminal.columns import Column, ValueKind
from tiering_assets.resources.errors import FormatError

if TYPE_CHECKING:
    from tiering_assets.batch.offload_prefix import PrefixPlan, PrefixProgress
    from tiering_assets.batch.offload_prefix_rules import Until

TIMEOUT_S = 3600.0
CONSENT = consent_options(
    does="Publish what was copied, so that brokers read it.",
    safe_half=True,
    plan_help="Print what it would be: ledgers, bytes, requests, time, reloads; nothing is done.",
)
OneTopic = Annotated[
    str | None,
    typer.Argument(
        metavar="TOPIC",
        autocompletion=topics_like,
        help="tenant/namespace/topic or persistent://…; one partition by its name.",
    ),
]


@command(
    app,
    "offload",
    examples=(
        "tierkeeper topic offload public/default/orders --before 1234:0 --execute",
        "tierkeeper topic offload public/default/orders --plan",
        "tierkeeper topic offload --all --plan --json",
        "tierkeeper topic offload public/default/orders-partition-0 --keep-bytes 1GiB --wait "
        "--execute",
    ),
    reads_only="with --plan",
)
def offload(
    session: Session,
    *,
    topic: OneTopic = None,
    everything: Annotated[
        bool, typer.Option("--all", help="With --plan: every topic, one after the other.")
    ] = False,
    before: Annotated[
        str | None,
        typer.Option(
            "--before",
            metavar="LEDGER:ENTRY",
            help="A message's position: ledgers before its ledger are offloaded, its own is not.",
        ),
    ] = None,
    keep_bytes: Annotated[
        int | None,
        size_option(
            "--keep-bytes",
            help="Offload what is older than the newest bytes, as `pulsar-admin topics offload`.",
        ),
    ] = None,
    wait: Annotated[
        bool,
        typer.Option(
            "--wait", help="Go on until all of it is offloaded, or waiting helps no more."
        ),
    ] = False,
    timeout: Annotated[
        float | None,
        duration_option("--timeout", default="1 h", help="How long to wait at most with --wait."),
    ] = None,
    consent: Annotated[Consent, CONSENT],
    runner: RunnerOption = Runner.LOCAL,
) -> None:
    """Offload a topic up to a position; --execute publishes.

    All of it before a position, or all but its newest bytes.

    The broker's offloadPrefix: the same ledgers, oldest first, never the open one, whatever the
    thresholds say. They are copied and verified, and with --execute published. A ledger that waits
    is printed with its reason and is no failure. With --wait it goes on until the first
    un-offloaded position is the wanted one. It ends with 1 when that is not reached in time, or a
    ledger needs a person. Safe to repeat. Where the topic is streamed, all that is proven of its
    open ledger goes into segments as well.

    With --plan nothing is written, and no topic is loaded; a plan without a position is of all
    closed ledgers. Only with --keep-bytes above 0 the broker of a loaded topic is asked something.
    The time is an estimate, printed with what bounds it and where each figure comes from.
    """
    dry_run = consent.plans_only
    if everything or topic is None:
        _plan_all(session, topic, before, keep_bytes, everything=everything, plans=dry_run)
        return
    if wait and not (consent.acts or dry_run):
        raise UsageError("--wait goes on until all is published, which --execute does; give both")
    if dry_run and before is None and keep_bytes is None:
        keep_bytes = 0
    until = _until(before, keep_bytes)
    if timeout is not None and not wait:
        raise UsageError("--timeout says how long to --wait; give both")
    from tiering_assets.batch.offload_estimate import estimate_topics
    from tiering_assets.batch.offload_prefix import (
        look_again,
        offload_prefix,
        offload_prefix_until,
        plan_prefix,
    )
    from tiering_assets.resources.errors import TierkeeperError
    from tiering_assets.stream.cut import cut_if_streamed

    estimate, segments, cut_error = None, list[dict[str, Any]](), None
    with session.stack(Runner.LOCAL if dry_run else runner) as stack:
        [ml_name] = _one(managed_ledgers(stack, topic), topic)
        plan = plan_prefix(stack, ml_name, until, ask_broker=not dry_run or bool(keep_bytes))
        session.progress(_plan_text(plan))
        if dry_run:
            progress = look_again(stack, plan)
            estimate = estimate_topics(stack, plan.before, [ml_name])
        elif wait:
            limit = TIMEOUT_S if timeout is None else timeout
            progress = offload_prefix_until(stack, plan, timeout_s=limit)
        else:
            progress = offload_prefix(stack, plan, publish=consent.acts)
        if not dry_run:
            try:
                segments = [segment_document(one) for one in cut_if_streamed(stack, ml_name)]
            except TierkeeperError as error:
                cut_error = error
    if session.as_json:
        document = _document(plan, progress, executed=consent.acts)
        told = {} if estimate is None else {"estimate": estimate_document(estimate)}
        cut = {"segments": segments, "cut_error": cut_error}
        print_document("topic-offload", document | told | cut)
    else:
        _print(plan, progress, dry_run=dry_run)
        print_segments(plan.topic, segments)
        if estimate is not None:
            print_estimate(estimate)
        elif not consent.acts:
            print_offloaded(progress.outcomes, publishes=False)
    if dry_run:
        return
    leave_with(
        session, {one.ledger_id: one.error for one in progress.outcomes if one.error is not None}
    )
    if cut_error is not None:
        if not session.as_json:
            print_error(cut_error)
        raise typer.Exit(cut_error.exit_code)
    if wait and not progress.reached:
        raise typer.Exit(FINDINGS)


def _plan_all(
    session: Session,
    topic: str | None,
    before: str | None,
    keep_bytes: int | None,
    *,
    everything: bool,
    plans: bool,
) -> None:
    if topic is not None or not everything:
        raise UsageError("name one topic, or give --all")
    if not plans:
        raise UsageError(
            "--all goes with --plan; `tierkeeper ledger offload --all` offloads every topic"
        )
    if before is not None:
        raise UsageError("--before is a position of one topic; use --keep-bytes with --all")
    from tiering_assets.batch.offload_estimate import estimate_topics

    until = _until(None, keep_bytes or 0)
    with session.stack() as stack:
        estimate = estimate_topics(stack, until)
    if session.as_json:
        body = {"topic": None, "executed": False, "estimate": estimate_document(estimate)}
        print_document("topic-offload", body)
    else:
        print_estimate(estimate)


def _until(before: str | None, keep_bytes: int | None) -> Until:
    from tiering_assets.batch.offload_prefix_rules import parse_until

    try:
        until = parse_until(before, keep_bytes)
    except FormatError as error:
        raise UsageError(str(error)) from None
    if until is None:
        raise UsageError("say what to offload: --before LEDGER:ENTRY or --keep-bytes N")
    return until


def _one(names: list[str], topic: str) -> list[str]:
    if len(names) > 1:
        raise UsageError(
            f"{topic} has {len(names)} partitions and each has positions of its own; name one, "
            f"such as {topic}-partition-0"
        )
    return names


def _plan_text(plan: PrefixPlan) -> str:
    from tiering_assets.batch.offload_prefix_rules import position_text

    prefix = plan.prefix
    return (
        f"{plan.topic} before {position_text(plan.before)}: {len(prefix.to_offload)} ledgers of "
        f"{human_bytes(prefix.bytes)} to offload, {len(prefix.offloaded)} are offloaded"
    )


def _document(plan: PrefixPlan, progress: PrefixProgress, *, executed: bool) -> dict[str, Any]:
    from tiering_assets.batch.offload_prefix_rules import position_text

    prefix = plan.prefix
    return {
        "topic": plan.topic,
        "ml_name": plan.ml_name,
        "executed": executed,
        "before": position_text(plan.before),
        "chosen": prefix.ledger_ids,
        "chosen_bytes": prefix.bytes,
        "already_offloaded": prefix.offloaded,
        "empty": prefix.empty,
        "wanted_first_unoffloaded": position_text(prefix.goal),
        "first_unoffloaded": position_text(progress.first_unoffloaded),
        "reached": progress.reached,
        "ledgers": [outcome_document(one, one.error) for one in progress.outcomes],
        "notes": plan.notes,
    }


def _print(plan: PrefixPlan, progress: PrefixProgress, *, dry_run: bool) -> None:
    from tiering_assets.batch.offload_prefix_rules import position_text

    if dry_run:
        rows = [(one.ledger_id, one.entries, one.size) for one in plan.prefix.to_offload]
        print_table(
            (
                Column("LEDGER", ValueKind.ID),
                Column("ENTRIES", ValueKind.NUMBER),
                Column("SIZE", ValueKind.SIZE),
            ),
            rows,
        )
    else:
        print_table(OUTCOME_COLUMNS, map(outcome_row, progress.outcomes))
    for note in plan.notes:
        print_line(f"note: {note}")
    print_line(
        f"first un-offloaded {position_text(progress.first_unoffloaded) or 'none'}, "
        f"wanted {position_text(plan.prefix.goal)}" + (": reached" if progress.reached else "")
    )
