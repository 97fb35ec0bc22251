import json
from dataclasses import replace

import pytest

from tiering_assets.demo.summary import (
    DemoSummary,
    LedgerResult,
    TopicResult,
    write_summary,
)

LEDGER = LedgerResult(
    ledger_id=7,
    topic="persistent://public/default/t",
    entries=2,
    payload_bytes=2_000_000,
    object_bytes=2_000_300,
    blocks=1,
    state="released",
    seconds=0.5,
)
TOPIC = TopicResult(topic="t", messages_produced=2, messages_read=2, content_equal=True)
PROVEN = DemoSummary(topics=[TOPIC], ledgers=[LEDGER], seconds=9.87, peak_rss_bytes=5)


@pytest.mark.parametrize(
    "broken",
    [
        replace(PROVEN, ledgers=[]),
        replace(PROVEN, ledgers=[replace(LEDGER, state="published")]),
        replace(PROVEN, topics=[replace(TOPIC, content_equal=False)]),
    ],
)
def test_a_demo_is_proven_only_when_all_is_released_and_read_back(broken):
    assert PROVEN.proven
    assert not broken.proven


def test_the_file_has_the_documented_fields(tmp_path):
    write_summary(PROVEN, tmp_path / "build" / "demo-summary.json")
    found = json.loads((tmp_path / "build" / "demo-summary.json").read_text())
    assert found["schema"] == "tierkeeper/demo-summary/1"
    assert found["topics"] == [
        {"topic": "t", "messages_produced": 2, "messages_read": 2, "content_equal": True}
    ]
    assert set(found["ledgers"][0]) == {
        "ledger_id",
        "topic",
        "entries",
        "payload_bytes",
        "object_bytes",
        "blocks",
        "state",
        "seconds",
    }
    assert (found["totals"]["seconds"], found["totals"]["peak_rss_bytes"]) == (9.9, 5)


def test_speed_is_payload_over_task_seconds():
    assert LEDGER.mb_per_s == 4.0
    assert replace(LEDGER, seconds=0.0).mb_per_s == 0.0
