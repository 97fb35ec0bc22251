"""A scrub reads as far as it may, counts what is found twice and still named, and heals what it
can.
"""

from dataclasses import replace
from uuid import UUID

import pytest

from tests.support.copies import BLOCK_BYTES, BROKERS, OURS, PAYLOADS, Copy
from tests.support.left_behind import PATH
from tests.support.sim_broker_memory import halves
from tests.support.sim_scene import TOPIC
from tiering_assets.change import publish
from tiering_assets.offload_format.keys import data_key
from tiering_assets.records import keys
from tiering_assets.records.models import Damage, EntryRange, Scrub
from tiering_assets.resources.metastore.ledger_info import (
    decode_managed_ledger,
    encode_managed_ledger,
)
from tiering_assets.scrub import scrub as scrubbing
from tiering_assets.scrub.check import check_copy
from tiering_assets.scrub.fleet import find_fleet
from tiering_assets.scrub.heal import Healed
from tiering_assets.scrub.plan import LOOK_REQUESTS, Depth
from tiering_assets.scrub.scrub import scrub
from tiering_assets.verify.damage import Broken, record_damage

ALL = len(PAYLOADS) * BLOCK_BYTES


class Scrubbed(Copy):
    def __init__(self, who=OURS, **how):
        super().__init__(who, **how)
        self.scene.wait(5)

    def scrub(self, *due, heal=True, **settings):
        """With these looks due, in this order; what each saw, first looks of a broker's left
        out.
        """
        stack = self.scene.process()
        changed = replace(
            stack.settings.scrub,
            shallow_every_s=0.1 if Depth.SHALLOW in due else 3e8,
            deep_every_s=0.2 if Depth.DEEP in due else 3e8,
            **settings,
        )
        settled = replace(stack, settings=replace(stack.settings, scrub=changed))
        self.run = scrub(settled, heal=heal)
        self.scene.wait(60)
        return [one for one in self.run.looked if one.depth in due]

    def shallow(self, **how):
        [found] = self.scrub(Depth.SHALLOW, **how)
        return found

    def deep(self, **how):
        """A deep look and, where it is the first at a broker's, a shallow one before it."""
        [found] = self.scrub(Depth.DEEP, **how)
        return found

    def record(self, what):
        key = keys.scrub(self.ledger_id, self.uid, what)
        return self.scene.stack.book.read(Scrub, key)

    def edit(self, change):
        """Somebody changes what the topic lists of the ledger."""
        nodes = self.scene.cluster.metadata.nodes
        found = decode_managed_ledger(nodes[PATH].data)
        message = found.message_copy()
        change(message, next(i for i in message.ledgerInfo if i.ledgerId == self.ledger_id))
        data = encode_managed_ledger(found.with_message(message))
        nodes[PATH] = replace(nodes[PATH], data=data)
        self.scene.broker.restart()

    def damage(self):
        return self.scene.stack.book.read(Damage, keys.damage(self.ledger_id, self.uid))


@pytest.fixture(params=[OURS, BROKERS])
def copy(request):
    return Scrubbed(request.param)


@pytest.fixture
def ours():
    ours = Scrubbed()
    yield ours
    assert ours.scene.world.monitor.found == []


@pytest.fixture
def brokers():
    return Scrubbed(BROKERS)


# ----- what a look leaves behind


def test_a_look_that_finds_nothing_is_recorded_by_its_depth(copy):
    shallow, deep = copy.scrub(Depth.SHALLOW, Depth.DEEP)
    assert (shallow.depth, deep.depth) == (Depth.SHALLOW, Depth.DEEP)
    for what, blocks_read in (("shallow", 0), ("deep", 6)):
        record = copy.record(what).record
        assert (record.depth, record.blocks, record.blocks_read) == (what, 6, blocks_read)
        assert (record.data_bytes, record.findings, record.lost) == (ALL, (), ())
        head = copy.scene.world.objects.peek_head(copy.data_key)
        assert (record.data_etag, record.data_version_id) == (head.etag, head.version_id)
        assert (record.previous is None) is (copy.who == BROKERS)
    assert copy.record("failed") is None
    assert copy.run.healed == {}


def test_a_look_is_recorded_with_the_version_that_it_saw():
    copy = Scrubbed(versions=True)
    copy.deep()
    [version] = copy.scene.world.objects.list_versions(copy.data_key)
    assert copy.record("deep").record.data_version_id == version.version_id is not None


def test_one_look_is_enough_where_nothing_is_found(ours):
    ours.shallow()
    assert (ours.run.requests, ours.run.bytes_read) == (LOOK_REQUESTS, 0)


def test_the_next_look_renews_the_record(ours):
    ours.deep()
    first = ours.record("deep")
    ours.deep()
    assert ours.record("deep").stored_at > first.stored_at


@pytest.mark.parametrize("gone", ["data_key", "both"])
def test_what_is_found_is_recorded_as_failed(copy, gone):
    keys_gone = [copy.data_key, copy.index_key] if gone == "both" else [copy.data_key]
    copy.lose(*keys_gone)
    copy.shallow(heal=False)
    record = copy.record("failed").record
    assert record.findings
    assert record.depth == "shallow"
    assert (record.data_bytes, record.data_etag, record.data_version_id) == (0, None, None)
    assert (copy.record("shallow"), copy.record("deep")) == (None, None)


# ----- budgets


def test_a_budget_that_ends_a_look_leaves_a_place_to_go_on_from(copy):
    for blocks in (2, 4):
        found = copy.deep(bytes_max=2 * BLOCK_BYTES)
        assert (found.checked.blocks_read, found.whole, found.findings) == (blocks, False, ())
        assert copy.record("partial").record.blocks_read == blocks
        assert copy.record("deep") is None
    found = copy.deep(bytes_max=2 * BLOCK_BYTES)
    assert (found.checked.blocks_read, found.whole, found.findings) == (6, True, ())
    assert copy.record("deep").record.blocks_read == 6


def test_after_a_whole_look_the_next_begins_at_the_first_byte(copy):
    copy.deep(bytes_max=2 * BLOCK_BYTES)
    copy.deep()
    assert copy.deep(bytes_max=2 * BLOCK_BYTES).checked.blocks_read == 2


def test_a_shallow_look_does_not_count_what_a_deep_one_has_read(copy):
    copy.deep(bytes_max=2 * BLOCK_BYTES)
    assert copy.shallow().checked.blocks_read == 0


def test_what_no_budget_is_left_for_waits(ours):
    assert ours.scrub(Depth.SHALLOW, requests_max=LOOK_REQUESTS - 1) == []
    assert [one.candidate.ledger_id for one in ours.run.deferred] == [ours.ledger_id]


# ----- a broker's copy that was found broken


def test_damage_is_over_when_every_byte_was_read_well_and_not_before(brokers):
    body = brokers.body(brokers.data_key)
    brokers.flip()
    brokers.deep(heal=False)
    assert brokers.damage() is not None
    brokers.scene.world.objects.rot(brokers.data_key, body)
    brokers.shallow(heal=False)
    for _ in range(2):
        brokers.deep(heal=False, bytes_max=2 * BLOCK_BYTES)
        assert brokers.damage() is not None
    brokers.deep(heal=False, bytes_max=2 * BLOCK_BYTES)
    assert brokers.damage() is None


def test_damage_that_is_found_while_another_look_is_on_its_way_stays(brokers, monkeypatch):
    """It was no failing copy when this run began."""

    def check(*args):
        found = check_copy(*args)
        record_damage(
            brokers.scene.stack,
            Broken(
                ledger_id=brokers.ledger_id,
                uid=brokers.uid,
                ml_name=TOPIC,
                findings=("a block",),
                found_by="object verify",
            ),
        )
        return found

    monkeypatch.setattr(scrubbing, "check_copy", check)
    brokers.deep()
    assert brokers.damage() is not None


# ----- what moved while it was looked at


def without_topic(copy):
    del copy.scene.cluster.metadata.nodes[PATH]


def without_ledger(copy):
    copy.edit(lambda message, info: message.ledgerInfo.remove(info))


def without_context(copy):
    copy.edit(lambda _message, info: info.ClearField("offloadContext"))


def not_complete(copy):
    def change(_message, info):
        info.offloadContext.complete = False

    copy.edit(change)


def another(copy):
    def change(_message, info):
        info.offloadContext.uidMsb, info.offloadContext.uidLsb = halves(UUID(int=5))

    copy.edit(change)


MOVES = pytest.mark.parametrize(
    "move", [without_topic, without_ledger, without_context, not_complete, another]
)


@MOVES
def test_what_is_not_named_any_more_is_not_looked_at(copy, monkeypatch, move):
    uid = copy.uid

    def moved(*args):
        found = find_fleet(*args)
        move(copy)
        return found

    monkeypatch.setattr(scrubbing, "find_fleet", moved)
    found = copy.deep()
    assert (found.moved, found.checked, found.error) == (True, None, None)
    assert copy.scene.stack.book.read(Scrub, keys.scrub(copy.ledger_id, uid, "deep")) is None


@MOVES
def test_what_is_not_named_any_more_when_it_was_read_is_no_finding(ours, monkeypatch, move):
    """Whoever took it out of the list may delete it, too."""
    uid, seen = ours.uid, []
    ours.lose(ours.data_key)

    def moved(*args):
        seen.append(check_copy(*args))
        if len(seen) == 2:
            move(ours)
        return seen[-1]

    monkeypatch.setattr(scrubbing, "check_copy", moved)
    found = ours.shallow()
    assert len(seen) == 2
    assert (found.moved, found.findings) == (True, ())
    assert ours.run.healed == {}
    assert not ours.scene.is_quarantined(ours.ledger_id, uid)


# ----- what is broken


def test_what_is_broken_is_healed_once_and_not_looked_at_again(ours):
    """By the shallow look; the deep one that is due, too, is of a copy that is replaced."""
    was = ours.uid
    ours.lose(ours.data_key)
    [found] = ours.scrub(Depth.SHALLOW, Depth.DEEP)
    assert (found.depth, found.in_bookkeeper, found.lost) == (Depth.SHALLOW, True, ())
    assert isinstance(ours.run.healed[ours.ledger_id], Healed)
    assert ours.uid != was
    assert ours.deep().findings == ()
    assert ours.run.healed == {}


def test_ledgers_of_a_topic_are_healed_together(ours):
    both = [ours.ledger_id, ours.scene.fill(TOPIC)]
    ours.scene.publish(both[1])
    ours.scene.wait(60)
    for ledger_id in both:
        uid = ours.scene.context(ledger_id).uid
        ours.scene.world.monitor.damaged.add(uid)
        ours.scene.world.objects.delete(data_key(uid, ledger_id))
    before = len(ours.scene.publications())
    assert len(ours.scrub(Depth.SHALLOW)) == 2
    assert [*ours.run.healed] == both
    assert len(ours.scene.publications()) == before + 1


def test_without_heal_it_is_only_written_down(ours):
    was = ours.uid
    ours.lose(ours.data_key)
    ours.shallow(heal=False)
    assert ours.run.healed == {}
    assert ours.uid == was
    assert ours.scene.is_quarantined(ours.ledger_id, was)
    assert ours.shallow(heal=False).findings  # and told again


@pytest.fixture
def last(copy):
    """BookKeeper does not have the ledger, and its topic counts fewer entries than there were."""

    def change(_message, info):
        info.entries = 4

    copy.lose_ledger()
    copy.edit(change)
    return copy


def test_entries_that_nobody_can_read_any_more_are_named(last):
    last.lose(last.data_key)
    found = last.shallow()
    assert (found.in_bookkeeper, found.lost) == (False, (EntryRange(0, 5),))
    assert last.record("failed").record.lost == (EntryRange(0, 5),)
    assert last.run.healed == {}


def test_without_its_index_no_entry_can_be_found(last):
    """Of ours the certificate says how many there were."""
    last.lose(last.index_key)
    assert last.shallow().lost == (EntryRange(0, 5 if last.who == OURS else 3),)


def test_where_nothing_else_says_how_many_the_topic_does(last):
    """Both objects of a broker's are gone, and of ours the certificate, too."""
    if last.who == OURS:
        key = keys.certificate(last.ledger_id, last.uid)
        last.scene.world.objects.delete(last.scene.stack.book.prefix + key)
    last.lose(last.data_key, last.index_key)
    found = last.shallow()
    assert found.lost == (EntryRange(0, 3),)


def test_of_a_ledger_without_entries_none_is_lost(last):
    def change(_message, info):
        info.entries = 0

    last.edit(change)
    last.lose(last.data_key, last.index_key)
    found = last.shallow()
    assert found.findings
    assert found.lost == ()


# ----- replacements whose run died


class _KilledError(Exception):
    pass


def die_before_the_record(copy, monkeypatch):
    def killed(*_args, **_how):
        raise _KilledError

    with monkeypatch.context() as patch:
        patch.setattr(publish, "record_publication", killed)
        with pytest.raises(_KilledError):
            copy.shallow()
    copy.scene.wait(600)


def test_a_replacement_that_no_record_confirms_is_finished_first(ours, monkeypatch):
    was = ours.uid
    ours.lose(ours.data_key)
    die_before_the_record(ours, monkeypatch)
    assert ours.uid != was
    before = len(ours.scene.publications())
    ours.scrub(heal=False)
    assert ours.run.healed == {}
    assert len(ours.scene.publications()) == before
    assert ours.scrub() == []
    assert ours.run.healed[ours.ledger_id].uid == ours.uid
    assert len(ours.scene.publications()) == before + 1


def test_a_publication_that_no_record_confirms_and_that_replaced_nothing_is_left(monkeypatch):
    """The next offload confirms it."""
    scene = Copy().scene
    ledger_id = scene.fill(TOPIC)

    def killed(*_args, **_how):
        raise _KilledError

    with monkeypatch.context() as patch:
        patch.setattr(publish, "record_publication", killed)
        with pytest.raises(_KilledError):
            scene.offload(ledger_id)
    before = len(scene.publications())
    scene.wait(600)
    run = scrub(scene.process(), [TOPIC])
    assert run.healed == {}
    assert len(scene.publications()) == before
