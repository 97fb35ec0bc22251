"""The read-only tour on real servers changes nothing, and has no broker load a topic.

`make tour-check` starts a process for each command; here they are run in this one.
"""

import pytest

from tests.support.cli_shell import Shell
from tests.support.tiered_cluster import tiered_cluster
from tests.support.tour_check import ALLOWED, OUTPUT, check_tour

pytestmark = pytest.mark.stack


def test_what_reads_only_changes_nothing_and_loads_no_topic(stack_to_stop, tmp_path):
    shell = Shell(stack_to_stop, tmp_path, processes=False)
    with tiered_cluster(stack_to_stop) as cluster:
        report = check_tour(cluster, shell, tmp_path)
    report.write(OUTPUT)
    assert report.changes == {}
    assert [one for one in report.commands if one["exit"] not in ALLOWED] == []
