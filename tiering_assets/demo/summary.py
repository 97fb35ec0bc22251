"""The demo's result as a table for people and a JSON file for everything else."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

SCHEMA = "tierkeeper/demo-summary/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicResult:
    topic: str
    messages_produced: int
    messages_read: int
    content_equal: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerResult:
    """`seconds` is task time for copying and reading back this ledger."""

    ledger_id: int
    topic: str
    entries: int
    payload_bytes: int
    object_bytes: int
    blocks: int
    state: str
    seconds: float

    @property
    def mb_per_s(self) -> float:
        return self.payload_bytes / 1e6 / self.seconds if self.seconds else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoSummary:
    topics: Sequence[TopicResult]
    ledgers: Sequence[LedgerResult]
    seconds: float
    peak_rss_bytes: int

    @property
    def proven(self) -> bool:
        """Every topic reads back equal and every ledger of the demo is released."""
        return (
            bool(self.ledgers)
            and all(topic.content_equal for topic in self.topics)
            and all(ledger.state == "released" for ledger in self.ledgers)
        )


def write_summary(summary: DemoSummary, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    document = {
        "schema": SCHEMA,
        "topics": [asdict(topic) for topic in summary.topics],
        "ledgers": [asdict(ledger) for ledger in summary.ledgers],
        "totals": {
            "seconds": round(summary.seconds, 1),
            "peak_rss_bytes": summary.peak_rss_bytes,
            "ledgers": len(summary.ledgers),
            "payload_bytes": sum(ledger.payload_bytes for ledger in summary.ledgers),
            "object_bytes": sum(ledger.object_bytes for ledger in summary.ledgers),
        },
    }
    path.write_text(json.dumps(document, indent=2) + "\n")


def print_summary(summary: DemoSummary, console: Console) -> None:
    ledgers = Table(title="Ledgers: copied, proven, published, released", title_justify="left")
    for name in ("ledger", "topic", "entries", "bytes", "blocks", "seconds", "MB/s", "state"):
        ledgers.add_column(name, justify="left" if name in ("topic", "state") else "right")
    for ledger in summary.ledgers:
        ledgers.add_row(
            str(ledger.ledger_id),
            ledger.topic.removeprefix("persistent://"),
            f"{ledger.entries:,}",
            f"{ledger.payload_bytes:,}",
            str(ledger.blocks),
            f"{ledger.seconds:.2f}",
            f"{ledger.mb_per_s:.0f}",
            ledger.state,
        )
    topics = Table(title="Topics, read through the broker afterwards", title_justify="left")
    for name in ("topic", "produced", "read", "content"):
        topics.add_column(name, justify="right" if name in ("produced", "read") else "left")
    for topic in summary.topics:
        topics.add_row(
            topic.topic,
            f"{topic.messages_produced:,}",
            f"{topic.messages_read:,}",
            "equal" if topic.content_equal else "DIFFERENT",
        )
    console.print(ledgers)
    console.print(topics)
