"""Who writes to the catalogue is killed at each of its commits, on a real store, and run again."""

import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import replace

import pytest

from tests.stack.test_catalogue import SPECS
from tests.support.tiered_cluster import tiered_cluster
from tiering_assets.catalogue.post import post
from tiering_assets.catalogue.scan.scan import scan
from tiering_assets.catalogue.upkeep.upkeep import keep_up
from tiering_assets.catalogue.view import Catalogue, answer
from tiering_assets.ground.stack import open_stack
from tiering_assets.resources.settings import CatalogueSettings

pytestmark = pytest.mark.stack
QUESTIONS = {
    "ledgers": "select * exclude (turn, seen_at) from ledgers order by ledger_id",
    "blocks": "select * from blocks order by page, ledger_id, uid, part",
    "events": "select * from events order by page, key, what",
    "topics": "select * exclude (turn, seen_at) from topics order by topic",
}


@pytest.fixture(scope="module")
def cluster(stack):
    with tiered_cluster(stack) as connected:
        for spec in SPECS:
            connected.fill(spec)
        yield connected


def kill(stack, root, nth, when, words, *, code):
    """In a process of its own; what it says on standard error."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.killed_commits", str(nth), when, *words],
        env=os.environ | stack.environment() | {"TIERKEEPER_CATALOGUE_ROOT": root},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == code, done.stderr
    return done.stderr


@contextmanager
def opened(cluster, root):
    settings = replace(cluster.steps.settings, catalogue=CatalogueSettings(root=root))
    with open_stack(settings, run_id="again") as stack:
        yield stack, Catalogue.of(stack)


def post_all(cluster, root):
    with opened(cluster, root) as (stack, catalogue):
        while post(stack, catalogue).pages:
            pass
        scan(stack, catalogue)


def settle_all(cluster, root):
    with opened(cluster, root) as (stack, catalogue):
        keep_up(stack, catalogue, all_rows=True, tell=lambda _line: None)


STEPS = ((["catalogue", "post"], post_all), (["catalogue", "settle", "--all"], settle_all))


def copy(cluster, source, target):
    """Tables as they are, elsewhere in the bucket: to make them again takes ten times as long."""
    objects, before = cluster.steps.objects, f"s3://{cluster.steps.settings.store.bucket}/"
    for one in [*objects.list_objects(source.removeprefix(before) + "/")]:
        there = one.key.replace(source.removeprefix(before), target.removeprefix(before), 1)
        found = objects.get(one.key, bytes_max=one.size)
        assert objects.put(there, found.body)


def rows(cluster, root):
    with opened(cluster, root) as (_stack, catalogue):
        tables = catalogue.opened()
        return {name: answer(tables, sql).to_pylist() for name, sql in QUESTIONS.items()}


@pytest.mark.parametrize(
    "moment",
    [
        "before",
        pytest.param(  # the store is as before the next commit
            "behind",
            marks=pytest.mark.prove(
                instead="tests/unit/catalogue/test_post.py::"
                "test_a_poster_that_dies_between_tables_leaves_no_row_out_and_none_twice"
            ),
        ),
    ],
)
def test_killed_at_any_commit_and_run_again_each_page_is_in_the_tables_once(stack, cluster, moment):
    place = f"s3://{cluster.steps.settings.store.bucket}/kills-{moment}"
    said = [kill(stack, f"{place}/sound", 0, "never", words, code=0) for words, _act in STEPS]
    commits = [int(text.split()[-1]) for text in said]
    assert all(count >= 2 for count in commits), commits
    wanted = rows(cluster, f"{place}/sound")
    ready = [f"{place}/ready-{number}" for number in range(len(STEPS))]
    for number, root in enumerate(ready):
        for _words, earlier in STEPS[:number]:
            earlier(cluster, root)
    assert len(wanted["ledgers"]) > 1
    for number, count in enumerate(commits):
        words, _act = STEPS[number]
        for nth in range(1, count + 1):
            root = f"{place}/{number}-{nth}"
            copy(cluster, ready[number], root)
            kill(stack, root, nth, moment, words, code=-signal.SIGKILL)
            for _words, again in STEPS[number:]:
                again(cluster, root)
            assert rows(cluster, root) == wanted, (words, nth)
