"""How to get to the crash points: each function prepares one topic, and the command that dies over
it.

Owns: the command, run again, must come to the end that its scene names, and the ledgers of the
topic can be released in the end, whatever the scenario did.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import UUID, uuid4

from tests.support.crash_scene import Scene, Shop
from tests.support.crash_subject import Subject
from tests.support.http_proxy import Do, once
from tiering_assets.batch.release_plan import make_plan, write_plan
from tiering_assets.change.topic_change import edit_topic
from tiering_assets.clean.clean_up import clean_up
from tiering_assets.ground.own_policy import TieringMode
from tiering_assets.look.brakes.brake import PAUSE
from tiering_assets.look.brakes.holds import hold as set_hold
from tiering_assets.look.brakes.pauses import pause as set_pause
from tiering_assets.look.brakes.scopes import Scope, ledger_scope
from tiering_assets.offload_format.keys import data_key
from tiering_assets.records import keys
from tiering_assets.records.models import Attempt
from tiering_assets.resources.devstack.traffic import seal
from tiering_assets.resources.errors import LedgerNotFoundError, RefusedError
from tiering_assets.resources.metastore.ledger_info import ManagedLedger
from tiering_assets.resources.metastore.offload_context import OffloadContext, publish_contexts
from tiering_assets.scrub.scrub import scrub as run_scrub


def _offload(shop: Shop, subject: Subject, **values: Any) -> Scene:
    arguments = {"ledger_ids": [*subject.ledger_ids]}
    scene = Scene(subject=subject, step="offload", arguments=arguments, settings=shop.work.settings)
    return replace(scene, **{"sends": subject.blocks, **values})


def _release(shop: Shop, subject: Subject, **values: Any) -> Scene:
    arguments = {"ml_name": subject.ml_name, "ledger_ids": [*subject.ledger_ids]}
    scene = Scene(subject=subject, step="release", arguments=arguments, settings=shop.work.settings)
    return replace(scene, **values)


def plain(shop: Shop) -> Scene:
    return _offload(shop, shop.work.multi_block())


def two_ledgers(shop: Shop) -> Scene:
    return _offload(shop, shop.work.two_ledgers())


def create_lost(shop: Shop) -> Scene:
    """The answer to the create of an upload is lost, so that there are two."""
    rule = once("POST", "uploads", Do.LOSE_ANSWER)
    return _offload(shop, shop.work.multi_block(), rule=rule)


def copy_fails(shop: Shop) -> Scene:
    """The store takes the first part and no other; the run gives its attempt up."""

    def rule(method: str, path: str) -> Do:
        return Do.REFUSE if method == "PUT" and "partNumber=2" in path else Do.PASS

    subject = shop.work.multi_block()
    return _offload(shop, subject, rule=rule, sends=subject.blocks + 1)


def copy_differs(shop: Shop) -> Scene:
    """An earlier run left both objects, and a bit of the data flipped since."""
    subject = shop.work.multi_block()
    shop.damaged(shop.killed(subject, "offload.index_put"))
    return _offload(shop, subject)


def withdrawn_differs(shop: Shop) -> Scene:
    """An earlier run was about to publish, and a bit of the copy flipped since."""
    subject = shop.work.multi_block()
    attempt = shop.killed(subject, "publish.outcome_won")
    shop.damaged(attempt)
    return _offload(shop, subject, broken=attempt.uid)


def copy_replaced(shop: Shop) -> Scene:
    """An earlier run certified a copy, and another object lies there since."""
    subject = shop.work.multi_block()
    attempt = shop.killed(subject, "verify.certified")
    shop.damaged(attempt)
    return _offload(shop, subject, broken=attempt.uid)


def _blind(shop: Shop, scene: Scene) -> Scene:
    namespace = scene.subject.topic.spec.topic.rpartition("/")[0]
    shop.work.let_read(namespace, credentials=False)
    publish = replace(scene.settings.publish, confirm_timeout_s=1.5)
    return replace(
        scene,
        settings=replace(scene.settings, publish=publish),
        ends_with=frozenset({RefusedError.exit_code}),
        blind=True,
        repair=lambda: shop.work.let_read(namespace),
    )


def broker_cannot_read(shop: Shop) -> Scene:
    """What was published is withdrawn, as the broker's credentials open nothing."""
    return _blind(shop, _offload(shop, shop.work.one_block()))


def release(shop: Shop) -> Scene:
    subject = shop.work.two_ledgers()
    shop.published(subject)
    return _release(shop, subject)


def rehearsal_fails(shop: Shop) -> Scene:
    """Published well; when it is to be released, the broker's credentials open nothing."""
    subject = shop.work.one_block()
    shop.published(subject)
    return _blind(shop, _release(shop, subject))


def plan(shop: Shop) -> Scene:
    subject = shop.work.two_ledgers()
    shop.published(subject)
    path = shop.directory / f"{uuid4().hex}.json"
    with shop.work.open() as stack:
        write_plan(make_plan(stack, {subject.ml_name: subject.ledger_ids}), path)
    return replace(_release(shop, subject), step="execute", arguments={"plan": str(path)})


def hold(shop: Shop) -> Scene:
    """A hold is lifted; a second lift finds none."""
    subject = shop.work.one_block()
    shop.published(subject)
    ledger_id = subject.topic.ledger_id
    with shop.work.open() as stack:
        set_hold(stack, ledger_scope(ledger_id), reason="audit 17", author="ops")
    key = keys.hold(ledger_id)
    return replace(
        _release(shop, subject),
        step="lift",
        arguments={"ledger_id": ledger_id},
        held=key,
        ends_with=frozenset({0, LedgerNotFoundError.exit_code}),
    )


def pause(shop: Shop) -> Scene:
    """A pause is taken away; a second resume finds none, which is no error."""
    subject = shop.work.one_block()
    shop.published(subject)
    scope = Scope("topic", subject.ml_name)
    with shop.work.open() as stack:
        set_pause(stack, scope, TieringMode.PAUSED, reason="audit 17", author="ops")
    return replace(
        _release(shop, subject),
        step="resume",
        arguments={"ml_name": subject.ml_name},
        held=PAUSE.key(scope),
    )


def sweep(shop: Shop) -> Scene:
    """An attempt with both objects and two uploads, which nothing refers to."""
    subject = shop.work.multi_block()
    attempt = shop.killed(subject, "offload.index_put")
    with shop.work.open() as stack:
        for _ in range(2):
            stack.objects.create_upload(attempt.data_key, metadata={})
        shop.work.lab.older(stack)
    return replace(_release(shop, subject), step="sweep", arguments={})


def sweep_stray(shop: Shop) -> Scene:
    """A published attempt, and uploads on its key that nobody knows of."""
    subject = shop.work.one_block()
    shop.published(subject)
    with shop.work.open() as stack:
        [attempt] = stack.book.iter_records(Attempt, keys.attempts_of(subject.topic.ledger_id))
        for _ in range(2):
            stack.objects.create_upload(attempt.record.data_key, metadata={})
    return replace(_release(shop, subject), step="sweep", arguments={})


def _unfinished(topic: ManagedLedger, ledger_id: int, uid: UUID) -> ManagedLedger:
    """As a broker writes it before it sends the first byte."""
    context = OffloadContext(uid=uid, complete=True, timestamp_ms=1, driver_name="aws-s3")
    message = publish_contexts(topic, {ledger_id: context}).message_copy()
    for info in message.ledgerInfo:
        if info.ledgerId == ledger_id:
            info.offloadContext.complete = False
    return topic.with_message(message)


def broker_failed(shop: Shop) -> Scene:
    """The topic's node names an attempt of the broker's that it began and will never finish."""
    subject, uid = shop.work.one_block(), uuid4()
    ledger_id, key = subject.topic.ledger_id, data_key(uid, subject.topic.ledger_id)
    with shop.work.open() as stack:
        stack.objects.put(key, b"half a ledger", metadata={})
        stack.objects.create_upload(key, metadata={})
        found = stack.topics.read(subject.ml_name)
        if found is None:
            raise RuntimeError(f"{subject.ml_name} has no node")
        edit_topic(
            stack,
            subject.ml_name,
            lambda info: _unfinished(info, ledger_id, uid),
            czxid=found[1].stat.czxid,
            applied=lambda _info: False,
        )
    seal(shop.work.lab.endpoints, subject.topic.spec)  # the broker knows it, too

    def repair() -> None:
        for _ in range(2):
            with shop.work.open() as stack:
                shop.work.lab.older(stack)
                clean_up(stack, execute=True)

    return replace(_release(shop, subject), step="sweep", arguments={}, leftover=uid, repair=repair)


def broker_failed_before(shop: Shop) -> Scene:
    """The same, and an earlier run took note of it."""
    scene = broker_failed(shop)
    with shop.work.open() as stack:
        clean_up(stack, execute=True)
        shop.work.lab.older(stack)
    return scene


def scrub(shop: Shop) -> Scene:
    """A published copy lost its data object; the scrub puts a new one in its place."""
    subject = shop.work.multi_block()
    broken = shop.published(subject)
    with shop.work.open() as stack:
        for attempt in stack.book.iter_records(Attempt, keys.attempts_of(subject.topic.ledger_id)):
            stack.objects.delete(attempt.record.data_key)
    scene = _release(shop, subject, broken=broken, blind=True, sends=subject.blocks)
    return replace(scene, step="scrub", arguments={"ml_name": subject.ml_name})


def scrub_of_a_brokers(shop: Shop) -> Scene:
    """The broker's own copy, which a scrub finds whole. Later it is lost, and ours replaces it."""
    subject = shop.work.multi_block()
    shop.work.lab.broker_offloads(subject.topic)
    with shop.work.open() as stack:
        uid = shop.work.lab.context_uid(stack, subject.topic)
        shop.work.lab.older(stack)
    if uid is None:
        raise RuntimeError(f"{subject.ml_name} has no context")

    def repair() -> None:
        with shop.work.open() as stack:
            stack.objects.delete(data_key(uid, subject.topic.ledger_id))
            run_scrub(stack, [subject.ml_name], deep=True)

    scene = _release(shop, subject, broken=uid, repair=repair)
    return replace(scene, step="scrub", arguments={"ml_name": subject.ml_name})
