"""The bucket keeps the promises that every protocol relies on: proven once, written down, asked by each run.

Owns: nothing is uploaded to a bucket of which no proof is on record; the first run that finds none tries
the bucket out itself, and refuses where a promise is broken. A proof is of the bucket that it lies in,
and of all promises that this version relies on.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import inf

from resources.errors import FormatError, RefusedError
from tiering_assets.copy.bucket_promises import PROMISES, prove_bucket
from tiering_assets.ground.finding import Finding, Level, ok
from tiering_assets.ground.record_book import Stored
from tiering_assets.ground.stack import Stack
from tiering_assets.records import keys
from tiering_assets.records.bucket_model import BucketProof


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
    """Write down that everything held just now. A proof of before, or a damaged one, is replaced."""
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
