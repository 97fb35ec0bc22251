"""Every ledger that a topic lists and that is ours is judged; sound fleets have no finding."""

import pytest

from tests.unit.lineage.fleets import SPOILED, drawn, facts_of, sound_blocks, sound_fleet
from tiering_assets.lineage.block_chain import BlockSpan, Gap
from tiering_assets.lineage.coverage_rules import CoverageFacts, LedgerInList, judge_topic

UID = "00000000-0000-0000-0000-000000000001"


def listed(ledger_id, entries=10, uid=UID, **more):
    return LedgerInList(ledger_id=ledger_id, entries=entries, uid=uid, **more)


def judged(ledgers, facts):
    return judge_topic("t", ledgers, facts)


def kinds(found):
    return {one.kind for one in found.findings}


def test_a_thousand_sound_fleets_have_no_finding():
    """Trims, earlier attempts, copies of brokers, ledgers on bookies and in work included."""
    seen = {"covered": 0, "on_bookies": 0, "by_brokers": 0, "in_work": 0}
    for seed in range(1_000):
        ledgers, blocks, known, certified, in_work = sound_fleet(drawn(seed))
        looked_at = facts_of(blocks, known, certified, in_work, look_at_all=True)
        found = judged(ledgers, facts_of(blocks, known, certified, in_work))
        assert found.findings == (), seed
        assert judged(ledgers, looked_at) == found
        for name in seen:
            seen[name] += getattr(found, name)
        told = found.covered + found.on_bookies + found.by_brokers + found.in_work
        assert told == sum(bool(one.entries) for one in ledgers)
    assert min(seen.values()) > 100


@pytest.mark.parametrize("spoil", SPOILED)
def test_what_is_planted_in_a_fleet_is_found_in_its_ledger_alone(spoil):
    tried = 0
    for seed in range(300):
        source = drawn(seed)
        ledgers, blocks, known, certified, in_work = sound_fleet(source)
        ours = [one for one in ledgers if (one.ledger_id, one.uid) in blocks]
        if not ours:
            continue
        tried += 1
        victim = source.choice(ours)
        attempt = victim.ledger_id, victim.uid
        made, entries = sound_blocks(source, blocks=5)
        blocks[attempt], entries = spoil(source, made, entries)
        certified |= {attempt}  # its certificate is there, whatever the tables have
        ledgers = [
            listed(victim.ledger_id, entries, victim.uid) if one is victim else one
            for one in ledgers
        ]
        found = judged(ledgers, facts_of(blocks, known, certified, in_work, odd={attempt}))
        expected = SPOILED[spoil] if blocks[attempt] else {Gap.UNCOVERED}
        assert kinds(found) & expected
        assert {one.ledger_id for one in found.findings} == {victim.ledger_id}
        assert found.covered == len(ours) - 1
    assert tried > 100


def test_a_ledger_longer_than_its_blocks_lacks_the_last_one():
    facts = CoverageFacts(last_entry_ids={(1, UID): 7})
    [finding] = judged([listed(1)], facts).findings
    assert (finding.kind, finding.ledger_id) == (Gap.GAP, 1)
    assert "no block has entries 8 to 9" in finding.what
    [finding] = judged([listed(1, entries=5)], facts).findings
    assert finding.kind is Gap.SURPLUS
    assert judged([listed(1, entries=8)], facts).findings == ()


def test_an_attempt_of_ours_that_has_no_block_is_not_covered():
    facts = CoverageFacts(last_entry_ids={(1, "another"): 9}, certified={(1, UID)})
    [finding] = judged([listed(1)], facts).findings
    assert finding.kind is Gap.UNCOVERED
    assert "catalogue post" in finding.what


def test_what_a_run_has_in_work_is_waited_for():
    facts = CoverageFacts(last_entry_ids={}, certified={(1, UID)}, in_work={1})
    found = judged([listed(1)], facts)
    assert (found.findings, found.in_work, found.covered) == ((), 1, 0)


def test_a_copy_of_a_broker_and_a_ledger_on_bookies_are_told():
    found = judged([listed(1), listed(2, uid=None)], CoverageFacts(last_entry_ids={}))
    assert (found.findings, found.by_brokers, found.on_bookies) == ((), 1, 1)


def test_a_ledger_between_those_that_are_listed_is_missed():
    facts = CoverageFacts(last_entry_ids={(1, UID): 9, (5, UID): 9}, known={0, 1, 3, 5, 7})
    found = judged([listed(5), listed(1)], facts)
    assert [(one.ledger_id, one.kind) for one in found.findings] == [(3, Gap.UNLISTED)]
    assert found.covered == 2


def test_from_the_first_position_to_the_last_sealed_one():
    facts = CoverageFacts(last_entry_ids={(1, UID): 9})
    found = judged([listed(9, None, None, is_open=True), listed(4, uid=None), listed(1)], facts)
    assert (found.first, found.last) == ((1, 0), (4, 9))
    found = judged([listed(9, None, None, is_open=True)], facts)
    assert (found.first, found.last) == (None, None)
    assert judged([], facts).findings == ()


def test_blocks_that_are_looked_at_are_judged_by_themselves():
    odd = {(1, UID): [BlockSpan(1, 0, 4, 0, 9), BlockSpan(1, 0, 4, 0, 9)]}
    found = judged([listed(1, 5)], CoverageFacts(last_entry_ids={(1, UID): 4}, odd=odd))
    assert kinds(found) == {Gap.DUPLICATE}
