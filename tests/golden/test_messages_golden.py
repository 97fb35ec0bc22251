"""Messages of a block as its entries tell them, against what a consumer of the topic received."""

import gzip
import json
from hashlib import sha256

import pytest

from tests.support.golden_objects import GOLDEN, golden_ledger, golden_ledgers
from tests.support.tiered_cluster import BrokerObjects, object_entries
from tiering_assets.offload_format.message_decoder import decode_entry
from tiering_assets.offload_format.message_facts import MessageCount, MessageFacts
from tiering_assets.offload_format.walker import iter_block_entries
from tiering_assets.resources.native.loader import this_loop

CONSUMED = json.loads((GOLDEN / "consumed.json").read_text())
HAVE_DATA = {str(ledger) for ledger in golden_ledgers() if ledger.has_data}

every_block = pytest.mark.parametrize(
    ("case", "ledger_id", "part", "consumed"),
    [
        (case, ledger_id, part, tuple(consumed))
        for case, ledger_id, part, *consumed in CONSUMED
        if f"{case}-{ledger_id}" in HAVE_DATA
    ],
)


def block_of(case, ledger_id, part):
    ledger = golden_ledger(case, ledger_id)
    [row] = [one for one in ledger.facts["blocks"] if one["part"] == part]
    data = bytearray(ledger.data()[row["offset"] : row["offset"] + row["length"]])
    return memoryview(data), row["first"], row["entries"]


def test_every_ledger_was_consumed():
    """A parametrised test over nothing would pass."""
    told = {f"{case}-{ledger_id}" for case, ledger_id, *_ in CONSUMED}
    assert told == {str(ledger) for ledger in golden_ledgers()}
    assert sum(messages for _case, _ledger, _part, messages, *_ in CONSUMED) == 37_304


@every_block
def test_python_counts_what_a_consumer_received(case, ledger_id, part, consumed):
    block, first, count = block_of(case, ledger_id, part)
    messages = MessageCount()
    for _id, payload in iter_block_entries(block, first_entry_id=first, entries_expected=count):
        messages.add(payload)
    least, greatest = consumed[1:]
    assert messages.facts() == MessageFacts(
        messages=consumed[0], publish_min_ms=least, publish_max_ms=greatest
    )


@every_block
def test_the_library_counts_what_a_consumer_received(case, ledger_id, part, consumed):
    core = this_loop().core
    assert core is not None
    block, first, count = block_of(case, ledger_id, part)
    walked = core.walk(block, first_entry_id=first, count=count)
    assert walked is not None
    assert tuple(walked[1:]) == consumed


MESSAGES = json.loads((GOLDEN / "messages.json").read_text())


def decoded(ledger):
    """What a consumer's log has of each message of a ledger, by its id: by our decoder."""
    last = len(ledger.entries()) - 1
    for entry_id, payload in object_entries(BrokerObjects(ledger.data(), ledger.index()), last):
        entry = decode_entry(payload)
        assert entry.checksum is True
        for one in entry.messages:
            yield {
                "id": [ledger.ledger_id, entry_id, one.batch_index],
                "size": len(one.payload),
                "sha256": sha256(one.payload).hexdigest(),
                "key": one.key or "",
                "okey": (one.ordering_key or b"").decode(),
                "props": dict(one.properties),
                "event_ts": one.event_time_ms or 0,
                "publish_ts": entry.publish_time_ms,
                "producer": entry.producer,
            }


@pytest.mark.parametrize(("case", "ledger_id", "count", "digest"), MESSAGES)
def test_messages_are_those_that_a_consumer_received(case, ledger_id, count, digest):
    found, seen = sha256(), 0
    for row in decoded(golden_ledger(case, ledger_id)):
        found.update(json.dumps(row, sort_keys=True).encode() + b"\n")
        seen += 1
    assert (seen, found.hexdigest()) == (count, digest)


def test_each_message_of_five_codecs_is_as_a_consumer_received_it():
    """Keys, ordering keys, event times and properties; batched and not."""
    ledger = golden_ledger("keys-props", 29)
    lines = gzip.decompress((ledger.folder / "messages.jsonl.gz").read_bytes()).splitlines()
    received = {tuple(row["id"]): row for row in map(json.loads, lines)}
    assert {tuple(row["id"]): row for row in decoded(ledger)} == received
    assert len(received) == 400


def test_all_messages_of_all_golden_ledgers_are_compared():
    assert sum(count for _case, _ledger, count, _digest in MESSAGES) == 37_113
