"""Samples to rows, ratios and the results file. Values in, values out.

Owns: a row is minimum, median and maximum over the rounds that were measured, the warm-up left out;
a ratio is taken within a round, where both sides had the same machine, and only then summed up; a
row with a wrong hash in any round has an error and no figures. `check_results` is the file's
schema. Goals are judged by medians of rows (goals.py).
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from benchmarks.goals import goal_faults

SCHEMA = 2
METRICS = (
    "mb_per_s",
    "cpu_s_per_gb",
    "cpu_s_per_gb_without_store",
    "peak_rss_mb",
    "requests_per_gb",
)
RATIO_METRICS = ("mb_per_s", "cpu_s_per_gb", "cpu_s_per_gb_without_store")
ROUNDS_MIN = 3
SEAWEED, VERSITY = "SeaweedFS", "versitygw"


class Contender(NamedTuple):
    """Who is measured. `against` is the broker's row that a ratio divides by, if any.

    `worker` is the role whose memory is the row's: the process that does the contender's work.
    `rounds` is how many are wanted at least.
    """

    name: str
    says: str
    worker: str
    against: str | None = None
    rounds: int = ROUNDS_MIN


CONTENDERS = (
    Contender("broker", "Pulsar's own offloader: trigger to success, no check", "broker"),
    Contender("ours-copy", "copied", "worker", "broker"),
    Contender("ours-verify", "copied, every byte read back", "worker", "broker"),
    Contender("ours-release", "copied, read back, published, released", "worker", "broker"),
    Contender("ours-release (signed)", "ours-release with a key that signs", "worker"),
    Contender("ours-verify (python)", "ours-verify by Python's loop", "worker", "broker", rounds=1),
    Contender("spark-copy", "copied, by Spark", "worker", "broker", rounds=1),
    Contender("spark-verify", "read back as well, by Spark", "worker", "broker", rounds=1),
    Contender("ceiling-store", "ceiling: multipart upload of ready bytes", "worker"),
    Contender("ceiling-sink", "ceiling: the same to a sink that discards them", "worker"),
    Contender("ceiling-put-get", "ceiling: multipart upload, then ranged GETs", "worker"),
    Contender("ceiling-bookies", "ceiling: entries read from bookies, no upload", "worker"),
    Contender("ceiling-least-work", "ceiling: read, hashed, sent, fetched, hashed", "worker"),
    Contender("read-broker", "cold read: consumer through the broker", "worker"),
    Contender("read-ours", "cold read: our decoder on the object", "worker", "read-broker"),
    Contender("read-broker-100ms", "read-broker, store 100 ms away", "worker"),
    Contender("read-ours-100ms", "read-ours, store 100 ms away", "worker", "read-broker-100ms"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One contender's work in one round. `bytes` are the ledgers' entry bytes."""

    contender: str
    kind: str
    round: int
    bytes: int
    entries: int
    store: str = SEAWEED
    ledgers: int = 1
    seconds: float = 0.0
    cpu_s: Mapping[str, float] = field(default_factory=dict)  # by role
    peak_rss_mb: Mapping[str, float] = field(default_factory=dict)  # by role
    requests: Mapping[str, int] = field(default_factory=dict)  # by kind
    error: str | None = None

    @property
    def place(self) -> tuple[str, str, str]:
        """Its row: contender, kind and store."""
        return self.contender, self.kind, self.store

    def figures(self, worker: str) -> dict[str, float]:
        gb = self.bytes / 1e9
        return {
            "mb_per_s": self.bytes / 1e6 / self.seconds,
            "cpu_s_per_gb": sum(self.cpu_s.values()) / gb,
            "cpu_s_per_gb_without_store": (sum(self.cpu_s.values()) - self.cpu_s.get("store", 0.0))
            / gb,
            "peak_rss_mb": self.peak_rss_mb.get(worker, 0.0),
            "requests_per_gb": sum(self.requests.values()) / gb,
        }


def joined(contender: str, parts: Sequence[Sample]) -> Sample:
    """Stages of one work as one sample: sums, and the highest memory."""
    first = parts[0]
    roles = list(first.cpu_s)
    return replace(
        first,
        contender=contender,
        seconds=sum(p.seconds for p in parts),
        cpu_s={role: sum(p.cpu_s[role] for p in parts) for role in roles},
        peak_rss_mb={role: max(p.peak_rss_mb[role] for p in parts) for role in first.peak_rss_mb},
        requests=sum((Counter(p.requests) for p in parts), Counter()),
        error=next((p.error for p in parts if p.error is not None), None),
    )


def spread(values: Iterable[float]) -> dict[str, float]:
    """Minimum, median and maximum to four significant digits. ValueError for none."""
    found = sorted(values)
    if not found:
        raise ValueError("no values to sum up")
    return {
        "min": _rounded(found[0]),
        "median": _rounded(statistics.median(found)),
        "max": _rounded(found[-1]),
    }


def _rounded(value: float) -> float:
    return float(f"{value:.4g}")


def rows_of(samples: Sequence[Sample]) -> list[dict[str, Any]]:
    """One row per contender, kind and store that was measured, in the order of CONTENDERS."""
    places = list(dict.fromkeys((sample.store, sample.kind) for sample in samples))
    rows = []
    for contender in CONTENDERS:
        for store, kind in places:
            own = [s for s in samples if s.place == (contender.name, kind, store)]
            if own:
                rows.append(_row(contender, own))
    return rows


def _row(contender: Contender, samples: Sequence[Sample]) -> dict[str, Any]:
    first = samples[0]
    row: dict[str, Any] = {"contender": contender.name, "entries_of": first.kind}
    row |= {"store": first.store, "rounds": len(samples), "mb": _rounded(first.bytes / 1e6)}
    row |= {"ledgers": first.ledgers}
    error = next((s.error for s in samples if s.error is not None), None)
    if error is not None:
        return row | {"error": error}
    figures = [sample.figures(contender.worker) for sample in samples]
    row |= {metric: spread(f[metric] for f in figures) for metric in METRICS}
    row["entries_per_s"] = spread(s.entries / s.seconds for s in samples)
    roles = list(samples[0].cpu_s)
    row["cpu_s_per_gb_by_role"] = {
        role: spread(s.cpu_s[role] / (s.bytes / 1e9) for s in samples) for role in roles
    }
    row["peak_rss_mb_by_role"] = {
        role: spread(s.peak_rss_mb[role] for s in samples) for role in samples[0].peak_rss_mb
    }
    kinds = sorted({kind for s in samples for kind in s.requests})
    row["requests_by_kind"] = {
        kind: statistics.median(s.requests.get(kind, 0) for s in samples) for kind in kinds
    }
    return row


def ratios_of(samples: Sequence[Sample]) -> list[dict[str, Any]]:
    """Ours over the broker's, by kind, store and metric; rounds without both sides do not count."""
    good = {(*s.place, s.round): s for s in samples}
    failed = {s.place for s in samples if s.error is not None}
    workers = {contender.name: contender.worker for contender in CONTENDERS}
    places = list(dict.fromkeys((sample.store, sample.kind) for sample in samples))
    ratios = []
    for contender in CONTENDERS:
        name, against = contender.name, contender.against
        if against is None:
            continue
        for store, kind in places:
            if (name, kind, store) in failed or (against, kind, store) in failed:
                continue
            pairs = [
                (
                    s.figures(contender.worker),
                    good[against, kind, store, s.round].figures(workers[against]),
                )
                for s in samples
                if s.place == (name, kind, store) and (against, kind, store, s.round) in good
            ]
            metrics = {
                metric: spread(ours[metric] / theirs[metric] for ours, theirs in pairs)
                for metric in RATIO_METRICS
                if pairs and all(theirs[metric] > 0 for _ours, theirs in pairs)
            }
            if metrics:
                head = {"contender": name, "over": against, "entries_of": kind, "store": store}
                ratios.append(head | metrics)
    return ratios


def missing_rows(
    samples: Sequence[Sample],
    wanted: Iterable[tuple[str, str, str]],
    reasons: Mapping[str, str],
) -> list[dict[str, Any]]:
    """Rows that lack rounds, and why: fewer than three measured ones are no proof of anything.

    `wanted` are contender, kind and store of the rows there should be; `reasons` are by store, with
    a general one under the empty name.
    """
    least = {contender.name: contender.rounds for contender in CONTENDERS}
    missing = []
    for name, kind, store in wanted:
        rounds = sum(s.place == (name, kind, store) for s in samples)
        if rounds < least[name]:
            reason = reasons.get(store) or reasons[""]
            head = {"contender": name, "entries_of": kind, "store": store}
            missing.append(head | {"rounds": rounds, "reason": reason})
    return missing


def check_results(results: Any) -> list[str]:
    """What is wrong with a results file; nothing if it is one."""
    if not isinstance(results, dict):
        return ["not a JSON object"]
    faults = [
        f"{name} is missing or no {kind.__name__}"
        for name, kind in (
            ("schema", int),
            ("measured_at", str),
            ("machine", dict),
            ("settings", dict),
            ("rows", list),
            ("ratios", list),
            ("not_run", list),
            ("goals", list),
        )
        if not isinstance(results.get(name), kind)
    ]
    if faults:
        return faults
    if results["schema"] != SCHEMA:
        faults.append(f"schema is {results['schema']}, expected {SCHEMA}")
    names = {contender.name for contender in CONTENDERS}
    for number, row in enumerate(results["rows"]):
        place = f"rows[{number}]"
        if row.get("contender") not in names:
            faults.append(f"{place}: no contender is called {row.get('contender')!r}")
        if "error" in row:
            faults += [f"{place}: an error and {m}" for m in METRICS if m in row]
        else:
            faults += [f"{place}.{m}: {f}" for m in METRICS for f in _spread_faults(row.get(m))]
    for number, ratio in enumerate(results["ratios"]):
        for metric in RATIO_METRICS:
            faults += [f"ratios[{number}].{metric}: {f}" for f in _spread_faults(ratio.get(metric))]
    for number, goal in enumerate(results["goals"]):
        faults += [f"goals[{number}]: {fault}" for fault in goal_faults(goal)]
    for number, item in enumerate(results["not_run"]):
        if not item.get("reason"):
            faults.append(f"not_run[{number}]: no reason")
    return faults


def _spread_faults(found: Any) -> list[str]:
    if not isinstance(found, dict) or set(found) != {"min", "median", "max"}:
        return ["expected min, median and max"]
    if not found["min"] <= found["median"] <= found["max"]:
        return [f"{found} is in no order"]
    return []
