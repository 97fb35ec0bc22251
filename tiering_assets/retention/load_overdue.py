"""Has brokers load idle topics whose retention is overdue, and looks whether they trimmed them.

Owns: nothing is trimmed by us. A broker is asked to apply retention to a topic that nobody has
loaded, which loads it; what goes is the broker's decision. Where the topics are is asked of all of
them before anything makes a broker own a bundle; a topic whose bundle has an owner that does not
list it is looked at again after the minute that a listing may be old. Each load is recorded before
it is asked for, so that the budget of an hour holds across runs. A dry run is the same code.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import timedelta

from tiering_assets.ground.stack import Stack
from tiering_assets.look.brakes.brake import HOLD, read_brakes
from tiering_assets.look.ledger.claims import read_claim
from tiering_assets.look.topic.bookies import why_not_reloadable
from tiering_assets.policy.policies import open_policies
from tiering_assets.records import keys
from tiering_assets.records.models import Disturbance
from tiering_assets.resources.errors import (
    BrokerError,
    BrokerUnknownError,
    FormatError,
    TierkeeperError,
)
from tiering_assets.resources.pulsar.admin import TopicLoad
from tiering_assets.resources.pulsar.retention import Inactivity
from tiering_assets.retention.expiry import UNKNOWN, AgingTopic, judge, locate, survey_expiry
from tiering_assets.retention.retention_load import (
    LoadGuards,
    LoadState,
    over_load_budget,
    why_guarded,
    why_not_idle,
)

LOOK_AGAIN_S = 65.0  # a broker's listing of its topics may be a minute old
TIMEOUT_S = 60.0
_POLL_S = 0.5
_AN_HOUR = timedelta(hours=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadOutcome:
    """What became of one topic. `trimmed` are overdue ledgers that its list no longer has."""

    topic: str
    ml_name: str
    state: LoadState
    detail: str
    overdue: tuple[int, ...] = ()
    overdue_bytes: int = 0
    trimmed: tuple[int, ...] = ()


def load_overdue(
    stack: Stack,
    ml_names: Iterable[str] | None = None,
    *,
    execute: bool,
    topics_max: int,
    timeout_s: float = TIMEOUT_S,
) -> list[LoadOutcome]:
    """Load what is overdue and idle, most bytes first; one outcome for each topic with a finding.

    Without names all user topics by their namespace's retention, see survey_expiry. Without
    `execute` nothing is loaded or written. `timeout_s` is how long one topic's broker has to trim.
    """
    suspects, outcomes = [], []
    for found in survey_expiry(stack, ml_names):
        if found.error is not None:
            outcomes.append(_outcome(found, LoadState.LEFT_ALONE, found.error))
        elif found.overdue:
            suspects.append(found)
    idle = _find_idle(stack, suspects)
    with open_policies(stack) as policies:
        judged = [
            judge(stack, policies, one, ask_topic=True) if idle[one.ml_name] else one
            for one in suspects
        ]
    loads = 0
    for one in sorted(judged, key=_bytes, reverse=True):
        why = one.error or _why_left_alone(stack, one, idle[one.ml_name])
        if why is not None:
            if one.overdue:  # its own policy may keep what the namespace's does not
                outcomes.append(_outcome(one, LoadState.LEFT_ALONE, why))
            continue
        over = f"this run loads {topics_max} topics" if loads >= topics_max else None
        over = over or over_load_budget(
            _loads_last_hour(stack) + (0 if execute else loads),
            stack.settings.disturb.loads_hour_max,
        )
        if over is not None:
            outcomes.append(_outcome(one, LoadState.OVER_BUDGET, over))
            continue
        loads += 1
        if execute:
            outcomes.append(_load(stack, one, timeout_s=timeout_s))
        else:
            outcomes.append(_outcome(one, LoadState.WOULD_LOAD, "no broker has it loaded"))
    return outcomes


def _find_idle(stack: Stack, suspects: list[AgingTopic]) -> dict[str, bool | None]:
    """True where nobody has the topic loaded, False where somebody has, None where it is not
    known.
    """
    idle: dict[str, bool | None] = {}
    unsure = []
    for one in suspects:
        place = one.place or UNKNOWN
        idle[one.ml_name] = {TopicLoad.NOT_LOADED: True, TopicLoad.LOADED: False}.get(place.load)
        if place.load is TopicLoad.UNKNOWN and place.broker is not None:
            unsure.append(one)
    if unsure:
        stack.narrate(
            f"{len(unsure)} topics are listed nowhere; looking again in {LOOK_AGAIN_S:g} s"
        )
        stack.sleep(LOOK_AGAIN_S)
    for one in unsure:
        place = locate(stack, one.ml_name)
        known = place.load is TopicLoad.NOT_LOADED or (
            place.load is TopicLoad.UNKNOWN and place.broker is not None
        )
        # A broker writes the node when it loads the topic, so an older list shows the truth.
        if known and _unchanged(stack, one):
            idle[one.ml_name] = True
        elif place.load is TopicLoad.LOADED:
            idle[one.ml_name] = False
    return idle


def _unchanged(stack: Stack, found: AgingTopic) -> bool:
    now = stack.topics.read(found.ml_name)
    return found.node is not None and now is not None and now[1].stat.version == found.node.version


def _why_left_alone(stack: Stack, found: AgingTopic, idle: bool | None) -> str | None:
    """The rule's answer; what costs requests is asked only where the rest says yes."""
    why = why_not_idle(found.overdue, idle=idle, certain=found.certain)
    if why is not None:
        return why
    broker = None if found.place is None else found.place.broker
    short = why_not_reloadable(stack, found.ml_name, owner=broker)
    if short is not None:
        return str(short)
    holds = read_brakes(stack, HOLD)
    held = {i: holds.why(i, found.ml_name) for i in found.overdue}
    return why_guarded(
        LoadGuards(
            held={i: why for i, why in held.items() if why is not None},
            claimed=_claimed(stack, found.overdue),
            subscriptions=0 if found.node is None else found.node.subscriptions,
            inactivity=_inactivity(stack, found.topic),
        )
    )


def _claimed(stack: Stack, ledger_ids: Iterable[int]) -> dict[int, str]:
    """Live claims on these ledgers; one that cannot be read counts."""
    written = set(stack.book.keys("claims/"))
    now = stack.objects.server_time()
    found = {}
    for ledger_id in ledger_ids:
        if keys.claim(ledger_id) not in written:
            continue
        try:
            claim = read_claim(stack, ledger_id)
        except FormatError as error:
            found[ledger_id] = str(error)
        else:
            if claim is not None and claim.record.expires_at > now:
                found[ledger_id] = f"run {claim.record.run_id}"
    return found


def _inactivity(stack: Stack, topic: str) -> Inactivity | None:
    try:
        return stack.broker.inactivity(topic)
    except BrokerError:
        return None


def _loads_last_hour(stack: Stack) -> int:
    since = stack.objects.server_time() - _AN_HOUR
    return len(stack.book.filed_since(keys.LOADS, since))


def _load(stack: Stack, found: AgingTopic, *, timeout_s: float) -> LoadOutcome:
    """Record the load, ask for it, and look what the topic's list became."""
    if not _unchanged(stack, found):
        why = "somebody changed the topic since it was looked at; run again"
        return _outcome(found, LoadState.LEFT_ALONE, why)
    stack.book.create(
        keys.load(stack.objects.server_time(), found.ml_name, stack.new_uid()),
        Disturbance(
            ml_name=found.ml_name,
            broker=None if found.place is None else found.place.broker,
            why=f"load: retention of {len(found.overdue)} ledgers is overdue",
            disturbed_at=stack.now(),
            writer=stack.writer,
        ),
    )
    try:
        stack.broker.trim_topic(found.topic)
    except BrokerUnknownError as error:
        stack.narrate(f"{found.topic}: {error}")  # the list tells whether it was done
    except BrokerError as error:
        return _outcome(found, LoadState.FAILED, str(error))
    try:
        left = _wait(stack, found, timeout_s)
    except TierkeeperError as error:
        return _outcome(found, LoadState.FAILED, f"loaded, but not looked at: {error}")
    if left is None:
        return _outcome(found, LoadState.FAILED, "loaded, and then somebody deleted the topic")
    trimmed = tuple(i for i in found.overdue if i not in left)
    if left:
        detail = (
            f"loaded, but after {timeout_s:g} s ledgers {_listed(left)} are still in its list; its "
            f"broker looks again every retentionCheckIntervalInSeconds while it is loaded"
        )
        return replace(_outcome(found, LoadState.NOT_TRIMMED, detail), trimmed=trimmed)
    return replace(
        _outcome(found, LoadState.TRIMMED, "loaded; its broker took them out of the list"),
        trimmed=trimmed,
    )


def _wait(stack: Stack, found: AgingTopic, timeout_s: float) -> tuple[int, ...] | None:
    """The overdue ledgers still listed when all are gone or time is up; None: no topic any more."""
    deadline = stack.monotonic() + timeout_s
    while True:
        node = stack.topics.read(found.ml_name)
        if node is None:
            return None
        left = tuple(i for i in found.overdue if node[0].ledger(i) is not None)
        if not left or stack.monotonic() >= deadline:
            return left
        stack.sleep(_POLL_S)


def _outcome(found: AgingTopic, state: LoadState, detail: str) -> LoadOutcome:
    return LoadOutcome(
        topic=found.topic,
        ml_name=found.ml_name,
        state=state,
        detail=detail,
        overdue=found.overdue,
        overdue_bytes=_bytes(found),
    )


def _bytes(found: AgingTopic) -> int:
    return 0 if found.expiry is None else found.expiry.overdue_bytes


def _listed(ledger_ids: tuple[int, ...]) -> str:
    shown = ", ".join(map(str, ledger_ids[:5]))
    return shown if len(ledger_ids) <= 5 else f"{shown} and {len(ledger_ids) - 5} more"
