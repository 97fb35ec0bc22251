"""A broken copy is replaced by a proven one of its layout, or it says why not; nothing in
between.
"""

from dataclasses import replace
from uuid import UUID

import pytest

from tests.support.copies import BROKERS, OURS, PAYLOADS, Copy
from tests.support.left_behind import PATH
from tests.support.sim_broker_memory import halves
from tests.support.sim_scene import TOPIC
from tests.support.unchecked import unchecked
from tiering_assets.batch import pipeline
from tiering_assets.change import publish
from tiering_assets.ground.reasons import Reason, Wait
from tiering_assets.look.ledger.claims import claim_ledger
from tiering_assets.look.ledger.quarantine import quarantine
from tiering_assets.look.ledger.resume import attempts_of
from tiering_assets.offload_format.keys import data_key
from tiering_assets.records import keys
from tiering_assets.resources.errors import (
    IntegrityError,
    LedgerNotFoundError,
    MetadataError,
    TierkeeperError,
)
from tiering_assets.resources.metastore.ledger_info import (
    decode_managed_ledger,
    encode_managed_ledger,
)
from tiering_assets.scrub import heal
from tiering_assets.scrub.heal import OFFSETS_MOVED, Healed, finish_replacement, heal_topic


class Broken(Copy):
    """Its first block rotted, and a scrub found that."""

    def __init__(self, who=OURS):
        super().__init__(who)
        self.flip()
        self.was = self.uid
        self.quarantine(self.was)

    def quarantine(self, uid):
        quarantine(self.scene.stack, self.ledger_id, uid, ml_name=TOPIC, reason="rot", previous="")

    def heal(self, stack=None):
        stack = stack or self.scene.process()
        return heal_topic(stack, TOPIC, {self.ledger_id: self.was})[self.ledger_id]

    def read(self):
        topic = "persistent://t/ns/orders"
        return [self.scene.broker.read_entry(topic, self.ledger_id, i) for i in range(6)]


@pytest.fixture
def broken():
    broken = Broken()
    yield broken
    assert broken.scene.world.monitor.found == []


def said_by(broken):
    said: list[str] = []
    return said, replace(broken.scene.process(), narrate=said.append)


@pytest.mark.parametrize("who", [OURS, BROKERS])
def test_a_copy_of_its_layout_takes_its_place(who):
    broken = Broken(who)
    said, stack = said_by(broken)
    found = broken.heal(stack)
    assert isinstance(found, Healed)
    assert (found.uid, found.note) == (broken.uid, "")
    assert broken.uid != broken.was
    assert broken.read() == PAYLOADS
    assert OFFSETS_MOVED not in "\n".join(said)
    assert "" not in [line.partition(": ")[2] for line in said]


def test_one_that_cannot_keep_the_offsets_says_so(broken):
    """Nothing is left that tells where its blocks lay."""
    broken.lose(broken.data_key, broken.index_key)
    key = keys.certificate(broken.ledger_id, broken.was)
    broken.scene.world.objects.delete(broken.scene.stack.book.prefix + key)
    said, stack = said_by(broken)
    found = broken.heal(stack)
    assert isinstance(found, Healed)
    assert found.note == OFFSETS_MOVED
    assert OFFSETS_MOVED in "\n".join(said)


def test_it_is_not_replaced_by_itself_when_nobody_wrote_down_that_it_is_broken(broken):
    key = keys.quarantine(broken.ledger_id, broken.was)
    broken.scene.world.objects.delete(broken.scene.stack.book.prefix + key)
    found = broken.heal()
    assert isinstance(found, Healed)
    assert found.uid != broken.was
    assert broken.read() == PAYLOADS


# ----- why not


def test_a_ledger_that_another_run_works_on_waits_for_it(broken):
    assert claim_ledger(broken.scene.process("another"), broken.ledger_id) is None
    found = broken.heal()
    assert isinstance(found, Wait)
    assert found.reason is Reason.CLAIMED
    assert "run another works on it" in str(found)
    assert broken.uid == broken.was


def test_a_ledger_that_bookkeeper_does_not_have_cannot_be_healed(broken):
    broken.lose_ledger()
    found = broken.heal()
    assert isinstance(found, LedgerNotFoundError)
    assert "no bookie copy is left to heal" in str(found)


def test_a_ledger_that_is_open_again_waits(broken):
    cluster = broken.scene.cluster
    cluster._write(broken.ledger_id, cluster._metadata(broken.ledger_id, closed=False))
    found = broken.heal()
    assert isinstance(found, Wait)
    assert found.reason is Reason.UNSEALED
    assert broken.uid == broken.was


def test_entries_that_the_bookies_do_not_give_are_an_error(broken):
    del broken.scene.cluster.bookies[broken.ledger_id]
    broken.scene.world.monitor.excused.add(("alpha", broken.ledger_id))
    assert isinstance(broken.heal(), TierkeeperError)
    assert broken.uid == broken.was


def test_a_copy_that_could_not_be_written_is_an_error(broken):
    broken.scene.world.objects.fail("create_upload", times=9)
    found = broken.heal()
    assert isinstance(found, TierkeeperError)
    assert "create_upload: injected fault" in str(found)
    assert broken.uid == broken.was


def test_a_copy_that_is_not_proven_takes_nobodys_place(broken, monkeypatch):
    wrong = IntegrityError("block 1 differs")
    monkeypatch.setattr(heal, "verify_attempts", lambda *_a: {broken.ledger_id: wrong})
    assert broken.heal() is wrong
    assert broken.uid == broken.was


# ----- what an earlier run left


def leave_complete(broken, **offload):
    """Both objects of an attempt that nobody proved yet; its uid."""
    world = broken.scene.world
    settings = world.settings
    if offload:
        world.settings = replace(settings, offload=unchecked(settings.offload, **offload))
    away = {broken.ledger_id: MetadataError("away")}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(heal if not offload else pipeline, "verify_attempts", lambda *_a: away)
        if offload:
            take_out_context(broken)
            broken.scene.offload(broken.ledger_id)
            put_context_back(broken)
        else:
            assert broken.heal() is away[broken.ledger_id]
    world.settings = settings
    return attempts_of(broken.scene.stack, broken.ledger_id)[-1].record.uid


def take_out_context(broken):
    broken.node = broken.scene.cluster.metadata.nodes[PATH]
    edit(broken, lambda info: info.ClearField("offloadContext"))


def put_context_back(broken):
    edit(broken, lambda info: info.CopyFrom(info_of(broken, broken.node.data)))


def info_of(broken, data):
    message = decode_managed_ledger(data).message_copy()
    return next(i for i in message.ledgerInfo if i.ledgerId == broken.ledger_id)


def edit(broken, change):
    nodes = broken.scene.cluster.metadata.nodes
    found = decode_managed_ledger(nodes[PATH].data)
    message = found.message_copy()
    change(next(i for i in message.ledgerInfo if i.ledgerId == broken.ledger_id))
    data = encode_managed_ledger(found.with_message(message))
    nodes[PATH] = replace(nodes[PATH], data=data)
    broken.scene.broker.restart()


def test_a_complete_attempt_of_its_layout_is_verified_and_taken(broken):
    left = leave_complete(broken)
    found = broken.heal()
    assert isinstance(found, Healed)
    assert found.uid == left


def test_a_complete_attempt_of_another_layout_is_not_taken(broken):
    left = leave_complete(broken, block_bytes=900)
    assert left != broken.was
    found = broken.heal()
    assert isinstance(found, Healed)
    assert (found.uid != left, found.note) == (True, "")


def certify_another(broken, **offload):
    """A proven attempt of another run, which waits for its publication."""
    world = broken.scene.world
    settings = world.settings
    world.settings = replace(settings, offload=unchecked(settings.offload, **offload))
    take_out_context(broken)
    uid = broken.scene.certify(broken.ledger_id).certificate.record.uid
    put_context_back(broken)
    world.settings = settings
    return uid


def test_a_proven_attempt_of_its_layout_is_taken(broken):
    uid = certify_another(broken)
    assert broken.heal().uid == uid


def test_a_proven_attempt_of_another_layout_is_not_taken(broken):
    """Brokers remember offsets of the one that they read."""
    uid = certify_another(broken, block_bytes=900)
    found = broken.heal()
    assert isinstance(found, Healed)
    assert (found.uid != uid, found.note) == (True, "")


def test_a_proven_attempt_at_another_ledger_of_that_number_is_not_taken(broken):
    """Its node was deleted and made again since, as a restored one is."""
    uid = certify_another(broken)
    nodes, path = broken.scene.cluster.metadata.nodes, broken.scene.cluster.path(broken.ledger_id)
    stat = nodes[path].stat
    nodes[path] = replace(nodes[path], stat=replace(stat, czxid=stat.czxid + 1))
    found = broken.heal()
    assert isinstance(found, Healed)
    assert found.uid != uid


# ----- a replacement that stands and that no record confirms


class _KilledError(Exception):
    pass


@pytest.fixture
def standing(broken, monkeypatch):
    """The run that wrote the new context died before it could record that."""

    def killed(*_args, **_how):
        raise _KilledError

    with monkeypatch.context() as patch:
        patch.setattr(publish, "record_publication", killed)
        with pytest.raises(_KilledError):
            broken.heal()
    assert broken.uid != broken.was
    broken.scene.wait(600)
    return broken


def finish(broken, uid=None):
    uid = uid or broken.uid
    return finish_replacement(
        broken.scene.process(), TOPIC, broken.ledger_id, uid, [UUID(int=3), broken.was]
    )


def confirmed(broken):
    return [one for p in broken.scene.publications() for one in p.record.ledgers]


def test_it_is_confirmed_and_recorded_once(standing):
    before = len(confirmed(standing))
    found = finish(standing)
    assert isinstance(found, Healed)
    assert found.uid == standing.uid
    assert len(confirmed(standing)) == before + 1
    assert finish(standing) is None
    assert len(confirmed(standing)) == before + 1


def without_topic(broken):
    del broken.scene.cluster.metadata.nodes[PATH]


def without_ledger(broken):
    nodes = broken.scene.cluster.metadata.nodes
    found = decode_managed_ledger(nodes[PATH].data)
    message = found.message_copy()
    message.ledgerInfo.remove(next(i for i in message.ledgerInfo if i.ledgerId == broken.ledger_id))
    nodes[PATH] = replace(nodes[PATH], data=encode_managed_ledger(found.with_message(message)))


def without_context(broken):
    edit(broken, lambda info: info.ClearField("offloadContext"))


def with_another(broken):
    def change(info):
        info.offloadContext.uidMsb, info.offloadContext.uidLsb = halves(UUID(int=5))

    edit(broken, change)


@pytest.mark.parametrize("change", [without_topic, without_ledger, without_context, with_another])
def test_one_that_does_not_stand_any_more_has_nothing_to_confirm(standing, change):
    uid, before = standing.uid, len(confirmed(standing))
    change(standing)
    assert finish(standing, uid) is None
    assert len(confirmed(standing)) == before


@pytest.mark.parametrize("kind", ["certificate", "attempt"])
def test_one_whose_record_is_gone_is_not_confirmed(standing, kind):
    key = getattr(keys, kind)(standing.ledger_id, standing.uid)
    standing.scene.world.objects.delete(standing.scene.stack.book.prefix + key)
    before = len(confirmed(standing))
    assert finish(standing) is None
    assert len(confirmed(standing)) == before


def test_the_objects_of_the_broken_one_stay(broken):
    broken.heal()
    assert broken.scene.world.objects.peek(data_key(broken.was, broken.ledger_id)) is not None
