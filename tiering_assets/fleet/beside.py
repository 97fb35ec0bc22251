"""What rows of ledgers that are not settled do not know, looked up for all of them at once.

Reads only. Owns: a ledger that BookKeeper has lost is found however many there are: one by one
where they are few, by one listing of all that it has where they are many.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Final
from uuid import UUID

import numpy as np

from tiering_assets.catalogue.view import Tables, answer
from tiering_assets.explain.backlog_evidence import READS_MAX
from tiering_assets.fleet.questions import (
    EVERYTHING,
    OF_ONE,
    PECULIAR,
    SIZES,
    FleetQuestion,
    first_unsettled,
    ledgers_told,
    of_topics,
)
from tiering_assets.fleet.rows import Beside
from tiering_assets.ground.stack import Stack
from tiering_assets.look.brakes.brake import Brakes
from tiering_assets.look.ledger.claims import live_claims
from tiering_assets.offload_format.keys import index_key
from tiering_assets.records import keys
from tiering_assets.resources.arrow_columns import filled, flags, numpy_of, pc, whole
from tiering_assets.resources.tables import without_views

_SINCE_MAX: Final = 1_000_000  # rows of 200 bytes that are looked through here
Attempts = Sequence[tuple[int, UUID]]


def look_beside(
    stack: Stack, rows: Any, opened: Attempts, *, holds: Brakes, due_before: datetime
) -> Beside:
    """For rows with `unsettled`, of which `opened` are the open attempts: a request for each."""
    waits = rows.filter(filled(rows["unsettled"], False))
    return Beside(
        lag=stack.deletion_lag,
        due_before=due_before,
        holds=holds,
        claimed=live_claims(stack, stack.objects.server_time()),
        indexed=_indexed(stack, opened),
        in_bookkeeper=in_bookkeeper(stack, waits["ledger_id"].to_pylist()),
    )


def asked_about(stack: Stack, tables: Tables, topics: Iterable[str] | None) -> FleetQuestion:
    """Ledgers of these managed ledgers, of all without. Lags count by both clocks."""
    peculiar = answer(tables, PECULIAR).to_pylist()
    return FleetQuestion(
        published_before=min(stack.now(), stack.objects.server_time()) - stack.deletion_lag,
        terminated=frozenset(row["topic"] for row in peculiar if row["left_alone"] is None),
        left_alone=frozenset(row["topic"] for row in peculiar if row["left_alone"] is not None),
        some=EVERYTHING if topics is None else of_topics(topics),
    )


def unsettled(tables: Tables, asked: FleetQuestion, columns: str = OF_ONE) -> Any:
    """Ledgers of which rows alone do not say why they are where they are, and those that their
    topics closed after them: thresholds count them. By topic and id.

    Column `unsettled` tells which are which. Ids rise with time, and so do those of files: older
    ones are not read twice.
    """
    first = answer(tables, first_unsettled(asked))["ledger_id"][0].as_py()
    since = "false" if first is None else f"ledger_id >= {first}"
    asked = replace(asked, some=f"{asked.some} and {since}")
    many = first is not None and tables.rows_at_most("ledgers", first) > _SINCE_MAX
    sql = ledgers_told(asked, columns, unsettled_topics=many)
    return _from_the_first(without_views(answer(tables, sql)))


def _from_the_first(rows: Any) -> Any:
    """Of each topic its rows from the first unsettled one on."""
    topics = whole(rows["topic"]).dictionary_encode()
    of_topic, ids = numpy_of(topics.indices), numpy_of(rows["ledger_id"])
    waits = numpy_of(filled(rows["unsettled"], False))
    firsts = np.full(len(topics.dictionary), np.iinfo(np.int64).max)
    np.minimum.at(firsts, of_topic[waits], ids[waits])
    rows = rows.filter(flags(ids >= firsts[of_topic]))
    keys = [("topic", "ascending"), ("ledger_id", "ascending")]
    return rows.take(pc.sort_indices(rows, sort_keys=keys))


def waiting_sizes(stack: Stack, tables: Tables) -> Any:
    """Of all topics these ledgers, with what thresholds are judged by."""
    return unsettled(tables, asked_about(stack, tables, None), SIZES)


def open_attempts(rows: Any) -> Attempts:
    """Newest attempts that came to no certificate, of ledgers whose copy nobody reads."""
    found = _attempted(rows)
    is_read = pc.or_(filled(found["certified"], False), filled(found["offloaded"], False))
    return _attempts(found.filter(pc.invert(is_read)))


def tried(rows: Any, failed_at: Container[int]) -> Attempts:
    """Newest attempts of unsettled ledgers that have a record of a failure."""
    return [one for one in _attempts(_attempted(rows)) if one[0] in failed_at]


def _attempted(rows: Any) -> Any:
    return rows.filter(pc.and_(filled(rows["unsettled"], False), pc.is_valid(rows["uid"])))


def _attempts(rows: Any) -> Attempts:
    ids, uids = rows["ledger_id"].to_pylist(), rows["uid"].to_pylist()
    return [(i, UUID(uid)) for i, uid in zip(ids, uids, strict=True)]


def in_bookkeeper(stack: Stack, ledger_ids: list[int]) -> set[int]:
    """Those of these ledgers that BookKeeper has."""
    if len(ledger_ids) <= READS_MAX:
        return stack.ledgers.existing(ledger_ids)
    return {*ledger_ids}.intersection(stack.ledgers.list_ledger_ids())


def stored_at(stack: Stack, attempts: Attempts) -> dict[int, datetime]:
    """When the store got the records of these attempts, where they are there."""
    prefix = stack.book.prefix
    heads = stack.in_parallel(lambda one: stack.objects.head(prefix + keys.attempt(*one)), attempts)
    return {
        ledger_id: head.last_modified
        for (ledger_id, _uid), head in zip(attempts, heads, strict=True)
        if head is not None
    }


def _indexed(stack: Stack, attempts: Attempts) -> set[int]:
    """Ledgers whose index object is there."""
    there = stack.in_parallel(
        lambda one: stack.objects.head(index_key(one[1], one[0])) is not None, attempts
    )
    return {ledger_id for (ledger_id, _uid), found in zip(attempts, there, strict=True) if found}
