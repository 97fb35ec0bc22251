"""Gather what the release gate judges, fresh, for some ledgers of a topic. Reads only.

A fact that could not be learned stays None and makes the ledger wait; no error here is turned into
a good answer. Ledgers are looked at in parallel, and judged by the expectation suites together:
ours pass only where each was run now and passed, and a user's can only add reasons against a
release. A validation costs nearly the same for one ledger and for a hundred.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tiering_assets.ground.evidence import Dated
from tiering_assets.ground.stack import Stack
from tiering_assets.quality.facts import IndexFacts
from tiering_assets.quality.findings import findings
from tiering_assets.quality.ledger_frame import LedgerRow, ledger_rows
from tiering_assets.quality.ledger_suites import ledger_findings
from tiering_assets.quality.user_suites import user_findings, validate_user_suites
from tiering_assets.records.models import Certificate, Publication, SuiteResult
from tiering_assets.records.stored import Stored
from tiering_assets.release.gate import ReleaseEvidence, SuitesSaid
from tiering_assets.release.look import Look, TopicEvidence, look_at_ledger
from tiering_assets.resources.metastore.ledgers import LedgerNode


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

    def said(self, certified: Sequence[SuiteResult]) -> SuitesSaid:
        """What the gate is told; `certified` are those that were run before the certificate."""
        return SuitesSaid(
            passed=self.passed(certified),
            findings=self.findings,
            user_findings=user_findings(self.user),
        )

    def passed(self, certified: Sequence[SuiteResult]) -> bool:
        """Whether all of ours pass now, and those that the certificate names passed then."""
        if self.index is None or not self.ledger:
            return False
        return all(one.success for one in (self.index, *self.ledger, *certified))

    @property
    def findings(self) -> tuple[str, ...]:
        """Why ours do not pass: suite, expectation, expected and found."""
        found: list[str] = []
        if self.index is not None and self.index_facts is not None:
            said = findings(self.index_facts, self.index)
            found += [f"suite {self.index.name}: {text}" for text in said]
        if self.row is not None:
            found += ledger_findings(self.row, self.ledger)
        return tuple(found)


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """One ledger's evidence: what is `judged`, and what it was made of, for a second look.

    `dated` is when it was asked.
    """

    judged: ReleaseEvidence
    look: Look
    verdicts: Verdicts
    dated: Dated

    @property
    def ledger_id(self) -> int:
        return self.look.facts.ledger_id

    @property
    def certificate(self) -> Stored[Certificate] | None:
        return self.look.facts.certificate

    @property
    def publication(self) -> Stored[Publication] | None:
        return self.look.facts.publication

    @property
    def ledger(self) -> LedgerNode | None:
        return self.look.ledger

    @property
    def suites(self) -> tuple[SuiteResult, ...]:
        """Results of our suites and, behind them, of users'."""
        return self.verdicts.suites


@dataclass(frozen=True, slots=True, kw_only=True)
class UnjudgedLedgers:
    """Ledgers of one topic, looked at and not judged yet."""

    about: TopicEvidence
    looks: Mapping[int, Look]
    before: Mapping[int, Evidence] = field(default_factory=dict)


def gather(
    stack: Stack,
    about: TopicEvidence,
    ledger_ids: Iterable[int],
    *,
    before: Mapping[int, Evidence] | None = None,
) -> dict[int, Evidence]:
    """Everything about some ledgers. Only a metadata store that cannot be read is an error.

    `before` is an earlier look of the same run: what its suites said of the same facts still holds.
    """
    [evidence] = judge_all(stack, [look_at_ledgers(stack, about, ledger_ids, before=before)])
    return evidence


def look_at_ledgers(
    stack: Stack,
    about: TopicEvidence,
    ledger_ids: Iterable[int],
    *,
    before: Mapping[int, Evidence] | None = None,
) -> UnjudgedLedgers:
    known = before or {}
    wanted = list(ledger_ids)
    # One by one: many ledgers have one hold, whose record is read once.
    held = {i: about.holds.why(i, about.ml_name) for i in wanted}

    def look(ledger_id: int) -> Look:
        earlier = known.get(ledger_id)
        seen = None if earlier is None else earlier.look
        return look_at_ledger(stack, about, ledger_id, seen, hold=held[ledger_id])

    looks = dict(zip(wanted, stack.in_parallel(look, wanted), strict=True))
    # The gate needs no suite to refuse a ledger without them.
    whole = [
        look.facts
        for look in looks.values()
        if look.facts.publication is not None and look.facts.node is not None
    ]
    for row in ledger_rows(about.facts, whole):
        looks[row.ledger_id] = replace(looks[row.ledger_id], row=row)
    return UnjudgedLedgers(about=about, looks=looks, before=known)


def judge_all(stack: Stack, looked: Sequence[UnjudgedLedgers]) -> list[dict[int, Evidence]]:
    """The evidence of several topics' ledgers, in their order, judged by every suite together."""
    verdicts: dict[int, Verdicts] = {}
    new: list[Look] = []
    for one in looked:
        for ledger_id, look in one.looks.items():
            earlier = one.before.get(ledger_id)
            if earlier is not None and not stack.user_suites and _same_facts(earlier.look, look):
                verdicts[ledger_id] = earlier.verdicts
            else:
                new.append(look)
    if new:
        verdicts |= judge_ledgers(
            stack,
            [look.index_now.facts for look in new if look.index_now.facts is not None],
            [look.row for look in new if look.row is not None],
        )
    return [
        {
            ledger_id: _evidence(one.about, look, verdicts.get(ledger_id, Verdicts()))
            for ledger_id, look in one.looks.items()
        }
        for one in looked
    ]


def _same_facts(before: Look, now: Look) -> bool:
    """The suites would say the same: only the store's clock has gone on."""
    return before.index_now.facts is now.index_now.facts and _timeless(before.row) == _timeless(
        now.row
    )


def _timeless(row: LedgerRow | None) -> LedgerRow | None:
    return None if row is None else row._replace(store_now_ms=0, store_latest_ms=0)


def _evidence(about: TopicEvidence, look: Look, verdicts: Verdicts) -> Evidence:
    certificate = look.facts.certificate
    certified = () if certificate is None else certificate.record.suites
    return Evidence(
        judged=ReleaseEvidence(topic=about.facts, copy=look.facts, suites=verdicts.said(certified)),
        look=look,
        verdicts=verdicts,
        dated=look.evidence.and_(about.evidence),
    )
