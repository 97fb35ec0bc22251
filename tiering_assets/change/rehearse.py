"""Have a broker read ledgers, so that it shows that it can. design section 6.2, 3 and 4.

Owns: which entries it is asked for. Over REST brokers decode what they show. Of an entry that is a
piece of a compressed message, or compressed and encrypted, they give no answer at all. So each
entry is looked at on its bookies before. Where none can be shown, the broker is asked for positions
by publish time: it reads entries by their heads alone then, and its answer says which.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

from tiering_assets.ground.stack import Stack
from tiering_assets.look.ledger.plan import source_of
from tiering_assets.look.topic.topic_evidence import topic_of
from tiering_assets.offload_format.message_decoder import DecodedEntry, decode_entry
from tiering_assets.resources.errors import (
    BookieError,
    BrokerError,
    EntryUnavailableError,
    FormatError,
    RefusedError,
)
from tiering_assets.resources.metastore.ledger_info import ManagedLedger

RETRY_S: Final = 1.0
READS_AT_ONCE: Final = 4  # of ledgers, by the broker of a topic: one by one, it waits for the store
LOOKED_AT: Final = 16  # entries of a ledger whose first or last one cannot be shown
TIMES_MAX: Final = 8


@dataclass(frozen=True, slots=True)
class Questions:
    """Entries to be shown; where there are none, publish times to be looked for, in ms."""

    entries: tuple[int, ...]
    times: tuple[int, ...] = ()


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
            _Ledger(stack, ml_name, ledger_id, deadline).read(last_entry_id)

    stack.in_parallel(read, range(0, len(ledgers), each))


def questions_of(wanted: Collection[int], seen: Mapping[int, DecodedEntry | None]) -> Questions:
    """What a broker is asked, by what was looked at. None is an entry of which nothing is known:
    the broker says itself what it thinks of it. Pure.
    """
    if all(_is_shown(seen.get(one)) for one in wanted):
        return Questions(tuple(sorted(wanted)))
    shown = sorted(one for one, entry in seen.items() if _is_shown(entry))
    if shown:
        return Questions(tuple(sorted({shown[0], shown[-1]})))
    times = {entry.publish_time_ms for entry in seen.values() if entry is not None}
    return Questions((), tuple(_spread(sorted(times), TIMES_MAX)))


def _is_shown(entry: DecodedEntry | None) -> bool:
    """Source: Pulsar's PersistentTopicsBase.generateResponseWithEntry decodes what has a codec."""
    return entry is None or entry.codec == "NONE" or not (entry.encrypted or entry.chunk)


def tells_of_reading(found: tuple[int, int], topic: ManagedLedger, ledger_id: int) -> bool:
    """Whether a position that was found by time means that the broker read the ledger: it has read
    the entry before that. Pure.

    Source: OpFindNewest and ManagedLedgerImpl.asyncFindPosition.
    """
    found_in, entry_id = found
    if found_in == ledger_id:
        return entry_id > 0
    behind = [one.ledger_id for one in topic.ledgers if one.ledger_id > ledger_id]
    return entry_id == 0 and behind[:1] == [found_in]


def _spread(items: list[int], most: int) -> Iterable[int]:
    """The first, the last, and some between."""
    if len(items) <= most:
        return items
    return (items[n * (len(items) - 1) // (most - 1)] for n in range(most))


class _Ledger:
    def __init__(self, stack: Stack, ml_name: str, ledger_id: int, deadline: float) -> None:
        self._stack, self._ml_name, self._ledger_id = stack, ml_name, ledger_id
        self._deadline, self._topic = deadline, topic_of(ml_name)

    def read(self, last_entry_id: int) -> None:
        wanted = {0, last_entry_id}
        asked = questions_of(wanted, self._look(wanted))
        if asked != Questions(tuple(sorted(wanted))):
            more = {*_spread(list(range(last_entry_id + 1)), LOOKED_AT)}
            asked = questions_of(wanted, self._look(more))
        for entry_id in asked.entries:
            self._until(f"entry {entry_id} of", partial(self._show, entry_id))
        if not asked.entries:
            self._until("by publish time", lambda: self._find(asked.times))

    def _look(self, entry_ids: Collection[int]) -> dict[int, DecodedEntry | None]:
        """Entries as their bookies have them, as far as they give them."""
        seen: dict[int, DecodedEntry | None] = dict.fromkeys(entry_ids)
        stack = self._stack
        node = stack.ledgers.read(self._ledger_id)
        if node is None:
            return seen
        with stack.open_points(stack.settings.bookies, source_of(stack, node)) as points:
            for entry_id in entry_ids:
                try:
                    seen[entry_id] = decode_entry(points.payload(entry_id))
                except (BookieError, EntryUnavailableError, FormatError):
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
            node = stack.topics.read(self._ml_name)
            if node is not None and tells_of_reading(position, node[0], self._ledger_id):
                return
            found.append("{}:{}".format(*position))
        raise BrokerError(f"no entry of it can be shown, and by time it found {', '.join(found)}")
