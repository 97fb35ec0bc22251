"""`tierkeeper policy show|check`: the policy in force for a topic, each field with its origin."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tiering_assets.cli.grammar.command import command
from tiering_assets.cli.grammar.selected import names_of
from tiering_assets.cli.grammar.selection import AskTopics, Chosen, topic_selection
from tiering_assets.cli.shared.exit_codes import FINDINGS
from tiering_assets.cli.shared.output import print_document, print_line, print_table
from tiering_assets.cli.shared.session import Session
from tiering_assets.cli.terminal.columns import Column, ValueKind

if TYPE_CHECKING:
    from tiering_assets.policy.policies import TopicPolicy
    from tiering_assets.policy.policy import EffectivePolicy

app = typer.Typer(
    name="policy",
    help="Policies in force: Pulsar's own, then tiering.toml.",
    no_args_is_help=True,
)

NAMED = topic_selection(optional=False)
CHOSEN = topic_selection()


@command(
    app,
    "show",
    examples=(
        "tierkeeper policy show public/default/orders",
        "tierkeeper policy show public/default/orders --json",
        "tierkeeper policy show public/default/orders --set policy.file=/etc/tiering.toml",
    ),
    reads_only="without --ask-topics",
)
def show(
    session: Session, *, chosen: Annotated[Chosen, NAMED], ask_topics: AskTopics = False
) -> None:
    """Print each field of a policy, and its level.

    Topic beats namespace beats broker beats tiering.toml, field by field. Without a broker the
    namespace is read from the metadata store, the topic level is unknown, and nothing is published
    or released meanwhile. So it is where no broker owns the topic's bundle: asking would have it
    load topics, so it is left out unless --ask-topics is given.
    """
    from tiering_assets.policy.policies import check_policies, user_topics

    with session.stack() as stack:
        names = names_of(stack, chosen) or user_topics(stack)
        found = list(check_policies(stack, names, loads_nothing=not ask_topics))
    if session.as_json:
        print_document("policy-show", {"topics": [_document(one) for one in found]})
    else:
        for one in found:
            _print(one)
    _leave_if_unread(found)


@command(
    app,
    "check",
    examples=(
        "tierkeeper policy check",
        "tierkeeper policy check --namespace public/default --json",
    ),
    reads_only="without --ask-topics",
)
def check(
    session: Session, *, chosen: Annotated[Chosen, CHOSEN], ask_topics: AskTopics = False
) -> None:
    """Check policies; name what cannot be.

    What cannot be is refused, with both values. Ends with 1 when a topic is refused or cannot be
    read. Notes change nothing. Loads no topic: topics' own levels are asked only where a broker
    owns their bundle.
    """
    from tiering_assets.explain.reasons.next_steps import step_of_rule
    from tiering_assets.policy.policies import check_policies, user_topics

    with session.stack() as stack:
        names = names_of(stack, chosen) or user_topics(stack)
        found = list(check_policies(stack, names, loads_nothing=not ask_topics))
    refused = [one for one in found if one.refused]
    uncertain = sum(one.policy is not None and not one.policy.complete for one in found)
    counts = {"topics": len(found), "refused": len(refused), "uncertain": uncertain}
    if session.as_json:
        documents = [
            {
                "topic": one.topic,
                "refused": one.refused,
                "findings": one.findings,
                "error": one.error,
            }
            for one in found
        ]
        print_document("policy-check", {**counts, "policies": documents})
    else:
        lines = _lines(found)
        print_table(
            (
                Column("TOPIC", ValueKind.TOPIC),
                Column("RESULT", ValueKind.STATE),
                Column("RULE", ValueKind.TEXT),
                Column("WHAT", ValueKind.FINDINGS),
            ),
            lines,
        )
        for rule in sorted({rule for _topic, _result, rule, _text in lines}):
            print_line(f"next, {rule}: {step_of_rule(rule)}")
        print_line(
            f"{counts['topics']} topics, {counts['refused']} refused, "
            f"{uncertain} with a level that could not be asked"
        )
    if refused:
        raise typer.Exit(FINDINGS)


def _lines(found: Sequence[TopicPolicy]) -> list[tuple[str, str, str, str]]:
    lines = []
    for one in found:
        if one.error is not None:
            lines.append((one.topic, "refused", "unreadable", one.error))
        lines += [
            (one.topic, "refused" if f.refused else "note", f.rule, f.text) for f in one.findings
        ]
    return lines


def _print(found: TopicPolicy) -> None:
    from tiering_assets.explain.reasons.next_steps import step_of_rule
    from tiering_assets.policy.policy import rows

    print_line(found.topic)
    if found.policy is None:
        print_line(f"  cannot be read: {found.error}")
        return
    print_table(
        (
            Column("FIELD", ValueKind.ID),
            Column("VALUE", ValueKind.TEXT, 40),
            Column("ORIGIN", ValueKind.TEXT),
        ),
        [
            (row.name, row.meaning, row.origin if row.certain else f"{row.origin}, uncertain")
            for row in rows(found.policy)
        ],
    )
    print_line(f"read from the {found.policy.read_from}")
    for line in found.policy.unknown:
        print_line(f"unknown: {line}: nothing is published or released meanwhile")
    for finding in found.findings:
        level = "refused" if finding.refused else "note"
        print_line(f"{level}: {finding.text}", lead=level)
        print_line(f"  next: {step_of_rule(finding.rule, topic=found.topic)}")


def _document(found: TopicPolicy) -> dict[str, Any]:
    from tiering_assets.policy.policy import rows

    policy: EffectivePolicy | None = found.policy
    return {
        "topic": found.topic,
        "fields": [] if policy is None else list(rows(policy)),
        "read_from": None if policy is None else policy.read_from,
        "unknown": [] if policy is None else policy.unknown,
        "findings": found.findings,
        "error": found.error,
    }


def _leave_if_unread(found: Sequence[TopicPolicy]) -> None:
    if any(one.policy is None for one in found):
        raise typer.Exit(FINDINGS)
