"""`tierkeeper lineage coverage`: is anything missing between a topic's first and last position?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from tiering_assets.cli.grammar.command import ALWAYS, command
from tiering_assets.cli.grammar.completion import topics_like
from tiering_assets.cli.grammar.selected import managed_ledgers
from tiering_assets.cli.grammar.selection import require_one_choice
from tiering_assets.cli.lineage.lineage_cmd import app, asked
from tiering_assets.cli.shared.exit_codes import FINDINGS
from tiering_assets.cli.shared.output import print_document, print_line
from tiering_assets.cli.shared.session import Session

if TYPE_CHECKING:
    from tiering_assets.lineage.coverage_rules import TopicCoverage

_COUNTED = ("covered", "on_bookies", "by_brokers", "in_work")


@command(
    app,
    "coverage",
    examples=(
        "tierkeeper lineage coverage public/default/orders",
        "tierkeeper lineage coverage --all",
        "tierkeeper lineage coverage --all --prove --json",
    ),
    reads_only=ALWAYS,
)
def show_coverage(
    session: Session,
    *,
    topic: Annotated[
        str | None, typer.Argument(metavar="TOPIC", help="Topic.", autocompletion=topics_like)
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Every topic.")] = False,
    prove: Annotated[
        bool,
        typer.Option(
            "--prove", help="Read topics' lists again, and the proofs of ledgers with findings."
        ),
    ] = False,
) -> None:
    """Find gaps, overlaps, swaps and duplicates of a topic.

    In what it has offloaded, from its first retained position to its last sealed one.
    Compares the topic's list in the metadata store with the catalogue's blocks. Ledgers that are on
    bookies alone are counted and are no finding. So are copies of brokers that no deep look of a
    scrub has read as a whole. Ends with 1 on findings.
    """
    from tiering_assets.cli.catalogue.catalogue_cmd import document_of
    from tiering_assets.cli.lineage import lineage_output as output
    from tiering_assets.lineage.coverage import ReadLists, coverage_of, prove_coverage

    require_one_choice(**{"TOPIC": topic, "--all": everything})
    read, counts = ReadLists(), dict.fromkeys(_COUNTED, 0)
    found: list[TopicCoverage] = []
    topics = 0
    with asked(session) as (stack, tables, as_of):
        nodes = (
            stack.topics.read_all()
            if topic is None
            else stack.topics.read_many(managed_ledgers(stack, topic))
        )
        for one in coverage_of(stack, tables, as_of, nodes, read):
            topics += 1
            for name in counts:
                counts[name] += getattr(one, name)
            if one.findings or topic is not None:
                found.append(one)
        proof = prove_coverage(stack, tables, read, found) if prove else []
    findings = sum(len(one.findings) for one in found)
    if session.as_json:
        print_document(
            "lineage-coverage",
            {
                "topics": topics,
                "ledgers": counts,
                "findings": findings,
                "covered_topics": found,
                "proof": proof,
                "as_of": document_of(as_of),
            },
        )
    else:
        for one in found:
            _print(one)
        output.print_proof(proof)
        print_line(
            f"{topics} topics, {counts['covered']} ledgers are whole, {counts['on_bookies']} are on "
            f"bookies alone, {counts['by_brokers']} are unread copies of brokers, {counts['in_work']} are "
            f"in work: {findings} findings"
        )
        print_line(str(as_of))
    output.end_by(proof)
    if findings:
        raise typer.Exit(FINDINGS)


def _print(one: TopicCoverage) -> None:
    if one.first is None or one.last is None:
        print_line(f"{one.topic}: no sealed ledger")
    else:
        print_line(
            f"{one.topic}: from {one.first[0]}:{one.first[1]} to {one.last[0]}:{one.last[1]}, "
            f"{one.covered} ledgers are whole"
        )
    for finding in one.findings:
        ledger = "" if finding.ledger_id is None else f"ledger {finding.ledger_id}: "
        print_line(f"finding: {ledger}{finding.kind}: {finding.what}", lead="finding")
