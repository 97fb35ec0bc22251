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
from hashlib import sha256
from typing import Any, BinaryIO

from benchmarks.content import Content, ContentHash, splitter
from tiering_assets.automation.choices import sealed_ledgers
from tiering_assets.change.change_topic import change_topic
from tiering_assets.change.publish import Published, ToPublish
from tiering_assets.copy.offload import CopiedAttempt, NotCopied, copy_ledgers
from tiering_assets.ground.stack import Stack, open_stack
from tiering_assets.look.ledger.plan import LedgerPlan, plan_ledger
from tiering_assets.offload_format.decoder import BlockWalker, block_lengths, decode_index
from tiering_assets.records.models import Certificate
from tiering_assets.records.stored import Stored
from tiering_assets.release.release import ToRelease
from tiering_assets.release.work import Released
from tiering_assets.resources.bookkeeper.batch_body import Entry
from tiering_assets.resources.bookkeeper.pool import BookiePool
from tiering_assets.resources.bookkeeper.reader import LedgerReader
from tiering_assets.resources.errors import IntegrityError, TierkeeperError
from tiering_assets.resources.settings_sources import load_settings
from tiering_assets.spark.runner import open_spark_runner
from tiering_assets.tasks.descriptors import LedgerSource
from tiering_assets.verify.verify import ToVerify, verify_attempts

Answer = dict[str, Any]
_UPLOAD_THREADS = 2
_LAG_S = 2.5
_RELEASE_TRIES = 10


class Agent:
    """What one process remembers between the stages of one topic's offload."""

    def __init__(self, stack: Stack) -> None:
        self._stack = stack
        self._copied: list[CopiedAttempt] = []
        self._certificates: dict[int, Stored[Certificate]] = {}
        self._source: LedgerSource | None = None
        self._clients: dict[str | None, Any] = {}
        self._sent: tuple[str | None, str, int, bytes, str] = (None, "", 0, b"", "")

    def copy(self, ml_name: str) -> Answer:
        """Plan and copy every sealed ledger of a topic."""
        stack = self._stack
        self._copied, self._certificates = [], {}
        began = time.perf_counter()
        ids = sealed_ledgers(stack, [ml_name])
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

    def publish_and_release(self, ml_name: str) -> Answer:
        """Have the broker read the copies, and delete the bookies'.

        Clocks of stores count whole seconds, so that a lag of zero is over after the next one has
        begun; that wait is not work.
        """
        began = time.perf_counter()
        czxid = self._copied[0].plan.ml_czxid
        order = ToPublish(certificates=self._certificates, ml_czxid=czxid)
        published = change_topic(self._stack, ml_name, publish=order).published
        for ledger_id, result in published.items():
            if not isinstance(result, Published):
                raise IntegrityError(f"ledger {ledger_id} was not published: {result}")
        seconds = time.perf_counter() - began
        said: object = None
        for _ in range(_RELEASE_TRIES):
            time.sleep(_LAG_S)
            began = time.perf_counter()
            due = ToRelease(ledger_ids=list(self._certificates))
            outcomes = change_topic(self._stack, ml_name, release=due).released
            if all(isinstance(outcome, Released) for outcome in outcomes.values()):
                return {"seconds": seconds + time.perf_counter() - began}
            said = outcomes
        raise IntegrityError(f"{ml_name} was not released: {said}")

    def read_object(self, keys: list[str], *, batched: bool) -> Answer:
        """Every message of some data objects, by the independent decoder."""
        began = time.perf_counter()
        found, split = ContentHash(), splitter(batched=batched)
        for key in keys:
            for _entry_id, payload in _entries_of(self._stack, key):
                for message in split(payload):
                    found.add(message)
        return _read_answer(found.content(), time.perf_counter() - began)

    def open_ledger(self, ledger_id: int) -> Answer:
        """Look up what `read_bookies` will read."""
        plan = plan_ledger(self._stack, ledger_id)
        if not isinstance(plan, LedgerPlan):
            raise IntegrityError(f"ledger {ledger_id} is not to be read: {plan}")
        self._source = plan.source
        return {}

    def read_bookies(self) -> Answer:
        """Every entry of the ledger from its bookies, digests checked."""
        began, entries = time.perf_counter(), 0
        for batch in self._bookie_batches():
            entries += len(batch)
        return {"seconds": time.perf_counter() - began, "entries": entries}

    def hash_bookies(self, *, batched: bool) -> Answer:
        """The same again for its messages."""
        began = time.perf_counter()
        found, split = ContentHash(), splitter(batched=batched)
        for batch in self._bookie_batches():
            for _entry_id, payload, _length in batch:
                for message in split(payload):
                    found.add(message)
        return _read_answer(found.content(), time.perf_counter() - began)

    def _bookie_batches(self) -> Iterator[Sequence[Entry]]:
        settings, source = self._stack.settings.bookies, self._source
        if source is None:
            raise IntegrityError("no ledger was opened")
        with BookiePool(settings, source.addresses) as pool:
            reader = LedgerReader(source.metadata(settings.password.encode()), pool, settings)
            yield from reader.iter_batches(first_entry_id=0, last_entry_id=source.last_entry_id)

    def multipart(self, size: int, part_bytes: int, endpoint: str | None) -> Answer:
        """Send that many bytes with boto3 and nothing else, two parts at a time."""
        client = self._clients.get(endpoint)
        if client is None:
            client = self._clients[endpoint] = _bare_client(self._stack, endpoint)
        bucket, key = self._stack.objects.bucket, f"benchmark-{time.time_ns()}"
        sizes = [part_bytes] * (size // part_bytes)
        if rest := size - sum(sizes):
            sizes.append(rest)
        body = os.urandom(max(sizes))
        bodies = {count: body[:count] for count in sizes}
        began = time.perf_counter()
        upload = client.create_multipart_upload(Bucket=bucket, Key=key)["UploadId"]

        def send(number: int) -> dict[str, Any]:
            part = bodies[sizes[number - 1]]
            answer = client.upload_part(
                Bucket=bucket, Key=key, UploadId=upload, PartNumber=number, Body=part
            )
            return {"PartNumber": number, "ETag": answer["ETag"]}

        with ThreadPoolExecutor(_UPLOAD_THREADS) as threads:
            parts = list(threads.map(send, range(1, len(sizes) + 1)))
        done = client.complete_multipart_upload(
            Bucket=bucket, Key=key, UploadId=upload, MultipartUpload={"Parts": parts}
        )
        seconds = time.perf_counter() - began
        sent = sha256()
        for count in sizes:
            sent.update(bodies[count])
        self._sent = (endpoint, key, sum(sizes), sent.digest(), done["ETag"])
        return {"seconds": seconds, "bytes": sum(sizes)}

    def check_multipart(self) -> Answer:
        """Whether the store has what `multipart` sent; the sink's ETag is its count of bytes."""
        endpoint, key, size, digest, etag = self._sent
        client, bucket = self._clients[endpoint], self._stack.objects.bucket
        if endpoint is not None:
            if etag.strip('"') != str(size):
                raise IntegrityError(f"{etag} of {size} bytes reached the sink")
            return {}
        stored = client.get_object(Bucket=bucket, Key=key)["Body"].read()
        client.delete_object(Bucket=bucket, Key=key)
        if sha256(stored).digest() != digest:
            raise IntegrityError(f"{len(stored)} other bytes than those sent lie in the store")
        return {}


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


def _entries_of(stack: Stack, key: str) -> Iterator[tuple[int, memoryview]]:
    step = stack.settings.offload.read_range_bytes
    stored = stack.objects.get(f"{key}-index")
    if stored is None:
        raise IntegrityError(f"object {key}-index is not there")
    for block in block_lengths(decode_index(stored.body)):
        last = block.last_entry_id
        walker = BlockWalker(
            block_length=block.length,
            first_entry_id=block.first_entry_id,
            entries_expected=None if last is None else last - block.first_entry_id + 1,
            offset=block.offset,
        )
        end = block.offset + block.length
        for start in range(block.offset, end, step):
            yield from walker.feed(
                stack.objects.get_range(key, start=start, length=min(step, end - start))
            )
        walker.finish()


def _bare_client(stack: Stack, endpoint: str | None) -> Any:
    import boto3
    from botocore.config import Config

    store = stack.settings.store
    return boto3.client(
        "s3",
        endpoint_url=endpoint or store.endpoint,
        region_name=store.region,
        aws_access_key_id=store.access_key,
        aws_secret_access_key=store.secret_key,
        config=Config(
            signature_version="s3v4",
            s3={"addressing_style": "path", "payload_signing_enabled": False},
            request_checksum_calculation="when_required",
            response_checksum_validation="when_required",
        ),
    )


@contextmanager
def _stack_of(kind: str) -> Iterator[Stack]:
    settings = load_settings({}).settings
    with ExitStack() as exits:
        runner = exits.enter_context(open_spark_runner(settings)) if kind == "spark" else None
        yield exits.enter_context(open_stack(settings, runner=runner))


def _serve(stack: Stack, answers: BinaryIO) -> None:
    agent = Agent(stack)
    actions: dict[str, Callable[..., Answer]] = {
        "copy": agent.copy,
        "verify": agent.verify,
        "publish_and_release": agent.publish_and_release,
        "read_object": agent.read_object,
        "open_ledger": agent.open_ledger,
        "read_bookies": agent.read_bookies,
        "hash_bookies": agent.hash_bookies,
        "multipart": agent.multipart,
        "check_multipart": agent.check_multipart,
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
