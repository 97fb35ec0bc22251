"""What rows of ledgers that are not settled do not know, looked up for all of them at once.

Reads only. Owns: a ledger that BookKeeper has lost is found however many there are: one by one
where they are few, by one listing of all that it has where they are many.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import UUID

import pyarrow as pa

from tiering_assets.catalogue.view import Tables, answer
from tiering_assets.explain.backlog_evidence import READS_MAX
from tiering_assets.fleet.questions import (
    EVERYTHING,
    OF_ONE,
    PECULIAR,
    SIZES,
    FleetQuestion,
    first_unsettled,
    of_topics,
    unsettled_ledgers,
)
from tiering_assets.fleet.rows import Beside
from tiering_assets.ground.stack import Stack
from tiering_assets.look.brakes.brake import Brakes
from tiering_assets.look.ledger.claims import live_claims
from tiering_assets.offload_format.keys import index_key
from tiering_assets.records import keys
from tiering_assets.resources.tables import without_views

Attempts = Sequence[tuple[int, UUID]]


def look_beside(
    stack: Stack, rows: pa.Table, opened: Attempts, *, holds: Brakes, due_before: datetime
) -> Beside:
    """For rows with `unsettled`, of which `opened` are the open attempts: a request for each."""
    unsettled = [i for i, is_so in _columns(rows, "ledger_id", "unsettled") if is_so]
    return Beside(
        lag=stack.deletion_lag,
        due_before=due_before,
        holds=holds,
        claimed=live_claims(stack, stack.objects.server_time()),
        indexed=_indexed(stack, opened),
        in_bookkeeper=in_bookkeeper(stack, unsettled),
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


def unsettled(tables: Tables, asked: FleetQuestion, columns: str = OF_ONE) -> pa.Table:
    """Ledgers of which rows alone do not say why they are where they are, and those behind them.

    Ids rise with time, and so do those of files: older ones need not be read.
    """
    first = answer(tables, first_unsettled(asked))["ledger_id"][0].as_py()
    since = "false" if first is None else f"ledger_id >= {first}"
    asked = replace(asked, some=f"{asked.some} and {since}")
    return without_views(answer(tables, unsettled_ledgers(asked, columns)))


def waiting_sizes(stack: Stack, tables: Tables) -> pa.Table:
    """Of all topics these ledgers, with what thresholds are judged by."""
    return unsettled(tables, asked_about(stack, tables, None), SIZES)


def open_attempts(rows: pa.Table) -> Attempts:
    """Newest attempts that came to no certificate, of ledgers whose copy nobody reads."""
    columns = "ledger_id", "uid", "unsettled", "certified", "offloaded"
    return [
        (ledger_id, UUID(uid))
        for ledger_id, uid, unsettled, certified, offloaded in _columns(rows, *columns)
        if unsettled and uid is not None and not certified and not offloaded
    ]


def tried(rows: pa.Table, failed_at: Container[int]) -> Attempts:
    """Newest attempts of unsettled ledgers that have a record of a failure."""
    return [
        (ledger_id, UUID(uid))
        for ledger_id, uid, unsettled in _columns(rows, "ledger_id", "uid", "unsettled")
        if unsettled and uid is not None and ledger_id in failed_at
    ]


def _columns(rows: pa.Table, *names: str) -> Iterator[tuple[Any, ...]]:
    return zip(*(rows[name].to_pylist() for name in names), strict=True)


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
