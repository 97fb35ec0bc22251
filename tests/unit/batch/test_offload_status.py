"""PIP-17's four words and the amounts, from lists and reasons."""

from uuid import UUID

import pytest

from tiering_assets.batch.offload_status_rules import OffloadState, StatusAmount, decide_status
from tiering_assets.explain.reasons.backlog_reason import BacklogReason, Because
from tiering_assets.resources.metastore.ledger_info import LedgerInfo, Position
from tiering_assets.resources.metastore.offload_context import OffloadContext

R = BacklogReason
DONE = OffloadContext(uid=UUID(int=1), complete=True)
BEGUN = OffloadContext(uid=UUID(int=2), complete=False)


def ledger(ledger_id, context=None, *, is_open=False):
    return LedgerInfo(
        ledger_id=ledger_id,
        entries=None if is_open else 2,
        size=None if is_open else 10,
        closed_at_ms=None if is_open else 1,
        offload=context,
    )


def status(ledgers, *reasons):
    told = {info.ledger_id: Because(r, "x") for info, r in zip(ledgers, reasons, strict=True)}
    return decide_status(ledgers, told)


@pytest.mark.parametrize(
    ("context", "reason", "expected"),
    [
        (None, R.NOT_ADMITTED, OffloadState.NOT_RUN),
        (BEGUN, R.COPYING, OffloadState.RUNNING),
        (DONE, R.IN_LAG, OffloadState.SUCCESS),
        (None, R.FAILED, OffloadState.ERROR),
        (None, R.QUARANTINED, OffloadState.ERROR),
        (DONE, R.UNSAFE, OffloadState.ERROR),  # the only copy is broken
    ],
)
def test_the_status_of_one_ledger(context, reason, expected):
    found = status([ledger(1, context), ledger(2, is_open=True)], reason, R.OPEN)
    assert found.status is expected


def test_every_closed_ledger_is_in_one_amount():
    ledgers = [ledger(1, DONE), ledger(2, BEGUN), ledger(3), ledger(4), ledger(5, is_open=True)]
    found = status(ledgers, R.DONE, R.COPYING, R.OVER_BUDGET, R.NOT_ADMITTED, R.OPEN)
    assert (found.offloaded, found.copying, found.pending) == (
        StatusAmount(1, 10),
        StatusAmount(1, 10),
        StatusAmount(2, 20),
    )
    assert {i: because.reason for i, because in found.waiting.items()} == {
        2: R.COPYING,
        3: R.OVER_BUDGET,
        4: R.NOT_ADMITTED,
    }
    assert found.first_unoffloaded == Position(2, 0)


def test_a_ledger_that_was_closed_since_the_reasons_were_read_counts_nowhere():
    found = decide_status([ledger(1), ledger(2)], {1: Because(R.NOT_ADMITTED, "")})
    assert found.pending == StatusAmount(1, 10)
    assert decide_status([], {}).status is OffloadState.NOT_RUN
