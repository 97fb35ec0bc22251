"""Doctor's look at the publication records: those of a time when contexts' timestamps were not
kept.

Reads every publication record: one request each, some at a time; 10,000 records from a store that
answers in 20 ms take a quarter of a minute.
"""

from __future__ import annotations

from collections.abc import Iterator

from tiering_assets.ground.finding import Finding, ok
from tiering_assets.ground.stack import Stack, open_stack
from tiering_assets.look.topic.topic_evidence import topic_of
from tiering_assets.records.models import Publication
from tiering_assets.resources.settings import Settings

_CHECK = "publications"
_NAMED_MAX = 20


def check(settings: Settings) -> Iterator[Finding]:
    with open_stack(settings) as stack:
        yield check_stamps(stack)


def check_stamps(stack: Stack) -> Finding:
    """Which ledgers' lag counts from `confirmed_at` alone, as nothing says which context it was."""
    keys = stack.book.keys("publications/")
    found = stack.in_parallel(lambda key: stack.book.read(Publication, key), keys)
    unstamped: dict[str, set[int]] = {}
    for stored in filter(None, found):
        for one in stored.record.ledgers:
            if one.context_ms is None:
                unstamped.setdefault(stored.record.ml_name, set()).add(one.ledger_id)
    if not unstamped:
        return ok(_CHECK, f"{len(keys)} records, each with the timestamps of its contexts")
    named = [
        f"{topic_of(ml_name)}: {', '.join(map(str, sorted(ledgers)))}"
        for ml_name, ledgers in sorted(unstamped.items())[:_NAMED_MAX]
    ]
    more = f"; {len(unstamped) - _NAMED_MAX} more topics" if len(unstamped) > _NAMED_MAX else ""
    return ok(
        _CHECK,
        f"{len(keys)} records; of an earlier version, without the timestamps of their contexts: "
        f"ledgers of {len(unstamped)} topics, whose lag counts from the confirmation: "
        f"{'; '.join(named)}{more}",
    )
