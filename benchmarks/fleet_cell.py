"""One measurement over a fleet that is there: requests to the store, seconds and memory, as JSON.

    python benchmarks/fleet_cell.py survey|show|why|figures|prove|scan|scrub-listed|scrub-nominated
    python benchmarks/fleet_cell.py sensor:NAME|again:NAME|round:NAME

A process of its own for each, with the settings of the environment, so that the code of another
checkout can be measured over the same servers (PYTHONPATH).
"""

from __future__ import annotations

import json
import os
import resource
import sys
import tempfile
import time
from collections.abc import Callable

from tests.support.request_count import counted_requests
from tiering_assets.ground.stack import Stack, open_stack
from tiering_assets.resources.settings_sources import load_settings

_TICKS_BEFORE = {"sensor": 0, "round": 1, "again": 8}
"""Of one process, at most: `again` is behind a whole round, `round` within one."""


def main() -> int:
    what, _, name = sys.argv[1].partition(":")
    if what in _TICKS_BEFORE:
        found = _ticked(name, most=_TICKS_BEFORE[what])
    else:
        with open_stack(load_settings().settings) as stack:
            act = _ACTS[what]
            found = _measure(lambda: act(stack))
    sys.stdout.write(json.dumps({"what": sys.argv[1], **found}) + "\n")
    return 0


def _measure(act: Callable[[], object]) -> dict[str, object]:
    with counted_requests() as seen:
        began, cpu = time.monotonic(), time.process_time()
        told = act()
        wall, spent = time.monotonic() - began, time.process_time() - cpu
    return {
        "requests": dict(sorted(seen.items())),
        "store_calls": sum(seen.values()),
        "seconds": round(wall, 2),
        "cpu_seconds": round(spent, 2),
        "peak_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
        **(told if isinstance(told, dict) else {}),
    }


def _survey(stack: Stack) -> int:
    from tiering_assets.look.ledger.survey import survey

    return sum(1 for _view in survey(stack))


def _show(stack: Stack) -> object:
    from tiering_assets.explain.ledger_report import report_ledger

    return report_ledger(stack, int(os.environ["FLEET_LEDGER"]))


def _why(stack: Stack) -> object:
    from tiering_assets.explain.backlog import explain_ledger

    return explain_ledger(stack, int(os.environ["FLEET_LEDGER"]), loads_nothing=True)


def _figures(stack: Stack) -> object:
    from tiering_assets.fleet.backlog import take_backlog

    return take_backlog(stack).figures


def _prove(stack: Stack) -> object:
    """What a person does once: from then on sensors look where the catalogue nominates."""
    from tiering_assets.catalogue.prove import prove
    from tiering_assets.catalogue.scan.scan import scan
    from tiering_assets.catalogue.view import Catalogue

    catalogue = Catalogue.of(stack)
    return prove(stack, catalogue), scan(stack, catalogue)


def _scan(stack: Stack) -> object:
    """A whole pass over all topics: those that moved since the last one are read."""
    from tiering_assets.catalogue.scan.scan import scan
    from tiering_assets.catalogue.view import Catalogue

    done = scan(stack, Catalogue.of(stack))
    return {"topics_moved": done.moved, "ledgers_written": done.ledgers}


def _scrub_listed(stack: Stack) -> object:
    """What a scrub run may look at, by listing all copies; nothing is looked at."""
    from tiering_assets.scrub.fleet import find_fleet

    return find_fleet(stack)


def _scrub_nominated(stack: Stack) -> object:
    """The same by rows, and each nominated copy judged, however few there are of all."""
    from tiering_assets.defs import nominated_copies
    from tiering_assets.scrub.fleet import find_nominated

    nominated_copies.LISTED_IN_THE_TIME = 0  # type: ignore[misc]
    chosen = nominated_copies.nominate_copies(stack, deep=False)
    return None if chosen is None else find_nominated(stack, chosen.ledgers)


_ACTS: dict[str, Callable[[Stack], object]] = {
    "survey": _survey,
    "show": _show,
    "why": _why,
    "figures": _figures,
    "prove": _prove,
    "scan": _scan,
    "scrub-listed": _scrub_listed,
    "scrub-nominated": _scrub_nominated,
}


def _ticked(name: str, *, most: int) -> dict[str, object]:
    """One tick behind a whole round of ticks, or behind so many. None is one as after a start.

    A round goes on for as many ticks as end with their budget. It is left after a few: rows are
    stale after half an hour without a scan. `ticks_before` counts them.
    """
    import dagster as dg

    from tiering_assets.definitions import defs
    from tiering_assets.defs.shared.resources import TieringStack

    sensor = next(one for one in defs.get_repository_def().sensor_defs if one.name == name)
    budget_s = load_settings().settings.auto.tick_budget_s
    with tempfile.TemporaryDirectory() as home, dg.DagsterInstance.local_temp(home) as instance:

        def tick(cursor: str | None = None) -> str | None:
            context = dg.build_sensor_context(
                instance=instance,
                definitions=defs,
                resources={"tiering_stack": TieringStack()},
                cursor=cursor,
            )
            return sensor.evaluate_tick(context).cursor

        cursor, ticks, over = None, 0, False
        while ticks < most and not over:
            began = time.monotonic()
            cursor, ticks = tick(cursor), ticks + 1
            over = time.monotonic() - began < budget_s
        if ticks:
            sys.stdout.write("ticked\n")  # who counts requests on the wire begins anew
            sys.stdout.flush()
            sys.stdin.readline()
        return {**_measure(lambda: tick(cursor)), "ticks_before": ticks, "round_over": over}


if __name__ == "__main__":
    sys.exit(main())
