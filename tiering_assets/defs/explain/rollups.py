"""Counts and bytes of all ledgers, for the two assets without partitions. Reads nothing.

A ledger without a partition is in these counts, too: the backlog may be a million ledgers.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

import dagster as dg

from tiering_assets.defs.shared.metadata import Metadata, bucket_uri, bytes_text, duration_text
from tiering_assets.ground.moments import moment

if TYPE_CHECKING:
    from tiering_assets.batch.newest_releases import ReleasedLedger
    from tiering_assets.explain.backlog_counts import ReasonCount
    from tiering_assets.look.ledger.survey import LedgerView

_TOPICS_SHOWN = 50
NEWEST_SHOWN = 50  # releases that are named; every one of them costs a read
_FIND = (
    "A ledger's partition is retired some time after its release; its records stay. The table has "
    "the newest {shown} releases, their records below `{place}`.\n\n"
    "Any other ledger: `tierkeeper ledger show ID` prints its state and every record.\n\n"
    "All of a topic: `tierkeeper ledger list --state released --topic TOPIC`."
)
# Words of docs/states.md: on bookies only, and nobody reads them from the bucket yet.
_PENDING = ("sealed", "copying", "copied", "verified", "quarantined")


def backlog_metadata(
    views: Sequence[LedgerView], *, now: datetime, reasons: Sequence[ReasonCount] = ()
) -> Metadata:
    """State of everything: `ledgers_<state>`, `bytes_<state>`, and the topics that hold most.

    `because_<reason>` counts the same ledgers by the one reason that each has.
    """
    ledgers: Counter[str] = Counter(view.state.value for view in views)
    size: Counter[str] = Counter()
    for view in views:
        size[view.state.value] += view.bytes or 0
    pending = [view for view in views if view.state.value in _PENDING]
    closed = [view.closed_at for view in pending if view.closed_at is not None]
    oldest_s = (now - min(closed)).total_seconds() if closed else 0.0
    size_pending = sum(view.bytes or 0 for view in pending)
    return {
        "summary": dg.MetadataValue.md(
            f"**{len(pending)} ledgers, {bytes_text(size_pending)}** are on bookies alone, the "
            f"oldest for {duration_text(oldest_s)}.\n\n"
            f"{ledgers['released']} of {len(views)} ledgers are released."
        ),
        "by_reason": _by_reason(reasons),
        "by_topic": _by_topic(views),
        "topics": dg.MetadataValue.int(len({view.ml_name for view in views})),
        "pending_ledgers": dg.MetadataValue.int(len(pending)),
        "pending_bytes": dg.MetadataValue.int(size_pending),
        "oldest_pending_seconds": dg.MetadataValue.float(round(oldest_s, 1)),
        **{f"ledgers_{state}": dg.MetadataValue.int(n) for state, n in sorted(ledgers.items())},
        **{f"bytes_{state}": dg.MetadataValue.int(n) for state, n in sorted(size.items())},
        **{
            f"because_{row.reason.name.lower()}": dg.MetadataValue.int(row.ledgers)
            for row in reasons
        },
    }


def released_metadata(
    views: Iterable[LedgerView], newest: Sequence[ReleasedLedger], *, bucket: str, prefix: str
) -> Metadata:
    """How much the bookies no longer hold, of ledgers that their topics still list.

    `newest` are named with their records below `prefix`, so that a ledger without partition can be
    found.
    """
    released = [view for view in views if view.state.value == "released"]
    find = _FIND.format(shown=len(newest), place=bucket_uri(bucket, prefix))
    return {
        "released_ledgers": dg.MetadataValue.int(len(released)),
        "released_bytes": dg.MetadataValue.int(sum(view.bytes or 0 for view in released)),
        "dagster/row_count": dg.MetadataValue.int(len(released)),
        "find_a_ledger": dg.MetadataValue.md(find),
        "newest_releases": _newest(newest, prefix),
        "by_topic": _by_topic(released),
    }


def _newest(newest: Iterable[ReleasedLedger], prefix: str) -> dg.MetadataValue:
    return dg.MetadataValue.table(
        [
            dg.TableRecord(
                {
                    "ledger": one.ledger_id,
                    "topic": one.topic or "unknown: its record cannot be read",
                    "released_at": moment(one.released_at),
                    "bytes": one.bytes or 0,
                    "record": one.key.removeprefix(prefix),
                }
            )
            for one in newest
        ],
        schema=dg.TableSchema(
            columns=[
                dg.TableColumn("ledger", "int"),
                dg.TableColumn("topic", "string"),
                dg.TableColumn("released_at", "string"),
                dg.TableColumn("bytes", "int"),
                dg.TableColumn("record", "string", "what the release wrote down"),
            ]
        ),
    )


def _by_reason(reasons: Iterable[ReasonCount]) -> dg.MetadataValue:
    return dg.MetadataValue.table(
        [
            dg.TableRecord(
                {
                    "reason": row.reason.value,
                    "ledgers": row.ledgers,
                    "bytes": row.bytes,
                    "oldest_seconds": round(row.oldest_s or 0.0, 1),
                }
            )
            for row in reasons
        ],
        schema=dg.TableSchema(
            columns=[
                dg.TableColumn("reason", "string"),
                dg.TableColumn("ledgers", "int"),
                dg.TableColumn("bytes", "int"),
                dg.TableColumn("oldest_seconds", "float"),
            ]
        ),
    )


def _by_topic(views: Iterable[LedgerView]) -> dg.MetadataValue:
    topics: dict[str, list[LedgerView]] = defaultdict(list)
    for view in views:
        topics[view.topic].append(view)
    largest = sorted(topics.items(), key=lambda item: -sum(v.bytes or 0 for v in item[1]))
    return dg.MetadataValue.table(
        [
            dg.TableRecord(
                {
                    "topic": topic,
                    "ledgers": len(found),
                    "bytes": sum(v.bytes or 0 for v in found),
                    "states": ", ".join(
                        f"{state} {n}"
                        for state, n in sorted(Counter(v.state.value for v in found).items())
                    ),
                }
            )
            for topic, found in largest[:_TOPICS_SHOWN]
        ],
        schema=dg.TableSchema(
            columns=[
                dg.TableColumn("topic", "string"),
                dg.TableColumn("ledgers", "int"),
                dg.TableColumn("bytes", "int"),
                dg.TableColumn("states", "string"),
            ]
        ),
    )
