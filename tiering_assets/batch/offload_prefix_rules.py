"""The manual trigger: which ledgers "offload all before this position" means, as PIP-17 has it.

Owns: the answer is the broker's own. Ledgers before the position's ledger are offloaded, oldest
first, but for those that are already and those without a byte; the bound is exclusive and never
reaches the open ledger. To keep the newest N bytes is the position that `pulsar-admin topics
offload` computes: sizes are added up from the newest ledger on, the open one included, and the
position is the start of the ledger visited before the sum went above N. Sources:
ManagedLedgerImpl.asyncOffloadPrefix, CmdTopics.findFirstLedgerWithinThreshold, Pulsar 4.0.

A position must be in a ledger that the topic lists and before that ledger's end. The end of the
open ledger is in no metadata; it is not looked for, because no entry of that ledger is offloaded.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from tiering_assets.resources.errors import FormatError, RefusedError
from tiering_assets.resources.metastore.ledger_info import LedgerInfo, Position

LONG_MAX = 2**63 - 1  # Pulsar's ids are Java longs
_POSITION = re.compile(r"(\d{1,19}):(\d{1,19})", re.ASCII)


@dataclass(frozen=True, slots=True)
class KeepBytes:
    """Offload what is older than the newest so many bytes."""

    bytes: int


Until = Position | KeepBytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Prefix:
    """What stands before a position. `offloaded` and `empty` are the ids that need nothing.

    `goal` is the first position that is not offloaded once all of it is: what a broker answers.
    """

    goal: Position
    to_offload: tuple[LedgerInfo, ...]
    offloaded: tuple[int, ...]
    empty: tuple[int, ...]

    @property
    def ledger_ids(self) -> list[int]:
        """Ids to offload, oldest first."""
        return [info.ledger_id for info in self.to_offload]

    @property
    def bytes(self) -> int:
        return sum(info.size or 0 for info in self.to_offload)


def position_text(position: Position | None) -> str | None:
    return None if position is None else f"{position.ledger_id}:{position.entry_id}"


def parse_until(before: str | None, keep_bytes: int | None) -> Until | None:
    """What a person asked for; None for neither. FormatError for both, or for what cannot be."""
    if before and keep_bytes is not None:
        raise FormatError(
            f"before is {before!r:.50} and keep-bytes is {keep_bytes}: each of them says which "
            f"ledgers to offload; give one"
        )
    if before:
        return parse_position(before)
    if keep_bytes is None:
        return None
    if not 0 <= keep_bytes <= LONG_MAX:
        raise FormatError(f"keep-bytes is {keep_bytes}, expected 0 to {LONG_MAX} bytes")
    return KeepBytes(keep_bytes)


def parse_position(text: str) -> Position:
    """`LEDGER:ENTRY`, as clients print message ids. FormatError for anything else."""
    match = _POSITION.fullmatch(text.strip())
    if match is None or max(map(int, match.groups())) > LONG_MAX:
        raise FormatError(
            f"{text!r:.60} is no position; expected LEDGER:ENTRY, two whole numbers from 0 on, "
            f"such as 1234:0 for all ledgers before 1234"
        )
    return Position(int(match[1]), int(match[2]))


def require_position(topic: str, ledgers: Sequence[LedgerInfo], position: Position) -> None:
    """RefusedError unless the topic has the position; `ledgers` ascend by id."""
    said, look = f"{topic}: position {position_text(position)}", _look(topic)
    if not ledgers:
        raise RefusedError(f"{said}: the topic lists no ledger yet; {look}")
    listed = next((one for one in ledgers if one.ledger_id == position.ledger_id), None)
    first, last = ledgers[0].ledger_id, ledgers[-1].ledger_id
    if listed is None:
        where = "the topic does not list that ledger"
        if position.ledger_id > last:
            where = f"that is beyond the topic's last ledger, {last}"
        elif position.ledger_id < first:
            where = f"that is before the topic's first ledger, {first}; older ones were trimmed"
        raise RefusedError(f"{said}: {where}; {look}")
    entries = None if listed.is_open else listed.entries
    if entries is not None and position.entry_id >= max(entries, 1):
        raise RefusedError(
            f"{said}: ledger {listed.ledger_id} ends with entry {entries - 1}; to offload all of "
            f"it, give the start of the ledger after it; {look}"
        )


def keep_newest(ledgers: Sequence[LedgerInfo], keep: KeepBytes, *, open_bytes: int) -> Position:
    """The position that keeps the newest bytes; of the first ledger when there is no more.

    `open_bytes` is the size of the ledger that is written to. ValueError for a topic without
    ledgers.
    """
    if not ledgers:
        raise ValueError("no ledgers")
    total, previous = 0, ledgers[-1].ledger_id
    for info in reversed(ledgers):
        total += open_bytes if info.is_open else info.size or 0
        if total > keep.bytes:
            return Position(previous, 0)
        previous = info.ledger_id
    return Position(ledgers[0].ledger_id, 0)


def choose_prefix(ledgers: Sequence[LedgerInfo], before: Position) -> Prefix:
    """Sort the ledgers before a position; they ascend by id. ValueError for a topic without any."""
    if not ledgers:
        raise ValueError("no ledgers")
    older = [one for one in ledgers[:-1] if one.ledger_id < before.ledger_id and not one.is_open]
    retained = [one.ledger_id for one in ledgers if one.ledger_id >= before.ledger_id]
    pending = tuple(one for one in older if not is_offloaded(one))
    return Prefix(
        goal=Position(min([*retained, ledgers[-1].ledger_id]), 0),
        to_offload=tuple(one for one in pending if one.size),
        offloaded=tuple(one.ledger_id for one in older if is_offloaded(one)),
        empty=tuple(one.ledger_id for one in pending if not one.size),
    )


def first_unoffloaded(ledgers: Sequence[LedgerInfo]) -> Position | None:
    """Start of the oldest ledger that is not offloaded and has or gets a byte; None without one."""
    for info in ledgers:
        if not is_offloaded(info) and (info.is_open or info.size):
            return Position(info.ledger_id, 0)
    return None


def reached(ledgers: Sequence[LedgerInfo], goal: Position) -> bool:
    """True when everything before the goal is offloaded, or gone with what retention took."""
    first = first_unoffloaded(ledgers)
    return first is None or first.ledger_id >= goal.ledger_id


def is_offloaded(info: LedgerInfo) -> bool:
    """True when brokers read the object; an unfinished context is not."""
    return info.offload is not None and info.offload.complete


def _look(topic: str) -> str:
    return f"`tierkeeper ledger list --topic {topic}` prints its ledgers"
