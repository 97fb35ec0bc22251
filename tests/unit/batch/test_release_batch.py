"""A batch tells one outcome per ledger; what waits goes along only when it is asked for, and
may.
"""

from dataclasses import replace
from datetime import timedelta

import pytest

from tests.support.rewritten_records import rewrite
from tests.support.sim_scene import TOPIC, Scene, is_released, reasons_of
from tiering_assets.batch import release_batch as steps
from tiering_assets.batch.release_batch import (
    release_batch,
    release_records,
    waiting_certificates,
)
from tiering_assets.catalogue.facts.read_pages import ReadPages
from tiering_assets.catalogue.pages import read_pages
from tiering_assets.change.change_topic import TopicResults
from tiering_assets.change.publish import Published
from tiering_assets.ground.reasons import NotNow
from tiering_assets.records import keys
from tiering_assets.records.models import Claim
from tiering_assets.release.work import Released
from tiering_assets.resources.errors import LedgerNotFoundError


@pytest.fixture
def scene():
    return Scene()


@pytest.fixture
def waiting(scene):
    """Ledger 0 may be released; copies of ledgers 1 and 2 are proven and wait."""
    ids = [scene.fill(TOPIC), scene.fill(TOPIC)]
    scene.publish()
    scene.past_the_lag()
    return {i: scene.certify(i).certificate for i in ids}


@pytest.fixture
def told():
    return []


def run(scene, ledger_ids=(0,), *, told=None, **how):
    stack = replace(scene.process("release"), narrate=(told if told is not None else []).append)
    return release_batch(stack, ledger_ids, **how)


def batch(scene, ledger_ids=(0,), **how):
    return {one.ledger_id: one for one in run(scene, ledger_ids, **how).outcomes}


def waits(scene):
    found = waiting_certificates(scene.process("release"), [TOPIC])
    return set(found[TOPIC].certificates) if found else set()


# ----- outcomes


def test_a_ledger_that_nobody_knows_is_told_and_holds_up_no_other(scene, waiting):
    found = batch(scene, (0, 99))
    assert is_released(found[0].result)
    assert isinstance(found[99].result, LedgerNotFoundError)
    assert found[99].ml_name is None


@pytest.mark.parametrize(("ledger_ids", "failed"), [((0,), False), ((0, 99), True)])
def test_the_day_book_says_of_a_batch_whether_a_ledger_failed(scene, waiting, ledger_ids, failed):
    stack = scene.process("release")
    before = len(read_pages(stack, 0))
    release_batch(stack, ledger_ids)
    stack.book.close_page()
    pages = ReadPages(read_pages(stack, before), {}).readable
    assert [page.failed for page in pages if page.phase == "close"][-1] is failed


def test_what_was_released_comes_with_its_records_and_nothing_else_does(scene, waiting):
    scene.publish(1)
    found = batch(scene, (0, 1))
    assert found[0].result == Released(len(b"firstlast"))
    assert found[0].records.intent is not None
    assert found[0].records.certificate is not None
    assert found[0].records.faults == ()
    assert "deletion lag has not elapsed" in reasons_of(found[1].result)
    assert found[1].records is None
    assert release_records(scene.stack, 1) is None


def test_what_waits_now_is_not_told_with_the_records_of_an_earlier_release(
    scene, waiting, monkeypatch
):
    """As where a backup of the metadata store has brought the ledger back."""
    assert batch(scene)[0].records is not None
    again = {0: NotNow(("it is there again",))}
    monkeypatch.setattr(steps, "change_topic", lambda *_args, **_how: TopicResults({}, again))
    [found] = batch(scene).values()
    assert (found.result, found.records) == (again[0], None)


# ----- what goes along


def test_nothing_goes_along_unless_it_is_asked_for(scene, waiting):
    done = run(scene)
    assert is_released(done.outcomes[0].result)
    assert done.along == {}
    assert scene.context(1) is None


def test_what_waits_goes_along_and_is_told(scene, waiting, told):
    done = run(scene, publish_waiting=True, told=told)
    assert is_released(done.outcomes[0].result)
    assert {i: one.certificate for i, one in done.along.items()} == waiting
    assert all(isinstance(one.published, Published) for one in done.along.values())
    assert scene.context(1).uid == waiting[1].record.uid
    assert [line for line in told if "along" in line or "not published" in line] == [
        "ledger 1: published along",
        "ledger 2: published along",
    ]


def test_what_was_not_published_is_told_with_its_reason(scene, waiting, told):
    scene.world.objects.overwrite(waiting[1].record.data.key, b"other bytes")
    done = run(scene, publish_waiting=True, told=told)
    assert is_released(done.outcomes[0].result)
    assert set(done.along) == {2}
    [line] = [line for line in told if line.startswith("ledger 1: ")]
    assert line.startswith("ledger 1: not published: ")
    assert "is not the certified one any more" in line


# ----- what may go along


def test_what_is_proven_and_unpublished_waits(scene, waiting):
    assert waits(scene) == {1, 2}
    scene.publish(1)
    assert waits(scene) == {2}


@pytest.mark.parametrize("ran_out", [False, True])
def test_what_a_run_works_on_does_not_go_along(scene, waiting, ran_out):
    now = scene.stack.objects.server_time()
    until = now + timedelta(seconds=-1 if ran_out else 60)
    claim = Claim(ledger_id=1, run_id="another", attempt=None, expires_at=until)
    scene.world.objects.delete(scene.stack.book.prefix + keys.claim(1))
    scene.stack.book.create(keys.claim(1), claim)
    scene.world.objects.delete(scene.stack.book.prefix + keys.claim(2))
    assert waits(scene) == ({1, 2} if ran_out else {2})


def test_a_copy_whose_certificate_is_of_another_attempt_record_does_not_go_along(scene, waiting):
    key = keys.attempt(1, waiting[1].record.uid)
    rewrite(scene.world.objects, scene.stack.book.prefix + key, block_bytes=401)
    assert waits(scene) == {2}


def test_copies_that_were_planned_on_two_nodes_do_not_go_together(scene, waiting):
    """The topic was made again in between: one of them is of the topic that is no more."""
    stored = waiting[2]
    name = scene.stack.book.prefix + keys.attempt(2, stored.record.uid)
    digest = rewrite(scene.world.objects, name, ml_czxid=7)
    rewrite(scene.world.objects, scene.stack.book.prefix + stored.key, previous=digest)
    found = waiting_certificates(scene.process("release"), [TOPIC])[TOPIC]
    assert set(found.certificates) == {1}
    assert found.ml_czxid == scene.stack.topics.read(TOPIC)[1].stat.czxid


def test_a_copy_whose_ledger_bookkeeper_lost_goes_along(scene, waiting):
    """It is what is left of the ledger."""
    scene.cluster.delete_ledger(1)
    assert waits(scene) == {1, 2}
