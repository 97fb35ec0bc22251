"""What reading of cold messages should come to, and what was found: of results/cold.json. Pure.

Owns: a goal that was not measured has no value, and is not met.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

Results = Mapping[str, Any]
BATCHED: Final = "batches of 500, 100 B, LZ4"
SINGLE: Final = "single messages of 1 KiB"
BOTH_CORES: Final = "messages, two processes"
SPARK: Final = "Spark local[1]"
THROUGH_BROKER: Final = ("pulsar-perf read", "pulsar-client")


@dataclass(frozen=True, slots=True, kw_only=True)
class ColdGoal:
    """`limit` is the least that is wanted, or the most with `at_most`."""

    what: str
    limit: float
    found: float | None
    unit: str = ""
    at_most: bool = False

    @property
    def met(self) -> bool:
        if self.found is None:
            return False
        return self.found <= self.limit if self.at_most else self.found >= self.limit

    @property
    def wanted(self) -> str:
        return f"{'≤' if self.at_most else '≥'} {self._amount(self.limit)}"

    @property
    def said(self) -> str:
        """What was found, and whether that is enough."""
        if self.found is None:
            return f"not measured, goal {self.wanted}"
        return f"{self._amount(self.found)}, goal {self.wanted}: {'met' if self.met else 'missed'}"

    def _amount(self, value: float) -> str:
        return f"{value:,.4g} {self.unit}".rstrip() if value < 1e4 else f"{value:,.0f} {self.unit}"


def goals(results: Results) -> list[ColdGoal]:
    """In the order of the page."""

    def decode(case: str, figure: str) -> float | None:
        return _found(results, "decode", case, figure)

    def shape(name: str, *path: str) -> float | None:
        return _found(results, "shapes", name, *path)

    spark_single = shape(SINGLE, "ways", SPARK, "rows_per_s")
    payload = shape(SINGLE, "payload_bytes") or 0
    memory = [shape(name, "ways", SPARK, "worker_rss_mb") for name in (BATCHED, SINGLE)]
    return [
        ColdGoal(
            what=f"decode on one core: {BATCHED}, nine columns",
            limit=1.5e6,
            found=decode(f"{BATCHED}, nine columns", "rows_per_s"),
            unit="rows/s",
        ),
        ColdGoal(
            what="the same, all columns",
            limit=1e6,
            found=decode(f"{BATCHED}, all columns", "rows_per_s"),
            unit="rows/s",
        ),
        ColdGoal(
            what=f"decode on one core: {SINGLE}, nine columns",
            limit=600,
            found=_times(decode(f"{SINGLE}, nine columns", "bytes_per_s"), 1e-6),
            unit="MB/s",
        ),
        ColdGoal(
            what=f"{SPARK}: {BATCHED}",
            limit=5e5,
            found=shape(BATCHED, "ways", SPARK, "rows_per_s"),
            unit="rows/s",
        ),
        ColdGoal(
            what=f"{SPARK}: {SINGLE}",
            limit=80,
            found=_times(spark_single, payload * 1e-6),
            unit="MB/s",
        ),
        ColdGoal(
            what=f"two processes ÷ the faster way through a broker: {BATCHED}",
            limit=6,
            found=shape(BATCHED, "times_broker"),
            unit="times",
        ),
        ColdGoal(
            what=f"the same: {SINGLE}", limit=3, found=shape(SINGLE, "times_broker"), unit="times"
        ),
        ColdGoal(
            what="CPU of all columns ÷ that of ledger_id and entry_id",
            limit=10,
            found=shape(BATCHED, "all_times_places"),
            unit="times",
        ),
        ColdGoal(
            what="bytes read for a tenth of the time ÷ the blocks that hold it",
            limit=1.2,
            found=shape(BATCHED, "read_times_blocks"),
            at_most=True,
            unit="times",
        ),
        ColdGoal(
            what="memory of a Spark worker at blocks of 64 MiB",
            limit=500,
            found=None if None in memory else max(one for one in memory if one is not None),
            at_most=True,
            unit="MB",
        ),
    ]


def _found(results: Results, *path: str) -> float | None:
    found: Any = results
    for name in path:
        found = found.get(name)
        if found is None:
            return None
    return float(found)


def _times(value: float | None, factor: float) -> float | None:
    return None if value is None else value * factor
