"""`make bench-check`: what it calls slower, and that a slower loop is called so."""

import json

from benchmarks import check
from tests.support.made_ledger import MadeLedger
from tiering_assets.resources.spark_master import MIB
from tiering_assets.tasks.descriptors import TaskKind


def test_a_figure_is_off_from_fifteen_per_cent_on():
    accepted = {"same": 1.0, "slower": 1.0, "a little slower": 1.0, "faster": 1.0, "gone": 1.0}
    found = {"same": 1.0, "slower": 1.16, "a little slower": 1.14, "faster": 0.84, "new": 1.0}
    assert check.judged(found, accepted) == (["gone", "new", "slower"], ["faster"])


def test_the_accepted_figures_are_those_of_the_work_there_is():
    assert [*json.loads(check.RESULTS.read_text())["figures"]] == check.names()


def test_a_figure_is_found_by_a_process_of_its_own():
    assert check.apart("python copy 102400 B") > 0.5


def test_pythons_loop_in_place_of_the_library_is_slower():
    """The figures are of CPU time, so that this holds on a busy machine, too."""
    ledger = MadeLedger(entries=8 * MIB // 100, size=100, block_bytes=check.BLOCK)
    accepted = json.loads(check.RESULTS.read_text())["figures"]["native copy 100 B"]
    figure = 2 * check.task_s(ledger, TaskKind.COPY, native=False)
    figure /= 2 * check.yardstick_s(ledger, native=True)
    assert check.judged({"copy": figure}, {"copy": accepted}) == (["copy"], [])
