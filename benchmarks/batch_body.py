"""Entries per second of the batch loop alone: records found, digests checked, nothing sent.

Run: python benchmarks/batch_body.py
"""

from __future__ import annotations

import time
from struct import pack

from resources.bookkeeper.batch_body import find_records, verify_records
from resources.bookkeeper.ledger import DigestType
from resources.bookkeeper.stored_entry import EntryCodec

BATCH_BYTES = 4 * 1024 * 1024
SECONDS = 1.0


def main() -> None:
    print("digest   payload     find      find + verify (MB/s of payload, entries/s)")
    for digest_type in (DigestType.CRC32C, DigestType.CRC32, DigestType.HMAC):
        codec = EntryCodec(ledger_id=7, digest_type=digest_type, password=b"secret")
        for size in (100, 1024, 10 * 1024, 100 * 1024):
            payload = bytes(size)
            count = max(1, BATCH_BYTES // (size + 4 + codec.overhead_bytes))
            body = bytearray()
            for entry_id in range(count):
                stored = codec.encode(
                    entry_id=entry_id,
                    last_add_confirmed=entry_id - 1,
                    cumulative_length=(entry_id + 1) * size,
                    payload=payload,
                )
                body += pack(">i", len(stored)) + stored
            records = memoryview(body)
            best_find = best = float("inf")
            until = time.perf_counter() + SECONDS
            while time.perf_counter() < until:
                began = time.perf_counter()
                bounds = find_records(records, count_max=1 << 30)
                found = time.perf_counter()
                entries, failure = verify_records(codec, records, bounds, first_entry_id=0)
                done = time.perf_counter()
                if failure is not None or len(entries) != count:
                    raise SystemExit(f"the loop refused its own input: {failure}")
                best_find, best = min(best_find, found - began), min(best, done - began)
            print(
                f"{digest_type.name:7} {size:8} {count * size / best_find / 1e6:10.0f}"
                f"{count * size / best / 1e6:10.0f}{count / best:12.0f}"
            )


if __name__ == "__main__":
    main()
