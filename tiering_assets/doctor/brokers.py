"""Doctor's questions that our records answer: brokers that are away, and undos nobody confirmed."""

from __future__ import annotations

from collections.abc import Iterator

from tiering_assets.change.confirm import list_unconfirmed
from tiering_assets.ground.finding import Finding, fail, ok, warn
from tiering_assets.ground.moments import moment
from tiering_assets.ground.stack import Stack, open_stack
from tiering_assets.look.topic.broker_list import list_brokers
from tiering_assets.look.topic.topic_evidence import topic_of
from tiering_assets.resources.settings import Settings


def check_memory(settings: Settings) -> Iterator[Finding]:
    with open_stack(settings) as stack:
        yield from check_away(stack)
        yield from check_undos(stack)


def check_away(stack: Stack) -> Iterator[Finding]:
    """Brokers that are remembered, not registered, and asked before a topic counts as not
    loaded.
    """
    away = [one for one in list_brokers(stack) if one.is_asked]
    for one in away:
        seen = f"not registered since {moment(one.seen_at)} or later"
        if one.answers:
            yield warn(
                f"broker {one.name}",
                f"{seen}, and answers: it may serve topics without the metadata store",
                "restart it, or stop it",
            )
        else:
            yield fail(
                f"broker {one.name}",
                f"{seen}, and does not answer: while this lasts every topic counts as loaded, so idle "
                "ones are unloaded, too",
                f"start it; if its process has ended: tierkeeper broker gone {one.name} --reason … --execute",
            )
    if not away:
        yield ok("brokers seen", "every broker that may serve topics is registered")


def check_undos(stack: Stack) -> Iterator[Finding]:
    for stored in list_unconfirmed(stack):
        undo = stored.record
        yield fail(
            f"undo {topic_of(undo.ml_name)}",
            f"undo unconfirmed since {moment(undo.undone_at)}: its broker may not know "
            f"that ledgers {', '.join(map(str, undo.ledger_ids))} were taken back; nothing of the "
            f"topic is deleted",
            "start bookies and brokers that are away; the topic's next publication or release "
            "unloads it and goes on",
        )
