"""One process's view of the simulated servers: a Stack whose every remote call may go wrong.

Owns: a remote call takes time (others act meanwhile), is told to the monitor before and after it is
applied, and is where faults strike. The steps, tasks and rules are the real ones; only the servers,
clocks and ids are simulated, and the expectation library is replaced by the same checks' plain
rules.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import accumulate
from typing import TYPE_CHECKING, Any, cast

from tests.support.sim_cluster import BOOKIE, SimCluster
from tests.support.sim_evidence import Question
from tests.support.sim_faults import Fate
from tests.support.sim_judge import judge, judge_ledgers, judge_segment
from tests.support.sim_scheduler import Actor
from tests.support.unchecked import unchecked
from tiering_assets.batch.release_plan import Written
from tiering_assets.ground.day_book import Scribe
from tiering_assets.ground.record_book import RecordBook, writer_of
from tiering_assets.ground.stack import TOPICS_AT_ONCE, RunMemory, Stack
from tiering_assets.ground.turns import Turns
from tiering_assets.resources.bookkeeper.reader import LedgerReader
from tiering_assets.resources.bookkeeper.runs import Run
from tiering_assets.resources.bookkeeper.tail import TailLook
from tiering_assets.resources.errors import EntryUnavailableError, LedgerNotOnBookieError
from tiering_assets.resources.metastore.ledgers import LedgerDirectory
from tiering_assets.resources.metastore.store import MetadataStore
from tiering_assets.resources.metastore.topics import TopicDirectory
from tiering_assets.resources.object_store.store import ObjectStore
from tiering_assets.resources.pulsar.admin import BrokerAdmin, TopicLoad
from tiering_assets.resources.settings import (
    BookieSettings,
    CacheSettings,
    CatalogueSettings,
    Settings,
)
from tiering_assets.tasks.descriptors import BlockRow, BlockTask, LedgerSource
from tiering_assets.tasks.point_reads import PointReads
from tiering_assets.tasks.rates import Rates
from tiering_assets.tasks.runner import LocalRunner, Progress
from tiering_assets.tasks.worker import Worker

if TYPE_CHECKING:
    from tests.support.sim_broker import SimBroker
    from tests.support.sim_world import World

_LOCAL = frozenset({"bucket", "session_id", "close"})


class Remote:
    """A client of one server. `room` names the server in traces and faults."""

    def __init__(self, process: Process, room: str, target: Any) -> None:
        self._process, self._room, self._target = process, room, target

    def get_many(self, paths: Iterable[str]) -> Iterator[Any]:
        """Each is a call of its own: others act between them, and each may go wrong."""
        return map(self.get, paths)

    def stat_many(self, paths: Iterable[str]) -> Iterator[Any]:
        return map(self.stat, paths)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._target, name)
        if name in _LOCAL:
            return found
        process, room = self._process, self._room

        def call(*args: Any, **kwargs: Any) -> Any:
            return process.world.call(process, room, name, found, args, kwargs)

        self.__dict__[name] = call
        return call


class _Memory(RunMemory):
    """Brokers' settings that are asked for how ledgers are placed tell nothing else: no gate sees
    that answer.
    """

    def __init__(self, process: Process, turns: Turns) -> None:
        super().__init__(turns)
        self._process = process

    def ask(
        self, key: Hashable, ask: Callable[[], Any], *, now: Callable[[], float], age_max_s: float
    ) -> Any:
        def placing() -> Any:
            me = self._process.world.scheduler.current
            self._process.placing.add(me)
            try:
                return ask()
            finally:
                self._process.placing.discard(me)

        of_placement = key == "placement"
        return super().ask(key, placing if of_placement else ask, now=now, age_max_s=age_max_s)


class Process:
    """One process of ours: a session, a clock of its own, and a name in the trace."""

    def __init__(self, world: World, name: str, site: Site) -> None:
        self.world, self.name, self.site = world, name, site
        self.actor: Actor | None = None
        self.killed = False
        self.fates: list[Fate] = []
        self.steady = False  # nothing strikes an operator's own commands
        self.skew_s = world.rng.uniform(-25, 25)
        self.metadata = site.cluster.metadata.client(lambda: world.scheduler.now)
        self.seen_zxid = 0
        self.began_at = world.scheduler.now
        # What the monitor remembers of this process: numbers of calls, and what it asked a broker.
        self.listed_at = -1
        self.read_at: dict[str, int] = {}
        self.asked: dict[Question, float] = {}  # true time of the last answer
        self.asked_by: dict[tuple[Actor | None, Question], float] = {}  # the same, by its threads
        self.ranges: dict[str, dict[tuple[int, int], float]] = {}  # of objects, read when
        self.call_began = 0.0
        self.misled = False  # bytes that it read were others than those that lie there
        self.located: dict[str, TopicLoad] = {}
        self.rehearsed: set[tuple[int, int]] = set()
        self.told_errors = False  # by the store, so that it does not know what it wrote
        self.books: list[RecordBook] = []
        self.placing: set[Actor | None] = set()  # threads that ask brokers for placement alone

    def clock(self) -> datetime:
        return self.world.clock(self.skew_s)

    def sleep(self, seconds: float) -> None:
        self.world.pause(self, seconds)

    def stack(self) -> Stack:
        world, cluster = self.world, self.site.cluster
        metadata = cast(MetadataStore, Remote(self, "metadata", self.metadata))
        objects = cast(ObjectStore, Remote(self, "objects", world.objects))
        settings = world.settings
        memory = _Memory(self, Turns(self.sleep))
        scribe = Scribe(
            writer=writer_of(self.name),
            command="simulated",
            now=self.clock,
            tell=lambda line: world.note(self.name, line),
            sleep=self.sleep,
            turn=lambda: memory.turns.of(Scribe),
        )
        book = RecordBook(objects, cluster.instance, scribe)
        self.books.append(book)
        return Stack(
            settings=settings,
            metadata=metadata,
            ledgers=LedgerDirectory(metadata),
            topics=TopicDirectory(metadata),
            objects=objects,
            book=book,
            broker=cast(BrokerAdmin, Remote(self, "broker", self.site.broker)),
            runner=Runner(self, settings, objects),
            instance=cluster.instance,
            run_id=self.name,
            now=self.clock,
            monotonic=lambda: world.scheduler.now,
            sleep=self.sleep,
            narrate=lambda line: world.note(self.name, line),
            judge=judge,
            judge_ledgers=judge_ledgers,
            judge_segment=judge_segment,
            open_points=self.open_points,
            look_at_tail=self.look_at_tail,
            new_uid=world.new_uid,
            in_parallel=lambda act, items: [act(item) for item in items],
            topics_in_parallel=self.side_by_side,
            memory=memory,
            every=lambda _seconds, _act: nullcontext(),
        )

    def close_books(self) -> None:
        """What a stack does when it is closed."""
        for book in self.books:
            book.close_page()
        self.world.monitor.judge_end(self)

    def side_by_side(self, act: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
        """As threads do it, each an actor of the schedule: their calls meet in every order."""
        scheduler = self.world.scheduler
        me = scheduler.current
        if len(items) < 2 or me is None:
            return [act(item) for item in items]
        results: dict[int, Any] = {}
        errors: list[BaseException] = []
        left = list(enumerate(items))
        live = 0

        def work() -> None:
            nonlocal live
            try:
                while left and not errors:
                    number, item = left.pop(0)
                    results[number] = act(item)
            except BaseException as error:  # noqa: BLE001 - the process dies of it, in its own thread
                errors.append(error)
            finally:
                live -= 1
                if live == 0:
                    scheduler.wake(me)

        for number in range(min(TOPICS_AT_ONCE, len(items))):
            live += 1
            scheduler.spawn(f"{self.name}/{number}", 0.0, work)
        scheduler.park()
        if errors:
            raise errors[0]
        return [results[number] for number in range(len(items))]

    def quiet_book(self) -> RecordBook:
        """The records as they lie there: for the simulation, no remote call of this process."""
        return RecordBook(self.world.objects, self.site.cluster.instance)

    @contextmanager
    def open_points(self, _settings: BookieSettings, source: LedgerSource) -> Iterator[PointReads]:
        yield _Points(self.read_bookies(source.ledger_id))

    def look_at_tail(self, _settings: BookieSettings, source: LedgerSource) -> TailLook:
        last = len(self.read_bookies(source.ledger_id)) - 1
        confirmed = last - self.site.cluster.unconfirmed
        return TailLook(confirmed={BOOKIE: max(confirmed, -1)}, failures={}, visible=last)

    def read_bookies(self, ledger_id: int) -> list[bytes]:
        def read(ledger_id: int) -> list[bytes]:
            found = self.site.cluster.bookies.get(ledger_id)
            if found is None:
                gone = LedgerNotOnBookieError(f"no ledger {ledger_id}")
                raise EntryUnavailableError(ledger_id, 0, {BOOKIE: gone})
            return found

        return cast(list[bytes], self.world.call(self, "bookies", "read", read, (ledger_id,), {}))


class _Points:
    """Of a ledger that was read whole."""

    def __init__(self, entries: list[bytes]) -> None:
        self._entries = entries
        self._sums = list(accumulate(map(len, entries)))

    def payload(self, entry_id: int) -> bytes:
        return self._entries[entry_id]

    def payloads(self, first_entry_id: int, last_entry_id: int) -> Iterator[bytes]:
        return iter(self._entries[first_entry_id : last_entry_id + 1])

    def cumulative_length(self, entry_id: int) -> int:
        return self._sums[entry_id]


class Site:
    """A cluster and its broker; two of them may share the bucket."""

    def __init__(self, cluster: SimCluster, broker: SimBroker) -> None:
        self.cluster, self.broker = cluster, broker
        self.bookkeeper_first = broker.bookkeeper_first  # as it was set up
        self.restored = False  # its metadata went back in time
        self.set_back: set[str] = set()  # topics older than a publication of them
        self.release_plan: Written | None = None  # made, and not carried out yet
        self.plans: dict[str, str] = {}  # digest of the newest recorded plan of a kind
        self.changed_at: dict[str, float] = {}  # when people last changed a setting around topics


class Runner(LocalRunner):
    """The local runner, on a worker that reads simulated bookies."""

    def __init__(self, process: Process, settings: Settings, objects: ObjectStore) -> None:
        super().__init__(
            settings,
            make_worker=lambda: _Worker(process, settings, objects),
            alone=nullcontext(),  # one actor runs at a time, and a lock would keep it from that
            at_once=1,
        )
        self._process = process

    def run(
        self, tasks: Sequence[BlockTask], *, progress: Progress | None = None
    ) -> list[BlockRow]:
        world = self._process.world
        fault = world.runner_fault(self._process)
        given = [*tasks, tasks[-1]] if fault == "task run twice" else tasks
        rows = super().run(given, progress=progress)
        if fault == "row lost" and rows:
            del rows[world.rng.randrange(len(rows))]
        return rows


class _Worker(Worker):
    def __init__(self, process: Process, settings: Settings, objects: ObjectStore) -> None:
        super().__init__(
            settings,
            store=objects,
            clock=lambda: process.world.scheduler.now,
            rates=Rates(settings.budget, parts=lambda: 1),  # nothing is bounded, nothing is read
        )
        self._process = process

    def reader(self, source: LedgerSource) -> LedgerReader:
        return cast(LedgerReader, _Reader(self._process, source.ledger_id))

    def uploader(self) -> Executor:
        return _Inline()

    def fetcher(self) -> Executor:
        return _Inline()


class _Reader:
    def __init__(self, process: Process, ledger_id: int) -> None:
        self._process, self._ledger_id = process, ledger_id

    def iter_runs(
        self, *, first_entry_id: int, last_entry_id: int, replica: int = 0
    ) -> Iterator[Run]:
        del replica  # one bookie has all of a ledger
        entries = self._process.read_bookies(self._ledger_id)
        sums = list(accumulate(map(len, entries)))
        yield Run.of(
            [(i, memoryview(entries[i]), sums[i]) for i in range(first_entry_id, last_entry_id + 1)]
        )


class _Inline(Executor):
    """Sends at once: the interleaving is the scheduler's."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        done: Future[Any] = Future()
        try:
            done.set_result(fn(*args, **kwargs))
        except Exception as error:  # noqa: BLE001 - what a future carries
            done.set_exception(error)
        return done


def stepped(moment: datetime, seconds: float) -> datetime:
    """A clock that is off by so much."""
    return moment + timedelta(seconds=seconds)


def settings_of_simulation(**release: Any) -> Settings:
    """Small blocks, short lags and no cache on a disk; everything else as users have it."""
    plain = Settings()
    return replace(
        plain,
        store=replace(plain.store, bucket="sim-bucket"),
        offload=unchecked(
            plain.offload, block_bytes=400, read_range_bytes=300, task_bytes=900, claim_ttl_s=120.0
        ),
        stream=unchecked(plain.stream, block_bytes=400),
        publish=replace(
            plain.publish, confirm_timeout_s=4.0, broker_may_release=True, coexist=True
        ),
        disturb=replace(plain.disturb, per_topic_hour_max=500),
        release=replace(plain.release, deletion_lag_s=600.0, guard_age_s=1800.0, **release),
        catalogue=CatalogueSettings(root="catalogue"),  # in the folder where a command runs
        cache=CacheSettings(bytes_max=0),
    )
