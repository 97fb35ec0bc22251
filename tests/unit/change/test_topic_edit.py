"""Changes of a topic's node, judged by decoding the edited bytes anew."""

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tiering_assets.change.topic_edit import (
    Copy,
    TopicChange,
    apply_change,
    is_applied,
    is_marked,
    undo_change,
)
from tiering_assets.resources._proto import MLDataFormats_pb2 as ml_pb2
from tiering_assets.resources.errors import MetadataConflictError
from tiering_assets.resources.metastore.ledger_info import (
    decode_managed_ledger,
    encode_managed_ledger,
)
from tiering_assets.resources.metastore.offload_context import OffloadContext

OURS = UUID("1ecdf250-a9b4-4953-947e-0ace4164fb4a")
THEIRS = UUID("317fad33-457f-4d7d-8c56-29d2d4e6f21e")
SEALED, PUBLISHED, MARKED, FOREIGN = "sealed", "published", "marked", "foreign"


def context(uid=OURS):
    return OffloadContext(
        uid=uid, complete=True, timestamp_ms=7, driver_name="aws-s3", properties={"bucket": "b"}
    )


def topic(states):
    message = ml_pb2.ManagedLedgerInfo()
    for ledger_id, state in states.items():
        info = message.ledgerInfo.add(ledgerId=ledger_id, entries=3, size=9, timestamp=1)
        if state != SEALED:
            uid = THEIRS if state == FOREIGN else OURS
            parts = [x - (1 << 64) if x >> 63 else x for x in divmod(uid.int, 1 << 64)]
            info.offloadContext.uidMsb, info.offloadContext.uidLsb = parts
            info.offloadContext.complete = True
            info.offloadContext.bookkeeperDeleted = state == MARKED
    return decode_managed_ledger(message.SerializeToString())


def reread(managed_ledger):
    return decode_managed_ledger(encode_managed_ledger(managed_ledger))


def apply(managed_ledger, wanted):
    return apply_change(managed_ledger, wanted, {i: context() for i in wanted.contexts})


def test_contexts_and_marks_go_out_in_one_edit():
    before = topic({1: PUBLISHED, 2: SEALED, 3: SEALED, 4: FOREIGN})
    wanted = TopicChange(contexts={2: Copy(OURS, 2)}, marks={1: Copy(OURS, 2)})
    after = reread(apply(before, wanted))
    assert is_applied(after, wanted)
    assert is_marked(after, 1, OURS)
    assert after.ledger(2).offload.uid == OURS
    assert not after.ledger(2).offload.bookkeeper_deleted
    assert after.ledger(3) == before.ledger(3)
    assert after.ledger(4) == before.ledger(4)
    assert apply(after, wanted) is None  # a second run has nothing to write


def test_another_attempts_ledger_is_never_marked():
    with pytest.raises(MetadataConflictError, match="ledger 4"):
        apply(topic({2: SEALED, 4: FOREIGN}), TopicChange(marks={4: Copy(OURS, 2)}))


def test_half_an_edit_is_not_taken_for_the_whole():
    wanted = TopicChange(contexts={2: Copy(OURS, 2)}, marks={1: Copy(OURS, 2)})
    assert not is_applied(topic({1: PUBLISHED, 2: PUBLISHED}), wanted)
    assert not is_applied(topic({1: MARKED, 2: SEALED}), wanted)
    assert is_applied(topic({1: MARKED, 2: PUBLISHED}), wanted)


@given(
    states=st.dictionaries(
        st.integers(1, 9), st.sampled_from([SEALED, PUBLISHED, FOREIGN]), min_size=1
    ),
    data=st.data(),
)
def test_undoing_gives_back_what_was_there(states, data):
    sealed = [i for i, state in states.items() if state == SEALED]
    published = [i for i, state in states.items() if state == PUBLISHED]
    wanted = TopicChange(
        contexts=dict.fromkeys(
            data.draw(st.sets(st.sampled_from(sealed or [0]))) - {0}, Copy(OURS, 2)
        ),
        marks=dict.fromkeys(
            data.draw(st.sets(st.sampled_from(published or [0]))) - {0}, Copy(OURS, 2)
        ),
    )
    before = topic(states)
    edited = apply(before, wanted)
    if edited is None:
        assert not wanted
        return
    undone = undo_change(reread(edited), wanted)
    assert undone is not None
    assert reread(undone).ledgers == before.ledgers
    assert undo_change(reread(undone), wanted) is None


@pytest.mark.parametrize("state", [FOREIGN, PUBLISHED, MARKED])
def test_a_broken_context_is_replaced_mark_and_all_and_no_other(state):
    broken = THEIRS if state == FOREIGN else OURS
    sound = UUID(int=7)
    before = topic({1: state, 2: FOREIGN, 3: SEALED})
    change = TopicChange(contexts={1: Copy(sound, 2)}, replacing={1: broken})
    edited = apply_change(before, change, {1: context(sound)})
    assert edited is not None
    found = decode_managed_ledger(encode_managed_ledger(edited))
    replaced = found.ledger(1)
    assert replaced is not None
    offload = replaced.offload
    assert offload is not None
    assert (offload.uid, offload.complete, offload.bookkeeper_deleted) == (sound, True, False)
    assert [found.ledger(i) for i in (2, 3)] == [before.ledger(i) for i in (2, 3)]
    assert is_applied(found, change)
    assert apply_change(found, change, {1: context(sound)}) is None
    undone = undo_change(found, change)
    assert undone is not None
    taken_back = undone.ledger(1)
    assert taken_back is not None
    assert taken_back.offload is None  # readers are on the bookies, not on the broken object
    assert undo_change(before, change) is None


def test_a_context_that_is_not_the_broken_one_stays():
    before = topic({1: FOREIGN})
    change = TopicChange(contexts={1: Copy(UUID(int=7), 2)}, replacing={1: OURS})
    assert apply_change(before, change, {1: context(UUID(int=7))}) is None
    assert is_applied(before, change)  # nothing of it is left to be written


def test_a_part_of_a_change_is_about_its_own_ledgers_alone():
    copy = Copy(OURS, 2)
    change = TopicChange(contexts={1: copy, 2: copy}, marks={3: copy, 4: copy})
    part = change.only({1, 4})
    assert (part.contexts, part.marks) == ({1: copy}, {4: copy})


@pytest.mark.parametrize("state", [SEALED, PUBLISHED, FOREIGN, "incomplete", "unlisted"])
def test_only_the_complete_context_of_the_attempt_itself_is_marked(state):
    listed = topic({1: MARKED if state == "incomplete" else state, 2: MARKED})
    if state == "incomplete":
        message = listed.message_copy()
        message.ledgerInfo[0].offloadContext.complete = False
        listed = listed.with_message(message)
    if state == FOREIGN:
        message = listed.message_copy()
        message.ledgerInfo[0].offloadContext.bookkeeperDeleted = True
        listed = listed.with_message(message)
    assert not is_marked(listed, 7 if state == "unlisted" else 1, OURS)
    assert is_marked(listed, 2, OURS)


def test_what_a_topic_does_not_list_any_more_is_not_undone():
    copy = Copy(OURS, 2)
    assert undo_change(topic({1: SEALED}), TopicChange(contexts={7: copy}, marks={8: copy})) is None
