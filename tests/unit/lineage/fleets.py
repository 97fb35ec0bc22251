"""Topics with ledgers of blocks, sound ones, and ways to spoil them; made of random numbers."""

import random
from uuid import UUID

from tiering_assets.lineage.block_chain import BlockSpan, Gap
from tiering_assets.lineage.coverage_rules import CoverageFacts, LedgerInList


def sound_blocks(source, *, blocks=None):
    """Blocks of one attempt that follow one another; with the number of entries."""
    found, entry, offset = [], 0, 0
    for part in range(1, (blocks or source.randrange(1, 9)) + 1):
        entries, length = source.randrange(1, 50), source.randrange(140, 10_000)
        found.append(BlockSpan(part, entry, entry + entries - 1, offset, length))
        entry, offset = entry + entries, offset + length
    return found, entry


def _without(blocks, at):
    return blocks[:at] + blocks[at + 1 :]


def lose_first(source, blocks, entries):
    return _without(blocks, 0), entries


def lose_last(source, blocks, entries):
    return blocks[:-1], entries


def lose_one(source, blocks, entries):
    return _without(blocks, source.randrange(1, len(blocks) - 1)), entries


def lose_all(source, blocks, entries):
    return [], entries


def repeat_one(source, blocks, entries):
    return [*blocks, source.choice(blocks)], entries


def repeat_a_part(source, blocks, entries):
    """Two different blocks have one number."""
    at = source.randrange(1, len(blocks))
    changed = blocks[at]._replace(part=blocks[at - 1].part)
    return [*_without(blocks, at), changed], entries


def swap_parts(source, blocks, entries):
    """The numbers of two blocks; so soon as entries follow, so must parts."""
    one, other = sorted(source.sample(range(len(blocks)), 2))
    changed = list(blocks)
    changed[one] = blocks[one]._replace(part=blocks[other].part)
    changed[other] = blocks[other]._replace(part=blocks[one].part)
    return changed, entries


def swap_bytes(source, blocks, entries):
    """Two blocks of equal length lie where the other one should."""
    at = source.randrange(1, len(blocks))
    changed = list(blocks)
    before, after = blocks[at - 1], blocks[at]
    changed[at] = after._replace(offset=before.offset)
    changed[at - 1] = before._replace(offset=before.offset + after.length)
    return changed, entries


def begin_too_early(source, blocks, entries):
    at = source.randrange(1, len(blocks))
    changed = list(blocks)
    changed[at] = blocks[at]._replace(first_entry_id=blocks[at].first_entry_id - 1)
    return changed, entries


def begin_too_late(source, blocks, entries):
    at = source.randrange(len(blocks))
    changed = list(blocks)
    block = blocks[at]._replace(last_entry_id=blocks[at].last_entry_id + 1)
    changed[at] = block._replace(first_entry_id=block.first_entry_id + 1)
    if at + 1 < len(blocks):
        after = blocks[at + 1]
        changed[at + 1] = after._replace(
            first_entry_id=after.first_entry_id + 1, last_entry_id=after.last_entry_id + 1
        )
    return changed, entries + 1


def gap_and_overlap(source, blocks, entries):
    """As many entries twice as not at all: their sum is right."""
    changed = list(blocks)
    changed[1] = blocks[1]._replace(first_entry_id=blocks[1].first_entry_id + 1)
    changed[2] = blocks[2]._replace(first_entry_id=blocks[2].first_entry_id - 1)
    return changed, entries


def lose_bytes(source, blocks, entries):
    at = source.randrange(1, len(blocks))
    return [*blocks[:at], *(one._replace(offset=one.offset + 9) for one in blocks[at:])], entries


def overlap_bytes(source, blocks, entries):
    at = source.randrange(1, len(blocks))
    return [*blocks[:at], *(one._replace(offset=one.offset - 9) for one in blocks[at:])], entries


def begin_late_in_the_object(source, blocks, entries):
    return [one._replace(offset=one.offset + 9) for one in blocks], entries


def more_than_the_ledger(source, blocks, entries):
    return blocks, entries - 1


def skip_a_number(source, blocks, entries):
    at = source.randrange(len(blocks))
    return [*blocks[:at], *(one._replace(part=one.part + 1) for one in blocks[at:])], entries


def turn_round(source, blocks, entries):
    """A block that ends before it begins."""
    at = source.randrange(len(blocks))
    block = blocks[at]
    changed = block._replace(first_entry_id=block.last_entry_id + 2)
    return [*_without(blocks, at), changed], entries


SPOILED = {  # by whom, and what must be among the findings
    lose_first: {Gap.GAP},
    lose_last: {Gap.GAP},
    lose_one: {Gap.GAP},
    lose_all: {Gap.GAP},
    repeat_one: {Gap.DUPLICATE, Gap.OVERLAP},
    repeat_a_part: {Gap.DUPLICATE},
    swap_parts: {Gap.SWAP},
    swap_bytes: {Gap.OVERLAP, Gap.GAP},
    begin_too_early: {Gap.OVERLAP},
    begin_too_late: {Gap.GAP},
    gap_and_overlap: {Gap.GAP, Gap.OVERLAP},
    lose_bytes: {Gap.GAP},
    overlap_bytes: {Gap.OVERLAP},
    begin_late_in_the_object: {Gap.GAP},
    more_than_the_ledger: {Gap.SURPLUS},
    skip_a_number: {Gap.GAP},
    turn_round: {Gap.SURPLUS},
}


def sound_fleet(source):
    """(listed, blocks by attempt, known, in work) of a topic that has lived a while.

    Trimmed ledgers, earlier attempts, ledgers on bookies, copies of brokers, an open ledger.
    """
    listed, blocks, known, certified, in_work = [], {}, set(), set(), set()
    ledger_id = source.randrange(1000)
    trimmed = source.randrange(4)
    for number in range(source.randrange(1, 12)):
        ledger_id += source.randrange(1, 40)
        uid = str(UUID(int=source.getrandbits(128)))
        made, entries = sound_blocks(source)
        kind = source.choice(("ours", "ours", "ours", "bookies", "broker", "in work", "empty"))
        if kind == "ours" or number < trimmed:
            blocks[ledger_id, uid] = made
            known.add(ledger_id)
            for _ in range(source.randrange(3)):  # attempts before it, whole or not
                other = str(UUID(int=source.getrandbits(128)))
                blocks[ledger_id, other] = sound_blocks(source)[0][source.randrange(2) :]
        if number < trimmed:
            continue
        if kind == "in work":
            certified.add((ledger_id, uid))
            in_work.add(ledger_id)
        offloaded = kind in ("ours", "broker", "in work")
        listed.append(
            LedgerInList(
                ledger_id=ledger_id,
                entries=0 if kind == "empty" else entries,
                uid=uid if offloaded else None,
            )
        )
    listed.append(LedgerInList(ledger_id=ledger_id + 1, entries=None, uid=None, is_open=True))
    source.shuffle(listed)  # a list has another order after an offload
    return listed, blocks, known, certified, in_work


def facts_of(blocks, known=(), certified=(), in_work=(), *, look_at_all=False, odd=()):
    """What the catalogue would say: `odd` are attempts whose blocks do not follow."""
    wanted = blocks if look_at_all else odd
    return CoverageFacts(
        last_entry_ids={
            k: max(b.last_entry_id for b in some) for k, some in blocks.items() if some
        },
        odd={attempt: blocks[attempt] for attempt in wanted if blocks[attempt]},
        certified=frozenset(certified),
        known=frozenset(known),
        in_work=frozenset(in_work),
    )


def drawn(seed):
    return random.Random(seed)
