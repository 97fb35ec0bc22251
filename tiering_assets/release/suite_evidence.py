"""What the expectation suites say of ledgers that wait for their release: ours, and users'.

Owns: ours pass only where each was run now and passed, and a user's suite can only add reasons
against a release. All ledgers are judged together: one validation of a suite costs a quarter of a
second, however many there are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tiering_assets.ground.stack import Stack
from tiering_assets.quality.facts import IndexFacts
from tiering_assets.quality.findings import findings
from tiering_assets.quality.ledger_frame import LedgerRow
from tiering_assets.quality.ledger_suites import ledger_findings
from tiering_assets.quality.user_suites import user_findings, validate_user_suites
from tiering_assets.records.models import SuiteResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdicts:
    """Of one ledger; None and empty where it was not judged."""

    index: SuiteResult | None = None
    index_facts: IndexFacts | None = None
    ledger: tuple[SuiteResult, ...] = ()
    row: LedgerRow | None = None
    user: tuple[SuiteResult, ...] = ()

    @property
    def suites(self) -> tuple[SuiteResult, ...]:
        """All results, those of users' suites last."""
        return (*(() if self.index is None else (self.index,)), *self.ledger, *self.user)

    def passed(self, certified: Sequence[SuiteResult]) -> bool:
        """Whether all of ours pass now, and those that the certificate names passed then."""
        if self.index is None or not self.ledger:
            return False
        return all(one.success for one in (self.index, *self.ledger, *certified))

    @property
    def suite_findings(self) -> tuple[str, ...]:
        """Why ours do not pass: suite, expectation, expected and found."""
        found: list[str] = []
        if self.index is not None and self.index_facts is not None:
            said = findings(self.index_facts, self.index)
            found += [f"suite {self.index.name}: {text}" for text in said]
        if self.row is not None:
            found += ledger_findings(self.row, self.ledger)
        return tuple(found)

    @property
    def user_findings(self) -> tuple[str, ...]:
        """Why users' suites hold the ledger."""
        return user_findings(self.user)


def judge_ledgers(
    stack: Stack, facts: Sequence[IndexFacts], rows: Sequence[LedgerRow]
) -> dict[int, Verdicts]:
    """Run every suite once over all of them; ledgers that no facts are of have no verdict."""
    indexes = stack.judge(facts) if facts else {}
    ledgers = stack.judge_ledgers(rows) if rows else {}
    users = validate_user_suites(rows, stack.user_suites)
    facts_of = {one.ledger_id: one for one in facts}
    row_of = {row.ledger_id: row for row in rows}
    return {
        ledger_id: Verdicts(
            index=indexes.get(ledger_id),
            index_facts=facts_of.get(ledger_id),
            ledger=ledgers.get(ledger_id, ()),
            row=row_of.get(ledger_id),
            user=users.get(ledger_id, ()),
        )
        for ledger_id in facts_of.keys() | row_of.keys()
    }
