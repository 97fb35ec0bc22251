"""Where the CPU of copying and reading back goes: nanoseconds per entry by stage, nothing sent.

    .venv/bin/python -m benchmarks.copy_path [--seconds 0.5]

Each stage is the function that tasks call, on one batch of a bookie's answer; the least CPU time of
many tries, so that other work on the machine matters little. Requests to bookies and the store are
left out: docs/performance.md has them as ceilings. Python's loop is measured for every digest, and
the library's for CRC32C, which alone it knows.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from hashlib import sha256

from tests.support.layouts import plan_layout_from_sizes
from tests.support.made_ledger import MadeLedger
from tiering_assets.offload_format.block import HEADER_BYTES
from tiering_assets.offload_format.decoder import BlockWalker
from tiering_assets.offload_format.digests import EntriesDigest, FramesDigest
from tiering_assets.offload_format.encoder import BlockEncoder
from tiering_assets.resources.bookkeeper.batch_body import find_records, verify_records
from tiering_assets.resources.bookkeeper.ledger import DigestType
from tiering_assets.resources.bookkeeper.stored_entry import EntryCodec
from tiering_assets.resources.native.core import Core
from tiering_assets.resources.native.loader import this_loop

BATCH_BYTES = 1024 * 1024
SIZES = (100, 1024, 10 * 1024, 100 * 1024)


def stages(codec: EntryCodec, size: int) -> tuple[int, dict[str, Callable[[], object]]]:
    """Entries of one batch, and what is done to them."""
    count, body = _records(codec, size)
    records = memoryview(body)
    bounds = find_records(records, count_max=count)
    entries, failure = verify_records(codec, records, bounds, first_entry_id=0)
    if failure is not None or len(entries) != count:
        raise SystemExit(f"the loop refused its own input: {failure}")
    payloads = [entry[1] for entry in entries]
    (plan,) = plan_layout_from_sizes([size] * count, block_bytes_max=64 * BATCH_BYTES)
    encoder = BlockEncoder(plan.block_length)

    def encode() -> memoryview:
        encoder.begin(plan)
        encoder.add_many(0, payloads)
        return encoder.finish()

    block = bytes(encode())

    def decode() -> list[object]:
        walker = BlockWalker(block_length=len(block), first_entry_id=0, entries_expected=count)
        for _entry in walker.feed(block):
            pass
        walker.finish()
        return []

    def digest_one_by_one() -> None:
        digest = EntriesDigest()
        for entry_id, payload in enumerate(payloads):
            digest.update(entry_id, payload)

    return count, {
        "find records": lambda: find_records(records, count_max=count),
        "bookie digests": lambda: verify_records(codec, records, bounds, first_entry_id=0),
        "frame": encode,
        "entries hash": lambda: EntriesDigest().update_many(0, payloads),
        "part hash": lambda: sha256(block).digest(),
        "decode": decode,
        "read-back hash": digest_one_by_one,
    }


def _records(codec: EntryCodec, size: int) -> tuple[int, bytearray]:
    """One batch of a bookie's answer, and how many records are in it."""
    count = max(1, BATCH_BYTES // (size + 4 + codec.overhead_bytes))
    ledger = MadeLedger(entries=count, size=size, block_bytes=BATCH_BYTES)
    return count, ledger.answer(codec, 0, count)


def native_stages(core: Core, size: int) -> tuple[int, dict[str, Callable[[], object]]]:
    """The same by the library, for CRC32C; entries are hashed with the block, in one pass."""
    codec = EntryCodec(ledger_id=7, digest_type=DigestType.CRC32C, password=b"")
    count, body = _records(codec, size)
    records = memoryview(body)
    (plan,) = plan_layout_from_sizes([size] * count, block_bytes_max=64 * BATCH_BYTES)
    encoder = BlockEncoder(plan.block_length)

    def encode() -> memoryview:
        encoder.begin(plan)
        if encoder.add_stored(core, records, first_entry_id=0, entries=count) is None:
            raise SystemExit("the library refused its own input")
        return encoder.finish()

    block = memoryview(bytearray(encode()))

    def hash_block() -> object:
        digest = FramesDigest(plan.header())
        digest.update_frames(block[HEADER_BYTES:], entries=count, payload_bytes=count * size)
        return digest.hexdigest()

    def verify() -> object:
        return core.verify(records, count=count, ledger_id=7, first_entry_id=0)

    return count, {
        "find records": lambda: core.find(records, count_max=count),
        "bookie digests": verify,
        "frame": encode,
        "both hashes": hash_block,
        "decode": lambda: core.walk(block, first_entry_id=0, count=count),
        "read-back hashes": hash_block,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--seconds", type=float, default=0.5, help="of each stage")
    options = parser.parse_args()
    for digest_type in (DigestType.CRC32C, DigestType.CRC32, DigestType.HMAC):
        codec = EntryCodec(ledger_id=7, digest_type=digest_type, password=b"secret")
        for size in SIZES:
            _tell(digest_type.name, size, *stages(codec, size), options.seconds)
    loop = this_loop()
    print(loop.said)
    if loop.core is not None:
        for size in SIZES:
            _tell("CRC32C", size, *native_stages(loop.core, size), options.seconds)


def _tell(
    digest: str, size: int, count: int, acts: dict[str, Callable[[], object]], seconds: float
) -> None:
    spent = {name: _least(act, seconds) / count for name, act in acts.items()}
    said = "  ".join(f"{name} {1e9 * s:.0f}" for name, s in spent.items())
    print(f"{digest:7} {size:7} B  ns per entry: {said}", flush=True)


def _least(act: Callable[[], object], seconds: float) -> float:
    least, until = float("inf"), time.perf_counter() + seconds
    while time.perf_counter() < until:
        began = time.process_time()
        act()
        least = min(least, time.process_time() - began)
    return least


if __name__ == "__main__":
    main()
