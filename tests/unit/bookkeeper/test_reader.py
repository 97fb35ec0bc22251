"""The reader against simulated bookies: the failover matrix of docs and BookKeeper's own reader."""

from __future__ import annotations

import contextlib
import socket
from dataclasses import replace

import pytest

from tests.support.bookie_proxy import BookieProxy
from tests.support.bookie_sim import BookieSim
from tiering_assets.resources.bookkeeper.ledger import (
    BookKeeperState,
    DigestType,
    EnsembleFragment,
    LedgerMetadata,
)
from tiering_assets.resources.bookkeeper.placement import write_set
from tiering_assets.resources.bookkeeper.pool import BatchSupport, BookiePool
from tiering_assets.resources.bookkeeper.reader import LedgerReader
from tiering_assets.resources.bookkeeper.stored_entry import EntryCodec
from tiering_assets.resources.errors import (
    BookieNotAuthorizedError,
    BookieUnreachableError,
    EntryUnavailableError,
    FormatError,
    IntegrityError,
    LedgerNotOnBookieError,
    RefusedError,
)
from tiering_assets.resources.settings import BookieSettings

LEDGER = 9  # a multiple of three: the first bookie of the ensemble is asked first
IDS = ("bk0", "bk1", "bk2")
SETTINGS = BookieSettings(request_timeout_s=0.6, batch_bytes_max=2000, window=8)


class Cluster:
    """Three simulated bookies and one CLOSED ledger spread over them."""

    def __init__(self, stack):
        self.sims = {name: stack.enter_context(BookieSim(name)) for name in IDS}
        self.addresses = {name: sim.address for name, sim in self.sims.items()}
        self.stack = stack
        self.now = 0.0

    def ledger(self, entries, *, write_quorum=3, segments=None, beyond=0, digest=DigestType.CRC32C):
        """Store `entries` entries and `beyond` more after the last one."""
        metadata = LedgerMetadata(
            ledger_id=LEDGER,
            state=BookKeeperState.CLOSED,
            last_entry_id=entries - 1,
            length=sum(len(payload(e)) for e in range(entries)),
            ensemble_size=len((segments or [(0, IDS)])[0][1]),
            write_quorum=write_quorum,
            ack_quorum=1,
            segments=tuple(EnsembleFragment(*s) for s in segments or [(0, IDS)]),
            digest_type=digest,
            password=b"pw",
        )
        codec = EntryCodec(ledger_id=LEDGER, digest_type=digest, password=b"pw")
        length = 0
        for entry_id in range(entries + beyond):
            length += len(payload(entry_id))
            stored = codec.encode(
                entry_id=entry_id,
                last_add_confirmed=entry_id - 1,
                cumulative_length=length,
                payload=payload(entry_id),
            )
            for bookie_id in write_set(metadata, entry_id):
                self.sims[bookie_id].entries[LEDGER, entry_id] = stored
        return metadata

    def pool(self, settings=SETTINGS, **options):
        pool = BookiePool(settings, self.addresses, clock=lambda: self.now, **options)
        # Deadlines use the same clock; it stands still, so sockets end by their own timeout.
        return self.stack.enter_context(pool)

    def reader(self, metadata, settings=SETTINGS, **options):
        return LedgerReader(metadata, self.pool(settings), settings, **options)

    def reads(self, bookie_id, opcode):
        return [s for s in self.sims[bookie_id].seen if s.opcode == opcode]


def payload(entry_id):
    return b"%06d" % entry_id * (entry_id % 20)


def read_all(reader, first=0, last=None, **options):
    """Return [(id, payload, cumulative length)], copied while valid."""
    last = reader.metadata.last_entry_id if last is None else last
    return [
        (entry_id, bytes(view), length)
        for batch in reader.iter_batches(first_entry_id=first, last_entry_id=last, **options)
        for entry_id, view, length in batch
    ]


def expected(first, last):
    lengths = [sum(len(payload(e)) for e in range(n + 1)) for n in range(last + 1)]
    return [(e, payload(e), lengths[e]) for e in range(first, last + 1)]


@pytest.fixture
def cluster():
    with contextlib.ExitStack() as stack:
        made = Cluster(stack)
        yield made
        seen = [s for sim in made.sims.values() for s in sim.seen]
        assert {(s.version, s.flags) for s in seen} <= {(2, 0)}, "a reader sent a flag"
        assert all(s.body_bytes == {2: 20, 7: 40}[s.opcode] for s in seen), "a reader sent a key"


@pytest.mark.parametrize("in_flight", [1, 2])
@pytest.mark.parametrize("digest", list(DigestType), ids=lambda d: d.name)
def test_a_ledger_is_read_in_batches_from_one_bookie(cluster, digest, in_flight):
    metadata = cluster.ledger(200, digest=digest)
    settings = replace(SETTINGS, batches_in_flight=in_flight)
    assert read_all(cluster.reader(metadata, settings)) == expected(0, 199)
    assert len(cluster.reads("bk0", 7)) > 3
    assert not cluster.sims["bk1"].seen
    assert not cluster.reads("bk0", 2)


@pytest.mark.parametrize(("first", "last"), [(0, 0), (5, 5), (17, 133), (199, 199)])
def test_a_range_is_read_and_nothing_else(cluster, first, last):
    metadata = cluster.ledger(200)
    assert read_all(cluster.reader(metadata), first, last) == expected(first, last)
    for request in cluster.reads("bk0", 7):
        assert request.entry_id + request.max_count - 1 == last


def test_entries_beyond_the_last_one_are_dropped(cluster):
    metadata = cluster.ledger(30, beyond=10)
    cluster.sims["bk0"].faults.batch_ignores_count = True
    assert read_all(cluster.reader(metadata)) == expected(0, 29)


def test_short_batches_are_continued(cluster):
    metadata = cluster.ledger(40)
    cluster.sims["bk0"].faults.batch_count_max = 3
    assert read_all(cluster.reader(metadata)) == expected(0, 39)
    assert [r.entry_id for r in cluster.reads("bk0", 7)] == list(range(0, 40, 3))


def test_an_entry_larger_than_a_batch_comes_alone(cluster):
    metadata = cluster.ledger(200)
    settings = replace(SETTINGS, batch_bytes_max=1)
    assert read_all(cluster.reader(metadata, settings), 0, 20) == expected(0, 20)
    assert len(cluster.reads("bk0", 7)) == 21


def test_different_ledgers_hints_and_replicas_prefer_different_bookies(cluster):
    metadata = cluster.ledger(5)
    read_all(cluster.reader(metadata, first_bookie_hint=1))
    assert [len(cluster.sims[b].seen) for b in IDS] == [0, 1, 0]
    read_all(cluster.reader(metadata), replica=2)
    assert [len(cluster.sims[b].seen) for b in IDS] == [0, 1, 1]


def test_an_old_bookie_is_read_entry_by_entry_and_remembered(cluster):
    metadata = cluster.ledger(50)
    cluster.sims["bk0"].faults.reset_on_batch = True
    reader = cluster.reader(metadata)
    for _ in range(2):
        assert read_all(reader) == expected(0, 49)
    assert len(cluster.reads("bk0", 7)) == 1
    assert len(cluster.reads("bk0", 2)) == 100
    assert not cluster.sims["bk1"].seen


def test_a_stale_connection_is_not_taken_for_an_old_bookie(cluster):
    metadata = cluster.ledger(50)
    pool = cluster.pool()
    reader = LedgerReader(metadata, pool, SETTINGS)
    reader.read_entry(0)
    cluster.sims["bk0"].drop_connections()
    assert read_all(reader) == expected(0, 49)
    assert pool.batch_support("bk0") is BatchSupport.YES


def test_striped_entries_are_read_singly_from_their_write_sets(cluster):
    metadata = cluster.ledger(100, write_quorum=2)
    assert read_all(cluster.reader(metadata)) == expected(0, 99)
    for position, bookie_id in enumerate(IDS):
        assert not cluster.reads(bookie_id, 7)
        asked = [s.entry_id for s in cluster.reads(bookie_id, 2)]
        assert set(asked) == set(range(position, 100, 3))


def test_striped_entries_of_another_replica_come_from_other_bookies(cluster):
    metadata = cluster.ledger(60, write_quorum=2)
    assert read_all(cluster.reader(metadata), replica=1) == expected(0, 59)
    assert {s.entry_id % 3 for s in cluster.reads("bk0", 2)} == {2}


def test_single_reads_answered_out_of_order_come_out_in_order(cluster):
    metadata = cluster.ledger(64, segments=[(0, ("bk0",))], write_quorum=1)
    cluster.sims["bk0"].faults.reset_on_batch = True
    cluster.sims["bk0"].faults.reorder = 8
    settings = replace(SETTINGS, batch_bytes_max=1 << 20, window=8)
    assert read_all(cluster.reader(metadata, settings)) == expected(0, 63)


def test_an_ensemble_change_moves_to_the_bookies_of_the_next_segment(cluster):
    metadata = cluster.ledger(
        90, segments=[(0, ("bk0", "bk1")), (50, ("bk1", "bk2"))], write_quorum=2
    )
    assert read_all(cluster.reader(metadata)) == expected(0, 89)
    for sim in cluster.sims.values():
        for request in sim.seen:
            end = request.entry_id + request.max_count - 1
            assert end == (49 if request.entry_id < 50 else 89)


def silence(sim, at):
    sim.faults.silent_to.add(at)


def flip(sim, at):
    sim.faults.flipped.add(at)


def lose(sim, at):
    del sim.entries[at]


def status(code):
    def fault(sim, at):
        sim.faults.status[at] = code

    return fault


def garbage(sim, at):
    sim.faults.garbage = b"\0\0\0\x20" + bytes(32)


def death(sim, at):
    sim.stop()


FAULTS = {
    "no such ledger": (status(1), LedgerNotOnBookieError),
    "no such entry": (lose, Exception),
    "bad request": (status(100), Exception),
    "i/o error": (status(101), Exception),
    "busy": (status(106), Exception),
    "limbo": (status(107), Exception),
    "silence": (silence, BookieUnreachableError),
    "flipped bit": (flip, IntegrityError),
    "garbage": (garbage, FormatError),
    "death": (death, BookieUnreachableError),
}
every_fault = pytest.mark.parametrize("fault", FAULTS)


@every_fault
@pytest.mark.parametrize("write_quorum", [2, 3])
@pytest.mark.parametrize("bad", [0, 30, 59])
def test_one_bad_replica_costs_no_entry(cluster, fault, write_quorum, bad):
    metadata = cluster.ledger(60, write_quorum=write_quorum)
    bookie_id = write_set(metadata, bad)[0] if write_quorum == 2 else "bk0"
    FAULTS[fault][0](cluster.sims[bookie_id], (LEDGER, bad))
    assert read_all(cluster.reader(metadata)) == expected(0, 59)


@every_fault
def test_all_replicas_bad_names_each_bookie_after_giving_what_came_before(cluster, fault):
    metadata = cluster.ledger(60, write_quorum=3)
    reader = cluster.reader(metadata)
    assert read_all(reader, 0, 3) == expected(0, 3)
    spoil, kind = FAULTS[fault]
    for sim in cluster.sims.values():
        spoil(sim, (LEDGER, 20))
    got = []
    with pytest.raises(EntryUnavailableError) as caught:  # noqa: PT012
        for batch in reader.iter_batches(first_entry_id=0, last_entry_id=59):
            got += [entry_id for entry_id, _, _ in batch]
    unusable = fault in ("death", "garbage")  # these hit every entry
    assert got == ([] if unusable else list(range(20)))
    assert caught.value.entry_id == (0 if unusable else 20)
    assert set(caught.value.failures) == set(IDS)
    assert all(isinstance(e, kind) for e in caught.value.failures.values())


@pytest.mark.parametrize("bad", [0, 30, 59])
def test_an_entry_flipped_on_every_replica_is_named_wherever_it_is(cluster, bad):
    metadata = cluster.ledger(60)
    for sim in cluster.sims.values():
        flip(sim, (LEDGER, bad))
    reader, got = cluster.reader(metadata), []
    with pytest.raises(EntryUnavailableError) as caught:  # noqa: PT012
        for batch in reader.iter_batches(first_entry_id=0, last_entry_id=59):
            got += [entry_id for entry_id, _, _ in batch]
    assert got == list(range(bad))
    assert caught.value.entry_id == bad
    assert all(isinstance(e, IntegrityError) for e in caught.value.failures.values())


@pytest.mark.parametrize("write_quorum", [2, 3])
def test_not_authorised_ends_at_once(cluster, write_quorum):
    metadata = cluster.ledger(60, write_quorum=write_quorum)
    for sim in cluster.sims.values():
        sim.faults.status_for_all = 102
    reader = cluster.reader(metadata)
    with pytest.raises(BookieNotAuthorizedError):
        read_all(reader)
    with pytest.raises(BookieNotAuthorizedError):
        reader.read_entry(0)
    if write_quorum == 3:
        assert not cluster.sims["bk1"].seen


def test_a_batch_with_a_bad_digest_gives_its_good_prefix_once(cluster):
    metadata = cluster.ledger(60)
    cluster.sims["bk0"].faults.flipped.add((LEDGER, 7))
    settings = replace(SETTINGS, batch_bytes_max=1 << 20)
    batches = cluster.reader(metadata, settings).iter_batches(first_entry_id=0, last_entry_id=59)
    assert [entry_id for entry_id, _, _ in next(batches)] == list(range(7))
    assert [entry_id for entry_id, _, _ in next(batches)] == [7]
    assert [entry_id for entry_id, _, _ in next(batches)] == list(range(8, 60))
    assert [(s.opcode, s.entry_id) for s in cluster.sims["bk1"].seen] == [(2, 7), (7, 8)]


def test_a_silent_bookie_costs_one_timeout_and_is_tried_again_later(cluster):
    metadata = cluster.ledger(60)
    cluster.sims["bk0"].faults.silent = True
    reader = cluster.reader(metadata)
    for _ in range(3):
        assert read_all(reader) == expected(0, 59)
    assert len(cluster.sims["bk0"].seen) == 1
    cluster.sims["bk0"].faults.silent = False
    cluster.now += 31
    read_all(reader)
    assert len(cluster.sims["bk0"].seen) > 1


def test_a_rotten_bookie_is_tried_last_for_this_ledger_only(cluster):
    metadata = cluster.ledger(60)
    cluster.sims["bk0"].faults.flipped.add((LEDGER, 1))  # entry 0 has no payload to flip
    pool = cluster.pool()
    reader = LedgerReader(metadata, pool, SETTINGS)
    assert read_all(reader) == expected(0, 59)
    before = len(cluster.sims["bk0"].seen)
    assert read_all(reader) == expected(0, 59)
    assert len(cluster.sims["bk0"].seen) == before
    assert not pool.silent_lately("bk0")


def test_the_only_replica_is_asked_again_after_a_lost_connection(cluster):
    metadata = cluster.ledger(60, segments=[(0, ("bk0",))], write_quorum=1)
    reader = cluster.reader(metadata)
    steps = reader.iter_batches(first_entry_id=0, last_entry_id=59)
    got = [entry_id for entry_id, _, _ in next(steps)]
    cluster.sims["bk0"].drop_connections()
    got += [entry_id for batch in steps for entry_id, _, _ in batch]
    assert got == list(range(60))


def test_autorecovery_moved_the_ledger(cluster):
    moved = cluster.ledger(60, segments=[(0, ("bk1", "bk2"))], write_quorum=2)
    stale = replace(moved, segments=(EnsembleFragment(0, ("gone", "bk0")),))
    looked_up = []

    def reresolve():
        looked_up.append(1)
        return moved

    reader = cluster.reader(stale, reresolve=reresolve)
    assert read_all(reader) == expected(0, 59)
    assert reader.metadata.segments == moved.segments
    assert len(looked_up) == 1


def test_metadata_that_did_not_change_is_looked_up_once_and_the_failure_stands(cluster):
    metadata = cluster.ledger(60)
    for sim in cluster.sims.values():
        del sim.entries[LEDGER, 10]
    looked_up = []

    def reresolve():
        looked_up.append(1)
        return metadata

    with pytest.raises(EntryUnavailableError, match="ledger 9 entry 10"):
        cluster.reader(metadata, reresolve=reresolve).read_entry(10)
    assert len(looked_up) == 1


def test_a_closed_ledger_that_ends_elsewhere_now_is_refused(cluster):
    metadata = cluster.ledger(60)
    for sim in cluster.sims.values():
        del sim.entries[LEDGER, 10]
    changed = replace(metadata, last_entry_id=50)
    with pytest.raises(IntegrityError, match="last_entry_id of ledger 9 changed"):
        cluster.reader(metadata, reresolve=lambda: changed).read_entry(10)


def test_point_reads_verify_and_give_the_length_so_far(cluster):
    metadata = cluster.ledger(60, write_quorum=2)
    reader = cluster.reader(metadata)
    entry = reader.read_entry(25)
    assert (entry.entry_id, entry.last_add_confirmed, entry.payload) == (25, 24, payload(25))
    assert reader.cumulative_length(59) == metadata.length
    cluster.sims["bk1"].faults.flipped.add((LEDGER, 25))
    assert reader.cumulative_length(25) == expected(25, 25)[0][2]
    assert reader.read_entry(25, replica=1).payload == payload(25)


@pytest.mark.parametrize("state", [BookKeeperState.OPEN, BookKeeperState.IN_RECOVERY])
def test_only_closed_ledgers_are_read(cluster, state):
    metadata = replace(cluster.ledger(5), state=state)
    with pytest.raises(RefusedError, match=state.name):
        cluster.reader(metadata)


@pytest.mark.parametrize(("first", "last"), [(-1, 3), (0, 60), (0, 1000)])
def test_a_range_outside_the_ledger_is_a_callers_mistake(cluster, first, last):
    reader = cluster.reader(cluster.ledger(60))
    with pytest.raises(ValueError, match="may be read up to 59"):
        reader.iter_batches(first_entry_id=first, last_entry_id=last)
    with pytest.raises(ValueError, match="may be read up to 59"):
        reader.read_entry(60)


def test_an_empty_ledger_has_nothing_to_iterate(cluster):
    assert read_all(cluster.reader(cluster.ledger(0))) == []


@pytest.mark.parametrize("write_quorum", [2, 3])
def test_a_caller_that_stops_leaves_nothing_unanswered_on_the_sockets(cluster, write_quorum):
    metadata = cluster.ledger(100, write_quorum=write_quorum)
    opened: list[socket.socket] = []

    def connect(host, port, timeout_s):
        opened.append(socket.create_connection((host, port), timeout_s))
        return opened[-1]

    reader = LedgerReader(metadata, cluster.pool(connect=connect), SETTINGS)
    steps = reader.iter_batches(first_entry_id=0, last_entry_id=99)
    next(steps)
    answered = sum(len(sim.seen) for sim in cluster.sims.values())
    for each in opened:
        each.settimeout(0.02)
        with pytest.raises(TimeoutError):
            each.recv(1, socket.MSG_PEEK)
    assert answered == sum(len(sim.seen) for sim in cluster.sims.values())
    del steps
    assert read_all(reader) == expected(0, 99)


def test_a_flipped_bit_on_the_way_is_one_bad_replica(cluster):
    metadata = cluster.ledger(60)
    with BookieProxy(cluster.addresses["bk0"], flipped={(LEDGER, 33)}) as proxy:
        cluster.addresses["bk0"] = proxy.address
        reader = cluster.reader(metadata)
        assert read_all(reader) == expected(0, 59)
        assert proxy.flips == 1
        only = replace(
            metadata, segments=(EnsembleFragment(0, ("bk0",)),), ensemble_size=1, write_quorum=1
        )
        with pytest.raises(EntryUnavailableError) as caught:
            cluster.reader(only).read_entry(33)
        assert isinstance(caught.value.failures["bk0"], IntegrityError)
        cluster.stack.close()
