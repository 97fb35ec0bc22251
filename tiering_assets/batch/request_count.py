"""How many requests an offload will cost, before it starts. What plans and dry runs print and
people pay for.

Counts what copy/offload.py, verify/verify.py and change/publish.py send when nothing fails and
nothing of an earlier attempt is left: retries come on top.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tiering_assets.offload_format.layout import BlockPlan

BUDGET_READINGS = 3  # of one batch: the driver, copying and reading back; then one each 10 s


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestCount:
    """Requests to the object store by class. Providers price `writes` highest."""

    put: int = 0
    post: int = 0
    get: int = 0
    head: int = 0
    list: int = 0

    @property
    def writes(self) -> int:
        return self.put + self.post

    @property
    def reads(self) -> int:
        return self.get + self.head + self.list

    @property
    def total(self) -> int:
        return self.writes + self.reads

    def __add__(self, other: RequestCount) -> RequestCount:
        return RequestCount(
            put=self.put + other.put,
            post=self.post + other.post,
            get=self.get + other.get,
            head=self.head + other.head,
            list=self.list + other.list,
        )


def count_requests(blocks: Sequence[BlockPlan], *, read_range_bytes: int) -> RequestCount:
    """Copy and verification of one ledger, certificate included.

    One PUT for a single block, else create, a part each, a look at the parts, complete and a look
    for stray uploads. The rest is the index object, the claim (made, renewed, ended), the attempt's
    and the certificate's record, each read again after it was written.
    """
    ranges = sum(-(-block.block_length // read_range_bytes) for block in blocks)
    several = int(len(blocks) > 1)
    return RequestCount(
        put=len(blocks) + 6,
        post=2 * several,
        get=ranges + 9 + several,
        head=4,
        list=3 + several,
    )


def count_publication(ledgers: int, *, canary: bool) -> RequestCount:
    """Publication of a loaded topic's ledgers. `canary`: it is the first one of its namespace."""
    if ledgers == 0:
        return RequestCount()
    # The canary is a ledger of the topic that goes out, and is read, before the others.
    rounds = 2 if canary and ledgers > 1 else 1
    # Both objects of each, and its quarantine; those behind the canary are looked at once more.
    again = ledgers - 1 if rounds > 1 else 0
    return RequestCount(
        put=ledgers + 2 * rounds + int(canary),
        get=3 + 2 * rounds + 2 * ledgers + again,
        head=2 + rounds + 2 * ledgers + 2 * again,
        list=5 + 2 * rounds,
    )


def count_budget_readings(seconds: float) -> RequestCount:
    """What a batch of so many seconds asks to follow the budgets, recorded or not."""
    return RequestCount(get=BUDGET_READINGS + int(seconds // 10))


def count_batch() -> RequestCount:
    """What a batch asks once, however many ledgers it has.

    Which of them have failure records, the bucket's proof, and which brokers were seen; that record
    is written anew once an hour at most, and the proof once, which is not counted. And two pages of
    the day book, behind the newest one.
    """
    return RequestCount(put=2, get=3, head=1, list=2)
