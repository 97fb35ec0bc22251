"""A full listing finds what no page named, closes runs that died, and misses what is gone."""

import pytest

from tests.unit.catalogue.desk import asked, counts
from tests.unit.records.examples import UID
from tiering_assets.catalogue import listings
from tiering_assets.catalogue import prove as proving
from tiering_assets.catalogue.post import post
from tiering_assets.catalogue.prove import prove
from tiering_assets.catalogue.view import least
from tiering_assets.ground.record_book import RecordBook
from tiering_assets.look.ledger.claims import longest_claim
from tiering_assets.records import keys

DEAD_S = 5 * 60 + 60  # more than a run is given behind its longest claim


def older(desk):
    """A book of a version that writes no pages."""
    return RecordBook(desk.objects, "inst")


def proven(desk, catalogue):
    """(listed, late, missing, runs closed) of a proof."""
    proof = prove(desk.stack, catalogue)
    return proof.listed, proof.late, proof.missing, proof.died


def agreed(catalogue):
    return least(catalogue, catalogue.opened()).proven_at is not None


def past_claims(desk, more_s=DEAD_S):
    desk.objects.advance(longest_claim(desk.stack).total_seconds() + more_s)


def phases(catalogue):
    return [row["what"] for row in asked(catalogue, "select what from events order by page, key")]


def test_what_an_older_version_wrote_is_posted_whole(desk, catalogue):
    desk.chain(42, book=older(desk))
    assert proven(desk, catalogue) == (6, 6, 0, ())
    assert counts(catalogue) == {"blocks": 2, "events": 6, "ledger_changes": 1}
    assert agreed(catalogue)
    assert proven(desk, catalogue) == (6, 0, 0, ())
    assert counts(catalogue)["events"] == 6


def test_where_pages_named_everything_there_is_nothing_late(desk, catalogue):
    desk.chain(42)
    desk.book.close_page()
    assert proven(desk, catalogue) == (6, 0, 0, ())
    assert agreed(catalogue)


def test_an_empty_bucket_agrees(desk, catalogue):
    assert proven(desk, catalogue) == (0, 0, 0, ())
    assert agreed(catalogue)


def test_a_record_whose_content_counts_is_named_with_its_digest(desk, catalogue):
    desk.chain(42, book=older(desk))
    prove(desk.stack, catalogue)
    named = {row["kind"]: row["sha256"] for row in asked(catalogue, "select * from events")}
    [key] = desk.book.keys("certificates/")
    assert named["certificates"] == desk.book.read_any(key).sha256
    assert named["outcomes"] is None


def test_one_that_cannot_be_read_is_named_without_and_told(desk, catalogue):
    desk.chain(42, book=older(desk), outcome="abandon")
    [key] = desk.book.keys("certificates/")
    desk.change(key, b'"sim-bucket"', b'"sim-basket"')
    assert proven(desk, catalogue) == (3, 3, 0, ())
    [row] = asked(catalogue, "select what, sha256 from events where kind = 'certificates'")
    assert row == {"what": "damaged", "sha256": None}
    assert proven(desk, catalogue) == (3, 0, 0, ())


def test_one_that_goes_while_it_is_looked_for_is_named_all_the_same(desk, catalogue, monkeypatch):
    desk.chain(42, book=older(desk), outcome="abandon")
    really = desk.stack.book.read_any
    monkeypatch.setattr(
        desk.stack.book, "read_any", lambda key: None if "certificates" in key else really(key)
    )
    assert prove(desk.stack, catalogue).late == 3


def test_the_records_of_a_killed_run_are_found_when_its_claims_are_over(desk, catalogue):
    desk.chain(42, outcome="abandon")  # and no close page
    assert proven(desk, catalogue) == (3, 0, 0, ())  # it may be at work
    assert counts(catalogue)["events"] == 0
    past_claims(desk)
    assert proven(desk, catalogue) == (3, 3, 0, ("run-1",))
    assert least(catalogue, catalogue.opened()).in_work.ledgers == set()
    assert asked(catalogue, "select state from ledgers") == [{"state": "verified"}]
    assert proven(desk, catalogue) == (3, 0, 0, ())


def test_what_names_no_ledger_by_its_key_is_named_at_once_and_again_by_its_run(desk, catalogue):
    """A publication of a run at work: its ledgers have it once all the same."""
    desk.chain(42)
    assert proven(desk, catalogue) == (6, 1, 0, ())
    assert asked(catalogue, "select state from ledgers") == [{"state": "published"}]
    desk.book.close_page()
    assert proven(desk, catalogue) == (6, 0, 0, ())
    assert asked(catalogue, "select state, attempts from ledgers") == [
        {"state": "released", "attempts": 1}
    ]


def test_a_run_is_given_five_minutes_more_than_a_claim_lives(desk, catalogue):
    desk.chain(42)
    past_claims(desk, -60)
    assert proven(desk, catalogue)[3] == ()
    past = desk.objects.now
    desk.objects.advance(5 * 60)
    assert desk.objects.now > past
    assert proven(desk, catalogue)[3] == ()
    desk.objects.advance(2 * 60)
    assert proven(desk, catalogue)[3] == ("run-1",)


def test_a_run_that_renews_the_claim_of_one_of_its_ledgers_is_alive(desk, catalogue):
    desk.chain(42, outcome="abandon")
    desk.book.take_up([7])
    past_claims(desk)
    desk.claim(7)
    assert proven(desk, catalogue) == (3, 0, 0, ())
    assert least(catalogue, catalogue.opened()).in_work.ledgers == {7, 42}


def test_a_claim_of_another_runs_ledger_keeps_nobody_alive(desk, catalogue):
    desk.chain(42)
    past_claims(desk)
    desk.claim(7)
    assert proven(desk, catalogue) == (6, 6, 0, ("run-1",))


def test_a_claim_that_is_over_keeps_nobody_alive(desk, catalogue):
    desk.chain(42)
    past_claims(desk)
    desk.claim(42, lives_s=-1)
    assert proven(desk, catalogue)[3] == ("run-1",)


def test_only_the_run_that_died_is_closed(desk, catalogue):
    desk.chain(42)
    past_claims(desk)
    desk.book_of("run-2").take_up([7])
    assert proven(desk, catalogue)[3] == ("run-1",)
    assert least(catalogue, catalogue.opened()).in_work.ledgers == {7}


def test_a_ledger_that_a_living_run_has_in_work_is_left_alone_and_others_are_not(desk, catalogue):
    desk.outcome(42)
    desk.outcome(7, book=older(desk))
    assert proven(desk, catalogue)[:2] == (2, 1)
    assert asked(catalogue, "select ledger_id from events") == [{"ledger_id": 7}]
    desk.book.close_page()
    assert proven(desk, catalogue)[:2] == (2, 0)


def test_what_pages_do_not_name_is_not_listed(desk, catalogue):
    desk.claim(42)
    assert proven(desk, catalogue) == (0, 0, 0, ())


def test_a_record_that_a_page_names_and_that_is_not_there_is_missing(desk, catalogue):
    key = desk.outcome(42)
    desk.book.close_page()
    desk.drop(key)
    proof = prove(desk.stack, catalogue)
    assert (proof.missing, proof.first) == (1, (key,))
    assert not agreed(catalogue)


def test_one_that_went_with_a_page_is_not_missing(desk, catalogue):
    key = desk.outcome(42)
    desk.book.close_page()
    desk.book.take_away([key])
    desk.drop(key)
    assert proven(desk, catalogue) == (0, 0, 0, ())
    assert agreed(catalogue)


def test_one_that_went_and_was_written_again_is_missed_when_it_is_gone(desk, catalogue):
    key = desk.outcome(42)
    desk.book.close_page()
    desk.book.delete(key)
    desk.outcome(42)
    desk.book.close_page()
    assert proven(desk, catalogue) == (1, 0, 0, ())
    desk.drop(key)
    assert proven(desk, catalogue) == (0, 0, 1, ())


def test_one_that_was_said_to_go_and_is_there_is_named_again(desk, catalogue):
    """Its run died between the page and the delete."""
    key = desk.outcome(42)
    desk.book.close_page()
    desk.book.take_away([key])
    assert proven(desk, catalogue) == (1, 1, 0, ())
    assert proven(desk, catalogue) == (1, 0, 0, ())


def test_a_kind_that_changes_may_go(desk, catalogue):
    key = desk.scrub()
    desk.book.close_page()
    desk.drop(key)
    assert proven(desk, catalogue) == (0, 0, 0, ())
    assert agreed(catalogue)


def test_at_most_so_many_missing_ones_are_named(desk, catalogue):
    written = [desk.outcome(n) for n in range(proving.TOLD_MAX + 2)]
    desk.book.close_page()
    for key in written:
        desk.drop(key)
    proof = prove(desk.stack, catalogue)
    assert proof.missing == proving.TOLD_MAX + 2
    assert proof.first == tuple(sorted(written)[: proving.TOLD_MAX])


@pytest.mark.parametrize("meanwhile", ["gone", "written"])
def test_what_changes_during_the_listing_is_not_missing(desk, catalogue, monkeypatch, meanwhile):
    """A run that takes it away, or that writes it again, while the bucket is listed."""
    key = desk.outcome(42)
    desk.book.close_page()
    body = desk.objects.peek(desk.key_of(key))[0]
    desk.drop(key)
    really = proving._post_all
    turns = []

    def between(stack, catalogue):
        turns.append(True)
        if len(turns) == 2:  # behind the listing
            if meanwhile == "gone":
                desk.book.take_away([key])
            else:
                desk.objects.put(desk.key_of(key), body)
        return really(stack, catalogue)

    monkeypatch.setattr(proving, "_post_all", between)
    assert proven(desk, catalogue)[2] == 0
    assert agreed(catalogue)


@pytest.mark.parametrize("lot", [1, 2, 3, 4, 5, 6, 7])
def test_late_and_missing_records_are_found_at_every_boundary_of_lots(
    desk, catalogue, monkeypatch, lot
):
    monkeypatch.setattr(listings, "LOT", lot)
    number = 6
    written = [desk.outcome(n) for n in range(number)]
    desk.book.close_page()
    assert proven(desk, catalogue) == (number, 0, 0, ())
    late = [desk.outcome(n, book=older(desk)) for n in range(10, 10 + number)]
    for n in range(number):
        desk.drop(written[n])
        proof = prove(desk.stack, catalogue)
        assert proof.first == tuple(sorted(written[: n + 1]))
        assert proof.late == (number if n == 0 else 0)
        assert proof.listed == len(late) + number - n - 1
    events = asked(catalogue, "select key from events")
    assert sorted(row["key"] for row in events) == sorted(written + late)


def test_a_lot_reads_no_events_but_its_own(desk, catalogue, monkeypatch):
    monkeypatch.setattr(listings, "LOT", 2)
    for n in range(5):
        desk.outcome(n)
    desk.book.close_page()
    post(desk.stack, catalogue)
    spans, really = [], proving._events

    def events(tables, after, upto):
        found = really(tables, after, upto)
        if "outcomes" in upto:
            spans.append(sorted(found[0]))
        return found

    monkeypatch.setattr(proving, "_events", events)
    prove(desk.stack, catalogue)
    of = [keys.outcome(n, UID) for n in range(5)]
    assert [key for some in spans for key in some] == of
    assert [len(some) for some in spans] == [1, 1, 2, 1]


def test_a_proof_tells_how_far_it_goes(desk, catalogue):
    desk.outcome(42)
    desk.book.close_page()
    proof = prove(desk.stack, catalogue)
    assert (proof.as_of.page, proof.as_of.proven_at) == (3, proof.as_of.written_at)
