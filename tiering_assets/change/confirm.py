"""Make the broker see what we wrote, and prove that it reads it. design section 6.2, steps 3 and 4.

A broker trusts its memory of the managed-ledger node while a topic is loaded, so a change from
outside counts only after an unload that was acknowledged after our write, or when nobody has the
topic loaded. Unknown is not unloaded: such a topic is unloaded, too.
"""

from __future__ import annotations

from collections.abc import Mapping

from resources.errors import BrokerError, RefusedError
from resources.pulsar.admin import TopicLoad
from tiering_assets.change.disturb import record_disturbance
from tiering_assets.change.undos import confirm_undos, unconfirmed_of, waits_for_undo
from tiering_assets.ground.crash_points import reach
from tiering_assets.ground.evidence import Effect, Kind
from tiering_assets.ground.reasons import Wait
from tiering_assets.ground.stack import Stack, asking, is_young, require_fresh
from tiering_assets.look.topic.bookies import why_not_reloadable
from tiering_assets.look.topic.brokers_seen import locate
from tiering_assets.look.topic.topic_evidence import topic_of

RETRY_S = 1.0
NOT_LOADED = "not loaded by any broker"


def reload_topic(stack: Stack, ml_name: str, *, why: str) -> str | Wait:
    """Unload the topic unless it is known to be unloaded; return how the reload was confirmed.

    A Wait when it could not be loaded again: it stays loaded, and the change unconfirmed.

    Raises:
        BrokerError: no acknowledgement within publish.confirm_timeout_s; the change stays
            unconfirmed and the next run repeats the unload.
    """
    topic = topic_of(ml_name)
    place = locate(stack, ml_name, stack.topics.read(ml_name))
    if place.load is TopicLoad.NOT_LOADED:
        return NOT_LOADED
    bookies = asking(stack, Kind.BOOKIES)
    short = why_not_reloadable(stack, ml_name, owner=place.broker)
    if short is not None:
        return short
    record_disturbance(stack, ml_name, place.broker, why)
    reach("reload.recorded")
    deadline = stack.monotonic() + stack.settings.publish.confirm_timeout_s
    while True:
        if not is_young(stack, bookies, Kind.BOOKIES):
            bookies = asking(stack, Kind.BOOKIES)
            short = why_not_reloadable(stack, ml_name, owner=place.broker)
            if short is not None:
                return short
        require_fresh(stack, Effect.RELOAD, bookies, what=topic)
        try:
            stack.broker.unload_topic(topic)
            break
        except BrokerError as error:
            # An unload that timed out is unknown: repeat it, until one is acknowledged.
            if stack.monotonic() >= deadline:
                raise BrokerError(
                    f"{topic}: no unload was acknowledged in "
                    f"{stack.settings.publish.confirm_timeout_s:g} s, so its broker may not know "
                    f"of our change; run again when the broker answers ({error})"
                ) from error
            stack.sleep(RETRY_S)
    return "unload acknowledged"


def settle_undos(stack: Stack, ml_name: str) -> Wait | None:
    """Make the broker forget what earlier runs took back; why the topic waits where it may not yet.

    Raises:
        BrokerError: no unload was acknowledged.
    """
    undos = unconfirmed_of(stack, ml_name)
    if not undos:
        return None
    confirmed_by = reload_topic(stack, ml_name, why="what was taken back is not confirmed")
    if isinstance(confirmed_by, Wait):
        return waits_for_undo(undos, str(confirmed_by))
    confirm_undos(stack, undos, by=confirmed_by)
    return None


def rehearse(stack: Stack, topic: str, last_entry_ids: Mapping[int, int]) -> None:
    """Read the first and last entry of each ledger through the broker.

    Raises:
        RefusedError: the broker could not read one within publish.confirm_timeout_s; the message
            names the ledger, the entry and what the broker said.
    """
    deadline = stack.monotonic() + stack.settings.publish.confirm_timeout_s
    for ledger_id, last_entry_id in sorted(last_entry_ids.items()):
        for entry_id in sorted({0, last_entry_id}):
            _read_until(stack, topic, ledger_id, entry_id, deadline)


def _read_until(stack: Stack, topic: str, ledger_id: int, entry_id: int, deadline: float) -> None:
    while (error := _try_read(stack, topic, ledger_id, entry_id)) is not None:
        if stack.monotonic() >= deadline:
            raise RefusedError(
                f"{topic}: the broker cannot read entry {entry_id} of ledger {ledger_id}: {error}"
            ) from error
        stack.sleep(RETRY_S)


def _try_read(stack: Stack, topic: str, ledger_id: int, entry_id: int) -> BrokerError | None:
    try:
        stack.broker.read_entry(topic, ledger_id, entry_id)
    except BrokerError as error:
        return error
    return None
