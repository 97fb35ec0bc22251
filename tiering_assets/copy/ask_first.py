"""What is asked before the first byte is copied: rights, the bucket's promises, and what a
publication will be.

Owns: each topic's node is asked about once a run, before a claim even; rights that are lost later
fail the write itself. Nothing is uploaded to a bucket of which no proof is on record: the first run
that finds none tries the bucket out itself, and refuses where a promise is broken; a proof is of
the bucket that it lies in, and of all promises that this version relies on.

A wrong bucket costs a question and not a copy of everything (design section 6.1, step 2): one
answer per topic and batch. It permits nothing: the publication asks again, from fresh evidence.
Hence only a refusal stops the copy; a broker that does not answer leaves it to the publication, and
so does a topic whose bundle no broker owns: asking for its own policy would load it.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import inf

from tiering_assets.copy.bucket_promises import PROMISES, prove_bucket
from tiering_assets.ground.finding import Finding, Level, ok
from tiering_assets.ground.reasons import NotNow
from tiering_assets.ground.stack import Stack
from tiering_assets.look.ledger.eligibility import owner_of
from tiering_assets.look.ledger.plan import LedgerPlan
from tiering_assets.look.topic.publish_gate import decide_publish
from tiering_assets.look.topic.topic_evidence import (
    asking_would_load,
    publish_evidence,
    topic_of,
)
from tiering_assets.records import keys
from tiering_assets.records.bucket_models import BucketProof
from tiering_assets.records.stored import Stored
from tiering_assets.resources.errors import BrokerError, FormatError, RefusedError
from tiering_assets.resources.metastore.topic_names import managed_ledger_path


class Rights:
    """Remembers which topics' nodes this run may read and write."""

    def __init__(self, stack: Stack) -> None:
        self._stack = stack
        self._granted: set[str] = set()
        self.owners: dict[int, str] = {}
        """Managed ledger of each ledger that was asked about, where BookKeeper names one."""

    def require(self, ledger_id: int) -> None:
        """Raise MetadataError naming the node and the right that a ledger's offload would lack.

        What is not there, or names no topic, is not judged here.
        """
        metadata = self._stack.metadata
        node = self._stack.ledgers.read(ledger_id)
        owner = None if node is None else owner_of(node.metadata)
        if owner is None or "/" not in owner:
            return
        self.owners[ledger_id] = owner
        with self._stack.memory.turns.of(("rights", owner)):
            if owner in self._granted:
                return
            path = managed_ledger_path(owner)
            metadata.get(path)
            metadata.require_writable(path)
            self._granted.add(owner)


def require_proven(stack: Stack) -> None:
    """Return once the bucket's proof is on record; tries the bucket out where there is none.

    Raises:
        RefusedError: a promise is broken; names it, with what was found.
    """
    stack.memory.ask("bucket proof", lambda: _require(stack), now=stack.monotonic, age_max_s=inf)


def _require(stack: Stack) -> None:
    if recorded_proof(stack) is not None:
        return
    stack.narrate("no record says that the bucket keeps its promises: it is tried out first")
    broken = [f"{one.check}: {one.text}" for one in prove(stack) if one.level is Level.FAIL]
    if broken:
        raise RefusedError(
            f"bucket {stack.settings.store.bucket} does not keep what every copy relies on: "
            f"{'; '.join(broken)}. Nothing was copied; `tierkeeper doctor --prove` tries it again"
        )


def prove(stack: Stack) -> Iterator[Finding]:
    """Try every promise out with throw-away keys; recorded where none is broken."""
    kept = True
    for finding in prove_bucket(stack.objects):
        kept = kept and finding.level is not Level.FAIL
        yield finding
    if kept:
        _record(stack)
        yield ok("bucket proofs", f"recorded: bucket {stack.settings.store.bucket} keeps them all")


def recorded_proof(stack: Stack) -> Stored[BucketProof] | None:
    """The proof of this bucket, if it has all promises that this version relies on."""
    try:
        found = stack.book.read(BucketProof, _key(stack))
    except FormatError as error:
        stack.narrate(f"it proves nothing: {error}")
        return None
    return found if found is not None and {*PROMISES} <= {*found.record.promises} else None


def _record(stack: Stack) -> None:
    """Write down that everything held just now. A proof of before, or a damaged one, is
    replaced.
    """
    store = stack.settings.store
    record = BucketProof(
        bucket=store.bucket,
        endpoint=store.endpoint,
        promises=PROMISES,
        proven_at=stack.now(),
        writer=stack.writer,
    )
    try:
        found, ours = stack.book.create_or_read(_key(stack), record)
    except FormatError:
        stack.book.overwrite_damaged(_key(stack), record)
    else:
        if not ours:
            stack.book.replace(found, record)


def _key(stack: Stack) -> str:
    return keys.bucket_proof(stack.settings.store.bucket)


class AskFirst:
    """Answers for the topics of one batch. Four questions a topic, however many of its ledgers."""

    def __init__(self, stack: Stack) -> None:
        self._stack = stack
        self._refused: dict[str, str | None] = {}

    def require(self, plan: LedgerPlan) -> None:
        """RefusedError where the copy could not be published, naming what lifts it."""
        name = plan.ml_name
        with self._stack.memory.turns.of(("asked first", name)):
            if name not in self._refused:
                self._refused[name] = self._ask(name)
        if (why := self._refused[name]) is not None:
            raise RefusedError(f"nothing was copied, as it could not be published: {why}")

    def _ask(self, ml_name: str) -> str | None:
        found = self._stack.topics.read(ml_name)
        if found is None:
            return None  # gone since it was planned: what copies it tells of that
        try:
            if asking_would_load(self._stack, ml_name):
                return None
            evidence = publish_evidence(self._stack, ml_name, found[0])
        except BrokerError as error:
            self._stack.tell(
                f"{topic_of(ml_name)}: asked again before it is published: {error}", topic=ml_name
            )
            return None
        if evidence.listed is None:
            return None
        decision = decide_publish(evidence)
        return str(decision) if isinstance(decision, NotNow) else None
