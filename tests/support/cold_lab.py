"""A topic for each fault of cold_fault_entries.py, in any store; and how a reader of one is judged.

Owns: the rule that is proven. Either each message of the range exactly once and in order, or an
error that names ledger and entry: never a shorter answer that looks whole.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import count
from typing import Any

from tests.support.audited_bucket import put_chain
from tests.support.cold_fault_entries import TOPIC_FAULTS, TopicFault
from tiering_assets.ground.record_book import RecordBook
from tiering_assets.resources.object_store.store import ObjectStore

COLUMNS = ("ledger_id", "entry_id", "batch_index", "payload", "error")
ASKED = (*COLUMNS, "properties")
"""What readers are asked for: of an entry all that can lie."""
Row = tuple[int, int, int | None, bytes | None, str | None]
"""Of these columns."""
Ids = Mapping[str, Sequence[int]]
"""The ledgers of each fault's topic, by its name."""


def put_topics(
    objects: ObjectStore,
    book: RecordBook,
    *,
    first_id: int,
    faults: Iterable[TopicFault] = TOPIC_FAULTS,
) -> dict[str, list[int]]:
    """Each fault as a topic whose ledgers are published; their ids, by its name."""
    ids, found = count(first_id), dict[str, list[int]]()
    for fault in faults:
        for entries in fault.ledgers:
            ledger_id = next(ids)
            put_chain(
                objects,
                book,
                ledger_id,
                payloads=list(entries),
                ml_name=fault.ml_name,
                block_bytes=fault.block_bytes,
                counted=True,
            )
            found.setdefault(fault.name, []).append(ledger_id)
    return found


def rows_of(columns: Mapping[str, Sequence[Any]]) -> list[Row]:
    """Rows of a reader's columns."""
    found: list[Row] = [*zip(*(columns[name] for name in COLUMNS), strict=True)]
    return found


def sound(fault: TopicFault, ledgers: Sequence[int]) -> list[Row]:
    """The messages that there are, in order."""
    return [
        (ledgers[n], entry_id, index, payload, None)
        for (n, entry_id, index), payload in fault.rows.items()
    ]


def judge_rows(fault: TopicFault, ledgers: Sequence[int], found: Sequence[Row]) -> None:
    """What a reader that goes on has: each message once and in order, each error as a row."""
    assert [one for one in found if one[4] is None] == sound(fault, ledgers)
    errors = {(one[0], one[1]): one[4] or "" for one in found if one[4] is not None}
    every = {**fault.bad, **fault.told}
    bad = {(ledgers[n], entry_id): words for (n, entry_id), words in every.items()}
    assert errors.keys() == bad.keys()
    for place, words in bad.items():
        assert re.search(words, errors[place]), (place, errors[place])
    places = [one[:2] for one in found]
    assert places == sorted(places)


def judge_failing(
    fault: TopicFault,
    ledgers: Sequence[int],
    read: Callable[[], Sequence[Row]],
    kind: type[Exception],
) -> None:
    """What a reader that fails has: all of it, or an error that names the first bad entry."""
    if not fault.bad:
        assert read() == sound(fault, ledgers)
        return
    (n, entry_id), words = next(iter(fault.bad.items()))
    try:
        found = read()
    except kind as error:
        said = str(error)
        place = f"ledger {ledgers[n]}, entry {entry_id}: "
        assert place in said, said
        assert re.search(words, said.partition(place)[2]), said
    else:
        raise AssertionError(f"{fault.name}: {len(found)} rows, and no error")
