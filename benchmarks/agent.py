"""A process that does one contender's work and says how long it took; `agents.py` asks it.

    python -m benchmarks.agent local|spark|client   one JSON request a line in, one answer out

Owns: seconds are those of the work alone, connections and imports being warm as a broker's are; no
hash is computed while the clock runs, but by readers, which all hash what they read. Settings come
from TIERKEEPER_* variables, the runner is what users get: `local` is the command line's default,
`spark` is Dagster's. Ends when standard input does, whatever it was doing before.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import Any, BinaryIO

from benchmarks.bare_clients import BareClients
from benchmarks.content import Content, ContentHash
from benchmarks.least_work import least_work, shared_out
from benchmarks.object_reads import iter_payloads_of
from tiering_assets.automation.choices import sealed_ledgers
from tiering_assets.change.change_topic import change_topic
from tiering_assets.change.publish import Published, ToPublish
from tiering_assets.copy.offload import CopiedAttempt, NotCopied, copy_ledgers
from tiering_assets.ground.stack import Stack, open_stack
from tiering_assets.look.ledger.plan import LedgerPlan, plan_ledger
from tiering_assets.offload_format.layout import BlockPlan
from tiering_assets.records.models import Certificate
from tiering_assets.records.stored import Stored
from tiering_assets.release.release import ToRelease
from tiering_assets.release.work import Released
from tiering_assets.resources.bookkeeper.pool import BookiePool
from tiering_assets.resources.bookkeeper.reader import LedgerReader
from tiering_assets.resources.bookkeeper.runs import Run
from tiering_assets.resources.errors import IntegrityError, TierkeeperError
from tiering_assets.resources.native.core import Core
from tiering_assets.resources.native.loader import this_loop
from tiering_assets.resources.settings_sources import load_settings
from tiering_assets.spark.runner import open_spark_runner
from tiering_assets.verify.verify import ToVerify, verify_attempts

Answer = dict[str, Any]
_LAG_S = 2.5
_RELEASE_TRIES = 10


class Agent:
    """What one process remembers between the stages of one topic's offload."""

    def __init__(self, stack: Stack) -> None:
        self._stack = stack
        self._copied: list[CopiedAttempt] = []
        self._certificates: dict[int, Stored[Certificate]] = {}
        self._plan: LedgerPlan | None = None

    def copy(self, ml_names: list[str]) -> Answer:
        """Plan and copy every sealed ledger of some topics, as one batch."""
        stack = self._stack
        self._copied, self._certificates = [], {}
        began = time.perf_counter()
        ids = sealed_ledgers(stack, ml_names)
        plans = []
        for ledger_id in ids:
            plan = plan_ledger(stack, ledger_id)
            if not isinstance(plan, LedgerPlan):
                raise IntegrityError(f"ledger {ledger_id} is not to be copied: {plan}")
            plans.append(plan)
        for result in copy_ledgers(stack, plans).values():
            if isinstance(result, NotCopied):
                raise result.error
            self._copied.append(result)
        seconds = time.perf_counter() - began
        by_topic = {name: number for number, name in enumerate(ml_names)}
        self._copied.sort(key=lambda one: (by_topic[one.plan.ml_name], one.plan.ledger_id))
        keys = [result.attempt.record.data_key for result in self._copied]
        return {"seconds": seconds, "keys": keys}

    def verify(self) -> Answer:
        """Read back what `copy` made, and certify it."""
        began = time.perf_counter()
        items = [
            ToVerify(plan=one.plan, attempt=one.attempt, source_rows=one.rows)
            for one in self._copied
        ]
        for ledger_id, proof in verify_attempts(self._stack, items).items():
            if isinstance(proof, TierkeeperError):
                raise proof
            self._certificates[ledger_id] = proof
        return {"seconds": time.perf_counter() - began}

    def publish_and_release(self) -> Answer:
        """Have the broker read the copies, and delete the bookies'; topics as a run does them.

        Clocks of stores count whole seconds, so that a lag of zero is over after the next one has
        begun; that wait is not work.
        """
        topics = list(dict.fromkeys(one.plan.ml_name for one in self._copied))
        began = time.perf_counter()
        self._stack.topics_in_parallel(self._publish, topics)
        seconds = time.perf_counter() - began
        said: object = None
        for _ in range(_RELEASE_TRIES):
            time.sleep(_LAG_S)
            began = time.perf_counter()
            left = self._stack.topics_in_parallel(self._release, topics)
            if not any(left):
                return {"seconds": seconds + time.perf_counter() - began}
            said = left
        raise IntegrityError(f"{topics} were not released: {said}")

    def _publish(self, ml_name: str) -> None:
        certificates = self._certificates_of(ml_name)
        czxid = next(one.plan.ml_czxid for one in self._copied if one.plan.ml_name == ml_name)
        order = ToPublish(certificates=certificates, ml_czxid=czxid)
        published = change_topic(self._stack, ml_name, publish=order).published
        for ledger_id, result in published.items():
            if not isinstance(result, Published):
                raise IntegrityError(f"ledger {ledger_id} was not published: {result}")

    def _release(self, ml_name: str) -> list[str]:
        """What was not released, and why."""
        due = ToRelease(ledger_ids=list(self._certificates_of(ml_name)))
        outcomes = change_topic(self._stack, ml_name, release=due).released
        return [f"{i}: {said}" for i, said in outcomes.items() if not isinstance(said, Released)]

    def _certificates_of(self, ml_name: str) -> dict[int, Stored[Certificate]]:
        of_topic = [o.plan.ledger_id for o in self._copied if o.plan.ml_name == ml_name]
        return {ledger_id: self._certificates[ledger_id] for ledger_id in of_topic}

    def read_object(self, keys: list[str], *, batched: bool) -> Answer:
        """Every message of some data objects, by the independent decoder."""
        began = time.perf_counter()
        found = ContentHash()
        feed, take_even = found.feeder(batched=batched), None if batched else found.add_even
        for key in keys:
            for payload in iter_payloads_of(self._stack, key, take_even):
                feed(payload)
        return _read_answer(found.content(), time.perf_counter() - began)

    def open_ledger(self, ledger_id: int) -> Answer:
        """Look up what `read_bookies` will read."""
        plan = plan_ledger(self._stack, ledger_id)
        if not isinstance(plan, LedgerPlan):
            raise IntegrityError(f"ledger {ledger_id} is not to be read: {plan}")
        self._plan = plan
        return {}

    def read_bookies(self) -> Answer:
        """Every entry of the ledger from its bookies, digests checked."""
        began, entries = time.perf_counter(), 0
        for run in self.bookie_runs(this_loop().core):
            entries += run.count
        return {"seconds": time.perf_counter() - began, "entries": entries}

    def hash_bookies(self, *, batched: bool) -> Answer:
        """The same again for its messages."""
        began = time.perf_counter()
        found = ContentHash()
        feed = found.feeder(batched=batched)
        for run in self.bookie_runs(None):
            for _entry_id, payload, _length in run.entries():
                feed(payload)
        return _read_answer(found.content(), time.perf_counter() - began)

    def least_work(self, client: Any, *, part_bytes: int, tasks: int = 1) -> Answer:
        """All that cannot be left out, on the ledger that was opened; by so many tasks at a time.

        Each task has an object of its own, of as many of the planned blocks as the next one.
        """
        shares = list(shared_out(self._opened().blocks, tasks))
        bucket, core = self._stack.settings.store.bucket, this_loop().core

        def share(blocks: Sequence[BlockPlan]) -> str:
            runs = self.bookie_runs(core, blocks[0].first_entry_id, blocks[-1].last_entry_id)
            size = sum(block.payload_bytes for block in blocks)
            return least_work(runs, client, bucket, size=size, part_bytes=part_bytes)

        began = time.perf_counter()
        with ThreadPoolExecutor(len(shares)) as threads:
            keys = list(threads.map(share, shares))
        seconds = time.perf_counter() - began
        for key in keys:
            client.delete_object(Bucket=bucket, Key=key)
        return {"seconds": seconds}

    def bookie_runs(
        self, core: Core | None, first: int = 0, last: int | None = None
    ) -> Iterator[Run]:
        """Entries of the ledger that was opened, all of them or from one to another."""
        settings, source = self._stack.settings.bookies, self._opened().source
        with BookiePool(settings, source.addresses) as pool:
            metadata = source.metadata(settings.password.encode())
            reader = LedgerReader(metadata, pool, settings, core=core)
            last = source.last_entry_id if last is None else last
            yield from reader.iter_runs(first_entry_id=first, last_entry_id=last)

    def _opened(self) -> LedgerPlan:
        if self._plan is None:
            raise IntegrityError("no ledger was opened")
        return self._plan


def consume(service_url: str, topic: str) -> Answer:
    """Every message of a topic through the broker, by a reader of the public client."""
    import pulsar

    client = pulsar.Client(
        service_url, logger=pulsar.FileLogger(pulsar.LoggerLevel.Error, os.devnull)
    )
    try:
        began = time.perf_counter()
        found = ContentHash()
        reader = client.create_reader(
            f"persistent://{topic}", pulsar.MessageId.earliest, receiver_queue_size=5_000
        )
        while reader.has_message_available():
            found.add(reader.read_next(timeout_millis=60_000).data())
        return _read_answer(found.content(), time.perf_counter() - began)
    finally:
        client.close()


def _read_answer(content: Content, seconds: float) -> Answer:
    return {"seconds": seconds, "messages": content.messages, "sha256": content.sha256}


@contextmanager
def _stack_of(kind: str) -> Iterator[Stack]:
    settings = load_settings({}).settings
    with ExitStack() as exits:
        runner = exits.enter_context(open_spark_runner(settings)) if kind == "spark" else None
        yield exits.enter_context(open_stack(settings, runner=runner))


def _serve(stack: Stack, answers: BinaryIO) -> None:
    agent, bare = Agent(stack), BareClients(stack.settings.store)
    actions: dict[str, Callable[..., Answer]] = {
        "copy": agent.copy,
        "verify": agent.verify,
        "publish_and_release": agent.publish_and_release,
        "read_object": agent.read_object,
        "open_ledger": agent.open_ledger,
        "read_bookies": agent.read_bookies,
        "hash_bookies": agent.hash_bookies,
        "load": bare.load,
        "multipart": bare.multipart,
        "put_get": bare.put_get,
        "least_work": lambda **of: agent.least_work(bare.client(None), **of),
        "check_sent": bare.check_sent,
        "loop": lambda: {"said": this_loop().said},
        "consume": consume,
    }
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = actions[request.pop("action")](**request)
        except Exception as error:  # noqa: BLE001  the edge of this process: told, and asked on
            answer = {"error": f"{type(error).__name__}: {error}"}
        answers.write(json.dumps(answer).encode() + b"\n")
        answers.flush()


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever started this process ends it
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints is no answer
    with _stack_of(sys.argv[1]) as stack:
        answers.write(b'{"ready": true}\n')
        answers.flush()
        _serve(stack, answers)


if __name__ == "__main__":
    main()
