"""Everything one topic is due, for one reload: what waits to be published and what may be released.

Owns: contexts and marks share a compare-and-set, an unload and a rehearsal (design section 6.2), and
neither half holds the other up: each has its own gate, and a shared change that the broker could
not read is undone and tried again half by half.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from resources.errors import RefusedError, StaleEvidenceError, TierkeeperError
from tiering_assets.change import publish
from tiering_assets.change.disturb import Seen, see
from tiering_assets.change.publish import Certificates, PublicationWork, PublishResult
from tiering_assets.change.topic_change import Confirmed, make_change
from tiering_assets.change.topic_edit import TopicChange
from tiering_assets.ground.evidence import Dated, all_of
from tiering_assets.ground.reasons import Wait
from tiering_assets.ground.stack import Stack
from tiering_assets.look.topic.topic_evidence import Shadows
from tiering_assets.release import release
from tiering_assets.release import work as release_finish
from tiering_assets.release import work as release_work
from tiering_assets.release.approval import Approval
from tiering_assets.release.gate import NotYet
from tiering_assets.release.work import ReleaseResult, ReleaseWork


@dataclass(frozen=True, slots=True)
class TopicResults:
    """One result per ledger asked for."""

    published: dict[int, PublishResult]
    released: dict[int, ReleaseResult]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Half:
    """One side's part of a change, what it stands on, and what happens when it stands or falls.

    `renew` gives the same on new evidence, or None where nothing of it may go any more.
    """

    czxid: int
    change: TopicChange
    evidence: Dated
    renew: Callable[[], _Half | None]
    finish: Callable[[Confirmed], None]
    fail: Callable[[TierkeeperError], None]
    wait: Callable[[Wait], None]


def tier_topic(
    stack: Stack,
    ml_name: str,
    certificates: Certificates,
    due: Sequence[int],
    *,
    ml_czxid: int,
    shadows: Shadows | None = None,
    approval: Approval | None = None,
) -> TopicResults:
    """Publish certified attempts and release due ledgers of one topic, with one reload for both.

    Safe to run twice. Errors are results: of the ledgers whose half they ended.
    """
    results = TopicResults({}, {})
    try:
        seen = see(stack, ml_name)
    except TierkeeperError as error:
        return TopicResults(dict.fromkeys(certificates, error), dict.fromkeys(due, error))
    halves = [
        half
        for half in (
            _to_publish(stack, ml_name, certificates, ml_czxid, seen, results.published),
            _to_release(stack, ml_name, due, shadows, seen, approval, results.released),
        )
        if half is not None
    ]
    if halves:
        _make(stack, ml_name, halves, seen)
    return results


def _to_publish(
    stack: Stack,
    ml_name: str,
    certificates: Certificates,
    ml_czxid: int,
    seen: Seen,
    results: dict[int, PublishResult],
) -> _Half | None:
    def fail(error: TierkeeperError) -> None:
        results.update({i: error for i in certificates if i not in results})

    try:
        work = publish.prepare_publication(
            stack, ml_name, certificates, ml_czxid=ml_czxid, seen=seen
        )
        results.update(work.settled)
        sung, work = publish.publish_canary(stack, work)
    except TierkeeperError as error:
        fail(error)
        return None
    results.update(sung)
    return _publish_half(stack, work, results, fail)


def _publish_half(
    stack: Stack,
    work: PublicationWork,
    results: dict[int, PublishResult],
    fail: Callable[[TierkeeperError], None],
) -> _Half | None:
    if not work.won:
        return None

    def renew() -> _Half | None:
        again = publish.look_again(stack, work)
        results.update(again.settled)
        return _publish_half(stack, again, results, fail)

    return _Half(
        czxid=work.czxid,
        change=TopicChange(contexts=publish.copies_of(work.won)),
        evidence=work.evidence,
        renew=renew,
        finish=lambda confirmed: results.update(publish.finish_publication(stack, work, confirmed)),
        fail=fail,
        wait=lambda wait: results.update(dict.fromkeys(work.won, wait)),
    )


def _to_release(
    stack: Stack,
    ml_name: str,
    due: Iterable[int],
    shadows: Shadows | None,
    seen: Seen,
    approval: Approval | None,
    results: dict[int, ReleaseResult],
) -> _Half | None:
    ledger_ids = sorted(due)

    def fail(error: TierkeeperError) -> None:
        results.update({i: error for i in ledger_ids if i not in results})

    if not ledger_ids:
        return None
    try:
        work = release.prepare_release(
            stack, ml_name, ledger_ids, shadows=shadows, seen=seen, approval=approval
        )
    except TierkeeperError as error:
        fail(error)
        return None
    return _release_half(stack, work, results, fail)


def _release_half(
    stack: Stack,
    work: ReleaseWork,
    results: dict[int, ReleaseResult],
    fail: Callable[[TierkeeperError], None],
) -> _Half | None:
    results.update(work.settled)
    if not work.due:
        return None

    def renew() -> _Half | None:
        again = release_work.gate_again(stack, work, at_once=1)
        return _release_half(stack, again, results, fail)

    return _Half(
        czxid=work.czxid,
        change=TopicChange(marks=release_work.copies_of(work.due)),
        evidence=work.evidence,
        renew=renew,
        finish=lambda _confirmed: results.update(release_finish.finish_release(stack, work)),
        fail=fail,
        wait=lambda wait: results.update(dict.fromkeys(work.due, NotYet((str(wait),)))),
    )


def _make(
    stack: Stack, ml_name: str, halves: Sequence[_Half], seen: Seen, *, renewed: bool = False
) -> None:
    change = TopicChange(
        contexts={i: copy for half in halves for i, copy in half.change.contexts.items()},
        marks={i: copy for half in halves for i, copy in half.change.marks.items()},
    )
    try:
        confirmed = make_change(
            stack,
            ml_name,
            change,
            czxid=halves[0].czxid,
            seen=seen,
            evidence=all_of(half.evidence for half in halves),
        )
    except StaleEvidenceError as error:
        _renew(stack, ml_name, halves, seen, error, renewed=renewed)
    except RefusedError as error:
        if len(halves) > 1:
            stack.narrate(f"{error}. Publication and release are tried one by one")
            for half in halves:
                _make(stack, ml_name, [half], seen)
        else:
            halves[0].fail(error)
    except TierkeeperError as error:
        for half in halves:
            half.fail(error)
    else:
        for half in halves:
            try:
                if isinstance(confirmed, Wait):
                    half.wait(confirmed)
                else:
                    half.finish(confirmed)
            except TierkeeperError as error:
                half.fail(error)


def _renew(
    stack: Stack,
    ml_name: str,
    halves: Sequence[_Half],
    seen: Seen,
    error: StaleEvidenceError,
    *,
    renewed: bool,
) -> None:
    """Ask again what got too old, once; the second time it is an error."""
    again: list[_Half] = []
    for half in halves:
        try:
            if renewed:
                raise error
            new = half.renew()
        except TierkeeperError as why:
            half.fail(why)
        else:
            again += [] if new is None else [new]
    if again:
        _make(stack, ml_name, again, seen, renewed=True)
