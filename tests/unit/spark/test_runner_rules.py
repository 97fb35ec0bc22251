"""Rules about an effectful DataFrame that a reader of runner.py could break without noticing."""

from __future__ import annotations

import ast
from pathlib import Path
from threading import Event
from typing import Any, cast

import pytest
from pyspark.sql import DataFrame

from tiering_assets.resources.settings import Settings
from tiering_assets.spark import runner
from tiering_assets.spark.runner import JOBS_AT_ONCE, SparkRunner, small_jobs
from tiering_assets.tasks.descriptors import BlockTask

ACTIONS = {
    "collect", "count", "first", "foreach", "foreachPartition", "head", "isEmpty", "show", "tail",
    "take", "toArrow", "toLocalIterator", "toPandas", "write", "writeTo", "checkpoint", "describe",
    "localCheckpoint", "persist", "cache", "summary", "rdd",
}  # fmt: skip


def names_used():
    tree = ast.parse(Path(runner.__file__).read_text())
    return [node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)], tree


def test_there_is_one_action():
    used, tree = names_used()
    assert [name for name in used if name in ACTIONS] == ["collect"]
    calls = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "_collect"
    ]
    assert len(calls) == 1, "the helper with the action is called in one place"


def test_nothing_stands_after_map_in_arrow():
    used, tree = names_used()
    of_frames = {name for name in dir(DataFrame) if not name.startswith("_")} - ACTIONS
    assert {name for name in used if name in of_frames} == {"mapInArrow", "repartitionById"}
    returned = [
        node.value.func.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Return)
        and isinstance(node.value, ast.Call)
        and isinstance(node.value.func, ast.Attribute)
    ]
    assert returned.count("mapInArrow") == 1, "the frame with the effects is returned as it is"


@pytest.mark.parametrize(
    ("slots", "cores", "jobs"),
    [
        (2, 2, [2]),  # the cores do it at once
        (5, 2, [1, 1, 1, 1, 1]),
        (8, 7, [1] * 8),
        (20, 16, [3, 3, 3, 3, 3, 3, 2]),
    ],
)
def test_a_long_run_is_small_jobs_that_fill_the_cores(slots, cores, jobs):
    packed: list[list[BlockTask]] = [[] for _ in range(slots)]
    found = small_jobs(packed, cores=cores)
    assert [len(job) for job in found] == jobs
    if len(found) > 1:
        at_once = min(cores, JOBS_AT_ONCE - 1)
        assert at_once * len(found[0]) >= cores


def test_that_spark_starts_is_told_once_and_before_anybody_waits_for_it():
    said: list[str] = []
    session, asked = object(), Event()

    def opened():
        assert said == ["starting Spark"]
        asked.set()
        return session

    made = SparkRunner(cast(Any, opened), Settings(), said.append)
    assert said == []  # a run that has nothing to do starts none
    made.start()
    made.start()
    assert asked.is_set()
    assert said == ["starting Spark"]
