"""docs/performance.md's tables and pictures, made from the results file.

    .venv/bin/python -m benchmarks.page

Owns: what stands between the page's markers, and docs/images/performance-*.svg, is what this module
makes of benchmarks/results/latest.json and nothing else; a unit test compares. The prose around the
markers is written by hand and names no figure of that file.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from benchmarks.agents import ROOT
from benchmarks.figures import CONTENDERS, check_results

RESULTS = ROOT / "benchmarks" / "results" / "latest.json"
PAGE = ROOT / "docs" / "performance.md"
IMAGES = ROOT / "docs" / "images"
BEGIN, END = "<!-- figures: made by `make bench` -->", "<!-- end of figures -->"
PLOTS = (
    ("performance-offload", "mb_per_s", "Offload, MB/s (median, minimum to maximum)", "offload"),
    ("performance-cpu", "cpu_s_per_gb", "Offload, CPU seconds per GB of all processes", "offload"),
    ("performance-read", "mb_per_s", "Cold reads of the same objects, MB/s", "read"),
)
_BAR, _GAP, _LEFT, _WIDTH = 13, 20, 210, 760
_COLOURS = ("#b45309", "#1d4ed8", "#3b82f6", "#93c5fd", "#0f766e", "#5eead4", "#6b7280")

Results = Mapping[str, Any]


def render_page(page: str, results: Results) -> str:
    """The page with the part between its markers made anew. ValueError if it has no markers."""
    head, begun, rest = page.partition(BEGIN)
    _old, ended, tail = rest.partition(END)
    if not begun or not ended:
        raise ValueError(f"the page lacks {BEGIN!r} or {END!r}")
    return f"{head}{BEGIN}\n\n{_figures(results)}\n{END}{tail}"


def render_plots(results: Results) -> dict[str, str]:
    """Name of each picture and its SVG."""
    return {
        f"{name}.svg": bar_chart(title, _groups(results, metric, which))
        for name, metric, title, which in PLOTS
    }


def _figures(results: Results) -> str:
    machine, settings = results["machine"], results["settings"]
    versions = ", ".join(f"{name} {value}" for name, value in machine["versions"].items())
    lines = [
        f"Measured {results['measured_at'][:10]}: {machine['cores']} cores ({machine['cpu']}), "
        f"{machine['memory_gb']} GB, {machine['system']}; load {machine['load_before'][0]} before, "
        f"{machine['load_after'][0]} after. It ran {settings['rounds']} rounds after one of warm-up, "
        f"blocks of {settings['block_mib']} MiB, {settings['seconds_taken']} s in all. Topics had "
        f"{_messages(settings['messages'])} messages. Versions: {versions}.",
        "",
    ]
    for name, _metric, title, _which in PLOTS:
        lines += [f"![{title}](images/{name}.svg)", ""]
    lines += ["### Ours over the broker's", ""]
    lines += _table(
        ("entries of", "contender", "over", "MB/s", "CPU s/GB"),
        [
            (
                r["entries_of"],
                r["contender"],
                r["over"],
                _ratio(r, "mb_per_s"),
                _ratio(r, "cpu_s_per_gb"),
            )
            for r in results["ratios"]
        ],
        text_columns=3,
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
            "contender",
            "MB",
            "rounds",
            "MB/s",
            "CPU s/GB",
            "peak RSS MB",
            "requests/GB",
        ),
        [_row(row) for row in _by_kind(results["rows"])],
        text_columns=2,
    )
    lines += ["", "### Where the CPU goes", "", "Median CPU seconds per GB by role.", ""]
    roles = list(
        dict.fromkeys(r for row in results["rows"] for r in row.get("cpu_s_per_gb_by_role", ()))
    )
    lines += _table(
        ("entries of", "contender", *roles),
        [
            (
                row["entries_of"],
                row["contender"],
                *(_number(row["cpu_s_per_gb_by_role"][role]["median"]) for role in roles),
            )
            for row in _by_kind(results["rows"])
            if "error" not in row
        ],
        text_columns=2,
    )
    if results["not_run"]:
        lines += ["", "### Not run, or not often enough", ""]
        lines += _table(
            ("contender", "entries of", "why", "rounds"),
            _missing(results["not_run"]),
            text_columns=3,
        )
    return "\n".join(lines) + "\n"


def _missing(items: Sequence[Mapping[str, Any]]) -> list[tuple[str, ...]]:
    """One line for all kinds that a contender lacks for the same reason."""
    kinds: dict[tuple[str, str, str], list[str]] = {}
    for item in items:
        same = (item["contender"], item["reason"], str(item["rounds"]))
        kinds.setdefault(same, []).append(item["entries_of"])
    return [(name, ", ".join(of), why, rounds) for (name, why, rounds), of in kinds.items()]


def _messages(messages: Mapping[str, int]) -> str:
    return ", ".join(f"{count:,} of {name}" for name, count in messages.items())


def _by_kind(rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    kinds = list(dict.fromkeys(row["entries_of"] for row in rows))
    return sorted(rows, key=lambda row: kinds.index(row["entries_of"]))  # stable within a kind


def _row(row: Mapping[str, Any]) -> tuple[str, ...]:
    head = (row["entries_of"], row["contender"], _number(row["mb"]), str(row["rounds"]))
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


# ----- pictures

Bars = Sequence[tuple[str, Mapping[str, float]]]  # contender, its spread


def _groups(results: Results, metric: str, which: str) -> list[tuple[str, Bars]]:
    wanted = [c.name for c in CONTENDERS if c.name.startswith("read-") == (which == "read")]
    kinds = list(dict.fromkeys(row["entries_of"] for row in results["rows"]))
    return [
        (
            kind,
            [
                (row["contender"], row[metric])
                for row in results["rows"]
                if row["entries_of"] == kind
                and row["contender"] in wanted
                and not row["contender"].startswith("ceiling-")
                and "error" not in row
            ],
        )
        for kind in kinds
    ]


def bar_chart(title: str, groups: Sequence[tuple[str, Bars]]) -> str:
    """Horizontal bars by group on a linear scale from zero, with a whisker from least to most."""
    most = max((s["max"] for _, bars in groups for _, s in bars), default=0.0) or 1.0
    scale = (_WIDTH - _LEFT - 70) / most
    names = list(dict.fromkeys(name for _, bars in groups for name, _ in bars))
    parts, y = [f'<text x="8" y="20" font-size="14">{escape(title)}</text>'], 36
    for kind, bars in groups:
        parts.append(f'<text x="8" y="{y + 11}" font-weight="bold">{escape(kind)}</text>')
        for name, spread in bars:
            colour = _COLOURS[names.index(name) % len(_COLOURS)]
            length, middle = spread["median"] * scale, y + _BAR / 2
            low, high = _LEFT + spread["min"] * scale, _LEFT + spread["max"] * scale
            parts += [
                f'<text x="{_LEFT - 6}" y="{y + 11}" text-anchor="end">{escape(name)}</text>',
                f'<rect x="{_LEFT}" y="{y + 1}" width="{length:.1f}" height="{_BAR - 2}" fill="{colour}"/>',
                f'<path d="M{low:.1f} {middle}H{high:.1f}" stroke="#111827"/>',
                f'<text x="{high + 5:.1f}" y="{y + 11}">{_number(spread["median"])}</text>',
            ]
            y += _BAR
        y += _GAP
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {y}" width="{_WIDTH}" '
        f'height="{y}" font-family="sans-serif" font-size="11">\n'
        f'<rect width="100%" height="100%" fill="#ffffff"/>\n{body}\n</svg>\n'
    )


def main() -> None:
    results = json.loads(RESULTS.read_text())
    if faults := check_results(results):
        raise SystemExit(f"{RESULTS} is no results file: {faults}")
    PAGE.write_text(render_page(PAGE.read_text(), results))
    IMAGES.mkdir(exist_ok=True)
    for name, svg in render_plots(results).items():
        (IMAGES / name).write_text(svg)
    print(PAGE)


if __name__ == "__main__":
    main()
