"""Catalogues that lie: what sensors then ask for, runs refuse, and nothing is lost.

    python -m tests.support.lying_catalogues --seeds 1000

One seed is a fleet of ledgers in any state, whose rows then say anything else of them. Sensors
nominate by these rows, and a run is given every nominated ledger, those too that sensors found
to be wrong. No ledger that was not due may change, and no invariant of the simulated cluster may
break.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pyarrow as pa

from tests.support.book_result import keep
from tests.support.sim_scene import TOPIC, Scene
from tiering_assets.automation.admission import Releases
from tiering_assets.automation.tick_memory import TickMemory
from tiering_assets.batch.pipeline import offload_batch
from tiering_assets.batch.release_batch import release_batch
from tiering_assets.catalogue.columns import TABLES
from tiering_assets.catalogue.nominate import ledgers_to_release
from tiering_assets.catalogue.post import post
from tiering_assets.catalogue.scan.scan import scan, scan_again
from tiering_assets.catalogue.view import Catalogue, carried, rows_of
from tiering_assets.look.brakes.holds import hold
from tiering_assets.look.brakes.scopes import ledger_scope
from tiering_assets.look.ledger.states import LedgerState
from tiering_assets.look.ledger.survey import survey
from tiering_assets.look.topic.user_topics import read_topics
from tiering_assets.resources.table_place import TablePlace

LEDGERS = 6
OTHER = "t/ns/persistent/other"


@dataclass(frozen=True, slots=True)
class Trial:
    """What one lying catalogue led to. `asked` ledgers were asked for, `wrong` were found out."""

    problems: tuple[str, ...]
    asked: int
    wrong: int


def trial(seed: int, folder: Path) -> Trial:
    chance = random.Random(seed)
    scene = Scene(seed)
    _lay_out(scene, chance)
    catalogue = Catalogue(TablePlace(root=str(folder), options={}))
    while post(scene.stack, catalogue).pages:
        pass
    scan(scene.stack, catalogue)
    _lie(scene, catalogue, chance)
    before = {
        one.ledger_id: one.state
        for one in survey(scene.stack)
        if one.state is not LedgerState.OPEN  # a reload drops an empty one
    }
    asked, wrong = _ask_and_run(scene, catalogue)
    problems = [f"{one.invariant}: {one.detail}" for one in scene.world.monitor.found]
    after = {one.ledger_id: one.state for one in survey(scene.stack)}
    for ledger_id, state in before.items():
        now = after.get(ledger_id)
        if now is not state and state is not LedgerState.RELEASE_DUE:
            problems.append(f"ledger {ledger_id} was {state.value}, is {now and now.value}")
    return Trial(tuple(problems), asked, wrong)


def _lay_out(scene: Scene, chance: random.Random) -> None:
    """Ledgers that are sealed, certified, published, due, held, or released, of two topics."""
    scene.broker.create_topic(OTHER)
    for name in (TOPIC, OTHER):
        for _ in range(LEDGERS // 2):
            scene.fill(name)
    closed = [one for one in survey(scene.stack) if one.state is LedgerState.SEALED]
    for early in (True, False):
        for one in closed:
            stack = scene.process("run")
            act = chance.choice(("nothing", "certify", "publish", "hold", "release"))
            if act == "certify":
                offload_batch(stack, [one.ledger_id], publish=False)
            elif act in ("publish", "hold"):
                offload_batch(stack, [one.ledger_id])
            if act == "hold":
                hold(stack, ledger_scope(one.ledger_id), reason="audit", author="kim")
            if act == "release" and not early:
                release_batch(stack, [one.ledger_id])
            stack.book.close_page()
        if early:
            scene.past_the_lag()


def _lie(scene: Scene, catalogue: Catalogue, chance: random.Random) -> None:
    tables = catalogue.opened()
    rows = rows_of(tables, [one.ledger_id for one in survey(scene.stack)])
    table = tables["ledger_changes"]
    lies = [
        {**row, **_a_lie(row, rows, scene, chance), "turn": table.turn + 1}
        for row in rows
        if chance.random() < 0.8
    ]
    if lies:
        made = pa.Table.from_pylist(lies, schema=TABLES["ledger_changes"])
        assert table.append(made, told=carried(table))


def _a_lie(
    row: Mapping[str, Any], rows: list[dict[str, Any]], scene: Scene, chance: random.Random
) -> dict[str, Any]:
    """Mostly that it is due. Of its own columns, or those of another ledger."""
    long_ago = scene.stack.now() - timedelta(days=chance.randrange(1, 4000))
    due = {
        "state": "published",
        "listed_as": "offloaded",
        "offloaded_by": "tierkeeper",
        "published_at": long_ago,
        "held": None,
        "quarantined_at": None,
        "damaged_at": None,
    }
    other = chance.choice(rows)
    return chance.choice(
        (
            due,
            due | {"topic": chance.choice((TOPIC, OTHER))},
            due | {"uid": other["uid"], "certificate_sha256": "5a" * 32},
            due | {"state": "releasing", "listed_as": "marked", "intended_at": long_ago},
            {"state": chance.choice([*LedgerState]).value},
            {**other, "ledger_id": row["ledger_id"]},
        )
    )


def _ask_and_run(scene: Scene, catalogue: Catalogue) -> tuple[int, int]:
    """What a tick of the sensor does, and the run that it asks for."""
    stack = scene.process("sensor")
    before = stack.now() - stack.deletion_lag
    due = ledgers_to_release(catalogue.opened(), published_before=before)
    releases = Releases(stack, lambda _ledger_id: True, TickMemory(), due.ledgers)
    ready = []
    for _name, topic in read_topics(stack, due.ledgers):
        if topic is not None and not isinstance(topic, Exception):
            ready += [one.ledger_id for one in releases.look(topic)]
    if releases.wrong:
        topics = [*releases.wrong.values()]
        scan_again(stack, catalogue, topics, wrong=releases.wrong_ledgers)
    run = scene.process("release")
    release_batch(run, sorted({*ready, *(i for some in due.ledgers.values() for i in some)}))
    run.book.close_page()
    return len(ready), releases.wrong_ledgers


def _one(given: tuple[int, str]) -> tuple[int, Trial]:
    seed, folder = given
    return seed, trial(seed, Path(folder) / str(seed))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--seeds", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0)
    given = parser.parse_args()
    began, bad, asked, wrong = time.monotonic(), 0, 0, 0
    with tempfile.TemporaryDirectory() as folder, get_context("spawn").Pool(2) as pool:
        seeds = range(given.first, given.first + given.seeds)
        for seed, found in pool.imap_unordered(_one, [(seed, folder) for seed in seeds]):
            bad, asked, wrong = bad + bool(found.problems), asked + found.asked, wrong + found.wrong
            for line in found.problems[:3]:
                sys.stdout.write(f"seed {seed}: {line[:600]}\n")
    sys.stdout.write(
        f"{given.seeds} lying catalogues, {bad} with a problem; {asked} ledgers asked for, {wrong} "
        f"found to be wrong; {time.monotonic() - began:.0f} s\n"
    )
    keep("lying_catalogues", seeds=given.seeds, problems=bad, asked=asked, wrong=wrong)
    return 1 if bad else 0


if __name__ == "__main__":
    raise SystemExit(main())
