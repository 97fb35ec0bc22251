"""No collection while blocks are worked on, as before afterwards; and what is frozen, is so
once.
"""

from __future__ import annotations

import gc
import subprocess
import sys
import threading

import pytest

from tiering_assets.resources.garbage import no_collection


@pytest.fixture(params=[True, False], ids=["enabled", "disabled"])
def collector(request):
    """The collector in one of its states; whether it is enabled must be the same afterwards."""
    before = gc.isenabled()
    (gc.enable if request.param else gc.disable)()
    yield request.param
    (gc.enable if before else gc.disable)()


def test_it_is_off_inside_and_as_before_outside(collector):
    with no_collection():
        assert not gc.isenabled()
        with no_collection():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled() is collector


def test_an_error_restores_it_too(collector):
    with pytest.raises(OSError, match="gone"), no_collection(), no_collection():
        raise OSError("gone")
    assert gc.isenabled() is collector


def test_the_last_of_several_threads_restores_it(collector):
    entered, leave = threading.Event(), threading.Event()

    def hold():
        with no_collection():
            entered.set()
            leave.wait(10)

    other = threading.Thread(target=hold)
    with no_collection():
        other.start()
        assert entered.wait(10)
    assert not gc.isenabled()
    leave.set()
    other.join(10)
    assert gc.isenabled() is collector


def test_each_stage_is_frozen_once():
    """Again and again would keep for ever what lies in cycles at each such moment."""
    program = """
import gc
from tiering_assets.resources.garbage import freeze_once

counts = [gc.get_freeze_count()]
for stage in ("worker", "worker", "expectations"):
    kept = [[] for _ in range(1000)]
    globals()[stage + str(len(counts))] = kept
    freeze_once(stage)
    counts.append(gc.get_freeze_count())
before, first, again, second = counts
assert before == 0, counts
assert first > 1000, counts
assert again <= first, counts
assert second > first + 1000, counts
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_a_command_starts_with_few_collections():
    """What it imports stays: `ledger list` spends a tenth of its CPU seconds on looking through
    it.
    """
    program = """
import gc, sys
from tiering_assets.cli.main import main
before = gc.get_stats()[0]["collections"]
sys.argv = ["tierkeeper", "config", "show"]
try:
    main()
except SystemExit as done:
    assert not done.code
import tiering_assets.look.ledger.survey
made = gc.get_stats()[0]["collections"] - before
assert made < 15, made
"""
    subprocess.run([sys.executable, "-c", program], check=True, stdout=subprocess.DEVNULL)
