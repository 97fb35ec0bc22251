"""The four commands over a simulated cluster: what they print, their documents and exit codes."""

import base64

import pytest

from tests.support.cold_entries import single
from tests.support.pulsar_entries import MESSAGES_IN_BATCH, encoded, message
from tests.support.sim_scene import TOPIC
from tiering_assets.catalogue.columns import BLOCKS
from tiering_assets.catalogue.view import answer
from tiering_assets.cli.lineage.lineage_output import shown
from tiering_assets.lineage import coverage
from tiering_assets.offload_format.message_decoder import EntryMessage
from tiering_assets.records import keys
from tiering_assets.resources.metastore.topic_names import managed_ledger_path

TIME = 1_795_247_080_670
ENTRIES = [
    message(TIME, (6, b"k"), payload=b"hello"),
    message(TIME + 1, (MESSAGES_IN_BATCH, 2), payload=single(b"one", (2, b"a")) + single(b"\xfe")),
    message(TIME + 2, (27, 3), (29, 1), (26, b"p-1-9"), payload=b"piece"),
    message(TIME + 3, (13, encoded([(1, b"k")])), payload=b"closed"),
]


@pytest.fixture
def ledger(scene, posted):
    """A published ledger of messages; ledger 0 is of no messages and published, too."""
    found = scene.fill(TOPIC, *ENTRIES)
    scene.publish(0)
    scene.publish(found)
    posted()
    return found


def last_line_tells(lines):
    return "as of page " in lines[-1] and lines[-1].endswith("0 ledgers in work")


def test_a_message_is_followed_to_its_bytes_and_its_proof(told, ledger, scene):
    lines = told("message", f"{ledger}:0", "--prove")
    text = "\n".join(lines)
    uid = scene.context(ledger).uid
    for part in (f"ledger       {ledger}, published", f"{uid}-ledger-{ledger}", "entries 0 to 3"):
        assert part in text
    assert text.count("proven: ") == 2
    assert last_line_tells(lines)
    found = told.document("message", f"{ledger}:0")
    assert found["block"]["messages"] == 4  # the chunk is not the last one
    assert found["block"]["publish_min"].startswith("2026-11-21T")
    assert (found["entry"], found["proof"], found["message"]) == (None, [], f"{ledger}:0")
    assert found["as_of"]["page"] > 0


def test_a_message_is_shown(told, ledger):
    lines = told("message", f"{ledger}:0", "--show")
    text = "\n".join(lines)
    assert "payload       5 bytes: hello" in text.replace("payload      5", "payload       5")
    assert "a message, codec NONE" in text
    assert last_line_tells(lines)
    found = told.document("message", f"{ledger}:1", "--show")["entry"]
    assert [base64.b64decode(one["payload"]) for one in found["messages"]] == [b"one", b"\xfe"]
    assert (found["batch_size"], found["messages"][0]["key"]) == (2, "a")
    [only] = told.document("message", f"{ledger}:1:1", "--show")["entry"]["messages"]
    assert only["batch_index"] == 1


def test_batches_chunks_and_what_is_encrypted_are_named(told, ledger):
    def text(entry):
        return "\n".join(told("message", f"{ledger}:{entry}", "--show"))

    assert "a batch of 2" in text(1)
    assert "0xfe" in text(1)
    assert "chunk 2 of 3 of message p-1-9, not joined" in text(2)
    assert "encrypted, payload as stored" in text(3)


def test_wrong_ids_are_usage_errors_with_a_next_step(told, ledger):
    for words in (["x"], [f"{ledger}:0:0", "--show"], [f"{ledger}:1:2", "--show"]):
        told("message", *words, code=2)
    assert "catalogue post`" in "\n".join(told("message", "99:0", code=35))
    assert "expected <uuid>-ledger-<id>" in "\n".join(
        told("object", "nothing", "--offset", 0, code=2)
    )
    told("topic", "t/ns/orders", "--at", "soon", code=2)
    told("coverage", code=2)
    told("coverage", "t/ns/orders", "--all", code=2)


def test_an_entry_that_is_no_message_is_a_finding_that_names_it(told, ledger, scene):
    lines = told("message", "0:0", "--show", code=1)
    assert any(line.startswith("finding: entry 0:0 shows no message") for line in lines)
    assert last_line_tells(lines)
    key = f"{scene.context(0).uid}-ledger-0"
    found = told.document("object", key, "--offset", 140, code=1)["entry"]
    assert (base64.b64decode(found["payload"]), found["messages"]) == (b"first", [])


def test_a_time_shows_blocks_and_says_of_which_it_is_not_known(told, ledger):
    lines = told("topic", "t/ns/orders", "--at", "2026-11-21", "--prove")
    text = "\n".join(lines)
    assert "of 1 blocks it is not known when their messages were published" in text
    assert text.count("proven: ") == 4
    assert lines[-1].startswith("2 blocks; as of page ")
    found = told.document("topic", "persistent://t/ns/orders", "--at", "2026-11-21T07:44:40.672Z")
    assert [(one["ledger_id"], one["part"]) for one in found["blocks"]] == [(0, 1), (ledger, 1)]
    assert found["without_time"] == 1
    found = told.document("topic", "t/ns/orders", "--at", "2020-01-01", "--until", "2020-01-02")
    assert [one["ledger_id"] for one in found["blocks"]] == [0]
    assert "is not in the catalogue" in "\n".join(
        told("topic", "t/ns/none", "--at", "2020-01-01", code=35)
    )


def test_a_byte_is_followed_to_its_messages(told, ledger, scene):
    key = f"{scene.context(ledger).uid}-ledger-{ledger}"
    found = told.document("object", key, "--offset", 140)
    assert (found["belongs_to"], found["entry"]["entry_id"], found["entry"]["offset"]) == (
        "entry",
        0,
        128,
    )
    [only] = found["entry"]["messages"]
    assert (base64.b64decode(only["payload"]), only["key"]) == (b"hello", "k")
    found = told.document("object", key, "--offset", 0, "--prove")
    assert (found["belongs_to"], found["entry"]) == ("header", None)
    assert all(one["agrees"] for one in found["proof"])
    assert "byte 5 is of the block's header, and of no entry" in told("object", key, "--offset", 5)
    assert last_line_tells(told("object", key, "--offset", 140))


def test_a_truth_that_differs_ends_with_a_finding(told, ledger, scene):
    scene.world.objects.delete(f"{scene.context(ledger).uid}-ledger-{ledger}")
    lines = told("message", f"{ledger}:0", "--prove", code=1)
    assert any(line.startswith("finding: ") and "is not there" in line for line in lines)
    assert last_line_tells(lines)
    assert "tierkeeper ledger show" in "\n".join(told("message", f"{ledger}:0", "--show", code=23))


def test_coverage_of_a_sound_topic(told, ledger, scene):
    on_bookies = scene.fill(TOPIC, b"on bookies alone")
    lines = told("coverage", "t/ns/orders", "--prove")
    assert lines[0] == f"{TOPIC}: from 0:0 to {on_bookies}:0, 2 ledgers are whole"
    assert "2 ledgers are whole, 1 are on bookies alone" in lines[-2]
    assert "0 findings" in lines[-2]
    assert last_line_tells(lines)
    found = told.document("coverage", "--all", "--prove")
    assert found["ledgers"] == {"covered": 2, "on_bookies": 1, "by_brokers": 0, "in_work": 0}
    assert (found["findings"], found["covered_topics"]) == (0, [])
    assert all(one["agrees"] for one in found["proof"])


def test_coverage_misses_what_was_not_posted(told, ledger, scene):
    later = scene.fill(TOPIC, b"later")
    scene.publish(later)
    found = told.document("coverage", "t/ns/orders", code=1)
    [finding] = found["covered_topics"][0]["findings"]
    assert (finding["kind"], finding["ledger_id"]) == ("uncovered", later)
    assert "catalogue post" in finding["what"]
    lines = told("coverage", "--all", code=1)
    assert any(line.startswith(f"finding: ledger {later}: uncovered: ") for line in lines)


def test_coverage_finds_a_block_that_is_there_twice(told, ledger, posted):
    tables, _as_of = posted()
    blocks = tables["blocks"]
    row = answer(tables, "select * from blocks where ledger_id = 0")
    assert blocks.append(row.cast(BLOCKS), mark=blocks.mark + 1, told={})
    lines = told("coverage", "t/ns/orders", "--prove", code=1)
    assert any("finding: ledger 0: duplicate: part 1 is there 2 times" in line for line in lines)
    assert sum(line.startswith("proven: ledger 0") for line in lines) == 4


def test_coverage_tells_copies_of_brokers_and_trims_apart(told, ledger, scene):
    """What a broker offloaded has no record of ours; what was trimmed is not missed."""
    uid = scene.context(ledger).uid
    for key in (keys.certificate(0, scene.context(0).uid), keys.certificate(ledger, uid)):
        assert scene.stack.book.exists(key)
    scene.past_the_lag()
    scene.trim()
    found = told.document("coverage", "t/ns/orders")
    assert found["ledgers"]["covered"] + found["ledgers"]["on_bookies"] <= 2
    assert found["findings"] == 0


def test_a_list_that_cannot_be_read_is_a_finding(told, ledger, scene):
    path = managed_ledger_path(TOPIC)
    scene.cluster.metadata.put(path, b"\xff\xff")
    found = told.document("coverage", "--all", code=1)
    [one] = [one for one in found["covered_topics"] if one["topic"] == TOPIC]
    assert [finding["kind"] for finding in one["findings"]] == ["unreadable"]


def test_a_list_that_changes_meanwhile_is_told(told, ledger, scene, monkeypatch):
    really = coverage._doubts

    def slowly(*args):
        scene.fill(TOPIC, b"more")
        return really(*args)

    monkeypatch.setattr(coverage, "_doubts", slowly)
    lines = told("coverage", "t/ns/orders", "--prove", code=1)
    assert any("its list has changed, repeat" in line for line in lines)


def test_many_topics_are_judged_some_at_a_time(told, ledger, scene, monkeypatch):
    monkeypatch.setattr(coverage, "TOPICS_AT_ONCE", 1)
    scene.broker.create_topic("t/ns/persistent/quiet")
    found = told.document("coverage", "--all")
    assert (found["topics"], found["ledgers"]["covered"]) == (2, 2)


def test_a_cut_payload_says_how_much_is_missing():
    def said(payload, **more):
        return shown(EntryMessage(batch_index=-1, payload=payload, **more), 4)

    assert said(b"abcd") == "abcd"
    assert said(b"abcdef") == "abcd... (2 more)"
    assert said(b"\0" * 6) == "0x00000000... (2 more bytes)"
    assert said(b"") == ""
    assert said(b"", null_value=True) == "(null)"
    assert said(b"", compacted_out=True) == "(compacted out)"
