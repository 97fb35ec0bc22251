"""pytest plugin: `-p tests.support.together` gives files that need the same servers to one process.

With `--dist loadfile` each process of xdist takes whole files and starts what they need: two that
both get a file with a Spark of its own, or with servers to stop, start two of them.
"""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any

import pytest
from xdist.scheduler import LoadFileScheduling  # type: ignore[import-untyped]

# By file name, what it needs that no other file does.
TOGETHER = {
    "test_bookies_at_fault.py": "servers to stop",
    "test_broker_afterwards.py": "servers to stop",
    "test_broker_leftovers.py": "servers to stop",
    "test_devstack.py": "servers to stop",
    "test_interop.py": "servers to stop",
    "test_metrics.py": "servers to stop",
    "test_policies.py": "servers to stop",
    "test_tour.py": "servers to stop",
    "test_tour_loads_nothing.py": "servers to stop",
    "test_transactions.py": "servers to stop",
    "test_cold_faults_elsewhere.py": "a Spark cluster",
    "test_tasks_live_on.py": "a Spark cluster",
    "test_spark_cluster.py": "a Spark cluster",
    "test_spark_reads.py": "a Spark cluster",
    "test_spark_ways.py": "a Spark cluster",
    "test_spark_budget.py": "a Spark in this process",
    "test_spark_path.py": "a Spark in this process",
    "test_spark_runner.py": "a Spark in this process",
}


def piece_of(path: str) -> str:
    """The piece of work that a file is of: what it needs, or itself."""
    return TOGETHER.get(PurePosixPath(path).name, path)


class Together(LoadFileScheduling):  # type: ignore[misc]
    """As xdist does it, with several files in one piece of work."""

    def _split_scope(self, nodeid: str) -> str:
        return piece_of(super()._split_scope(nodeid))


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadFileScheduling:
    return Together(config, log)
