"""Make the broker see what we wrote, or took back, and prove that it reads it. design section 6.2,
3 and 4.

A broker trusts its memory of the managed-ledger node while a topic is loaded, so a change from
outside counts only after an unload that was acknowledged after our write, or when nobody has the
topic loaded. Unknown is not unloaded: such a topic is unloaded, too.

Owns: an undo always writes, however short bookies are, for readers need it; the unload behind it
may have to wait. Until one was acknowledged, or the topic is known not to be loaded, a broker may
still read what its memory says: an object that was taken out, or none of a bookie copy that was
marked. So the record stands before the write, every run tries again, and release and sweep refuse
meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import partial

from tiering_assets.change.disturb import record_disturbance
from tiering_assets.change.topic_edit import TopicChange
from tiering_assets.ground.effects import reach
from tiering_assets.ground.evidence import Effect, Kind
from tiering_assets.ground.reasons import Reason, Wait
from tiering_assets.ground.stack import Stack, asking, is_young, require_fresh
from tiering_assets.look.ledger.plan import source_of
from tiering_assets.look.topic.bookies import why_not_reloadable
from tiering_assets.look.topic.brokers_seen import locate
from tiering_assets.look.topic.topic_evidence import topic_of
from tiering_assets.offload_format.message_facts import EntryHead, head_of
from tiering_assets.offload_format.readings import readings_of, tells_of_reading, to_look_at
from tiering_assets.records import keys
from tiering_assets.records.broker_models import Undo, UndoConfirmed, WithdrawnContext
from tiering_assets.records.stored import Stored
from tiering_assets.resources.errors import (
    BookieError,
    BrokerError,
    EntryUnavailableError,
    ObjectStoreError,
    RefusedError,
)
from tiering_assets.resources.pulsar.admin import TopicLoad


class Noted:
    """The record of one undo, written before it is done, as far as the store takes it.

    The undo itself waits for no store: it is what gives readers their data back.
    """

    def __init__(
        self, stack: Stack, ml_name: str, change: TopicChange, *, czxid: int, why: str
    ) -> None:
        self._stack, self._ml_name = stack, ml_name
        self._czxid, self._change, self._why = czxid, change, why
        self._stored: Stored[Undo] | None = None
        try:
            self._stored = self._write()
        except ObjectStoreError as error:
            stack.tell(
                f"{topic_of(ml_name)}: no record yet of what is taken back: {error}", topic=ml_name
            )

    def confirm(self, *, by: str) -> None:
        """Its broker knows. Without the store the next run confirms it once more."""
        try:
            if self._stored is not None:
                confirm_undos(self._stack, [self._stored], by=by)
        except ObjectStoreError as error:
            self._stack.tell(
                f"{topic_of(self._ml_name)}: undo unconfirmed: {error}", topic=self._ml_name
            )

    def stays(self) -> None:
        """Its broker may not know: leave a record that nobody confirmed before it was done.

        Raises:
            ObjectStoreError: no record stands, so nothing tells the next run.
        """
        if self._stored is not None:
            confirmation = keys.undo_confirmed(self._stored.key)
            if self._stack.book.read(UndoConfirmed, confirmation) is None:
                return
        self._stored = self._write()

    def _write(self) -> Stored[Undo]:
        written = self._stack.book.create(
            keys.undo(self._ml_name, self._stack.new_uid()),
            Undo(
                ml_name=self._ml_name,
                ml_czxid=self._czxid,
                ledger_ids=tuple(self._change.last_entry_ids),
                withdrawn=tuple(
                    WithdrawnContext(i, copy.uid)
                    for i, copy in sorted(self._change.contexts.items())
                ),
                why=self._why,
                undone_at=self._stack.now(),
                writer=self._stack.writer,
            ),
        )
        reach("undo.recorded", *self._change.last_entry_ids, topic=self._ml_name)
        return written


def unconfirmed_of(stack: Stack, ml_name: str) -> list[Stored[Undo]]:
    """Undos of one topic that brokers may not know of: one listing. A deleted topic has none."""
    return list(_unconfirmed(stack, keys.undos_of(ml_name)))


def list_unconfirmed(stack: Stack) -> Iterator[Stored[Undo]]:
    """The same of all topics."""
    yield from _unconfirmed(stack, keys.UNDOS)


def _unconfirmed(stack: Stack, prefix: str) -> Iterator[Stored[Undo]]:
    for key in keys.unconfirmed_undos(stack.book.keys(prefix)):
        stored = stack.book.require(Undo, key)
        if stack.topics.read(stored.record.ml_name) is not None:
            yield stored


def confirm_undos(stack: Stack, undos: Iterable[Stored[Undo]], *, by: str) -> None:
    """Say that no broker remembers what was taken back, after an unload or where none has it.

    `undos` were listed before that unload was asked for.
    """
    for stored in undos:
        stack.book.create_or_read(
            keys.undo_confirmed(stored.key),
            UndoConfirmed(
                undo_key=stored.key,
                undo_sha256=stored.sha256,
                confirmed_by=by,
                confirmed_at=stack.now(),
                writer=stack.writer,
            ),
        )


def waits_for_undo(undos: list[Stored[Undo]], why: str) -> Wait:
    """In words: what is not confirmed, and what it waits for."""
    ledgers = sorted({i for stored in undos for i in stored.record.ledger_ids})
    what = f" of ledgers {', '.join(map(str, ledgers))}" if ledgers else ""
    return Wait(
        Reason.UNDO_UNCONFIRMED,
        f"its broker may not know what was taken back{what}, as it has not unloaded the topic since: "
        f"{why}",
    )


def require_confirmed(stack: Stack, ml_name: str) -> None:
    """RefusedError while an undo of the topic is unconfirmed: its broker may read what would go."""
    undos = unconfirmed_of(stack, ml_name)
    if undos:
        wait = waits_for_undo(undos, "nothing of it is deleted before that")
        raise RefusedError(
            f"{topic_of(ml_name)}: {wait}. The next publication or release of the topic unloads it, "
            f"or unload it yourself and run again"
        )


RETRY_S = 1.0
READS_AT_ONCE = 4  # of ledgers, by the broker of a topic: one by one, it waits for the store
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
    reach("reload.recorded", topic=ml_name)
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


def rehearse(stack: Stack, ml_name: str, last_entry_ids: Mapping[int, int]) -> None:
    """Read entries of each ledger through the broker, some ledgers at a time.

    Raises:
        RefusedError: the broker could not read one within publish.confirm_timeout_s; the message
            names the ledger, the entry and what the broker said.
    """
    deadline = stack.monotonic() + stack.settings.publish.confirm_timeout_s
    ledgers = sorted(last_entry_ids.items())
    each = max(1, -(-len(ledgers) // READS_AT_ONCE))

    def read(first: int) -> None:
        for ledger_id, last_entry_id in ledgers[first : first + each]:
            _Rehearsed(stack, ml_name, ledger_id, deadline).read(last_entry_id)

    stack.in_parallel(read, range(0, len(ledgers), each))


class _Rehearsed:
    """One ledger."""

    def __init__(self, stack: Stack, ml_name: str, ledger_id: int, deadline: float) -> None:
        self._stack, self._ml_name, self._ledger_id = stack, ml_name, ledger_id
        self._deadline, self._topic = deadline, topic_of(ml_name)

    def read(self, last_entry_id: int) -> None:
        wanted = {0, last_entry_id}
        seen = self._look(wanted)
        asked = readings_of(wanted, seen)
        if {*asked.entries} != wanted:
            asked = readings_of(wanted, seen | self._look(to_look_at(last_entry_id) - wanted))
        for entry_id in asked.entries:
            self._until(f"entry {entry_id} of", partial(self._show, entry_id))
        if not asked.entries:
            self._until("by publish time", lambda: self._find(asked.times))

    def _look(self, entry_ids: Collection[int]) -> dict[int, EntryHead | None]:
        """Entries as their bookies have them, as far as they give them."""
        seen: dict[int, EntryHead | None] = dict.fromkeys(entry_ids)
        stack = self._stack
        node = stack.ledgers.read(self._ledger_id)
        if node is None:
            return seen
        with stack.open_points(stack.settings.bookies, source_of(stack, node)) as points:
            for entry_id in entry_ids:
                try:
                    seen[entry_id] = head_of(points.payload(entry_id))
                except (BookieError, EntryUnavailableError):
                    continue
        return seen

    def _until(self, what: str, act: Callable[[], None]) -> None:
        stack = self._stack
        while True:
            try:
                return act()
            except BrokerError as error:
                if stack.monotonic() >= self._deadline:
                    raise RefusedError(
                        f"{self._topic}: the broker cannot read {what} ledger {self._ledger_id}: "
                        f"{error}"
                    ) from error
            stack.sleep(RETRY_S)

    def _show(self, entry_id: int) -> None:
        self._stack.broker.read_entry(self._topic, self._ledger_id, entry_id)

    def _find(self, times: Iterable[int]) -> None:
        """Behind each time the broker finds what it has read."""
        stack = self._stack
        found = []
        for time_ms in times:
            position = stack.broker.find_position(self._topic, time_ms + 1)
            topic = stack.topics.read(self._ml_name)
            listed = [] if topic is None else [one.ledger_id for one in topic[0].ledgers]
            if tells_of_reading(position, self._ledger_id, listed):
                return
            found.append("{}:{}".format(*position))
        raise BrokerError(f"no entry of it can be shown, and by time it found {', '.join(found)}")
