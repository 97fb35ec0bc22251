"""No byte goes to a bucket of which nobody knows that it keeps its promises."""

from dataclasses import replace

import pytest

from tests.support.sim_scene import TOPIC, Scene
from tiering_assets.batch.pipeline import offload_batch
from tiering_assets.copy.ask_first import prove, require_proven
from tiering_assets.copy.bucket_promises import PROMISES
from tiering_assets.ground.finding import Level
from tiering_assets.offload_format.keys import data_key
from tiering_assets.records import keys
from tiering_assets.records.bucket_models import BucketProof
from tiering_assets.resources.errors import RefusedError
from tiering_assets.scrub.scrub import scrub


class Tried(Scene):
    """A bucket that no doctor has tried. `asked` counts the throw-away keys."""

    def __init__(self):
        super().__init__()
        self.key = keys.bucket_proof(self.stack.settings.store.bucket)
        self.proven = self.stack.book.require(BucketProof, self.key).record
        self.forget()
        self.asked = 0
        really = self.world.objects.put

        def put(key, *args, **how):
            self.asked += key.startswith(keys.PROBES)
            return really(key, *args, **how)

        self.world.objects.put = put  # type: ignore[method-assign]

    def forget(self):
        self.world.objects.delete(self.stack.book.prefix + self.key)

    def direct(self, **changes):
        """A run's view of the servers, its requests to the store not simulated one by one."""
        return replace(self.process(), objects=self.world.objects, **changes)

    def break_promise(self):
        """Whoever comes later replaces what is there."""
        put = self.world.objects.put

        def overwrite(key, body, *, if_absent=False, **how):
            return put(key, body, if_absent=if_absent and not key.startswith(keys.PROBES), **how)

        self.world.objects.put = overwrite  # type: ignore[method-assign]


@pytest.fixture
def scene():
    return Tried()


def left(scene):
    return [key for key in scene.world.objects.peek_keys() if key.startswith(keys.PROBES)]


def test_the_first_run_tries_the_bucket_records_it_and_copies(scene):
    [outcome] = offload_batch(scene.direct(), [0])
    assert outcome.state == "published"
    assert scene.asked > 0
    assert left(scene) == []
    record = scene.stack.book.require(BucketProof, scene.key).record
    assert record.promises == PROMISES
    assert record.bucket == scene.stack.settings.store.bucket


def test_the_next_run_asks_the_record_alone(scene):
    require_proven(scene.direct())
    asked = scene.asked
    require_proven(scene.direct())
    assert scene.asked == asked > 0


def test_a_run_asks_once(scene):
    stack = scene.direct()
    require_proven(stack)
    scene.forget()
    require_proven(stack)
    assert scene.stack.book.keys("bucket-proofs/") == []


def test_a_broken_promise_stops_everything_before_the_first_claim(scene):
    scene.break_promise()
    [outcome] = offload_batch(scene.direct(), [0])
    assert isinstance(outcome.error, RefusedError)
    assert "sim-bucket does not keep" in str(outcome.error)
    assert "conditional create: 6 of 6 creators of one key at once won" in str(outcome.error)
    keys_left = [key for key in scene.stack.book.keys("") if not key.startswith("brokers/")]
    assert keys_left == []
    assert left(scene) == []


def test_a_broken_promise_stops_a_heal_and_not_the_look(scene):
    scene.world.objects.put(scene.stack.book.prefix + scene.key, b"{}", if_absent=True)
    assert scene.broker.offload(TOPIC)
    uid = scene.context().uid
    scene.world.monitor.damaged.add(uid)
    scene.world.rot(data_key(uid, 0))
    scene.break_promise()
    run = scrub(scene.direct(), deep=True)
    assert [one.candidate.uid for one in run.broken] == [uid]
    assert isinstance(run.healed[0], RefusedError)
    assert scene.context().uid == uid


@pytest.mark.parametrize(
    "change",
    [
        {"promises": ("conditional create",)},  # a version that relied on less
        {"promises": ()},
    ],
)
def test_a_proof_of_less_is_none(scene, change):
    scene.stack.book.create(scene.key, replace(scene.proven, **change))
    require_proven(scene.direct())
    assert scene.asked > 0
    assert scene.stack.book.require(BucketProof, scene.key).record.promises == PROMISES


def test_a_damaged_proof_is_none_and_is_replaced(scene):
    scene.world.objects.put(scene.stack.book.prefix + scene.key, b"{broken")
    require_proven(scene.direct())
    assert scene.stack.book.require(BucketProof, scene.key).record.promises == PROMISES


def test_records_that_were_copied_to_another_bucket_prove_nothing_of_it(scene):
    scene.stack.book.create(scene.key, scene.proven)
    stack = scene.direct()
    store = replace(stack.settings.store, bucket="copy")
    require_proven(replace(stack, settings=replace(stack.settings, store=store)))
    assert scene.asked > 0
    assert len(scene.stack.book.keys("bucket-proofs/")) == 2


def test_what_is_proven_anew_says_so_and_a_broken_promise_is_not_recorded(scene):
    scene.stack.book.create(scene.key, scene.proven)
    scene.wait(3600)
    *kept, recorded = prove(scene.direct())
    assert [one.check for one in kept] == [*PROMISES, "proof clean-up"]
    assert (recorded.check, recorded.level) == ("bucket proofs", Level.OK)
    newest = scene.stack.book.require(BucketProof, scene.key).record.proven_at
    assert newest > scene.proven.proven_at
    scene.break_promise()
    found = list(prove(scene.direct()))
    assert [one.check for one in found if one.level is Level.FAIL] == ["conditional create"]
    assert scene.stack.book.require(BucketProof, scene.key).record.proven_at == newest
