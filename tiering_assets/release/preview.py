"""What a release would do with some ledgers now, and why not with the others. Reads only.

Owns: the same evidence and the same decision as the release itself, by release.py's own functions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from tiering_assets.change.disturb import see
from tiering_assets.ground.reasons import NotNow
from tiering_assets.ground.stack import Stack
from tiering_assets.look.topic.publications import Publications
from tiering_assets.look.topic.topic_evidence import Shadows, find_shadows, topic_of
from tiering_assets.quality.ledger_frame import LedgerRow
from tiering_assets.records.models import Certificate, SuiteResult
from tiering_assets.records.stored import Stored
from tiering_assets.release.evidence import (
    Evidence,
    UnjudgedLedgers,
    judge_all,
    look_at_ledgers,
)
from tiering_assets.release.gate import MayRelease, Voucher
from tiering_assets.release.look import TopicEvidence, gather_topic
from tiering_assets.release.release import intent_of_finished
from tiering_assets.release.work import decide_now
from tiering_assets.resources.errors import TierkeeperError


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleasePlanItem:
    """What a run would do with one ledger, and why not where it would not."""

    ledger_id: int
    ml_name: str
    decision: MayRelease | NotNow[str]
    bytes: int
    certificate: Stored[Certificate] | None = None
    published_at: datetime | None = None
    bookies: frozenset[str] = frozenset()
    finished: bool = False
    suites: tuple[SuiteResult, ...] = ()

    @property
    def goes(self) -> bool:
        return isinstance(self.decision, MayRelease)


def plan_release(
    stack: Stack,
    ml_name: str,
    ledger_ids: Sequence[int],
    *,
    shadows: Shadows | None = None,
    publications: Publications | None = None,
) -> list[ReleasePlanItem]:
    """The dry run: the same evidence and decision as the release itself, and nothing else.

    A ledger that an earlier run released is `finished`, its record still to be written or not.
    `publications` are those of these ledgers, if they are known already.
    """
    planned = plan_releases(
        stack,
        {ml_name: ledger_ids},
        shadows=shadows,
        publications=None if publications is None else {ml_name: publications},
    )[ml_name]
    if isinstance(planned, TierkeeperError):
        raise planned
    return planned


def plan_releases(
    stack: Stack,
    topics: Mapping[str, Sequence[int]],
    *,
    shadows: Shadows | None = None,
    publications: Mapping[str, Publications] | None = None,
    before_suites: Callable[[Sequence[LedgerRow], bool], None] | None = None,
) -> dict[str, list[ReleasePlanItem] | TierkeeperError]:
    """The dry run of several topics, whose ledgers the expectation suites judge together.

    `before_suites` is called once with the ledgers that only suites can refuse any more, as that
    takes seconds, and with whether any of them would be read again. A topic that could not be
    looked at has its error; a suite that cannot be run at all raises.
    """
    known = find_shadows(stack) if shadows is None else shadows
    planned: dict[str, list[ReleasePlanItem] | TierkeeperError] = {}
    looked: list[UnjudgedLedgers] = []
    for ml_name, ledger_ids in topics.items():
        try:
            found = stack.topics.read(ml_name)
            if found is None:
                planned[ml_name] = _gone(ml_name, ledger_ids)
                continue
            about = gather_topic(
                stack,
                ml_name,
                found[0],
                known,
                see(stack, ml_name),
                publications=(publications or {}).get(ml_name),
            )
            looked.append(look_at_ledgers(stack, about, ledger_ids))
        except TierkeeperError as error:
            planned[ml_name] = error
    looks = [look for one in looked for look in one.looks.values()]
    rows = [look.row for look in looks if look.row is not None]
    if before_suites is not None and rows:
        before_suites(rows, any(look.voucher is Voucher.READING for look in looks))
    for one, evidence in zip(looked, judge_all(stack, looked), strict=True):
        try:
            items = [_item(stack, one.about, ledger_id, e) for ledger_id, e in evidence.items()]
            planned[one.about.ml_name] = items
        except TierkeeperError as error:
            planned[one.about.ml_name] = error
    return planned


def _gone(ml_name: str, ledger_ids: Sequence[int]) -> list[ReleasePlanItem]:
    gone = NotNow((f"{topic_of(ml_name)} is gone; nothing is released for a deleted topic",))
    return [
        ReleasePlanItem(ledger_id=i, ml_name=ml_name, decision=gone, bytes=0) for i in ledger_ids
    ]


def _item(
    stack: Stack, about: TopicEvidence, ledger_id: int, evidence: Evidence
) -> ReleasePlanItem:
    ml_name = about.ml_name
    publication = evidence.publication
    finished = intent_of_finished(stack, about.topic, ledger_id, evidence) is not None
    return ReleasePlanItem(
        ledger_id=ledger_id,
        ml_name=ml_name,
        decision=NotNow(("released already",)) if finished else decide_now(stack, evidence),
        finished=finished,
        suites=() if finished else evidence.suites,
        bytes=0 if evidence.ledger is None else evidence.ledger.metadata.length,
        certificate=evidence.certificate,
        published_at=None if publication is None else publication.record.confirmed_at,
        bookies=frozenset()
        if evidence.ledger is None
        else frozenset(b for s in evidence.ledger.metadata.segments for b in s.bookies),
    )
