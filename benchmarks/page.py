"""docs/performance.md's tables and pictures, made from the results files.

    .venv/bin/python -m benchmarks.page

Owns: what stands between the page's markers, and docs/images/performance-*.svg (plots.py), is made
of benchmarks/results/latest.json and of before-fast.json beside it and of nothing else; a unit test
compares. The prose around the markers is written by hand and names no figure of those files.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.agents import ROOT
from benchmarks.figures import METRICS, RATIO_METRICS, SEAWEED, check_results
from benchmarks.goals import RELEASE, VERIFY
from benchmarks.limits import CLIENTS, LEAST
from benchmarks.plots import TITLES, render_plots
from benchmarks.written import between_markers

RESULTS = ROOT / "benchmarks" / "results" / "latest.json"
PAGE = ROOT / "docs" / "performance.md"
IMAGES = ROOT / "docs" / "images"
BEFORE = ROOT / "benchmarks" / "results" / "before-fast.json"
BOUNDS = ("ceiling-bookies", "ceiling-store", CLIENTS, LEAST)
REQUESTING = ("broker", "ours-copy", VERIFY, "ours-release", RELEASE)
BEGIN, END = "<!-- figures: made by `make bench` -->", "<!-- end of figures -->"
Results = Mapping[str, Any]


def render_page(page: str, results: Results, before: Results) -> str:
    """The page with the part between its markers made anew. ValueError if it has no markers."""
    return between_markers(page, BEGIN, END, _figures(results, before))


def _figures(results: Results, before: Results) -> str:
    machine, settings = results["machine"], results["settings"]
    versions = ", ".join(f"{name} {value}" for name, value in machine["versions"].items())
    lines = [
        f"Measured {results['measured_at'][:10]}: {machine['cores']} cores ({machine['cpu']}), "
        f"{machine['memory_gb']} GB, {machine['system']}; load {machine['load_before'][0]} before, "
        f"{machine['load_after'][0]} after. It ran {settings['rounds']} rounds after one of warm-up, "
        f"blocks of {settings['block_mib']} MiB, {settings['seconds_taken']} s in all. Messages: "
        f"{_messages(settings['messages'])}. Versions: {versions}.",
        "",
    ]
    loops = machine.get("loops", {})
    lines += [f"Loops over entries: {'; '.join(f'{n}: {said}' for n, said in loops.items())}.", ""]
    lines += ["### Goals", "", "Values are ratios of medians, or medians.", ""]
    lines += _table(
        ("measure", "entries of", "store", "goal", "value", "state", "by"),
        [_goal(goal) for goal in results["goals"]],
        text_columns=7,
    )
    lines += _limits(results["goals"])
    for name, title in TITLES.items():
        lines += ["", f"![{title}](images/{name}.svg)"]
    lines += ["", "### Before and after", ""]
    lines += [
        f"Before is commit {before['machine']['versions']['commit']}, measured "
        f"{before['measured_at'][:10]} with smaller ledgers. Medians on SeaweedFS.",
        "",
    ]
    lines += _table(
        ("entries of", "contender", "MB/s", "CPU s/GB", "worker's CPU s/GB"),
        _changes(results, before),
        text_columns=2,
    )
    lines += ["", "### What bounds each size", "", "Medians, MB/s.", ""]
    lines += _table(
        ("entries of", "store", "ours-verify", *BOUNDS, f"of {CLIENTS}", f"of {LEAST}"),
        _bounds(results["rows"]),
        text_columns=2,
    )
    lines += ["", "### Ours over the broker's", "", "Ratios within each round.", ""]
    lines += _table(
        ("entries of", "store", "contender", "over", "MB/s", "CPU s/GB", "without the store's"),
        [
            (
                r["entries_of"],
                r["store"],
                r["contender"],
                r["over"],
                *(_ratio(r, metric) for metric in RATIO_METRICS),
            )
            for r in _by_kind(results["ratios"])
        ],
        text_columns=4,
    )
    lines += [
        "",
        "### All rows",
        "",
        "Each cell is minimum / median / maximum over the rounds.",
        "",
    ]
    lines += _table(
        (
            "entries of",
            "store",
            "contender",
            "MB",
            "rounds",
            "MB/s",
            "CPU s/GB",
            "peak RSS MB",
            "requests/GB",
        ),
        [_row(row) for row in _by_kind(results["rows"])],
        text_columns=3,
    )
    lines += ["", "### Where the CPU goes", "", "Median CPU seconds per GB by role.", ""]
    roles = list(
        dict.fromkeys(r for row in results["rows"] for r in row.get("cpu_s_per_gb_by_role", ()))
    )
    lines += _table(
        ("entries of", "store", "contender", *roles),
        [
            (
                row["entries_of"],
                row["store"],
                row["contender"],
                *(_number(row["cpu_s_per_gb_by_role"][role]["median"]) for role in roles),
            )
            for row in _by_kind(results["rows"])
            if "error" not in row
        ],
        text_columns=3,
    )
    lines += [
        "",
        "### Requests by kind",
        "",
        "Medians for one ledger, as the store names them.",
        "",
    ]
    lines += _table(
        ("entries of", "store", "contender", "requests of a ledger"),
        [
            (row["entries_of"], row["store"], row["contender"], _requests(row))
            for row in _by_kind(results["rows"])
            if row["contender"] in REQUESTING and "error" not in row
        ],
        text_columns=4,
    )
    if results["not_run"]:
        lines += ["", "### Not run, or not often enough", ""]
        lines += _table(
            ("contender", "entries of", "store", "why", "rounds"),
            _missing(results["not_run"]),
            text_columns=4,
        )
    return "\n".join(lines) + "\n"


def _missing(items: Sequence[Mapping[str, Any]]) -> list[tuple[str, ...]]:
    """One line for all kinds that a contender lacks for the same reason."""
    kinds: dict[tuple[str, str, str, str], list[str]] = {}
    for item in items:
        same = (item["contender"], item["store"], item["reason"], str(item["rounds"]))
        kinds.setdefault(same, []).append(item["entries_of"])
    return [
        (name, ", ".join(of), store, why, rounds)
        for (name, store, why, rounds), of in kinds.items()
    ]


def _goal(goal: Mapping[str, Any]) -> tuple[str, ...]:
    value = goal["value"]
    return (
        goal["measure"],
        goal.get("entries_of", ""),
        goal.get("store", ""),
        goal["goal"],
        "" if value is None else _number(value),
        goal["state"],
        goal["by"],
    )


def _limits(goals: Sequence[Mapping[str, Any]]) -> list[str]:
    """A line for each goal that a limit replaces, and for each that was not measured."""
    lines = []
    for goal in goals:
        if why := goal.get("limit") or goal.get("why"):
            place = [goal[name] for name in ("measure", "entries_of", "store") if name in goal]
            lines.append(f"* {', '.join(place)}: {why}.")
    return ["", *lines] if lines else []


def _changes(results: Results, before: Results) -> list[tuple[str, ...]]:
    """Medians before and after of what both files have on the first store."""
    old = {(r["contender"], r["entries_of"]): r for r in before["rows"] if "error" not in r}
    changes = []
    for row in _by_kind(results["rows"]):
        was = old.get((row["contender"], row["entries_of"]))
        if row["store"] != SEAWEED or "error" in row or was is None:
            continue
        pairs = [(was[metric]["median"], row[metric]["median"]) for metric in METRICS[:2]]
        role = "cpu_s_per_gb_by_role"
        pairs.append((was[role]["worker"]["median"], row[role]["worker"]["median"]))
        said = (f"{_number(one)} → {_number(other)}" for one, other in pairs)
        changes.append((row["entries_of"], row["contender"], *said))
    return changes


def _bounds(rows: Sequence[Mapping[str, Any]]) -> list[tuple[str, ...]]:
    """Beside each verified offload what its bookies, its store and bare clients give."""
    speeds = {
        (r["entries_of"], r["store"], r["contender"]): r["mb_per_s"]["median"]
        for r in rows
        if "error" not in r
    }
    found = []
    for (kind, store, name), ours in speeds.items():
        if name != VERIFY:
            continue
        others = [speeds.get((kind, store, bound)) for bound in BOUNDS]
        said = ("" if other is None else _number(other) for other in others)
        ceilings = [speeds.get((kind, store, bound)) for bound in (CLIENTS, LEAST)]
        shares = ("" if one is None else f"{ours / one:.0%}" for one in ceilings)
        found.append((kind, store, _number(ours), *said, *shares))
    return found


def _requests(row: Mapping[str, Any]) -> str:
    return ", ".join(
        f"{_number(count / row['ledgers'])} {kind.removeprefix('s3_')}"
        for kind, count in row["requests_by_kind"].items()
    )


def _messages(messages: Mapping[str, int]) -> str:
    return "; ".join(f"`{name}` {count:,}" for name, count in messages.items())


def _by_kind(rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    kinds = list(dict.fromkeys(row["entries_of"] for row in rows))
    return sorted(rows, key=lambda row: kinds.index(row["entries_of"]))  # stable within a kind


def _row(row: Mapping[str, Any]) -> tuple[str, ...]:
    place = (row["entries_of"], row["store"], row["contender"])
    head = (*place, _number(row["mb"]), str(row["rounds"]))
    if "error" in row:
        return (*head, f"error: {row['error'][:80]}", "", "", "")
    metrics = ("mb_per_s", "cpu_s_per_gb", "peak_rss_mb", "requests_per_gb")
    return (*head, *(_spread(row[metric]) for metric in metrics))


def _ratio(ratio: Mapping[str, Any], metric: str) -> str:
    found = ratio.get(metric)
    return "" if found is None else _spread(found)


def _spread(found: Mapping[str, float]) -> str:
    return " / ".join(_number(found[name]) for name in ("min", "median", "max"))


def _number(value: float) -> str:
    """Three significant digits, and whole numbers from 100 on."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]], *, text_columns: int) -> list[str]:
    rule = ["---"] * text_columns + ["---:"] * (len(head) - text_columns)
    cells = [[cell.replace("|", "\\|").replace("\n", " ") for cell in row] for row in rows]
    return ["| " + " | ".join(line) + " |" for line in (head, rule, *cells)]


def main() -> None:
    results, before = json.loads(RESULTS.read_text()), json.loads(BEFORE.read_text())
    if faults := check_results(results):
        raise SystemExit(f"{RESULTS} is no results file: {faults}")
    PAGE.write_text(render_page(PAGE.read_text(), results, before))
    IMAGES.mkdir(exist_ok=True)
    for name, svg in render_plots(results, before).items():
        (IMAGES / name).write_text(svg)
    print(PAGE)


if __name__ == "__main__":
    main()
