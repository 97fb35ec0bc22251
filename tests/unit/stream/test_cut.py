"""Where a segment is cut: at the last entry that fits, over the ends of ledgers."""

from dataclasses import replace

import pytest

from tests.support.sim_scene import TOPIC
from tests.support.stream_scene import StreamScene
from tiering_assets.resources.errors import RefusedError
from tiering_assets.stream.cut import cut_if_streamed, cut_stream
from tiering_assets.stream.give_up import give_up_segment, stuck_segment
from tiering_assets.stream.status import stream_status
from tiering_assets.stream.switch import close_stream

FRAME = 12


@pytest.fixture
def scene():
    return StreamScene()


def cut_at(scene, size):
    record = scene.cut(size=size, cut=False).record
    return [(one.ledger_id, one.last_entry_id) for one in record.ledgers]


def test_a_ledger_that_fits_whole_is_followed_by_what_fits_of_the_next_one(scene):
    first = scene.write(*(b"x" * 88 for _ in range(3)))
    scene.roll_over()
    second = scene.write(*(b"x" * 88 for _ in range(5)))
    assert cut_at(scene, 520) == [(first, 2), (second, 1)]


def test_where_not_even_one_entry_of_the_next_ledger_fits_a_segment_ends_with_its_ledger(scene):
    first = scene.write(*(b"x" * 88 for _ in range(3)))
    scene.roll_over()
    scene.write(b"y" * 500)
    assert cut_at(scene, 350) == [(first, 2)]


def test_what_fits_to_the_byte_is_one_segment(scene):
    ledger_id = scene.write(b"x" * 88, b"x" * 88)
    assert cut_at(scene, 2 * (88 + FRAME)) == [(ledger_id, 1)]


# ----- all that there is, for who asks


def test_all_that_is_proven_is_cut_into_segments_of_the_size_and_the_producer_is_not_followed(
    scene,
):
    stack = scene.process()
    small = scene.settings_with(segment_bytes=1_048_576)
    ledger_id = scene.write(*(bytes(300_000) for _ in range(8)))
    made = cut_stream(scene.process_with(small), TOPIC)
    assert [one.record.entries for one in made] == [3, 3, 2]
    assert scene.held(made[2]).keys() == {(ledger_id, 6), (ledger_id, 7)}
    assert cut_stream(stack, TOPIC) == []


def test_a_producer_that_goes_on_is_not_followed(scene):
    scene.write(b"a")
    stack = scene.process()

    def judge(facts):
        scene.write(b"more")
        return stack.judge_segment(facts)

    made = cut_stream(replace(stack, judge_segment=judge), TOPIC)
    assert [one.record.entries for one in made] == [1]


def test_a_topic_that_goes_meanwhile_is_told(scene):
    scene.write(b"a")
    stack = scene.process()
    answers = [stack.topics.read(TOPIC), None]

    class Going:
        def read(self, _ml_name):
            return answers.pop(0)

    with pytest.raises(RefusedError, match="is gone: it has no managed ledger"):
        cut_stream(replace(stack, topics=Going()), TOPIC)


def test_what_another_run_assigns_meanwhile_is_helped_to_its_end(scene):
    scene.write(b"a")
    stack = scene.process()
    said: list[str] = []

    def look(settings, source):
        if not said:
            said.append("looked")
            scene.assign()
        return stack.look_at_tail(settings, source)

    meeting = replace(stack, look_at_tail=look, narrate=lambda line: said.append(str(line)))
    made = cut_stream(meeting, TOPIC)
    assert [one.record.number for one in made] == [1]
    assert "another run assigned segment 1" in said


def test_what_another_run_left_is_finished_first(scene):
    scene.write(b"a")
    scene.assign()
    scene.write(b"b")
    assert [one.record.entries for one in cut_stream(scene.process(), TOPIC)] == [1, 1]


def test_a_topic_without_an_open_stream_is_told_how_to_open_one(scene):
    close_stream(scene.process(), scene.chain(), reason="a test", author="ops")
    with pytest.raises(RefusedError, match="tierkeeper stream on"):
        cut_stream(scene.process(), TOPIC)
    with pytest.raises(RefusedError, match="tierkeeper stream on"):
        cut_stream(scene.process(), "t/ns/persistent/nowhere")


def test_a_topic_that_is_not_streamed_is_left_alone_and_another_is_cut(scene):
    assert cut_if_streamed(scene.process(), "t/ns/persistent/nowhere") == []
    scene.write(b"a")
    assert [one.record.entries for one in cut_if_streamed(scene.process(), TOPIC)] == [1]
    close_stream(scene.process(), scene.chain(), reason="a test", author="ops")
    scene.write(b"b")
    assert cut_if_streamed(scene.process(), TOPIC) == []


def test_a_cut_leaves_its_page_closed(scene):
    scene.write(b"a")
    cut_stream(scene.process(), TOPIC)
    assert scene.open_ledgers() == set()


# ----- one that is stuck


def test_the_newest_segment_is_given_up_while_it_is_not_done(scene):
    with pytest.raises(RefusedError, match="each segment"):
        stuck_segment(scene.chain())
    scene.write(b"a")
    scene.assign()
    stuck = stuck_segment(scene.chain())
    given = give_up_segment(scene.process(), stuck, reason="lost", author="ops")
    assert (given.record.number, given.record.previous) == (1, stuck.assigned.sha256)
    with pytest.raises(RefusedError, match="each segment"):
        stuck_segment(scene.chain())


def test_given_up_twice_the_first_reason_stays(scene):
    scene.write(b"a")
    scene.assign()
    stuck = stuck_segment(scene.chain())
    give_up_segment(scene.process(), stuck, reason="first", author="ops")
    again = give_up_segment(scene.process(), stuck, reason="second", author="ops")
    assert again.record.reason == "first"


# ----- for people


def test_status_says_how_far_a_stream_is(scene):
    ledger_id = scene.write(b"aa", b"bb")
    scene.cut()
    scene.write(b"ccc")
    found = stream_status(scene.process(), TOPIC)
    assert (found.state, found.stream, found.segments, found.newest) == ("open", 1, 1, "offloaded")
    assert found.next_position == f"{ledger_id}:2"
    assert (found.waiting_entries, found.waiting_bytes, found.waits) == (1, 3, "tail")


def test_status_of_a_segment_that_is_under_way_failed_or_given_up(scene):
    assert stream_status(scene.process(), TOPIC).newest is None
    scene.write(b"a")
    scene.assign()
    assert stream_status(scene.process(), TOPIC).newest == "assigned"
    scene.fail_once()
    assert stream_status(scene.process(), TOPIC).newest == "failed"
    stuck = stuck_segment(scene.chain())
    give_up_segment(scene.process(), stuck, reason="lost", author="ops")
    assert stream_status(scene.process(), TOPIC).newest == "given up"


def test_status_of_no_stream_and_of_one_that_ended(scene):
    assert stream_status(scene.process(), "t/ns/persistent/nowhere").state == "none"
    close_stream(scene.process(), scene.chain(), reason="moved", author="ops")
    found = stream_status(scene.process(), TOPIC)
    assert (found.state, found.segments, found.waits) == ("closed", 0, "moved")
