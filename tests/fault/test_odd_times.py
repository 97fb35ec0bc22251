"""Clocks a day off, ours or the store's: nothing goes early, and the reason names the clock."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from tests.support.altered_answers import AlteringProxy, clock_off, written_later
from tests.support.fault_lab import certificate_of, error_of
from tests.support.topic_halves import release_topic
from tiering_assets.batch.pipeline import offload_batch
from tiering_assets.doctor.bucket import check_bucket
from tiering_assets.ground.reasons import NotNow
from tiering_assets.records import keys
from tiering_assets.records.models import Attempt, Release
from tiering_assets.release.preview import plan_release
from tiering_assets.release.work import Released
from tiering_assets.resources.errors import LedgerNotFoundError, RefusedError
from tiering_assets.scrub.give_up_copy import give_up_copy
from tiering_assets.scrub.heal import Healed
from tiering_assets.scrub.scrub import scrub

pytestmark = [pytest.mark.stack, pytest.mark.fault]
DAY = timedelta(days=1)
HOUR_S = 3600.0


@pytest.fixture(scope="module")
def namespace(lab):
    return lab.namespace("times")


@pytest.fixture(scope="module")
def published(lab, namespace):
    """A ledger published by good clocks, for tests that release nothing."""
    topic = lab.topic(namespace)
    with lab.open() as stack:
        [outcome] = offload_batch(stack, [topic.ledger_id])
        certificate = certificate_of(outcome)
        lab.older(stack)
    return topic, certificate


def off_by(by):
    """Our clock when it is off."""
    return lambda: datetime.now(UTC) + by


def ahead_at_first():
    """Our clock when it was a day ahead for the first who asked: the attempt's record."""
    clocks = iter([off_by(DAY)])
    return lambda: next(clocks, off_by(timedelta(0)))()


@contextmanager
def store_off_by(lab, by, settings):
    """A Stack whose store has another time of day than when it wrote what is there."""
    with AlteringProxy(lab.endpoints.s3_endpoint, clock_off(by)) as proxy:
        through = replace(settings, store=replace(settings.store, endpoint=proxy.url))
        with lab.open(through) as stack:
            yield stack


def assert_kept(stack, topic, uid, *reasons):
    """A run and a dry run both say why, and the bookie copy is there, unmarked."""
    result = release_topic(stack, topic.ml_name, [topic.ledger_id])[topic.ledger_id]
    assert isinstance(result, NotNow), result
    [planned] = plan_release(stack, topic.ml_name, [topic.ledger_id])
    for reason in reasons:
        assert reason in str(result)
        assert reason in str(planned.decision)
    assert stack.ledgers.read(topic.ledger_id) is not None
    listed = stack.topics.read(topic.ml_name)[0].ledger(topic.ledger_id)
    assert not listed.offload.bookkeeper_deleted
    assert stack.book.read(Release, keys.release(topic.ledger_id, uid)) is None


def released(stack, topic):
    result = release_topic(stack, topic.ml_name, [topic.ledger_id])[topic.ledger_id]
    assert isinstance(result, Released), result


@pytest.mark.parametrize(("by", "said"), [(DAY, "+86"), (-DAY, "-86")])
def test_a_worker_whose_clock_is_a_day_off_publishes_nothing(lab, namespace, by, said):
    topic = lab.topic(namespace)
    with lab.open(now=off_by(by)) as stack:
        [outcome] = offload_batch(stack, [topic.ledger_id])
        error = error_of(outcome)
        assert error.exit_code == 26
        assert f"our clock is {said}" in str(error)
        assert "s off the object store's" in str(error)
        assert "set this machine's clock" in str(error)
        assert lab.context_uid(stack, topic) is None
        [proven] = offload_batch(stack, [topic.ledger_id], publish=False)
        assert proven.verified
        [again] = offload_batch(stack, [topic.ledger_id])  # asked at publication, too
        assert f"our clock is {said}" in str(error_of(again))
        with pytest.raises(RefusedError, match="not published, so there is no copy to replace"):
            give_up_copy(stack, topic.ledger_id, reason="too early", author="ops")
    with lab.open() as stack:  # the clock is set: what was copied is proven, and its dates are told
        [outcome] = offload_batch(stack, [topic.ledger_id])
        certificate = certificate_of(outcome)
        assert not outcome.copied
        lab.older(stack)
        if by > timedelta(0):
            future = f"the certificate is dated in the future: {certificate.verified_at:%Y-%m-%d}"
            assert_kept(stack, topic, certificate.uid, future)
        else:
            released(stack, topic)
    lab.readable(topic, reloaded=True)


@pytest.mark.parametrize(("by", "way"), [(DAY, "ahead of"), (-DAY, "behind")])
def test_a_worker_whose_clock_is_a_day_off_releases_nothing_early(lab, published, by, way):
    topic, certificate = published
    named = f"s {way} the store's; set the one that is wrong"
    with lab.open(lab.with_section("release", deletion_lag_s=HOUR_S), now=off_by(by)) as stack:
        assert_kept(
            stack,
            topic,
            certificate.uid,
            "deletion lag has not elapsed: due after",
            "and this machine's is 86",  # 400 seconds, and those between two looks
            named,
        )


@pytest.mark.parametrize(("by", "said"), [(DAY, "-8"), (-DAY, "+8")])
def test_a_store_whose_clock_is_a_day_off_lets_nothing_go_early(lab, published, by, said):
    topic, certificate = published
    way = "behind" if by > timedelta(0) else "ahead of"
    with store_off_by(lab, by, lab.with_section("release", deletion_lag_s=HOUR_S)) as stack:
        assert_kept(
            stack, topic, certificate.uid, "deletion lag has not elapsed", f"s {way} the store's"
        )
        [clock] = [f for f in check_bucket(stack.settings, stack.objects) if f.check == "clock"]
        assert clock.level == "fail"
        assert clock.text.startswith(f"this machine is {said}")
        assert "off the store's clock, 60 s are allowed" in clock.text


def test_a_clock_that_only_began_the_copy_a_day_ahead_holds_nothing_up(lab, namespace):
    """The store's dates show the order, whatever ours say."""
    topic = lab.topic(namespace)
    with lab.open() as stack:
        offload_batch(replace(stack, now=ahead_at_first()), [topic.ledger_id], publish=False)
        [outcome] = offload_batch(stack, [topic.ledger_id])
        certificate = certificate_of(outcome)
        attempt = stack.book.require(Attempt, keys.attempt(topic.ledger_id, certificate.uid))
        assert attempt.record.started_at > certificate.verified_at + DAY / 2
        lab.older(stack)
        released(stack, topic)
    lab.readable(topic, reloaded=True)


def test_a_copy_proven_before_it_began_by_all_clocks_is_given_up_and_made_again(lab, namespace):
    """Nothing changes its dates, so a person gives it up and a scrub puts another in its place."""
    topic = lab.topic(namespace)
    with lab.open() as stack:
        offload_batch(replace(stack, now=ahead_at_first()), [topic.ledger_id], publish=False)
        [outcome] = offload_batch(stack, [topic.ledger_id])
        uid = certificate_of(outcome).uid
        lab.older(stack)
    attempt = stack.book.prefix + keys.attempt(topic.ledger_id, uid)
    with AlteringProxy(lab.endpoints.s3_endpoint, written_later(attempt, DAY)) as proxy:
        store = replace(lab.settings.store, endpoint=proxy.url)
        with lab.open(replace(lab.settings, store=store)) as stack:
            assert_kept(
                stack,
                topic,
                uid,
                "verified_after_start: milliseconds from the attempt's start to its verification",
                "a clock was set while its records were written",
                "docs/runbook.md",
            )
            given = give_up_copy(stack, topic.ledger_id, reason="dated backwards", author="ops")
            assert (given.uid, given.topic, given.fresh) == (uid, topic.name, True)
            assert not give_up_copy(stack, topic.ledger_id, reason="again", author="me").fresh
    with lab.open() as stack:
        assert_kept(stack, topic, uid, "a check of this attempt failed: given up by ops: dated")
        healed = scrub(stack, [topic.ml_name]).healed[topic.ledger_id]
        assert isinstance(healed, Healed), healed
        assert (healed.uid != uid, healed.note) == (True, "")
        lab.older(stack)
        released(stack, topic)
        with pytest.raises(LedgerNotFoundError, match="its copy stays as it is"):
            give_up_copy(stack, topic.ledger_id, reason="too late", author="ops")
    lab.readable(topic, reloaded=True)
