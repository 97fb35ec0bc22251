"""Messages in columns: the rows of the plain decoder, for entries of every sort."""

import random
from typing import Any

import pyarrow as pa
import pytest

from tests.support.cold_entries import CODECS, LOOPS, TIME, any_messages, entries_of, single
from tests.support.pulsar_entries import MESSAGES_IN_BATCH, UNCOMPRESSED_SIZE, any_entry, message
from tiering_assets.cold import opened
from tiering_assets.cold.columns import COLUMNS
from tiering_assets.cold.decode import decode_entries, decode_lots
from tiering_assets.cold.plain_rows import as_columns, rows_of_entry
from tiering_assets.cold.usual import read_usual
from tiering_assets.resources.errors import FormatError

NAMES = COLUMNS.names


def plainly(made, names=NAMES, **how):
    rows = [
        row
        for n, one in enumerate(made)
        for row in rows_of_entry(one, ledger_id=7, entry_id=n, on_error="row", **how)
    ]
    return as_columns(rows, pa.schema([COLUMNS.field(name) for name in names]))


def told(found):
    """Rows; properties without an order, times as numbers."""
    columns = {}
    for name, column in zip(found.schema.names, found.columns, strict=True):
        if pa.types.is_timestamp(column.type):
            column = column.cast(pa.int64())
        values = column.to_pylist()
        if pa.types.is_map(column.type):
            values = [None if one is None else dict(one) for one in values]
        columns[name] = values
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


@pytest.mark.parametrize("seed", range(150))
def test_rows_are_those_of_the_plain_decoder(seed):
    source = random.Random(seed)
    make = any_messages if seed % 3 else lambda source: any_entry(source, source.randbytes(40))
    made = [make(source) for _ in range(source.choice((0, 1, 2, 60)))]
    how = {"markers": source.random() < 0.5, "verify": source.random() < 0.2}
    expected = told(plainly(made, **how))
    for core in LOOPS.values():
        found = decode_entries(entries_of(made, core=core), NAMES, on_error="row", **how)
        found.validate(full=True)
        assert told(found) == expected


@pytest.mark.parametrize("core", LOOPS.values(), ids=LOOPS)
@pytest.mark.parametrize("name", NAMES)
def test_a_column_alone_is_what_it_is_among_all(name, core):
    source = random.Random(1)
    made = [any_messages(source) for _ in range(80)]
    sound = [one for one in made if not any(row.get("error") for row in told(plainly([one])))]
    [*found] = told(decode_entries(entries_of(sound, core=core), [name]))
    assert found == [{name: row[name]} for row in told(plainly(sound))]


@pytest.mark.parametrize("core", LOOPS.values(), ids=LOOPS)
def test_most_of_what_producers_send_is_usual(core):
    source = random.Random(2)
    made = [any_messages(source) for _ in range(400)]
    rows = [told(plainly([one], markers=True)) for one in made]  # none of a batch of nothing
    sound = [one for one, of in zip(made, rows, strict=True) if of and of[0]["error"] is None]
    entries = entries_of(sound)
    usual = read_usual(
        entries.data, entries.starts, entries.ends, NAMES, markers=True, verify=False, core=core
    )
    assert not usual.odd.any()
    assert len(sound) > 200


def test_an_entry_that_cannot_be_read_is_named_or_is_a_row():
    made = [message(TIME), b"\0\0\0\1", message(TIME)]
    with pytest.raises(FormatError, match="ledger 7, entry 1: "):
        decode_entries(entries_of(made), NAMES)
    found = told(
        decode_entries(entries_of(made), ["entry_id", "producer", "error"], on_error="row")
    )
    assert [one["entry_id"] for one in found] == [0, 1, 2]
    assert [one["producer"] for one in found] == ["p-1", None, "p-1"]
    assert [one["error"] is None for one in found] == [True, False, True]


def test_a_checksum_is_judged_where_somebody_wants_that():
    made = [message(TIME), message(TIME, checksum=False)]
    assert len(told(decode_entries(entries_of(made), ["payload"]))) == 2
    with pytest.raises(FormatError, match="ledger 7, entry 0: its CRC32C"):
        decode_entries(entries_of(made), ["payload"], verify=True)


def test_numbers_of_brokers_are_of_each_message():
    body = single(b"a") + single(b"b") + single(b"c")
    made = [
        message(TIME, (MESSAGES_IN_BATCH, 3), payload=body, broker=b"\x10\x05"),
        message(TIME, broker=b"\x10\x06"),
    ]
    found = told(decode_entries(entries_of(made), ["broker_index"]))
    assert [one["broker_index"] for one in found] == [3, 4, 5, 6]


@pytest.mark.parametrize("core", LOOPS.values(), ids=LOOPS)
def test_a_message_of_very_many_fields_takes_no_time_that_grows_so(core):
    many = message(TIME, *[(31, 1)] * 200_000)
    found = told(decode_entries(entries_of([many, message(TIME)], core=core), ["producer"]))
    assert [one["producer"] for one in found] == ["p-1", "p-1"]


def test_a_column_that_there_is_not_is_named():
    with pytest.raises(ValueError, match="no column of a message: payloads"):
        decode_entries(entries_of([]), ["payloads"])


def test_what_inflates_to_very_much_is_decoded_in_several_lots(monkeypatch):
    monkeypatch.setattr(opened, "INFLATED_MAX", 5000)
    code, squeeze = CODECS["ZSTD"]
    body = bytes(2000)
    made = [
        message(TIME + n, (8, code), (UNCOMPRESSED_SIZE, len(body)), payload=squeeze(body))
        for n in range(9)
    ]
    how: Any = {"markers": False, "verify": False, "on_error": "fail"}
    lots = [*decode_lots(entries_of(made), NAMES, **how)]
    assert max(one.num_rows for one in lots) == 2
    assert [row for one in lots for row in told(one)] == told(plainly(made))
    one = message(TIME, (8, code), (UNCOMPRESSED_SIZE, 6000), payload=squeeze(bytes(6000)))
    assert len([*decode_lots(entries_of([one]), NAMES, **how)]) == 1
