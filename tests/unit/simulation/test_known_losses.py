"""Small worlds laid out by hand, in each of which bytes or readers were once lost.

No fault strikes but what a test lays, and the list of violations must be empty in the end.
"""

from uuid import UUID

import pytest

from tests.support import sim_operator as people
from tests.support import sim_stories as stories
from tests.support.sim_acts import (
    run_copy,
    run_deep_scrub,
    run_offload,
    run_release,
    run_scrub,
    run_sweep,
)
from tests.support.sim_faults import Fate
from tests.support.sim_offloader import DRIVER, Place
from tests.support.sim_run import run_world
from tiering_assets.change.disturb import see

TOPIC = "t/ns0/persistent/orders"
UNDATED = ("I21",)  # looked at by the tests of dated evidence alone


class Lab:
    """A cluster with one topic of one sealed ledger, and a time at which each thing happens."""

    def __init__(self, world, **broker):
        self.world = world
        self.site = world.add_site("alpha", **{"lag_s": None, "bookkeeper_first": False, **broker})
        self.broker = self.site.broker
        self.broker.create_topic(TOPIC)
        self.more()

    def more(self):
        """Another sealed ledger."""
        self.broker.produce(TOPIC, [b"first", b"middle", b"last"])
        self.broker.roll_over(TOPIC)

    def run(self, at, act, **fates):
        self.world.start(f"{act.__name__}-{at:g}", at, self.site, act, restarts=0, **fates)

    def at(self, seconds, act):
        self.world.scheduler.spawn("people", seconds, act)

    def change(self, seconds, what, act):
        """People change a setting, and the monitor is told when."""

        def changed():
            act()
            self.site.changed_at[what] = self.world.scheduler.now

        self.at(seconds, changed)


def violations(play, *, aside=UNDATED, seed=1, **broker):
    def laid(world):
        play(Lab(world, **broker))

    outcome = run_world(seed, laid, faults=False, aside=aside)
    return [f"{found.invariant}: {found.detail}" for found in outcome.found]


def test_a_copy_that_was_given_up_and_came_back_is_not_deleted_by_a_retry():
    def play(world):
        site = world.add_site("alpha", lag_s=None, bookkeeper_first=False)
        site.broker.create_topic(TOPIC)
        for _ in range(2):
            site.broker.produce(TOPIC, [b"first", b"last"])
            site.broker.roll_over(TOPIC)
        stories.trimmed_and_restored(world, site)

    outcome = run_world(1, play, faults=False, aside=UNDATED)
    assert outcome.coverage["version deletes refused"]
    assert outcome.coverage["delete markers removed"]
    assert outcome.coverage["locked versions met again"]
    assert [f"{found.invariant}: {found.detail}" for found in outcome.found] == []


def _lost(world, uid, ledger_id):
    people.lose(world, uid, ledger_id)


def _replaced(world, uid, ledger_id):
    people.replace_object(world, uid, ledger_id)


def _archived(world, uid, ledger_id):
    for key in (f"{uid}-ledger-{ledger_id}", f"{uid}-ledger-{ledger_id}-index"):
        world.objects.move(key, "GLACIER")
    people.breaks(world, uid)


@pytest.mark.parametrize("ends", [_lost, _replaced, _archived])
def test_a_copy_that_changed_since_it_was_certified_is_not_published(ends):
    def play(lab):
        lab.run(1.0, run_offload)
        lab.at(200.0, lab.more)
        lab.run(300.0, run_copy)

        def strike():
            named = {uid for uid, _ledger in people.published(lab.world, lab.site)}
            for key in lab.world.objects.peek_keys():
                uid, _dash, rest = key.partition("-ledger-")
                if rest.isdecimal() and uid not in map(str, named):
                    ends(lab.world, UUID(uid), int(rest))

        lab.at(500.0, strike)
        lab.at(501.0, lab.broker.restart)
        lab.run(600.0, run_offload)

    assert violations(play) == []


@pytest.mark.parametrize(
    "place",
    [
        Place("azureblob", "sim-bucket"),
        Place(DRIVER, "elsewhere"),
        Place(DRIVER, "sim-bucket", "http://other"),
        Place(None, "sim-bucket"),
    ],
)
def test_a_ledger_is_not_released_where_brokers_would_read_another_place(place):
    def play(lab):
        lab.run(1.0, run_offload)
        lab.change(100.0, "policy", lambda: lab.broker.offloader.policies.update({"t/ns0": place}))
        lab.at(110.0, lab.broker.restart)
        lab.run(1300.0, run_release)

    assert violations(play) == []


def _skip(lab):
    lab.broker.offloader.skips = True


def _no_driver(lab):
    lab.broker.offloader.driver = None


def _shadow(lab):
    lab.broker.make_shadow(TOPIC)


@pytest.mark.parametrize(
    ("what", "change"), [("skips", _skip), ("driver", _no_driver), ("shadow", _shadow)]
)
def test_what_changed_while_every_byte_was_read_again_stops_the_release(what, change):
    def play(lab):
        lab.run(1.0, run_offload)
        slow = Fate("bookies", ("read",), "delay", 900.0)
        lab.run(1300.0, run_release, fates=[slow])
        lab.change(1400.0, what, lambda: change(lab))

    assert violations(play, aside=()) == []


def test_what_is_published_again_waits_for_the_whole_lag_again():
    def play(lab):
        backup = {}
        lab.at(0.5, lambda: backup.update(people.snapshot(lab.site)))
        lab.run(1.0, run_offload)
        lab.at(1000.0, lambda: people.restore(lab.world, lab.site, backup))
        for number in range(8):
            lab.at(1001.0 + number, lab.more)
        lab.run(1020.0, run_offload)
        lab.run(1040.0, run_release)

    assert violations(play) == []


def test_a_proven_copy_that_waits_to_be_published_is_not_swept():
    def play(lab):
        lab.run(1.0, run_copy)
        lab.run(2500.0, run_sweep)
        lab.run(2600.0, run_offload)

    assert violations(play) == []


def test_heal_leaves_the_mark_of_what_bookies_lost_meanwhile():
    def play(lab):
        lab.run(1.0, run_offload)
        lab.at(200.0, lambda: people.damage(lab.world, lab.site))
        slow = Fate("objects", ("put",), "delay", 300.0, naming="/certificates/")
        lab.run(250.0, run_deep_scrub, fates=[slow])
        lab.at(400.0, lambda: lab.broker.release(TOPIC))

    assert violations(play, lag_s=300.0) == []


def test_a_broker_that_serves_on_after_its_session_is_not_taken_for_gone():
    def play(lab):
        until = lab.world.clock(3000.0).timestamp()
        lab.run(0.1, lambda process: see(process.stack(), TOPIC))  # while it is registered
        lab.at(0.5, lambda: setattr(lab.broker, "unregistered_until", until))
        lab.run(1.0, run_offload)
        lab.run(1300.0, run_release)

    assert violations(play) == []


@pytest.mark.parametrize("short_at", [0.5, 1200.0])
def test_a_loaded_topic_is_not_reloaded_while_bookies_are_short(short_at):
    def play(lab):
        lab.run(1.0, run_offload)
        lab.change(short_at, "bookies", lambda: lab.site.cluster.be_short(True))
        lab.run(1300.0, run_release)

    assert violations(play) == []


def test_a_copy_in_a_class_that_is_read_at_once_is_not_quarantined():
    def play(lab):
        lab.run(1.0, run_offload)

        def move():
            for uid, ledger_id in people.published(lab.world, lab.site):
                for key in (f"{uid}-ledger-{ledger_id}", f"{uid}-ledger-{ledger_id}-index"):
                    lab.world.objects.move(key, "GLACIER_IR")

        lab.at(100.0, move)
        lab.run(90_000.0, run_scrub)

    assert violations(play) == []
