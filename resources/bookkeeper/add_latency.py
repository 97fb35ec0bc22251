"""What a bookie's own page of figures says of how long its adds take. Pure.

Owns: which figure that is. `bookkeeper_server_ADD_ENTRY` is the time from taking up an add to its
answer, queue and journal included, one summary for each journal's thread. The figure that sounds
better, `bookkeeper_server_ADD_ENTRY_REQUEST`, is not kept for what a broker adds: on a bookie of
4.17 it stays at 0. Before its first add a bookie lacks the figure, but counts adds under way.
Quantiles are of the last whole window, 60 s by default (prometheusStatsLatencyRolloverSeconds);
counts and sums are of this moment.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import isnan

from tiering_assets.resources.errors import FormatError

FIGURE = "bookkeeper_server_ADD_ENTRY"
_UNDER_WAY = f"\n{FIGURE}_IN_PROGRESS ".encode()
_LINE = re.compile(rf"^{FIGURE}(_count|_sum|)\{{([^}}\n]*)\}} (\S+)$".encode(), re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class AddLatency:
    """`p99_s` of the slowest journal, None where nothing was added in that window.

    `count` adds took `total_s` since the bookie started, each rounded down to a millisecond.
    """

    p99_s: float | None
    count: int
    total_s: float


def parse_add_latency(page: bytes) -> AddLatency:
    """The figures of adds that succeeded.

    Raises:
        FormatError: the page has no such figure, or one that is no number.
    """
    p99s: list[float] = []
    counts: list[float] = []
    sums: list[float] = []
    try:
        lines = _LINE.findall(page)
        for kind, labels, value in lines:
            if b'success="true"' not in labels:
                continue
            if kind:
                (counts if kind == b"_count" else sums).append(float(value))
            elif b'quantile="0.99"' in labels:
                p99s.append(float(value))
        count = int(sum(counts))
    except (ValueError, OverflowError) as error:
        raise FormatError(f"{FIGURE}: {error}") from error
    if not lines and _UNDER_WAY in page:
        return AddLatency(p99_s=None, count=0, total_s=0.0)
    if not p99s or not counts or not sums:
        raise FormatError(f"the page lacks {FIGURE} with its 0.99, count or sum")
    known = [one / 1000 for one in p99s if not isnan(one)]
    return AddLatency(p99_s=max(known, default=None), count=count, total_s=sum(sums) / 1000)
