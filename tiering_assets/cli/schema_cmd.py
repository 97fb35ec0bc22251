"""`tierkeeper schema archive|list|show`: schemas of topics, kept in the bucket."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tiering_assets.cli.grammar.command import ALWAYS, command
from tiering_assets.cli.grammar.completion import topics_like
from tiering_assets.cli.grammar.selected import managed_ledgers
from tiering_assets.cli.grammar.selection import require_one_choice
from tiering_assets.cli.shared.exit_codes import FINDINGS, worst
from tiering_assets.cli.shared.output import (
    print_document,
    print_error,
    print_facts,
    print_line,
    print_table,
)
from tiering_assets.cli.shared.session import Session
from tiering_assets.cli.shared.usage import UsageError
from tiering_assets.cli.terminal.columns import Column, ValueKind

if TYPE_CHECKING:
    from tiering_assets.records.broker_models import TopicSchema

app = typer.Typer(
    name="schema",
    help="Schemas of topics, kept in the bucket.",
    no_args_is_help=True,
)
OneTopic = Annotated[
    str, typer.Argument(metavar="TOPIC", help="Topic.", autocompletion=topics_like)
]
_COLUMNS = (
    Column("INCARNATION", ValueKind.ID),
    Column("VERSION", ValueKind.NUMBER),
    Column("TYPE", ValueKind.STATE),
    Column("BYTES", ValueKind.SIZE),
    Column("REGISTERED", ValueKind.TIME),
    Column("DIGEST", ValueKind.DIGEST),
)


@command(
    app,
    "archive",
    examples=(
        "tierkeeper schema archive public/default/orders",
        "tierkeeper schema archive --all",
        "tierkeeper schema archive --all --json",
    ),
)
def archive(
    session: Session,
    *,
    topic: Annotated[
        str | None, typer.Argument(metavar="TOPIC", help="Topic.", autocompletion=topics_like)
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Every topic.")] = False,
) -> None:
    """Keep each version of a topic's schemas in the bucket.

    They come from a broker that has the topic loaded, else from their metadata node and its
    entries on bookies. It loads no topic, fences no ledger, and only adds records: so it may be
    repeated, killed and run by several at once. Another schema under a version that is archived is
    an error, and replaces nothing. Topics that are published later are followed by `catalogue post`
    and the sensor `catalogue`.
    """
    from tiering_assets.schemas.topics import (
        archive_topics,
        errors_of,
        topics_with_schemas,
        whole_topics,
    )

    require_one_choice(**{"TOPIC": topic, "--all": everything})
    topics: list[dict[str, Any]] = []
    errors = []
    with session.stack() as stack:
        if topic is None:
            wanted = topics_with_schemas(stack)
        else:
            wanted = whole_topics(managed_ledgers(stack, topic))
        for number, one in enumerate(archive_topics(stack, wanted), 1):
            failed = errors_of(one)
            errors += failed
            versions = getattr(one, "versions", None)
            written = [made.version for made in getattr(one, "written", ())]
            topics.append(
                {
                    "topic": _name(one.ml_name),
                    "versions": versions,
                    "written": written,
                    "errors": failed,
                }
            )
            session.progress(f"{number} of {len(wanted)} topics: {_name(one.ml_name)}")
    if session.as_json:
        print_document("schema-archive", {"topics": topics})
    else:
        for error in errors:
            print_error(error)
        new = sum(len(one["written"]) for one in topics)
        known = sum(one["versions"] or 0 for one in topics)
        print_line(f"{new} of {known} versions of {len(topics)} topics are new in the bucket")
    if errors:
        raise typer.Exit(worst(errors))


@command(
    app,
    "list",
    examples=(
        "tierkeeper schema list public/default/orders",
        "tierkeeper schema list public/default/orders --json",
    ),
    reads_only=ALWAYS,
)
def list_schemas(session: Session, *, topic: OneTopic) -> None:
    """List the schemas of a topic that the bucket keeps.

    A topic that was deleted and made again counts versions from 0 again. Its incarnations are told
    apart by the creation id of the node of its schemas.
    """
    found = _archived(session, topic)
    if session.as_json:
        rows = [*map(_facts, found)]
        print_document("schema-list", {"topic": _full(topic), "schemas": rows})
        return
    print_table(
        _COLUMNS,
        [
            (
                one.incarnation,
                one.version,
                one.type,
                len(_definition(one)),
                _facts(one)["registered_at"],
                one.sha256,
            )
            for one in found
        ],
    )
    print_line(f"{len(found)} schemas")


@command(
    app,
    "show",
    examples=(
        "tierkeeper schema show public/default/orders",
        "tierkeeper schema show public/default/orders --version 3",
        "tierkeeper schema show public/default/orders --version 3 --json",
    ),
    reads_only=ALWAYS,
)
def show_schema(
    session: Session,
    *,
    topic: OneTopic,
    version: Annotated[
        int | None, typer.Option("--version", min=0, help="As messages name it; else the newest.")
    ] = None,
    incarnation: Annotated[
        int | None, typer.Option("--incarnation", min=0, help="Of a topic that was made again.")
    ] = None,
) -> None:
    """Show one archived schema: its definition and properties.

    Of several incarnations of a topic the newest that has such a version is meant. Ends with 1
    where the bucket has none.
    """
    found = [
        one
        for one in _archived(session, topic)
        if version in (None, one.version) and incarnation in (None, one.incarnation)
    ]
    if not found:
        if session.as_json:
            print_document("schema-show", {"topic": _full(topic), "found": False})
        else:
            print_line(
                f"{_full(topic)}: no such schema is archived; `tierkeeper schema list` prints "
                "those that are, `tierkeeper schema archive` reads the cluster's"
            )
        raise typer.Exit(FINDINGS)
    one, body = found[-1], _definition(found[-1])
    if session.as_json:
        try:
            text = body.decode()
        except UnicodeDecodeError:
            text = None
        shown = {**_facts(one), "definition": text, "definition_base64": one.definition}
        shown["found"] = True
        print_document("schema-show", {"topic": _full(topic), **shown})
        return
    print_facts({**_facts(one), "properties": json.dumps(one.properties, ensure_ascii=False)})
    print_line()
    print_line(body.decode(errors="replace"))


def _archived(session: Session, topic: str) -> list[TopicSchema]:
    from tiering_assets.ground.record_book import narrate_unreadable
    from tiering_assets.look.topic.archived_schemas import archived_schemas

    ml_name = _managed_ledger(topic)
    with session.stack() as stack:
        found = archived_schemas(stack.book, ml_name, narrate_unreadable(stack))
    return [one.record for one in found]


def _facts(one: TopicSchema) -> dict[str, Any]:
    from datetime import UTC, datetime, timedelta

    since_1970 = timedelta(milliseconds=one.registered_at_ms)
    return {
        "incarnation": one.incarnation,
        "version": one.version,
        "type": one.type,
        "bytes": len(_definition(one)),
        "properties": one.properties,
        "registered_at": datetime(1970, 1, 1, tzinfo=UTC) + since_1970,
        "position": one.position,
        "read_from": one.read_from,
        "archived_at": one.archived_at,
        "sha256": one.sha256,
    }


def _definition(one: TopicSchema) -> bytes:
    from base64 import b64decode

    return b64decode(one.definition)


def _managed_ledger(topic: str) -> str:
    from tiering_assets.resources.errors import FormatError
    from tiering_assets.resources.metastore.topic_names import parse_topic_name, with_scheme

    try:
        return parse_topic_name(with_scheme(topic)).managed_ledger_name
    except FormatError as error:
        raise UsageError(str(error)) from None


def _full(topic: str) -> str:
    return _name(_managed_ledger(topic))


def _name(ml_name: str) -> str:
    from tiering_assets.look.topic.topic_evidence import topic_of

    return topic_of(ml_name)
