"""`make bench-check`: what it calls slower, and that a slower loop is called so."""

from benchmarks import check
from tests.support.made_ledger import MadeLedger
from tiering_assets.resources.spark_master import MIB
from tiering_assets.tasks.descriptors import TaskKind


def test_a_figure_is_off_from_fifteen_per_cent_on():
    accepted = {"same": 1.0, "slower": 1.0, "a little slower": 1.0, "faster": 1.0, "gone": 1.0}
    found = {"same": 1.0, "slower": 1.16, "a little slower": 1.14, "faster": 0.84, "new": 1.0}
    assert check.judged(found, {"one": accepted}) == (["gone", "new", "slower"], ["faster"])


def test_a_figure_is_compared_with_the_machines_on_which_it_is_highest_and_lowest():
    kept = {"one": {"x": 1.0, "half": 1.0}, "other": {"x": 2.0}}
    assert check.judged({"x": 2.29, "half": 1.0}, kept) == (["half"], [])
    assert check.judged({"x": 2.31, "half": 1.0}, kept) == (["half", "x"], [])
    assert check.judged({"x": 0.84, "half": 1.0}, kept) == (["half"], ["x"])


def test_the_accepted_figures_are_those_of_the_work_there_is():
    sets = check.accepted_sets()
    assert sets
    assert all([*figures] == check.names() for figures in sets.values())


def test_a_figure_is_found_by_a_process_of_its_own():
    assert check.apart("python copy 102400 B") > 0.5


def test_pythons_loop_in_place_of_the_library_is_slower():
    """The figures are of CPU time, so that this holds on a busy machine, too."""
    ledger = MadeLedger(entries=8 * MIB // 100, size=100, block_bytes=check.BLOCK)
    accepted = {kind: {"copy": x["native copy 100 B"]} for kind, x in check.accepted_sets().items()}
    figure = 2 * check.task_s(ledger, TaskKind.COPY, native=False)
    figure /= 2 * check.yardstick_s(ledger, native=True)
    assert check.judged({"copy": figure}, accepted) == (["copy"], [])
