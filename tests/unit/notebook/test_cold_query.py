"""Messages as a Parquet file and SQL over it: rows of real files, and none that stay half."""

from hashlib import sha256
from typing import Any

import pyarrow as pa
import pytest

from tiering_assets.notebook.cold_query import (
    BESIDE,
    COLUMNS,
    ask_files,
    export_messages,
    topics_in,
)
from tiering_assets.notebook.consumer_now import SCHEMA
from tiering_assets.resources.errors import FormatError, SettingsError

KINDS: list[Any] = [pa.string(), pa.int32(), *[pa.int64()] * 2, pa.int32(), pa.timestamp("ms", "UTC"), pa.string(), pa.binary()]  # fmt: skip
MESSAGES = pa.schema(list(zip(COLUMNS, KINDS, strict=True)))
ROWS = [
    dict(zip(COLUMNS, row, strict=True))
    for row in (
        ("t/n/a", None, 1, 0, -1, 0, "k", b"one"),
        ("t/n/a", None, 1, 1, -1, 1, "k", b"other here"),
        ("t/n/p", 2, 7, 0, 0, 2, None, b""),
        ("t/n/p", 2, 7, 0, 1, 3, None, b"gone"),
    )
]


def reader(rows, then=None):
    def batches():
        for row in rows:
            yield pa.RecordBatch.from_pylist([row], MESSAGES)
        if then is not None:
            raise then

    return pa.RecordBatchReader.from_batches(MESSAGES, batches())


def consumed(*rows):
    names = ("topic", "ledger_id", "entry_id", "batch_index")
    return pa.Table.from_pylist(
        [
            dict(
                zip(names, place, strict=True),
                publish_time=0,
                payload_bytes=len(payload),
                payload_sha256=sha256(payload).hexdigest(),
            )
            for *place, payload in rows
        ],
        SCHEMA,
    )


@pytest.fixture
def cold(tmp_path):
    path = tmp_path / "it's cold.parquet"  # a quote in SQL
    assert export_messages(reader(ROWS), path) == 4
    return path


def test_what_is_exported_is_asked_in_sql(cold):
    found = ask_files(
        "select sum(octet_length(payload)) as n, max(publish_time) as at from cold", {"cold": cold}
    )
    assert found["n"].tolist() == [17]
    assert str(found["at"][0]) == "1970-01-01 00:00:00.003000+00:00"
    assert topics_in(cold) == ["t/n/a", "t/n/p-partition-2"]


def test_rows_in_the_order_of_their_length(cold):
    """What a version of the engine fails at, by which its range is chosen."""
    found = ask_files(
        "select entry_id, octet_length(payload) as bytes from cold "
        "order by bytes desc, ledger_id, entry_id limit 2",
        {"cold": cold},
    )
    assert found["bytes"].tolist() == [10, 4]


def test_each_message_beside_what_a_consumer_reads(cold):
    now = consumed(
        ("t/n/a", 1, 0, -1, b"one"),
        ("t/n/a", 1, 1, -1, b"other there"),
        ("t/n/a", 9, 0, -1, b"newer"),
        ("t/n/p-partition-2", 7, 0, 0, b""),
    )
    found = ask_files(BESIDE, {"cold": cold}, consumer=now).to_dict("records")
    figures = ("topic", "equal", "different", "cold_only", "consumer_only")
    assert [tuple(row[name] for name in figures) for row in found] == [
        ("t/n/a", 1, 1, 0, 1),
        ("t/n/p-partition-2", 1, 0, 1, 0),
    ]


def test_half_a_file_never_stays(tmp_path):
    path = tmp_path / "cold.parquet"
    with pytest.raises(FormatError, match="entry 7"):
        export_messages(reader(ROWS, FormatError("entry 7 is damaged")), path)
    assert [*tmp_path.iterdir()] == []


def test_no_file_is_written_over(cold, tmp_path):
    before = cold.read_bytes()
    with pytest.raises(SettingsError, match="such a file already"):
        export_messages(reader(ROWS), cold)
    assert cold.read_bytes() == before
    with pytest.raises(SettingsError, match="there is no folder"):
        export_messages(reader(ROWS), tmp_path / "none" / "cold.parquet")
