from uuid import UUID

import pytest

from tiering_assets.change.topic_edit import PublicationPlan, plan_publication
from tiering_assets.ground.reasons import Reason, Wait
from tiering_assets.resources._proto import MLDataFormats_pb2 as ml_pb2
from tiering_assets.resources.errors import MetadataConflictError
from tiering_assets.resources.metastore.ledger_info import decode_managed_ledger
from tiering_assets.resources.metastore.offload_context import OffloadContext, publish_contexts

OURS = UUID("1ecdf250-a9b4-4953-947e-0ace4164fb4a")
THEIRS = UUID("317fad33-457f-4d7d-8c56-29d2d4e6f21e")


def topic(*ledgers):
    """A managed-ledger node; each ledger is (id, closed, context uid or None, complete)."""
    message = ml_pb2.ManagedLedgerInfo()
    for ledger_id, closed, uid, complete in ledgers:
        info = message.ledgerInfo.add(ledgerId=ledger_id, timestamp=1767225600000 if closed else 0)
        if uid is not None:
            msb, lsb = (x - (1 << 64) if x >> 63 else x for x in divmod(uid.int, 1 << 64))
            info.offloadContext.uidMsb, info.offloadContext.uidLsb = msb, lsb
            info.offloadContext.complete = complete
    return decode_managed_ledger(message.SerializeToString())


def only(ledger):
    """The wait of the one wanted ledger, which nothing else may be planned for."""
    plan = plan_publication(topic(ledger), {ledger[0]: OURS})
    assert (plan.write, plan.already) == ((), ())
    return plan.waiting[ledger[0]]


def test_a_sealed_ledger_without_a_context_is_written():
    assert plan_publication(topic((1, True, None, False)), {1: OURS}) == PublicationPlan(
        write=(1,), already=()
    )


def test_our_complete_context_is_done():
    assert plan_publication(topic((1, True, OURS, True)), {1: OURS}) == PublicationPlan(
        write=(), already=(1,)
    )


def test_another_complete_context_is_never_overwritten():
    assert only((1, True, THEIRS, True)) == Wait(Reason.PUBLISHED, f"by attempt {THEIRS}")


@pytest.mark.parametrize("uid", [THEIRS, OURS])
def test_an_incomplete_context_is_a_running_copy_of_the_brokers(uid):
    """We never write an incomplete one, so not even our own uid makes it ours."""
    assert only((1, True, uid, False)) == Wait(
        Reason.BROKER_COPYING, f"its context names attempt {uid}"
    )


def test_a_trimmed_ledger_is_expired_and_no_error():
    plan = plan_publication(topic((2, True, None, False)), {1: OURS})
    assert plan == PublicationPlan(
        write=(),
        already=(),
        waiting={1: Wait(Reason.EXPIRED, "the topic no longer lists it; it was trimmed")},
    )


def test_an_open_ledger_waits():
    assert only((1, False, None, False)) == Wait(
        Reason.OPEN, "the topic lists it as still written to"
    )


def test_ledgers_are_sorted_out_one_by_one_and_others_are_left_alone():
    node = topic(
        (9, False, None, False),
        (3, True, THEIRS, True),
        (1, True, None, False),
        (2, True, OURS, True),
        (4, True, None, False),
        (5, True, None, False),
    )
    plan = plan_publication(node, dict.fromkeys((4, 3, 2, 1, 7, 9), OURS))
    assert (plan.write, plan.already) == ((1, 4), (2,))
    assert {ledger_id: wait.reason for ledger_id, wait in plan.waiting.items()} == {
        3: Reason.PUBLISHED,
        7: Reason.EXPIRED,
        9: Reason.OPEN,
    }


def test_the_edit_accepts_what_the_plan_writes_and_refuses_what_it_does_not():
    """One ledger too many in the edit and the whole topic would publish nothing."""
    node = topic(
        (1, True, None, False),
        (2, False, None, False),
        (3, True, THEIRS, True),
        (4, True, THEIRS, False),
    )
    wanted = dict.fromkeys((1, 2, 3, 4, 5), OURS)
    plan = plan_publication(node, wanted)
    context = OffloadContext(uid=OURS, complete=True, timestamp_ms=1)
    edited = publish_contexts(node, dict.fromkeys(plan.write, context))
    assert plan_publication(edited, wanted).already == plan.write == (1,)
    for ledger_id in plan.waiting:
        with pytest.raises(MetadataConflictError):
            publish_contexts(node, {ledger_id: context})


def test_a_broken_attempts_context_is_replaced_only_once_it_is_complete():
    """Incomplete, its broker is at work on it."""
    complete, begun = topic((1, True, THEIRS, True)), topic((1, True, THEIRS, False))
    assert plan_publication(complete, {1: OURS}, {1: THEIRS}).write == (1,)
    plan = plan_publication(begun, {1: OURS}, {1: THEIRS})
    assert plan.write == ()
    assert plan.waiting[1].reason is Reason.BROKER_COPYING
