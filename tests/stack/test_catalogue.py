"""The catalogue on a real store: what runs wrote is in its tables, once, and says what is so."""

import time
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import get_context

import pytest
from deltalake import DeltaTable

from tests.support.cli_shell import Shell
from tests.support.tiered_cluster import tables_apart, tiered_cluster
from tiering_assets.catalogue.post import post
from tiering_assets.catalogue.upkeep.upkeep import keep_up
from tiering_assets.catalogue.view import Catalogue, answer
from tiering_assets.ground.stack import open_stack
from tiering_assets.look.ledger.survey import survey
from tiering_assets.resources.devstack.traffic import TopicSpec, iter_messages

pytestmark = pytest.mark.stack
NAME = "catalogue"
SPECS = [
    TopicSpec(topic="public/default/counted", messages=40, payload_bytes=2000),
    TopicSpec(topic="public/default/counted-batched", messages=90, payload_bytes=90, batched=True),
]


@pytest.fixture(scope="module")
def cluster(stack):
    with tiered_cluster(stack, catalogue_root=tables_apart(stack, NAME)) as connected:
        yield connected


@pytest.fixture(scope="module")
def shell(stack, tmp_path_factory):
    root = tables_apart(stack, NAME)
    return Shell(stack, tmp_path_factory.mktemp(NAME), TIERKEEPER_CATALOGUE_ROOT=root)


@pytest.fixture(scope="module")
def published(cluster, shell):
    """Ledger ids by topic, of two topics that are published and posted."""
    began = time.time()
    for spec in SPECS:
        cluster.fill(spec)
    ids = {spec.topic: cluster.ledger_ids(spec) for spec in SPECS}
    for spec in SPECS:
        shell.document("ledger", "offload", "--topic", spec.topic, "--execute")
    # Other tests have deleted records that pages name, which it then tells.
    shell.document("catalogue", "prove", code=(0, 1))
    return ids, began, time.time()


def rows(shell, question):
    return shell.document("catalogue", "sql", question)["rows"]


def test_states_are_those_of_the_survey(cluster, shell, published):
    ids, _began, _ended = published
    found = {row["ledger_id"]: row for row in rows(shell, "select * from ledgers")}
    for spec in SPECS:
        views = {view.ledger_id: view for view in cluster.views(spec)}
        for ledger_id in ids[spec.topic]:
            row, view = found[ledger_id], views[ledger_id]
            assert row["state"] == "published"
            assert view.state.value == "release_due"  # a second later
            assert (row["entries"], row["bytes"]) == (view.entries, view.bytes)
            assert row["uid"] == str(view.uid)
            assert row["tenant"] == "public"


def test_blocks_tell_messages_and_when_producers_sent_them(shell, published):
    ids, began, ended = published
    for spec in SPECS:
        wanted = ", ".join(map(str, ids[spec.topic]))
        [row] = rows(
            shell,
            "select sum(messages) as n, cast(min(publish_min) as double) as first, "
            f"cast(max(publish_max) as double) as last from blocks where ledger_id in ({wanted})",
        )
        assert row["n"] == sum(1 for _ in iter_messages(spec)) == spec.messages
        assert began - 5 <= row["first"] / scale(row["first"])
        assert row["last"] / scale(row["last"]) <= ended + 5


def scale(value):
    """Microseconds or nanoseconds since 1970, by its size."""
    return 1e6 if value < 1e17 else 1e9


def test_other_tools_read_the_tables_as_they_lie(cluster, shell, published):
    place = Catalogue.of(cluster.steps).place
    table = DeltaTable(f"{place.root}/blocks", storage_options=dict(place.options))
    read = table.to_pandas(columns=["ledger_id", "messages"])
    [counted] = rows(shell, "select count(*) as n, sum(messages) as messages from blocks")
    assert (len(read), int(read["messages"].sum())) == (counted["n"], counted["messages"])


def test_no_file_of_a_table_holds_a_secret(cluster, published):
    objects, prefix = cluster.steps.objects, f"tables-of-{NAME}/"
    files = [one.key for one in objects.list_objects(prefix)]
    assert len(files) > 5
    for key in files:
        body = objects.get(key).body
        assert cluster.endpoints.s3_secret_key.encode() not in body
        assert "-ledger-" not in key


def _post(settings):
    with open_stack(settings, run_id="poster") as stack:
        return post(stack, Catalogue.of(stack)).mark


def test_posters_of_several_processes_post_each_page_once(cluster, published):
    for n in range(3):
        with open_stack(cluster.steps.settings, run_id=f"held-{n}") as stack:
            stack.book.take_up([n])
        with get_context("spawn").Pool(3) as pool:
            marks = pool.map(_post, [cluster.steps.settings] * 3)
        assert len({*marks}) == 1
    tables = Catalogue.of(cluster.steps).opened()
    for table in ("events", "ledger_changes", "blocks"):
        key = {"events": "page, key, what", "ledger_changes": "ledger_id, turn"}.get(
            table, "ledger_id, uid, part, page"
        )
        assert (
            answer(tables, f"select {key} from {table} group by {key} having count(*) > 1").num_rows
            == 0
        )


def test_after_a_scan_every_ledger_of_the_cluster_is_what_the_survey_says(
    cluster, shell, published
):
    cluster.fill(TopicSpec(topic="public/default/nobody-took-it-up", messages=3, payload_bytes=10))
    shell.document("catalogue", "post")
    found = {row["ledger_id"]: row for row in rows(shell, "select * from ledgers")}
    views = {view.ledger_id: view for view in survey(cluster.steps)}
    assert {*views} == {i for i, row in found.items() if row["listed_as"] not in (None, "gone")}
    assert {"open", "sealed", "release_due"} <= {view.state.value for view in views.values()}
    busy = shell.document("catalogue", "status", code=(0, 1))["as_of"]["ledgers_in_work"]
    for ledger_id, view in views.items():
        if ledger_id in busy:
            continue  # of runs that other tests killed, whose records no page has named yet
        row = found[ledger_id]
        state = "published" if view.state.value == "release_due" else view.state.value
        assert (row["state"], row["topic"]) == (state, view.ml_name), ledger_id
        assert (row["entries"], row["bytes"]) == (view.entries, view.bytes)
        assert row["closed_at"] == (None if view.closed_at is None else view.closed_at.isoformat())
        assert (row["uid"], row["offloaded_by"]) == (
            None if view.uid is None else str(view.uid),
            view.offloaded_by,
        )


@pytest.mark.parametrize(
    "words",
    [("topic", "backlog"), ("topic", "list"), ("ledger", "list"), ("metrics", "print")],
    ids=" ".join,
)
def test_who_asks_rows_waits_for_nothing_that_takes_long_to_import(shell, published, words):
    told = shell(*words, alone=True, PYTHONPROFILEIMPORTTIME="1").stderr
    imported = {line.rpartition("|")[2].strip() for line in told.splitlines()}
    assert {"deltalake", "tiering_assets.catalogue.view"} <= imported
    assert imported & {"great_expectations", "pandas", "pyspark", "dagster"} == set()


def test_a_scan_reads_what_moved_alone(cluster, shell, published):
    shell.document("catalogue", "post")
    assert shell.document("catalogue", "post")["topics_moved"] == 0
    spec = TopicSpec(topic="public/default/moves", messages=3, payload_bytes=10)
    cluster.fill(spec)
    assert shell.document("catalogue", "post")["topics_moved"] == 1
    [row] = rows(shell, "select * from topics where topic like '%/moves'")
    info, node = cluster.steps.topics.read(row["topic"])
    assert (row["czxid"], row["mzxid"]) == (node.stat.czxid, node.stat.mzxid)
    assert row["ledgers"] == len(info.ledgers)


def test_settled_tables_answer_as_before(shell, published):
    question = "select * from ledgers order by ledger_id"
    shell.document("catalogue", "post")
    before = rows(shell, question)
    done = shell.document("catalogue", "settle", "--all")
    assert done["settled"]["ledgers"]["rows"] >= len(before) > 0
    assert rows(shell, question) == before
    assert shell.document("catalogue", "settle")["settled"]["ledgers"]["tail"] == 0


def test_settlers_and_posters_of_several_processes_agree(cluster, shell, published):
    question = "select * from ledgers order by ledger_id"
    before = rows(shell, question)
    with get_context("spawn").Pool(3) as pool:
        settings = cluster.steps.settings
        under_way = [pool.apply_async(_settle, (settings,)) for _ in range(2)]
        under_way.append(pool.apply_async(_post, (settings,)))
        for one in under_way:
            one.get(timeout=120)
    assert rows(shell, question) == before


def _settle(settings):
    with open_stack(settings, run_id="settler") as stack:
        keep_up(stack, Catalogue.of(stack), all_rows=True, tell=lambda _line: None)


def test_a_rebuild_is_asked_and_equal_and_heals_a_damaged_table(cluster, shell, published):
    question = "select * exclude (turn, page, seen_at) from ledgers order by ledger_id"
    shell.document("catalogue", "post")
    before = rows(shell, question)
    objects, prefix = cluster.steps.objects, f"tables-of-{NAME}/"
    for one in objects.list_objects(f"{prefix}ledger_changes/_delta_log/"):
        objects.put(one.key, b"no log")
    shell("catalogue", "sql", question, "--json", code=35)
    # Other tests have deleted records that pages name, which it then tells.
    done = shell.document("catalogue", "rebuild", code=(0, 1))
    assert done["moved"]
    assert done["folder"].startswith("2-")
    known = {row["ledger_id"]: row for row in before}
    found = {row["ledger_id"]: row for row in rows(shell, question)}
    for ledger_id in {one for some in published[0].values() for one in some}:
        assert found[ledger_id] == known[ledger_id]
    assert Catalogue.of(cluster.steps).place.root.endswith(done["folder"])


def test_deleted_tables_are_made_again_and_are_equal(cluster, shell, published):
    look = "page, turn, seen_at"
    question = f"select * exclude ({look}) from ledgers order by ledger_id"
    shell.document("catalogue", "post")
    before = rows(shell, question)
    objects, prefix = cluster.steps.objects, f"tables-of-{NAME}/"
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(objects.delete, [one.key for one in objects.list_objects(prefix)]))
    assert rows(shell, question) == []
    shell.document("catalogue", "post")
    assert rows(shell, question) == before
