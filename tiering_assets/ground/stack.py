"""Everything a step may touch, in one value: the three truths, the broker, a runner and the clocks.

Steps get a Stack and nothing else, so that a test can give them simulators which pass the same
contract tests as the real clients, and so that nothing reads the environment half-way. Beside it:
what one run need not ask for twice, and the one check of evidence's age by the stack's clock,
called right before every effect that ground/evidence.py names.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Protocol, TypeVar, cast
from uuid import UUID, uuid4

from tiering_assets.ground.day_book import Scribe
from tiering_assets.ground.effects import about, reach
from tiering_assets.ground.evidence import Bounds, Dated, Effect, Kind, why_too_old
from tiering_assets.ground.own_policy import OwnPolicies, parse_own_policies
from tiering_assets.ground.record_book import RecordBook, utc_now, writer_of
from tiering_assets.ground.turns import Turns, every
from tiering_assets.quality.expectations_run import prepare_aside
from tiering_assets.quality.facts import IndexFacts
from tiering_assets.quality.ledger_frame import LedgerRow
from tiering_assets.quality.ledger_suites import validate_ledgers
from tiering_assets.quality.segment_frame import SegmentFacts
from tiering_assets.quality.segment_suite import validate_segment
from tiering_assets.quality.suites import validate_indexes
from tiering_assets.quality.user_suites import UserSuite, load_user_suites
from tiering_assets.records import keys
from tiering_assets.records.models import SuiteResult
from tiering_assets.records.writer import Writer
from tiering_assets.resources import ending
from tiering_assets.resources.errors import SettingsError, StaleEvidenceError
from tiering_assets.resources.garbage import freeze_once
from tiering_assets.resources.metastore.identity import require_one_cluster
from tiering_assets.resources.metastore.ledgers import LedgerDirectory
from tiering_assets.resources.metastore.store import MetadataStore
from tiering_assets.resources.metastore.topics import TopicDirectory
from tiering_assets.resources.metastore.zookeeper import ZooKeeperStore
from tiering_assets.resources.object_store.s3 import S3ObjectStore
from tiering_assets.resources.object_store.store import ObjectStore
from tiering_assets.resources.pulsar.admin import BrokerAdmin, HttpBrokerAdmin
from tiering_assets.resources.settings import PolicySettings, Settings
from tiering_assets.resources.settings_sources import require_store
from tiering_assets.tasks.budget_record import read_budget
from tiering_assets.tasks.point_reads import LookAtTail, OpenPoints, stored_points, stored_tail
from tiering_assets.tasks.rates import Budget, Rates, parts_of
from tiering_assets.tasks.runner import LocalRunner, TaskRunner
from tiering_assets.tasks.worker import Worker

DEFAULT_FILE = "tiering.toml"


def read_own_policies(settings: PolicySettings) -> OwnPolicies:
    """Read policy.file, else ./tiering.toml where it exists. SettingsError names file and place."""
    path = Path(settings.file or DEFAULT_FILE)
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        if settings.file:
            raise SettingsError(f"policy.file {path}: there is no such file") from None
        return OwnPolicies()
    except OSError as error:
        raise SettingsError(f"policy file {path}: {error.strerror}") from error
    except UnicodeDecodeError:
        raise SettingsError(f"policy file {path}: not UTF-8") from None
    return parse_own_policies(text, str(path))


T = TypeVar("T")
K = TypeVar("K", bound=Hashable)


class RunMemory:
    """Kept by whoever asks under a key of their own. An error is no answer: it is asked again.

    Threads that ask the same at once wait for one answer. `turns` are those of the run.
    """

    def __init__(self, turns: Turns | None = None) -> None:
        self.turns = turns or Turns()
        self._kept: dict[Hashable, tuple[float, object]] = {}
        self._final: dict[Hashable, object] = {}
        self._shared: dict[type, object] = {}

    def shared(self, kind: Callable[[], T]) -> T:
        """The one value of this class that all threads of the run share."""
        return cast(T, self._shared.setdefault(cast(type, kind), kind()))

    def ask_final(
        self, wanted: Sequence[K], ask: Callable[[list[K]], Sequence[T | None]]
    ) -> dict[K, T | None]:
        """Answers that can never change, in the order wanted; only new ones are asked for.

        None is no answer: what is not there may come.
        """
        new = [key for key in wanted if key not in self._final]
        if new:
            answers = zip(new, ask(new), strict=True)
            self._final.update({key: found for key, found in answers if found is not None})
        return {key: cast("T | None", self._final.get(key)) for key in wanted}

    def ask(
        self, key: Hashable, ask: Callable[[], T], *, now: Callable[[], float], age_max_s: float
    ) -> T:
        """The answer kept under `key` if it is not older than that, else a new one.

        `now` is a monotonic clock; an answer counts as old as its question.
        """
        with self.turns.of(key):
            found = self._kept.get(key)
            if found is not None and now() - found[0] <= age_max_s:
                return cast(T, found[1])
            asked_at = now()
            answer = ask()
            self._kept[key] = (asked_at, answer)
            return answer


R = TypeVar("R")
Narrate = Callable[[str], None]
Judge = Callable[[Sequence[IndexFacts]], dict[int, SuiteResult]]
JudgeSegment = Callable[[SegmentFacts], SuiteResult]
JudgeLedgers = Callable[[Sequence[LedgerRow]], dict[int, tuple[SuiteResult, ...]]]


class Bar(Protocol):
    """One line that is drawn over, until it is cleared."""

    def show(self, line: str) -> None: ...
    def clear(self) -> None: ...


class Parallel(Protocol):
    """Does something to each of some things, and returns the results in their order."""

    def __call__(self, act: Callable[[T], R], items: Sequence[T]) -> list[R]: ...


REQUESTS_AT_ONCE = 16  # as many as a process has connections to the store
TOPICS_AT_ONCE = 4  # each waits for its broker most of the time; more would reload at one time


def _in_threads(act: Callable[[T], R], items: Sequence[T]) -> list[R]:
    if ending.asked():  # what is given up now is so in the thread that was asked: others have ended
        return [act(item) for item in items]
    with ThreadPoolExecutor(REQUESTS_AT_ONCE) as pool:
        return list(pool.map(act, items))


def _topics_in_threads(act: Callable[[T], R], items: Sequence[T]) -> list[R]:
    """Who is asked to end begins no other topic, and brings those under way to their end."""
    if len(items) < 2:
        return [act(item) for item in items]
    with ThreadPoolExecutor(TOPICS_AT_ONCE, thread_name_prefix="topic") as pool:
        under_way = [pool.submit(act, item) for item in items]
        try:
            return [one.result() for one in under_way]
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _nothing() -> None:
    pass


def _unheard(_line: str) -> None:
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """One cluster, one bucket, one run. `narrate` gets a line of progress for people; `bar` draws
    how far it is where somebody watches.
    """

    settings: Settings
    metadata: MetadataStore
    ledgers: LedgerDirectory
    topics: TopicDirectory
    objects: ObjectStore
    book: RecordBook
    broker: BrokerAdmin
    runner: TaskRunner
    instance: str
    run_id: str
    now: Callable[[], datetime] = utc_now
    monotonic: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    narrate: Narrate = _unheard
    bar: Bar | None = None
    judge: Judge = validate_indexes
    judge_ledgers: JudgeLedgers = validate_ledgers
    judge_segment: JudgeSegment = validate_segment
    user_suites: tuple[UserSuite, ...] = ()
    prepare_judge: Callable[[], object] = _nothing  # returns at once; the first judgement is sooner
    own_policies: OwnPolicies = field(default_factory=OwnPolicies)
    open_points: OpenPoints = stored_points
    look_at_tail: LookAtTail = stored_tail
    new_uid: Callable[[], UUID] = uuid4
    rates: Rates | None = None
    in_parallel: Parallel = _in_threads
    topics_in_parallel: Parallel = _topics_in_threads
    every: Callable[[float, Callable[[], None]], AbstractContextManager[None]] = every
    memory: RunMemory = field(default_factory=RunMemory)

    def tell(
        self,
        text: str,
        *ledger_ids: int,
        topic: str | None = None,
        attempt: UUID | str | None = None,
    ) -> None:
        """Narrate a line that knows what it is about. `topic` is a managed-ledger name."""
        self.narrate(about(text, *ledger_ids, topic=topic, attempt=attempt))

    @property
    def writer(self) -> Writer:
        """Who signs the records of this run."""
        return writer_of(self.run_id)

    def spending_for(self, ml_name: str) -> AbstractContextManager[None]:
        """Within it, what this process asks of store and bookies is taken from the topic's
        budgets.
        """
        return nullcontext() if self.rates is None else self.rates.of_topic(ml_name)

    @property
    def budget_key(self) -> str:
        """The object that holds the wanted budgets, for tasks."""
        return self.book.prefix + keys.BUDGET

    @property
    def deletion_lag(self) -> timedelta:
        return timedelta(seconds=self.settings.release.deletion_lag_s)


@contextmanager
def open_stack(
    settings: Settings,
    *,
    runner: TaskRunner | None = None,
    run_id: str | None = None,
    narrate: Narrate | None = None,
    bar: Bar | None = None,
    command: str = "",
) -> Iterator[Stack]:
    """Connect to everything and close it again. Errors name the server and the setting.

    `command` is what the day book says that was run.
    """
    run_id, narrate, memory = run_id or uuid4().hex[:12], narrate or _unheard, RunMemory()
    freeze_once("steps")  # whoever opens a stack has imported what its steps need
    require_store(settings)
    user_suites = load_user_suites(settings.quality.suites)
    own_policies = read_own_policies(settings.policy)
    require_one_cluster(settings.metadata)
    with ExitStack() as stack:
        metadata = ZooKeeperStore(
            settings.metadata.store,
            session_timeout_s=settings.metadata.session_timeout_s,
            connect_timeout_s=settings.metadata.connect_timeout_s,
        )
        stack.callback(metadata.close)
        ledgers = LedgerDirectory(metadata, settings.metadata.ledgers_root)
        instance = ledgers.instance_id()

        def budget() -> Budget:
            return read_budget(objects, book.prefix + keys.BUDGET)

        rates = Rates(settings.budget, parts=lambda: parts_of(settings), read=budget)
        objects = S3ObjectStore(settings.store, meter=rates)
        scribe = Scribe(
            writer=writer_of(run_id),
            command=command or Path(sys.argv[0]).name,
            now=utc_now,
            tell=narrate,
            sleep=time.sleep,
            turn=partial(memory.turns.of, Scribe),
        )
        book = RecordBook(objects, instance, scribe)
        stack.callback(book.close_page)
        yield Stack(
            settings=settings,
            metadata=metadata,
            ledgers=ledgers,
            topics=TopicDirectory(metadata),
            objects=objects,
            book=book,
            broker=HttpBrokerAdmin(settings.broker),
            runner=runner
            or LocalRunner(
                settings,
                make_worker=lambda: Worker(settings, reached=reach, known=rates.newest),
            ),
            instance=instance,
            run_id=run_id,
            narrate=narrate,
            bar=bar,
            memory=memory,
            user_suites=user_suites,
            prepare_judge=_preparing(runner),
            own_policies=own_policies,
            open_points=partial(stored_points, meter=rates),
            look_at_tail=partial(stored_tail, meter=rates),
            rates=rates,
        )


def _preparing(runner: TaskRunner | None) -> Callable[[], object]:
    """While Spark copies, this process waits. With tasks of its own it would compete."""
    return _nothing if runner is None or isinstance(runner, LocalRunner) else prepare_aside


def bounds_of(stack: Stack) -> Bounds:
    settings = stack.settings.evidence
    return Bounds(fast_s=settings.age_max_s, slow_s=settings.surroundings_age_max_s)


def asking(stack: Stack, *kinds: Kind) -> Dated:
    """Evidence of these kinds, dated now: to be made before the question is sent."""
    return Dated.at(stack.monotonic(), *kinds)


def require_fresh(stack: Stack, effect: Effect, evidence: Dated, *, what: str) -> None:
    """StaleEvidenceError where anything that the effect stands on is older than its bound."""
    why = why_too_old(evidence, effect, now_s=stack.monotonic(), bounds=bounds_of(stack))
    if why is not None:
        raise StaleEvidenceError(
            f"{what}: too long ago to {effect} on it: {why}; nothing was changed, run again "
            f"(evidence.age_max_s, evidence.surroundings_age_max_s)"
        )


def is_young(stack: Stack, evidence: Dated, kind: Kind) -> bool:
    """Whether a kind need not be asked for again yet."""
    return evidence.is_young(kind, now_s=stack.monotonic(), bounds=bounds_of(stack))
