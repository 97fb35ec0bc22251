"""A topic is let in only where the budget holds whatever the topics beside it still do."""

from dataclasses import replace

from tiering_assets.change.disturbance import Recent
from tiering_assets.change.reload_room import RELOADS_MAX, ReloadRoom
from tiering_assets.resources.settings import Settings

LIMITS = replace(Settings().disturb, per_cluster_hour_max=RELOADS_MAX, per_broker_hour_max=100)
NONE = Recent(topic=0, broker=0, cluster=0)


def let_in(room, name, recent=NONE, *, broker="b1", limits=LIMITS, ended=None):
    ended = room.ended if ended is None else ended
    return room.let_in(name, broker, recent, limits, ended=ended)


def test_the_first_topic_needs_no_more_room_than_one_reload():
    room = ReloadRoom()
    with room.changing("a"):
        assert let_in(room, "a", Recent(topic=0, broker=3, cluster=RELOADS_MAX - 1))


def test_the_next_one_waits_while_the_first_may_use_up_the_budget():
    room = ReloadRoom()
    with room.changing("b"):
        with room.changing("a"):
            assert let_in(room, "a")
            assert not let_in(room, "b")
            assert let_in(room, "a"), "a half of the same topic asks again"
        assert let_in(room, "b")


def test_what_ended_after_the_records_were_read_may_be_missing_in_them():
    room = ReloadRoom()
    with room.changing("b"):
        before = room.ended
        with room.changing("a"):
            assert let_in(room, "a")
        assert not let_in(room, "b", ended=before)
        assert let_in(room, "b", ended=room.ended)


def test_other_brokers_topics_take_nothing_from_a_brokers_budget():
    limits = replace(LIMITS, per_broker_hour_max=RELOADS_MAX, per_cluster_hour_max=100)
    for at_a, at_b, may in (
        ("b1", "b2", True),
        ("b1", "b1", False),
        (None, "b1", False),  # nobody knows where the first one is
    ):
        room = ReloadRoom()
        with room.changing("a"), room.changing("b"):
            assert let_in(room, "a", broker=at_a, limits=limits)
            assert let_in(room, "b", broker=at_b, limits=limits) is may


def test_who_only_looks_takes_no_room():
    room = ReloadRoom()
    assert let_in(room, "looked at")
    with room.changing("a"):
        assert let_in(room, "a")
    with room.changing("waits"):
        """It is not due, and asks for nothing."""
    assert room.ended == 1


def test_alone_a_topic_is_let_in_whatever_the_records_say():
    """A budget that is used up is told by whoever reads the records, and waits for another run."""
    room = ReloadRoom()
    with room.changing("a"):
        assert let_in(room, "a", Recent(topic=9, broker=999, cluster=999))


def test_where_the_broker_is_not_known_the_clusters_budget_counts():
    limits = replace(LIMITS, per_cluster_hour_max=RELOADS_MAX + 1)
    nowhere = Recent(topic=0, broker=None, cluster=0)
    room = ReloadRoom()
    with room.changing("a"), room.changing("b"), room.changing("c"):
        assert let_in(room, "a", nowhere, broker=None, limits=limits)
        assert let_in(room, "b", nowhere, broker=None, limits=limits)
        assert not let_in(room, "c", nowhere, broker=None, limits=limits)
