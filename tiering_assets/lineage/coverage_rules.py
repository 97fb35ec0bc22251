"""Is every ledger that a topic lists, and that is offloaded, whole in the catalogue? Facts in.

Owns: what is judged is each sealed ledger of the topic's list in the metadata store with a complete
offload context, by the attempt that its context names, whoever wrote it. What is on bookies alone,
what a broker copied and no deep look has read, and what a run has in work is told by number and is
no finding. Which ledgers a topic still has, its list alone says: trimmed ones are not looked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from tiering_assets.lineage.block_chain import BlockSpan, Gap, chain_findings

Attempt = tuple[int, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerInList:
    """A ledger of a topic's list. `uid` is of its complete offload context, None without one."""

    ledger_id: int
    entries: int | None
    uid: str | None
    is_open: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CoverageFacts:
    """What the catalogue and the bucket say of the ledgers of a topic.

    `last_entry_ids` has every attempt that has blocks, `odd` the blocks of those that are worth a
    look. `certified` are listed attempts without blocks of which a record of ours is in the bucket.
    `known` are ledgers of the topic in the catalogue that are not expired there.
    """

    last_entry_ids: Mapping[Attempt, int]
    odd: Mapping[Attempt, Sequence[BlockSpan]] = field(default_factory=dict)
    certified: AbstractSet[Attempt] = frozenset()
    known: AbstractSet[int] = frozenset()
    in_work: AbstractSet[int] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class CoverageFinding:
    ledger_id: int | None
    kind: Gap
    what: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicCoverage:
    """`first` and `last` are the first retained position and the last sealed one."""

    topic: str
    first: tuple[int, int] | None
    last: tuple[int, int] | None
    covered: int = 0
    on_bookies: int = 0
    by_brokers: int = 0
    in_work: int = 0
    findings: tuple[CoverageFinding, ...] = ()


def judge_topic(topic: str, listed: Sequence[LedgerInList], facts: CoverageFacts) -> TopicCoverage:
    """Ledgers in any order."""
    sealed = sorted(
        (one for one in listed if not one.is_open and one.entries), key=lambda one: one.ledger_id
    )
    ours = [one for one in sealed if one.uid is not None and _is_ours(one, facts)]
    findings = [found for one in ours for found in _of_ledger(one, facts)]
    findings += _unlisted(listed, facts)
    wrong = {found.ledger_id for found in findings}
    waiting = [one for one in ours if not _has_blocks(one, facts) and one.ledger_id not in wrong]
    return TopicCoverage(
        topic=topic,
        first=(sealed[0].ledger_id, 0) if sealed else None,
        last=(sealed[-1].ledger_id, (sealed[-1].entries or 0) - 1) if sealed else None,
        covered=sum(one.ledger_id not in wrong for one in ours) - len(waiting),
        on_bookies=sum(one.uid is None for one in sealed),
        by_brokers=sum(one.uid is not None for one in sealed) - len(ours),
        in_work=len(waiting),
        findings=tuple(findings),
    )


def _attempt(ledger: LedgerInList) -> Attempt:
    return ledger.ledger_id, ledger.uid or ""


def _has_blocks(ledger: LedgerInList, facts: CoverageFacts) -> bool:
    return _attempt(ledger) in facts.last_entry_ids


def _is_ours(ledger: LedgerInList, facts: CoverageFacts) -> bool:
    return _has_blocks(ledger, facts) or _attempt(ledger) in facts.certified


def _of_ledger(ledger: LedgerInList, facts: CoverageFacts) -> Iterator[CoverageFinding]:
    attempt = _attempt(ledger)
    if not _has_blocks(ledger, facts):
        if ledger.ledger_id not in facts.in_work:
            yield CoverageFinding(
                ledger_id=ledger.ledger_id,
                kind=Gap.UNCOVERED,
                what=f"no block of attempt {ledger.uid} is in the catalogue, its certificate is "
                "in the bucket: `tierkeeper catalogue post`, then `tierkeeper catalogue prove`",
            )
        return
    blocks = facts.odd.get(attempt)
    told = (
        _end_findings(facts.last_entry_ids[attempt] + 1, ledger.entries or 0)
        if blocks is None
        else chain_findings(blocks, ledger.entries)
    )
    for kind, what in told:
        yield CoverageFinding(ledger_id=ledger.ledger_id, kind=kind, what=what)


def _end_findings(end: int, entries: int) -> Iterator[tuple[Gap, str]]:
    """Of blocks that follow from the first entry to `end`: as many as the topic lists?"""
    if end != entries:
        yield from chain_findings([BlockSpan(1, 0, end - 1, 0, 1)], entries)


def _unlisted(listed: Sequence[LedgerInList], facts: CoverageFacts) -> Iterator[CoverageFinding]:
    """A topic loses ledgers from its beginning. One between those that it lists is lost."""
    ids = {one.ledger_id for one in listed}
    for ledger_id in sorted(facts.known - ids):
        if min(ids, default=ledger_id) < ledger_id < max(ids, default=ledger_id):
            yield CoverageFinding(
                ledger_id=ledger_id,
                kind=Gap.UNLISTED,
                what="lies between ledgers that the topic lists, and is not listed: "
                f"`tierkeeper ledger show {ledger_id}`",
            )
