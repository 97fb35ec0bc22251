"""Goals whose figures come from elsewhere: other commands' files, and requests against before.

Owns: a figure that nobody has measured is told with the command that measures it, and is no goal
met. Requests of a ledger are compared without those that its size brings: one PUT a block, and the
ranged GETs that read it back.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.agents import ROOT
from benchmarks.bare_clients import RANGE_BYTES
from benchmarks.figures import SEAWEED
from benchmarks.goals import KINDS, VERIFY, Figure
from benchmarks.limits import CLIENTS_SHARE, LEAST_SHARE, Row

RESULTS = ROOT / "benchmarks" / "results"
BEFORE = RESULTS / "before-fast.json"
MIB = 1024 * 1024
BACKFILL_BY = "make bench-backfill"
TWO_OVER_ONE_MIN = 1.7
P99_RATIO_MAX, MORE_MS_MAX = 1.25, 5.0  # either: a p99 may be small
POLITE_SHARE_MIN = 0.25
WAITING_BY = "python -m benchmarks.waiting"
RUNNERS = ("local", "spark")
_WAITED = {"first_s": "seconds to its first figures", "end_s": "seconds"}


def figures_told(rows: Sequence[Row], block_mib: int) -> list[Figure]:
    """Figures of the other commands' committed files, and of this run's requests."""
    return [
        *waited(_read(RESULTS / "waiting.json")),
        backfilled(_read(RESULTS / "backfill.json")),
        *lived(_read(RESULTS / "polite.json")),
        *requested(rows, _read(BEFORE), block_mib),
    ]


def _read(path: Path) -> Mapping[str, Any]:
    found: Mapping[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    return found


def waited(results: Mapping[str, Any]) -> list[Figure]:
    """Seconds to the first line that names ledgers and bytes, of a command and within a run; and
    those of the demo.
    """
    commands = {
        f"CLI offload, {count}, {runner}": ("first_s", 2.0)
        for count in ("one ledger", "twenty topics")
        for runner in RUNNERS
    }
    within = {f"Dagster run, one ledger, {runner}": ("first_s", 8.0) for runner in RUNNERS}
    found = []
    for kind, (what, bound) in {**commands, **within, "demo": ("end_s", 90.0)}.items():
        measured = results.get("kinds", {}).get(kind)
        found.append(
            Figure(
                measure=f"{kind}: {_WAITED[what]}",
                value=None if measured is None else measured["after"][what],
                bound=bound,
                at_most=True,
                by=WAITING_BY,
                why_none=f"no {kind!r} in waiting.json",
            )
        )
    return found


def why_no_faster(two: Mapping[str, Any]) -> str | None:
    """Why two workers cannot be faster; None where they can.

    Bare clients with as many connections bound them, all that cannot be left out as two tasks do it
    does, and the cores that one worker and the servers leave.
    """
    for name, share in (
        ("bare PUT, then GET, with as many connections", two.get("share_of_ceiling")),
        ("the least work by two tasks: read, hash, send, fetch", two.get("share_of_least_work")),
    ):
        if share is not None and share >= CLIENTS_SHARE:
            return f"{share:.0%} of {name}"
    ratio, bear = two.get("ratio"), two.get("cores_bear")
    if ratio is not None and bear is not None and ratio >= LEAST_SHARE * bear:
        return (
            f"one worker and the servers keep {two['busy']['one']:.0%} of the cores busy. So two are "
            f"{bear:.3g} times as fast at most"
        )
    return None


def backfilled(results: Mapping[str, Any]) -> Figure:
    """Two workers' pace over one's, and what may bound it."""
    two = results.get("two_workers", {})
    return Figure(
        measure="two workers / one, a ledger of 2 GiB, store 50 ms away, MB/s",
        value=two.get("ratio"),
        bound=TWO_OVER_ONE_MIN,
        at_most=False,
        by=BACKFILL_BY,
        why_none=f"`{BACKFILL_BY}` has not run",
        otherwise=why_no_faster(two) or "",
    )


def lived(results: Mapping[str, Any]) -> list[Figure]:
    """What a live producer pays for a backfill that is paced, and for one that is not."""
    more_ms = results.get("polite_p99_more_ms")
    unpaced = results.get("unpaced_p99_ratio")
    beside = "" if unpaced is None else f"; without pacing it is {unpaced:.3g}"
    why = f"`{BACKFILL_BY}` has not measured a paced backfill"
    return [
        Figure(
            measure=f"a live producer's p99, polite backfill / none{beside}",
            value=results.get("polite_p99_ratio"),
            bound=P99_RATIO_MAX,
            at_most=True,
            by=BACKFILL_BY,
            why_none=why,
            otherwise=""
            if more_ms is None or more_ms > MORE_MS_MAX
            else f"{more_ms:.2g} ms more, where {MORE_MS_MAX:.0f} ms are allowed",
        ),
        Figure(
            measure="pace of the polite backfill / of one without pacing",
            value=results.get("polite_share_of_rate"),
            bound=POLITE_SHARE_MIN,
            at_most=False,
            by=BACKFILL_BY,
            why_none=why,
        ),
    ]


def requested(rows: Sequence[Row], before: Mapping[str, Any], block_mib: int) -> list[Figure]:
    """Requests of a copied and verified ledger beyond those its bytes bring, now over before."""
    old = {
        row["entries_of"]: beyond_bytes(row, before["settings"]["block_mib"])
        for row in before.get("rows", ())
        if row["contender"] == VERIFY and "error" not in row
    }
    new = {
        row["entries_of"]: beyond_bytes(row, block_mib)
        for row in rows
        if (row["contender"], row["store"]) == (VERIFY, SEAWEED) and "error" not in row
    }
    return [
        Figure(
            measure=f"requests of a ledger beyond its blocks', {kind}",
            value=new.get(kind),
            bound=old[kind],
            at_most=True,
            by="make bench",
            why_none=f"no row of {VERIFY}",
        )
        for kind in KINDS
        if kind in old
    ]


def beyond_bytes(row: Row, block_mib: int) -> float:
    """A row's requests per ledger without a PUT for each block and its ranged GETs."""
    requests = row["requests_per_gb"]["median"] * row["mb"] / 1000 / row.get("ledgers", 1)
    size, block = row["mb"] * 1e6 / row.get("ledgers", 1), block_mib * MIB
    whole, rest = divmod(size, block)
    gets = whole * math.ceil(block / RANGE_BYTES) + math.ceil(rest / RANGE_BYTES)
    return float(round(requests - math.ceil(size / block) - gets))
