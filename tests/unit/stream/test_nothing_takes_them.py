"""No clean-up knows segments: their objects and records stay, whatever their age."""

from tests.support.sim_scene import TOPIC
from tests.support.stream_scene import StreamScene
from tiering_assets.clean.clean_up import clean_up
from tiering_assets.look.ledger.survey import survey
from tiering_assets.records import keys

DAY_S = 86_400


def test_clean_up_leaves_objects_and_records_of_segments():
    scene = StreamScene()
    scene.write(b"a", b"b")
    scene.cut()
    scene.write(b"c")
    scene.assign()
    scene.fail_once()
    before = {
        key for key in scene.world.objects.peek_keys() if "/streams/" in key or "/" not in key
    }
    assert len([key for key in before if "/" not in key]) == 4  # two attempts, two objects each
    scene.wait(400 * DAY_S)
    clean_up(scene.process(), execute=True)
    assert before <= {*scene.world.objects.peek_keys()}


def test_no_segment_makes_a_ledger_look_copied():
    scene = StreamScene()
    ledger_id = scene.write(b"a", b"b")
    scene.cut()
    scene.roll_over()
    [view] = [one for one in survey(scene.process(), [TOPIC]) if one.ledger_id == ledger_id]
    assert view.state.value == "sealed"
    assert [*scene.stack.book.keys(keys.certificates_of(ledger_id))] == []


def test_a_cut_that_fails_says_so_in_the_day_book():
    scene = StreamScene()
    scene.write(b"a")
    assert not scene.failed_pages()
    scene.fail_cut()
    assert scene.failed_pages()
