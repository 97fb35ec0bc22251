"""`topic read` over a simulated cluster: which messages, in which form, and where it stops."""

import json

import pyarrow as pa
import pytest
from pyarrow import parquet

from tests.support.cold_entries import single
from tests.support.pulsar_entries import MESSAGES_IN_BATCH, message
from tests.support.sim_scene import TOPIC
from tests.unit.lineage.test_commands import ENTRIES, TIME
from tests.unit.lineage.test_decided import marker, of
from tiering_assets.cold.transactions import ABORT, COMMIT
from tiering_assets.lineage.messages import earlier_pieces
from tiering_assets.offload_format.keys import data_key
from tiering_assets.resources.errors import CatalogueError

NAME = TOPIC.replace("/persistent/", "/")
DAY = ("topic", "read", NAME, "--from", "2026-11-21")


@pytest.fixture
def ledger(scene, posted):
    found = scene.fill(TOPIC, *ENTRIES, message(TIME + 86_400_000, payload=b"a day later"))
    scene.publish(found)
    posted()
    return found


def rows(lines):
    return [json.loads(one) for one in lines if one.startswith("{")]


def test_messages_are_lines_of_json_in_their_order(told, ledger):
    lines = told(*DAY)
    found = rows(lines)
    places = [(one["entry_id"], one["batch_index"]) for one in found]
    assert places == [(0, -1), (1, 0), (1, 1), (3, -1)]
    assert {one["ledger_id"] for one in found} == {ledger}
    assert found[0]["payload"] == "hello"
    assert found[2]["payload_base64"] == "/g=="
    assert found[0]["publish_time"] == "2026-11-21T07:44:40.670000+00:00"
    assert "4 messages of 1 of 1 blocks; as of page" in lines[-1]
    assert rows(told(*DAY, "--pieces"))[3]["payload"] == "piece"


def test_a_time_is_that_of_each_message(told, ledger):
    one_ms = ("--until", "2026-11-21T07:44:40.671")
    found = rows(told("topic", "read", NAME, "--from", "2026-11-21T07:44:40.671", *one_ms))
    assert [one["entry_id"] for one in found] == [1, 1]
    assert rows(told(*DAY, "--until", "2026-11-22"))[-1]["payload"] == "a day later"


def test_what_a_limit_cuts_is_said(told, ledger):
    lines = told(*DAY, "--limit", 2)
    assert len(rows(lines)) == 2
    assert "there are more: --limit 2 cut them" in lines[-1]
    found = told.document(*DAY, "--limit", 2)
    assert (found["messages"], found["cut"], len(found["rows"])) == (2, True, 2)
    found = told.document(*DAY, "--limit", 0)
    assert (found["messages"], found["cut"]) == (4, False)
    assert not told.document(*DAY, "--limit", 4)["cut"]


@pytest.mark.parametrize("kind", ["arrow", "parquet", "jsonl"])
def test_a_file_has_what_the_lines_have(told, ledger, tmp_path, kind):
    lines, path = rows(told(*DAY, "--columns", "all")), tmp_path / "messages"
    how = ("--columns", "all", "--format", kind, "--output", path)
    assert told.document(*DAY, *how)["output"] == str(path)
    if kind == "jsonl":
        assert rows(path.read_text().splitlines()) == lines
    else:
        table = pa.ipc.open_file(path).read_all() if kind == "arrow" else parquet.read_table(path)
        assert table["payload"].to_pylist()[:2] == [b"hello", b"one"]
        assert table["key"].to_pylist() == [one["key"] for one in lines]
    assert [one.name for one in tmp_path.iterdir() if one.name.startswith("messages")] == [
        path.name
    ]
    assert "there is such a file already" in told(*DAY, *how, code=2)[-1]


def test_what_cannot_be_read_is_named_or_a_line(told, scene, posted, tmp_path):
    bad = message(TIME, (MESSAGES_IN_BATCH, 2), payload=single(b"one"))
    ledger = scene.fill(TOPIC, message(TIME), bad, message(TIME))
    scene.publish(ledger)
    posted()
    path = tmp_path / "messages"
    said = " ".join(told(*DAY, "--format", "arrow", "--output", path, code=13))
    assert f"ledger {ledger}, entry 1: " in said
    assert "--keep-going" in said
    assert not [*tmp_path.glob("messages*")]
    found = rows(told(*DAY, "--keep-going"))
    assert [one["error"] is None for one in found] == [True, False, True]


def test_a_block_whose_frames_are_damaged_is_a_line_of_its_own(told, ledger, scene):
    uid = scene.context(ledger).uid
    scene.world.monitor.damaged.add(uid)
    body = bytearray(scene.stack.objects.get(data_key(uid, ledger)).body)
    body[128] ^= 0x40
    scene.world.objects.rot(data_key(uid, ledger), bytes(body))
    assert "frame of its block at byte 128" in told(*DAY, code=13)[-1]
    [only] = rows(told(*DAY, "--keep-going"))
    assert only["error"].startswith("none of entries 0 to 4: ")


def piece(which, of, content, at=TIME):
    fields = [(27, of), (29, which), (26, b"p-1"), (9, 5)]
    return message(at, *fields, payload=content)


@pytest.fixture
def in_three_ledgers(scene, posted):
    """A message of three pieces, a day apart, the first ones with others in their ledgers."""
    made = [
        scene.fill(TOPIC, message(TIME, payload=b"before"), piece(0, 3, b"he")),
        scene.fill(TOPIC, piece(1, 3, b"ll", TIME + 86_400_000), message(TIME + 86_400_000)),
        scene.fill(TOPIC, piece(2, 3, b"o", TIME + 2 * 86_400_000)),
    ]
    for one in made:
        scene.publish(one)
    posted()
    return made


def test_a_message_whose_pieces_lie_in_ledgers_before_is_whole(told, in_three_ledgers):
    third = ("topic", "read", NAME, "--from", "2026-11-23", "--columns", "all")
    [row] = rows(told(*third))
    assert (row["ledger_id"], row["entry_id"]) == (in_three_ledgers[2], 0)
    assert (row["payload"], row["chunks"]) == ("hello", 3)
    first = (row["first_chunk_ledger_id"], row["first_chunk_entry_id"])
    assert first == (in_three_ledgers[0], 1)
    [row] = rows(told(*third[:-1], "entry_id,first_chunk_entry_id"))
    assert row == {"entry_id": 0, "first_chunk_entry_id": 1}
    week = rows(told(*DAY, "--until", "2026-11-28"))
    assert [row["payload"] for row in week] == ["before", "x", "hello"]
    assert rows(told(*third, "--pieces"))[0]["payload"] == "o"


def test_what_lies_too_far_back_or_cannot_be_read_is_not_joined(
    told, in_three_ledgers, scene, monkeypatch
):
    third = ("topic", "read", NAME, "--from", "2026-11-23")
    with monkeypatch.context() as patched:
        patched.setattr(earlier_pieces, "LOOKED_MAX", 100)
        said = told(*third, code=13)[-1]
        [row] = rows(told(*third, "--keep-going"))
    assert "cannot be joined" in row["error"]
    assert f"ledger {in_three_ledgers[2]}, entry 0: its message cannot be joined" in said
    uid = scene.context(in_three_ledgers[1]).uid
    scene.world.monitor.damaged.add(uid)
    key = data_key(uid, in_three_ledgers[1])
    body = bytearray(scene.stack.objects.get(key).body)
    body[128] ^= 0x40
    scene.world.objects.rot(key, bytes(body))
    said = told(*third, code=13)[-1]
    assert f"ledger {in_three_ledgers[2]}, entry 0: its message cannot be joined" in said
    assert f"ledger {in_three_ledgers[1]}, entries 0 to 1: " in said


def test_what_cannot_be_meant_is_a_usage_error(told, ledger):
    assert "no column of a message: payloads" in told(*DAY, "--columns", "payloads", code=2)[-1]
    assert "--format arrow needs --output FILE" in told(*DAY, "--format", "arrow", code=2)[-1]
    assert "is not a time" in told("topic", "read", NAME, "--from", "yesterday", code=2)[-1]
    assert (
        "is not in the catalogue"
        in told("topic", "read", "t/ns/nobody", "--from", "2026-11-21", code=35)[-1]
    )


def test_aborted_messages_are_left_out_where_that_is_asked_for(told, scene, posted):
    aborted, committed, undecided = (0, 1), (0, 2), (0, 3)
    ledger = scene.fill(
        TOPIC,
        of(aborted, b"aborted"),
        of(committed, b"committed"),
        of(undecided, b"undecided"),
        marker(ABORT, aborted),
        marker(COMMIT, committed),
    )
    scene.publish(ledger)
    posted()
    every = [row["payload"] for row in rows(told(*DAY))]
    assert every == ["aborted", "committed", "undecided"]
    asked = (*DAY, "--transactions", "committed")
    lines = told(*asked, code=CatalogueError.exit_code)
    assert f"ledger {ledger}, entry 2: transaction 0:3 is neither" in lines[-1]
    found = rows(told(*asked, "--keep-going"))
    assert [row["payload"] for row in found] == ["committed", None]
    assert "transaction 0:3 is neither" in found[1]["error"]
