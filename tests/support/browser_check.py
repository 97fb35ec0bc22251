"""`make browser-test`: five questions, answered in Dagster's pages by at most three clicks each.

And a clicked Materialize that is run. Debian's Chromium looks at the pages of the demo's saved
DAGSTER_HOME, by role and visible text. The demo is run first where no demo was. A copy of its home
gets a run that failed, launched where no servers answer, for the question why. What an answer must
show is taken from the demo's summary and from Dagster's own records, and not from the page. Each
page has three seconds. With --keys 5000 the same is asked in a home of a hundred thousand ledgers
(browser_fleet.py). build/browser.json has clicks, seconds of each page and the text that was found,
of each question; build/browser/ has its screenshot.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import Any

import dagster as dg

from tests.support.browser_fleet import plant
from tests.support.browser_pages import (
    ROOT,
    SUMMARY,
    chromium,
    chromium_pages,
    copied_home,
    pages,
    settle,
)

REPORT = ROOT / "build" / "browser.json"
CLICKS_MAX = 3
PAGE_S_MAX = 3.0
FLEET = 100_000
_OPENS_S = 20.0
_RUN_S = 180.0  # from a click to the end of a run, on a slow machine


@dataclass(frozen=True, slots=True, kw_only=True)
class Truth:
    """What the answers must show, from elsewhere."""

    ledger_id: int
    topic: str  # with its domain
    topic_name: str
    of_topic: int  # its ledgers
    ledgers: int
    certificate_sha256: str
    release_run: str
    failed_run: str
    failure: str


@dataclass(slots=True, kw_only=True)
class Answer:
    question: str
    clicks: list[str] = field(default_factory=list)
    found: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    page_seconds: list[float] = field(default_factory=list)
    screenshot: str = ""
    page_s_max: float = PAGE_S_MAX

    @property
    def good(self) -> bool:
        slow = max(self.page_seconds, default=0.0) > self.page_s_max
        return not self.missing and not slow and len(self.clicks) <= CLICKS_MAX


class Visitor:
    """A person at the pages, who clicks on what is to be read, and counts."""

    def __init__(self, page: Any, answer: Answer) -> None:
        self.page, self._answer = page, answer

    def _settle(self, act: Callable[[], object]) -> None:
        began = time.monotonic()
        act()
        settle(self.page)
        self._answer.page_seconds.append(round(time.monotonic() - began, 2))

    def click(self, role: str, name: str, *, exact: bool = False) -> None:
        found = self.page.get_by_role(role, name=name, exact=exact).first
        self._answer.clicks.append(f"{role} {name!r}")
        self._settle(found.click)

    def search(self, text: str, result: str) -> None:
        """Type into Dagster's search, which a key opens, and click on a result."""
        self._answer.clicks.append(f"search {text!r}: {result!r}")
        field = self.page.get_by_placeholder("Search assets, jobs", exact=False)
        until = time.monotonic() + _OPENS_S
        while not field.is_visible() and time.monotonic() < until:
            self.page.keyboard.press("/")  # lost, where the page does not listen yet
            time.sleep(0.5)
        field.fill(text)
        found = self.page.get_by_role("link", name=result).first
        found.wait_for()
        self._settle(found.click)

    def show(self, key: str) -> None:
        """Open a text of the metadata that is too long to be shown at once."""
        row = self.page.locator("tr", has_text=key).first
        row.wait_for()
        hidden = row.get_by_text("[Show Markdown]")
        if hidden.count():
            self._answer.clicks.append(f"text {key!r}")
            self._settle(hidden.first.click)

    def open_partition(self, key: str) -> None:
        """Type into the filter of partitions, and click on the one that is left."""
        self._answer.clicks.append(f"filter {key!r}: {key!r}")
        self.page.get_by_placeholder("Filter by name", exact=False).fill(key)
        found = self.page.get_by_text(key, exact=True).first
        self._settle(found.click)

    def read(self, wanted: Sequence[str], *, within_s: float = 20.0) -> None:
        """Which of these is in visible text; pages fill themselves, so it is looked at again."""
        until = time.monotonic() + within_s
        while True:
            text = " ".join(self.page.inner_text("body").split())
            missing = [one for one in wanted if one not in text]
            if not missing or time.monotonic() > until:
                break
            time.sleep(0.2)
        self._answer.found += [one for one in wanted if one not in missing]
        self._answer.missing += missing


def how_far_behind(visitor: Visitor, truth: Truth) -> None:
    visitor.search("tiering_backlog", "tiering_backlog")
    visitor.read(["0 ledgers, 0 B are on bookies alone", f"{truth.ledgers} of "])
    visitor.show("by_topic")
    visitor.read([truth.topic_name])


def what_happened_to_a_ledger(visitor: Visitor, truth: Truth) -> None:
    visitor.search("certificates", "certificates")
    visitor.click("tab", "Partitions")
    visitor.open_partition(str(truth.ledger_id))
    way = ("sealed", "copied", "proven", "published", "released")
    visitor.read([str(truth.ledger_id), *way, f"certificates/{truth.ledger_id}/"])


def what_happened_to_a_topic(visitor: Visitor, truth: Truth) -> None:
    visitor.search("tiering_backlog", "tiering_backlog")
    visitor.show("by_topic")
    visitor.read([truth.topic_name, f"{truth.of_topic} released"])


def why_it_failed(visitor: Visitor, truth: Truth) -> None:
    visitor.click("link", "Runs")
    visitor.click("tab", "Failed")
    visitor.click("link", truth.failed_run[:8])
    visitor.read([truth.failed_run[:8], truth.failure, "Next:"])


def who_deleted_it(visitor: Visitor, truth: Truth) -> None:
    visitor.search("deleted_bookie", "deleted_bookie_ledgers")
    visitor.click("tab", "Partitions")
    visitor.open_partition(str(truth.ledger_id))
    visitor.read([truth.release_run[:8], truth.certificate_sha256])


QUESTIONS: dict[str, tuple[str, Callable[[Visitor, Truth], None]]] = {
    "a": ("how far behind is tiering, and where?", how_far_behind),
    "b": ("what happened to ledger N?", what_happened_to_a_ledger),
    "c": ("what happened to topic T?", what_happened_to_a_topic),
    "d": ("why did this fail, and what do I do?", why_it_failed),
    "e": ("who deleted ledger N's bookie copy, on what proof?", who_deleted_it),
}


def of_demo() -> Any:
    return json.loads(SUMMARY.read_text())


def truth_of(home: Path) -> Truth:
    """Of the ledger with most bytes."""
    summary = of_demo()
    ledger = max(summary["ledgers"], key=lambda one: one["payload_bytes"])
    released_ledger = dg.AssetRecordsFilter(
        asset_key=dg.AssetKey(["pulsar", "deleted_bookie_ledgers"]),
        asset_partitions=[str(ledger["ledger_id"])],
    )
    with dg.DagsterInstance.local_temp(str(home)) as instance:
        [released] = instance.fetch_materializations(released_ledger, limit=1).records
        [failed] = instance.get_runs(dg.RunsFilter(statuses=[dg.DagsterRunStatus.FAILURE]), limit=1)
        made = released.asset_materialization
        if made is None:
            raise SystemExit(f"ledger {ledger['ledger_id']} was not released in {home}")
        card = str(made.metadata["card"].value)
        return Truth(
            ledger_id=ledger["ledger_id"],
            topic=ledger["topic"],
            topic_name=ledger["topic"].removeprefix("persistent://"),
            of_topic=sum(one["topic"] == ledger["topic"] for one in summary["ledgers"]),
            ledgers=len(summary["ledgers"]),
            certificate_sha256=card.partition("certificate ")[2].split()[0],
            release_run=released.run_id,
            failed_run=failed.run_id,
            failure="no connection to ZooKeeper",
        )


def ask(base: str, truth: Truth, only: Sequence[str]) -> list[Answer]:
    error_of_page = import_module("playwright.sync_api").Error
    answers = []
    with chromium_pages(base) as make:
        for name in only:
            question, steps = QUESTIONS[name]
            answer = Answer(question=question, screenshot=f"build/browser/{name}.png")
            page = make()
            try:
                steps(Visitor(page, answer), truth)
            except error_of_page as error:
                answer.missing.append(str(error).splitlines()[0])
            page.screenshot(path=str(ROOT / answer.screenshot))
            page.close()
            answers.append(answer)
    return answers


def materialize(base: str) -> Answer:
    """Click on Materialize where the daemon is: the run is started, and says what became of it."""
    answer = Answer(
        question="is a clicked Materialize run?",
        screenshot="build/browser/click.png",
        page_s_max=_RUN_S,  # web server and daemon have started just now
    )
    with chromium_pages(base) as make:
        page = make()
        visitor = Visitor(page, answer)
        visitor.search("tiering_backlog", "tiering_backlog")
        visitor.click("button", "Materialize")
        visitor.click("link", "View", exact=True)
        visitor.read(["no connection to ZooKeeper", "Next:"], within_s=_RUN_S)
        page.screenshot(path=str(ROOT / answer.screenshot))
    return answer


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("--only", nargs="*", choices=list(QUESTIONS), default=list(QUESTIONS))
    parser.add_argument("--keys", type=int, help="of ledgers, in a home of a large fleet")
    asked = parser.parse_args()
    chromium()
    home = copied_home()
    truth = truth_of(home)
    if asked.keys:
        plant(home, of_demo()["ledgers"], keys=asked.keys, ledgers=FLEET)
        truth = replace(truth, ledgers=FLEET)
    with pages(home) as base:
        answers = ask(base, truth, asked.only)
    if not asked.keys:
        with pages(home, daemon=True) as base:
            answers.append(materialize(base))
    report = {"truth": asdict(truth), "questions": [asdict(one) for one in answers]}
    REPORT.write_text(json.dumps(report, indent=1) + "\n")
    for one in answers:
        sys.stdout.write(
            f"{'good' if one.good else 'BAD '} {one.question}\n"
            f"     {len(one.clicks)} clicks: {', '.join(one.clicks)}; seconds {one.page_seconds}\n"
        )
        for text in one.missing:
            sys.stdout.write(f"     not to be seen: {text}\n")
    return 0 if all(one.good for one in answers) else 1


if __name__ == "__main__":
    sys.exit(main())
