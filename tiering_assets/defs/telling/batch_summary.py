"""What one run came to, for people: a summary, a table of its ledgers, and a tag in the run list.

Owns: every ledger of a batch is counted once, as done, noop, waiting or failed; and a run that
fails has told its summary before. Reads nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from itertools import accumulate
from types import MappingProxyType

import dagster as dg

from tiering_assets.defs.shared.batches import markdown_cell
from tiering_assets.defs.shared.metadata import Metadata, bytes_text, ledger_page
from tiering_assets.defs.shared.preview_api import Context
from tiering_assets.defs.shared.run_history import TOPIC_TAG, TOPICS_TAG, topic_tags

RESULT_TAG = "tierkeeper/result"
DRY_RUN_TAG = "tierkeeper/dry_run"
NOTHING_DUE = "nothing was due"
RunContext = Context | dg.OpExecutionContext
PHASES = ("plan", "copy", "verify", "publish")  # of an offload run, in their order
_PAGES_SHOWN = 5
_TEXT_MAX = 850  # of characters: pages hide a text of a thousand behind a click
_SHOWN_MAX = 50  # rows of a table people read; the run's log has every ledger
_COLUMNS = dg.TableSchema(
    columns=[
        dg.TableColumn("ledger", "string"),
        dg.TableColumn("topic", "string"),
        dg.TableColumn("result", "string", "done, noop (was done before), waiting or failed"),
        dg.TableColumn("size", "string", "of the ledger's payload"),
        dg.TableColumn("said", "string", "how far it got, or why no further"),
    ]
)


class Result(Enum):
    DONE = "done"
    NOOP = "noop"
    WAITING = "waiting"
    FAILED = "failed"


_BAD_FIRST = [Result.FAILED, Result.WAITING, Result.DONE, Result.NOOP]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One ledger. `bytes` counts only where this run moved or freed them; `topic` may be
    unknown.
    """

    ledger_id: int
    topic: str
    result: Result
    bytes: int
    said: str

    @classmethod
    def waiting(cls, ledger_id: int, why: str, *, topic: str = "") -> Row:
        return cls(ledger_id=ledger_id, topic=topic, result=Result.WAITING, bytes=0, said=why)


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchSummary:
    """`seconds` is the time of the whole batch, `phases` that of each, `action` the job's name.

    `pages` is the asset that has a partition of each ledger, where partitions are ledgers.
    """

    action: str
    rows: tuple[Row, ...]
    seconds: float
    phases: Mapping[str, float] = field(default_factory=dict)
    pages: dg.AssetKey | None = None

    @property
    def counts(self) -> dict[Result, int]:
        found = Counter(row.result for row in self.rows)
        return {result: found[result] for result in Result}

    @property
    def bytes(self) -> int:
        return sum(row.bytes for row in self.rows if row.result is Result.DONE)

    @property
    def line(self) -> str:
        """`2 failed, 3 done`: what went wrong first, because the list of runs cuts it short."""
        said = [
            f"{self.counts[result]} {result.value}" for result in _BAD_FIRST if self.counts[result]
        ]
        return ", ".join(said) or NOTHING_DUE

    @property
    def result(self) -> str:
        """`6 done, 12.8 MiB`: the same with what was moved or freed, for the list of runs."""
        return f"{self.line}, {bytes_text(self.bytes)}" if self.bytes else self.line

    @property
    def topics(self) -> frozenset[str]:
        """Topics of its ledgers, as far as they are known."""
        return frozenset(row.topic for row in self.rows if row.topic)


def summary_metadata(summary: BatchSummary) -> Metadata:
    """The summary as text and as four numbers, and its ledgers: failed first, then waiting."""
    shown = _bad_first(summary.rows)[:_SHOWN_MAX]
    return {
        "summary": dg.MetadataValue.md(_markdown(summary)),
        **_pages(summary),
        "ledgers": dg.MetadataValue.table([_record(row) for row in shown], _COLUMNS),
        **{
            f"ledgers_{result.value}": dg.MetadataValue.int(summary.counts[result])
            for result in (Result.DONE, Result.FAILED)
        },
        "bytes": dg.MetadataValue.int(summary.bytes),
        "seconds": dg.MetadataValue.float(round(summary.seconds, 3)),
    }


def _bad_first(rows: Iterable[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: (_BAD_FIRST.index(row.result), row.ledger_id))


def log_batch(context: Context, asset: dg.AssetKey, summary: BatchSummary) -> None:
    """Show the summary at the asset that the batch is for, in the run, and in the list of runs."""
    metadata = summary_metadata(summary)
    context.op_execution_context.log_event(
        dg.AssetObservation(
            asset, description=f"{summary.action}: {summary.line}", metadata={**metadata}
        )
    )
    tag_result(context, summary.result, summary.topics)


def tag_result(
    context: RunContext,
    line: str,
    topics: Collection[str] = (),
    more: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """What the run came to and of which topics, so that the list of runs says it without opening
    any.
    """
    operation = (
        context if isinstance(context, dg.OpExecutionContext) else context.op_execution_context
    )
    asked = {TOPIC_TAG, TOPICS_TAG} & operation.run.tags.keys()  # the sensor has said it
    operation.instance.add_run_tags(
        operation.run_id, {RESULT_TAG: line, **({} if asked else topic_tags(topics)), **more}
    )


def _markdown(summary: BatchSummary) -> str:
    moved = f"{bytes_text(summary.bytes)} in " if summary.bytes else ""
    lines = [f"**{summary.action}**: {summary.line}; {moved}{summary.seconds:.1f} s"]
    if summary.bytes and summary.seconds > 0:
        lines[0] += f", {bytes_text(round(summary.bytes / summary.seconds))}/s"
    if summary.phases:
        lines += ["", *_phases(summary.phases)]
    for result in (Result.FAILED, Result.WAITING):
        reasons = _reasons(row for row in summary.rows if row.result is result)
        if reasons:
            head = ["", f"| {result.value}: why | ledgers | such as |", "|---|---|---|"]
            rows = [f"| {markdown_cell(why)} | {n} | {one} |" for why, n, one in reasons]
            room = _TEXT_MAX - len("\n".join([*lines, *head]))
            shown = sum(end <= room for end in accumulate(len(row) + 1 for row in rows))
            lines += [*head, *rows[:shown]] if shown else []
            if shown < len(rows):
                lines.append(f"\n{len(rows) - shown} more reasons: see the table `ledgers`.")
    return "\n".join(lines)


def _pages(summary: BatchSummary) -> dict[str, dg.MetadataValue]:
    """Links to some of its ledgers: an event has few bytes for each."""
    if summary.pages is None or not summary.rows:
        return {}
    ids = [row.ledger_id for row in _bad_first(summary.rows)[:_PAGES_SHOWN]]
    links = ", ".join(ledger_page(summary.pages, i, str(i)) for i in ids)
    left = len(summary.rows) - len(ids)
    return {"pages": dg.MetadataValue.md(f"{links} and {left} more" if left else links)}


def _phases(seconds: Mapping[str, float]) -> list[str]:
    """A row of seconds below the names of the phases; one that was never reached took none."""
    return [
        f"| {' | '.join(PHASES)} |",
        "|---" * len(PHASES) + "|",
        f"| {' | '.join(f'{seconds.get(name, 0.0):.1f} s' for name in PHASES)} |",
    ]


def _reasons(rows: Iterable[Row]) -> list[tuple[str, int, int]]:
    """What was said, of how many ledgers, and one of them; the most frequent first.

    A sentence that begins with its ledger's name is the same sentence for the next ledger.
    """
    said: Counter[str] = Counter()
    example: dict[str, int] = {}
    for row in rows:
        why = row.said.removeprefix(f"ledger {row.ledger_id}: ")
        said[why] += 1
        example.setdefault(why, row.ledger_id)
    return [(why, count, example[why]) for why, count in said.most_common()]


def _record(row: Row) -> dg.TableRecord:
    return dg.TableRecord(
        {
            "ledger": str(row.ledger_id),
            "topic": row.topic.removeprefix("persistent://"),
            "result": row.result.value,
            "size": bytes_text(row.bytes),
            "said": row.said,
        }
    )
