"""What rows nominate, and when they may not: one question each, whatever is in the tables."""

from datetime import timedelta

import pyarrow as pa
import pytest

from tests.support.sim_scene import TOPIC
from tests.unit.records.examples import AT
from tiering_assets.catalogue.columns import TABLES
from tiering_assets.catalogue.nominate import (
    ledgers_to_release,
    nominating,
    topics_to_offload,
    topics_unconfirmed,
)
from tiering_assets.catalogue.post import post
from tiering_assets.catalogue.prove import prove
from tiering_assets.catalogue.scan.scan import scan
from tiering_assets.resources.errors import CatalogueError

DUE = {
    "topic": TOPIC,
    "state": "published",
    "listed_as": "offloaded",
    "offloaded_by": "tierkeeper",
    "published_at": AT,
}


def fill(catalogue, name, *rows):
    table = catalogue.opened(make=True)[name]
    made = [{**row, "turn": table.turn + 1} for row in rows]
    assert table.append(pa.Table.from_pylist(made, schema=TABLES[name]), told={})
    return catalogue.opened()


def due(catalogue, *rows, before=AT, **how):
    numbered = [{"ledger_id": n, **row} for n, row in enumerate(rows)]
    tables = fill(catalogue, "ledger_changes", *numbered)
    return ledgers_to_release(tables, published_before=before, **how)


def test_a_ledger_whose_lag_is_over_and_a_release_that_was_begun_are_nominated(catalogue):
    found = due(catalogue, DUE, {**DUE, "state": "releasing", "published_at": None})
    assert (found.ledgers, found.cut) == ({TOPIC: {0, 1}}, False)


@pytest.mark.parametrize(
    "other",
    [
        {"state": "sealed"},
        {"state": "released"},
        {"state": "held"},
        {"offloaded_by": "broker"},
        {"offloaded_by": None},
        {"published_at": AT + timedelta(microseconds=1)},
        {"published_at": None},
        {"quarantined_at": AT},
        {"damaged_at": AT},
        {"held": "audit"},
    ],
    ids=str,
)
def test_any_other_is_not(catalogue, other):
    assert due(catalogue, {**DUE, **other}).ledgers == {}


def test_so_many_at_once_in_topic_order_and_the_rest_behind_them(catalogue):
    rows = [{**DUE, "topic": f"t/ns/persistent/it's {n}"} for n in (2, 0, 1)]
    found = due(catalogue, *rows, most=2)
    assert ([*found.ledgers], found.cut) == ([rows[1]["topic"], rows[2]["topic"]], True)
    last = ledgers_to_release(
        catalogue.opened(), published_before=AT, after=[*found.ledgers][-1], most=2
    )
    assert (last.ledgers, last.cut) == ({rows[0]["topic"]: {0}}, False)


def topics(catalogue, **of):
    row = {"topic": TOPIC, "czxid": 1, "mzxid": 7, "on_bookies": 0, "terminated": False, **of}
    tables = fill(catalogue, "topic_changes", row)
    return topics_to_offload(tables, topics_unconfirmed(tables))


@pytest.mark.parametrize(
    "of", [{"on_bookies": 1}, {"terminated": True}, {"why": "no message", "on_bookies": None}]
)
def test_a_topic_with_ledgers_that_no_bucket_has_is_nominated(catalogue, of):
    assert topics(catalogue, **of) == {TOPIC: 7}


@pytest.mark.parametrize(
    "of",
    [{}, {"on_bookies": 1, "czxid": None}, {"on_bookies": 1, "left_alone": "system topic"}],
)
def test_another_topic_is_not(catalogue, of):
    assert topics(catalogue, **of) == {}


@pytest.mark.parametrize("at", [None, AT])
def test_one_with_a_publication_of_ours_that_is_not_confirmed_is(catalogue, at):
    fill(catalogue, "ledger_changes", {"ledger_id": 0, **DUE, "published_at": at})
    assert topics(catalogue) == ({TOPIC: 7} if at is None else {})


# ----- when nobody may be nominated


def test_before_a_scan_and_a_proof_there_is_nothing_to_nominate_by(scene, catalogue):
    def asked():
        return nominating(catalogue, now=scene.stack.now())

    assert asked() is None
    scan(scene.stack, catalogue)
    assert asked() is None
    prove(scene.stack, catalogue)
    assert asked() is not None


def test_a_proof_without_a_scan_is_not_enough(scene, catalogue):
    prove(scene.stack, catalogue)
    assert nominating(catalogue, now=scene.stack.now()) is None


@pytest.mark.parametrize(("minutes", "stale"), [(29, False), (31, True)])
def test_one_that_was_not_scanned_for_half_an_hour_is_an_error(scene, catalogue, minutes, stale):
    prove(scene.stack, catalogue)
    scan(scene.stack, catalogue)
    post(scene.stack, catalogue)
    later = scene.stack.now() + timedelta(minutes=minutes)
    if not stale:
        assert nominating(catalogue, now=later) is not None
        return
    with pytest.raises(CatalogueError, match="tierkeeper catalogue post"):
        nominating(catalogue, now=later)
