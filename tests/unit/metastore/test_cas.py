import pytest

from tests.support.metastore_sim import Cluster
from tiering_assets.resources.errors import (
    MetadataConflictError,
    MetadataError,
    MetadataUnknownError,
)
from tiering_assets.resources.metastore.cas import NodeEdit, Pace, edit_node

PATH = "/managed-ledgers/a"


class Clock:
    def __init__(self):
        self.now_s = 100.0
        self.slept_s = []

    def __call__(self):
        return self.now_s

    def sleep(self, seconds):
        self.slept_s.append(seconds)
        self.now_s += seconds


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def cluster():
    cluster = Cluster()
    cluster.put(PATH, b"start ")
    return cluster


@pytest.fixture
def store(cluster, clock):
    return cluster.client(clock)


def add_mark(node):
    return None if b"mark" in node.data else node.data + b"mark"


def run(store, clock, decide=add_mark, *, expected_czxid=None, **pace):
    edit = NodeEdit(
        decide=decide,
        applied=lambda node: b"mark" in node.data,
        expected_czxid=expected_czxid or store.get(PATH).stat.czxid,
    )
    return edit_node(
        store,
        PATH,
        edit,
        Pace(clock=clock, sleep=clock.sleep, jitter=lambda: 0.0, **pace),
    )


def other_writes(cluster, data=b"other "):
    stored = cluster.nodes[PATH]
    cluster.client().set(PATH, data, expected_version=stored.stat.version)


def test_an_edit_is_applied_once(store, clock):
    result = run(store, clock)
    assert (result.changed, result.version, result.attempts) == (True, 1, 1)
    assert store.get(PATH).data == b"start mark"
    assert clock.slept_s == []


def test_nothing_to_change_writes_nothing(store, clock):
    run(store, clock)
    result = run(store, clock)
    assert (result.changed, result.version) == (False, 1)
    assert store.writes_sent == 1


def test_a_lost_compare_and_set_decides_again_on_fresh_bytes(cluster, store, clock):
    writers = iter([b"one ", b"two "])

    def before_write():
        data = next(writers, None)
        if data is not None:
            other_writes(cluster, data)

    store.before_write = before_write
    result = run(store, clock)
    assert result.attempts == 3
    assert store.get(PATH).data == b"two mark"
    assert clock.slept_s == [0.5, 1.0]


def test_giving_up_is_bounded_and_never_hammers(cluster, store, clock):
    store.before_write = lambda: other_writes(cluster)
    with pytest.raises(MetadataConflictError, match="lost all 4 attempts"):
        run(store, clock, attempts=4, backoff_s=0.0)
    assert store.writes_sent == 4
    assert clock.slept_s == [0.2, 0.4, 0.8]
    assert store.get(PATH).data == b"other "


@pytest.mark.parametrize("applied", [True, False])
def test_an_unknown_outcome_is_settled_by_reading(store, clock, applied):
    store.lose_answer(applied=applied)
    result = run(store, clock)
    assert result.changed
    assert store.get(PATH).data == b"start mark"
    assert result.version == 1
    assert store.writes_sent == (1 if applied else 2)
    assert clock.slept_s == [0.5]


@pytest.mark.parametrize("applied", [True, False])
def test_an_unknown_outcome_of_the_last_attempt_is_read_too(store, clock, applied):
    store.lose_answer(applied=applied)
    if applied:
        assert run(store, clock, attempts=1).changed
    else:
        with pytest.raises(MetadataUnknownError, match="does not show it"):
            run(store, clock, attempts=1)


def test_an_unknown_outcome_that_cannot_be_read_stays_unknown(store, clock):
    czxid = store.get(PATH).stat.czxid
    store.lose_answer(applied=True)
    store.before_write = lambda: store.fail_reads(1)
    with pytest.raises(MetadataUnknownError, match="cannot be read now"):
        run(store, clock, expected_czxid=czxid)


def test_a_read_that_fails_before_any_write_is_no_unknown_outcome(store, clock):
    czxid = store.get(PATH).stat.czxid
    store.fail_reads(1)
    with pytest.raises(MetadataError) as raised:
        run(store, clock, expected_czxid=czxid)
    assert not isinstance(raised.value, MetadataUnknownError)
    assert store.writes_sent == 0


def test_a_topic_made_again_ends_it_without_a_write(store, clock):
    czxid = store.get(PATH).stat.czxid
    store.delete(PATH, expected_version=0)
    store.create(PATH, b"new ")
    with pytest.raises(MetadataConflictError, match="made again"):
        run(store, clock, expected_czxid=czxid)
    assert store.get(PATH).data == b"new "
    assert clock.slept_s == []


def test_a_topic_that_is_gone_ends_it(store, clock):
    czxid = store.get(PATH).stat.czxid
    store.delete(PATH, expected_version=0)
    with pytest.raises(MetadataConflictError, match="gone"):
        run(store, clock, expected_czxid=czxid)


def test_a_slow_decision_is_not_written(store, clock):
    def slow(node):
        clock.now_s += 2.1
        return add_mark(node)

    with pytest.raises(MetadataConflictError) as raised:
        run(store, clock, slow, attempts=2)
    assert "2.1 s between read and write" in str(raised.value.__cause__)
    assert store.writes_sent == 0


def test_a_new_session_needs_a_fresh_read(store, clock):
    drops = iter([store.drop_session])
    store.before_write = lambda: next(drops, lambda: None)()
    result = run(store, clock)
    assert result.attempts == 2
    assert store.writes_sent == 1


def test_what_the_edit_refuses_passes_through(store, clock):
    def refuse(node):
        raise MetadataConflictError("ledger 4: another attempt")

    with pytest.raises(MetadataConflictError, match="ledger 4: another attempt"):
        run(store, clock, refuse)
    assert (store.writes_sent, clock.slept_s) == (0, [])


def test_no_attempt_at_all_is_a_callers_mistake(store, cluster, clock):
    with pytest.raises(ValueError, match="at least one attempt, got 0"):
        run(store, clock, attempts=0)
    assert cluster.nodes[PATH].data == b"start "


def test_a_node_that_shows_the_change_already_is_decided_on_all_the_same(store, clock):
    run(store, clock)
    result = run(store, clock)
    assert (result.changed, result.attempts) == (False, 1)


def test_a_node_of_any_making_is_taken_where_none_is_expected(store, clock):
    edit = NodeEdit(decide=add_mark, applied=lambda _node: False, expected_czxid=None)
    assert edit_node(store, PATH, edit, Pace(clock=clock)).changed
