"""Tables made anew from the records are those that were posted; until then the old ones serve."""

import json
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.unit.catalogue.desk import asked, example
from tests.unit.records.examples import UID
from tiering_assets.catalogue import generation
from tiering_assets.catalogue.generation import FIRST, KEY, read_generation
from tiering_assets.catalogue.post import post
from tiering_assets.catalogue.prove import prove
from tiering_assets.catalogue.upkeep import new_table, shard_runs, shard_worker
from tiering_assets.catalogue.upkeep import rebuild as rebuilding
from tiering_assets.catalogue.upkeep.rebuild import rebuild
from tiering_assets.catalogue.upkeep.spans import Shard
from tiering_assets.catalogue.view import Catalogue, least
from tiering_assets.records import keys
from tiering_assets.records.key_kinds import FOLDERS
from tiering_assets.records.models import Publication
from tiering_assets.records.sweep_models import ForgetPlan, PlannedForget
from tiering_assets.resources.errors import CatalogueError, ObjectStoreError, PrerequisiteError
from tiering_assets.resources.settings import CatalogueSettings
from tiering_assets.resources.table_sessions import KeptSessions
from tiering_assets.resources.table_upkeep import add_in_order

TOPIC = "public/default/persistent/orders"
QUESTIONS = {
    "ledgers": "select * exclude (turn, page) from ledgers order by ledger_id",
    "blocks": "select * from blocks order by ledger_id, uid, part, page",
    "events": "select * from events order by page, key",
}


@pytest.fixture
def desk(desk, tmp_path):
    """One whose settings say where tables lie."""
    place = CatalogueSettings(root=str(tmp_path / "tables"))
    desk.stack.settings = replace(desk.stack.settings, catalogue=place)
    return desk


def now(desk):
    return Catalogue.of(desk.stack)


def seen(catalogue):
    return {name: asked(catalogue, sql) for name, sql in QUESTIONS.items()}


def run_of(desk, ledger_id, **how):
    desk.chain(ledger_id, **how)
    desk.book.close_page()


def posted(desk):
    prove(desk.stack, now(desk))
    return seen(now(desk))


def rebuilt(desk, **how):
    """Equal to what was posted, and asked from now on."""
    before = posted(desk)
    done = rebuild(desk.stack, **how)
    assert done.moved
    assert now(desk).place.root.endswith(done.folder)
    after = seen(now(desk))
    pages = [row for row in after["events"] if row["page"] <= done.pages]
    assert {**after, "events": pages} == before
    return done


def test_tables_are_those_that_were_posted(desk):
    for ledger_id in (42, 7, 9):
        run_of(desk, ledger_id)
    done = rebuilt(desk)
    assert (done.ledgers, done.blocks, done.events) == (3, 6, 18)
    assert done.proof.late == 0


def test_small_lots_and_shards_give_the_same(desk, monkeypatch):
    monkeypatch.setattr(rebuilding, "SHARD", 2)
    monkeypatch.setattr(rebuilding, "_WIDE_AT_ONCE", 2)
    monkeypatch.setattr(rebuilding, "_EVENTS_AT_ONCE", 7)
    monkeypatch.setattr(new_table, "LOT", 4)
    for ledger_id in (42, 7, 9, 11, 13):
        run_of(desk, ledger_id)
    rebuilt(desk)
    files = now(desk).opened().settled["ledgers"]
    assert [one.rows for one in files.files("ledger_id")] == [4, 1]


def test_a_bucket_without_a_record_gives_empty_tables(desk):
    done = rebuild(desk.stack)
    assert (done.moved, done.ledgers, done.events) == (True, 0, 0)
    assert seen(now(desk)) == {"ledgers": [], "blocks": [], "events": []}
    run_of(desk, 42)
    post(desk.stack, now(desk))
    assert len(asked(now(desk), "select * from ledgers")) == 1


def test_posting_goes_on_where_it_ends(desk):
    run_of(desk, 42)
    rebuilt(desk)
    run_of(desk, 7)
    desk.scrub(42)
    desk.book.close_page()
    rebuilt(desk)
    assert now(desk).place.root.endswith("/3-poster")


def test_ledgers_in_work_and_the_last_agreement_are_known(desk):
    run_of(desk, 42)
    posted(desk)
    desk.book.take_up([5, 7])
    rebuild(desk.stack)
    as_of = least(now(desk), now(desk).opened())
    assert as_of.in_work.ledgers == {5, 7}
    assert as_of.proven_at is not None


def test_what_no_page_named_is_found_by_the_listing(desk):
    from tiering_assets.ground.record_book import RecordBook

    desk.chain(42, book=RecordBook(desk.objects, "inst"))
    done = rebuild(desk.stack)
    assert (done.ledgers, done.proof.late) == (0, 6)
    assert [row["state"] for row in asked(now(desk), "select * from ledgers")] == ["released"]
    rebuilt(desk)


def test_without_any_page_left_the_records_are_enough(desk):
    run_of(desk, 42)
    before = posted(desk)
    for number in range(1, 5):
        desk.drop(keys.page(number))
    done = rebuild(desk.stack)
    assert done.pages == 0
    after = seen(now(desk))
    assert after["ledgers"] == before["ledgers"]
    assert [{**row, "page": 0} for row in after["blocks"]] == [
        {**row, "page": 0} for row in before["blocks"]
    ]


def test_a_page_that_is_gone_is_told_and_its_records_are_found_by_the_listing(desk):
    run_of(desk, 42)
    run_of(desk, 7)
    desk.drop(keys.page(2))
    rebuilt(desk)
    assert [row["ledger_id"] for row in asked(now(desk), "select * from ledgers order by 1")] == [
        7,
        42,
    ]


@pytest.mark.parametrize("harm", ["missing", "damaged"])
def test_a_record_that_is_not_what_its_page_says_is_told_as_before(desk, harm):
    run_of(desk, 42, outcome="abandon")
    [key] = desk.book.keys("certificates/")
    if harm == "missing":
        desk.drop(key)
    else:
        desk.change(key, b'"sim-bucket"', b'"sim-basket"')
    rebuilt(desk)
    found = asked(now(desk), "select what from events where kind = 'certificates'")
    assert {row["what"] for row in found} >= {harm}


def test_a_publication_that_cannot_be_read_is_told(desk):
    run_of(desk, 42)
    [key] = desk.book.keys("publications/")
    desk.change(key, b'"public', b'"pablic')
    rebuilt(desk)
    [row] = asked(now(desk), "select what from events where kind = 'publications'")
    assert row["what"] == "damaged"


def test_of_forgotten_records_the_ledger_stays_known(desk):
    """By the plan, which is all that stays of them."""
    run_of(desk, 42)
    posted(desk)
    plan = example(ForgetPlan, ledgers=(PlannedForget(ledger_id=42, ml_name=TOPIC, uids=(UID,)),))
    desk.book.create(keys.forget_plan("5a" * 32), plan)
    desk.book.close_page()
    gone = [key for folder in FOLDERS for key in desk.book.keys(f"{folder}/42/")]
    assert len(gone) > 4
    desk.book.take_away(gone)
    for key in gone:
        desk.drop(key)
    desk.book.close_page()
    before = posted(desk)
    rebuild(desk.stack)
    after = seen(now(desk))
    assert after["events"][: len(before["events"])] == before["events"]
    assert after["blocks"] == []  # of attempts whose records are gone
    [ours], [theirs] = after["ledgers"], before["ledgers"]
    assert {name for name in ours if ours[name] != theirs[name]} == {"entries", "bytes"}
    assert ours["topic"] == TOPIC
    assert ours["certified_at"] is None


def test_one_that_was_said_to_go_and_is_there_counts_by_the_proof_that_finds_it(desk):
    """Its run died between the page and the delete."""
    run_of(desk, 42)
    posted(desk)
    desk.book.take_away(desk.book.keys("certificates/"))
    desk.book.close_page()
    done = rebuild(desk.stack)
    assert (done.blocks, done.proof.late) == (0, 1)
    assert len(asked(now(desk), "select * from blocks")) == 2


def test_one_that_was_written_again_since_counts(desk):
    run_of(desk, 42)
    held = desk.scrub(43)
    desk.book.close_page()
    desk.book.delete(held)
    desk.scrub(43)
    desk.book.close_page()
    rebuilt(desk)
    found = asked(now(desk), "select verified_depth as d from ledgers where ledger_id = 43")
    assert found == [{"d": "deep"}]


# ----- who is faster, dies, or lies


def test_of_two_rebuilds_one_is_asked_and_the_other_says_so(desk, monkeypatch):
    run_of(desk, 42)
    before = posted(desk)
    really, first = prove, [True]

    def slow(stack, catalogue):
        if first:
            first.clear()
            assert rebuild(desk.stack_of("other")).moved
        return really(stack, catalogue)

    other = desk.stack_of

    def same_place(run):
        stack = other(run)
        stack.settings = desk.stack.settings
        return stack

    monkeypatch.setattr(desk, "stack_of", same_place)
    monkeypatch.setattr(rebuilding, "prove", slow)
    assert not rebuild(desk.stack).moved
    assert now(desk).place.root.endswith("/2-other")
    assert seen(now(desk))["ledgers"] == before["ledgers"]


def test_a_lost_answer_of_a_commit_of_new_tables_is_looked_up(desk, monkeypatch):
    run_of(desk, 42)
    posted(desk)
    really, lost = add_in_order, list[bool]()

    def add(*given, **how):
        done = really(*given, **how)
        lost.append(done)
        return False

    monkeypatch.setattr(new_table, "add_in_order", add)
    rebuilt(desk)
    assert len(lost) == 4


def test_new_tables_that_somebody_else_writes_are_given_up(desk, monkeypatch):
    run_of(desk, 42)
    monkeypatch.setattr(new_table, "add_in_order", lambda *_given, **_how: False)
    with pytest.raises(CatalogueError, match="somebody else writes it"):
        rebuild(desk.stack)
    assert read_generation(desk.stack).folder == FIRST


class Carried:
    """By threads, as another process would; `asked` is what it was opened with."""

    def __init__(self, settings, error=None):
        self._settings, self._error, self.asked = settings, error, []

    @contextmanager
    def __call__(self, entry, arguments):
        if self._error:
            raise self._error
        self.asked.append((entry, arguments))
        module, _, name = entry.partition(":")
        work = getattr(import_module(module), name)(self._settings, **arguments)
        with ThreadPoolExecutor(2) as pool:
            yield SimpleNamespace(at_once=2, submit=partial(pool.submit, work))


@pytest.fixture
def carried(desk, monkeypatch):
    """Few are enough to be carried, and the client there is the desk's."""
    monkeypatch.setattr(rebuilding, "CARRIED_FROM", 1)
    monkeypatch.setattr(rebuilding, "SHARD", 2)
    monkeypatch.setattr(shard_worker, "BulkS3ObjectStore", lambda _settings, **_how: desk.objects)

    return Carried(desk.stack.settings)


def test_shards_that_are_carried_to_other_processes_give_the_same(desk, carried):
    for ledger_id in (42, 7, 9, 11, 13):
        run_of(desk, ledger_id)
    desk.chain(17, outcome="abandon")
    desk.book.close_page()
    desk.drop(next(iter(desk.book.keys("certificates/17/"))))
    done = rebuilt(desk, carried=carried)
    assert done.ledgers == 5  # of the sixth nothing can be read
    [(entry, arguments)] = carried.asked
    assert entry == "tiering_assets.catalogue.upkeep.shard_worker:open_shards"
    assert arguments == {"instance": "inst", "budget_key": desk.key_of(keys.BUDGET)}
    found = asked(now(desk), "select what from events where kind = 'certificates'")
    assert {"what": "missing"} in found


def test_a_few_shards_are_read_in_this_process(desk, carried):
    run_of(desk, 42)
    rebuilt(desk, carried=carried)
    assert carried.asked == []


def test_where_nobody_can_carry_them_shards_are_read_in_this_process(desk, carried):
    for ledger_id in (42, 7, 9):
        run_of(desk, ledger_id)

    broken = Carried(desk.stack.settings, PrerequisiteError("no Java is found"))
    told: list[str] = []
    rebuilt(desk, carried=broken, tell=told.append)
    assert "records are read in this process: no Java is found" in told


def test_an_error_of_a_shard_ends_the_rebuild(desk, carried, monkeypatch):
    for ledger_id in (42, 7, 9):
        run_of(desk, ledger_id)
    before = posted(desk)

    def away(*_given):
        raise ObjectStoreError("the store is away")

    monkeypatch.setattr(shard_worker, "rows_of_shard", away)
    with pytest.raises(ObjectStoreError, match="the store is away"):
        rebuild(desk.stack, carried=carried)
    assert read_generation(desk.stack).folder == FIRST
    assert seen(now(desk)) == before


def test_a_shard_has_its_ledgers_and_no_others():
    inner = Shard(5, 9)
    assert [n for n in range(12) if inner.has(n)] == [5, 6, 7, 8]
    assert [n for n in range(12) if Shard(None, 2).has(n)] == [0, 1]
    assert [n for n in range(12) if Shard(10, None).has(n)] == [10, 11]


def test_a_few_shards_are_under_way_and_come_in_their_order():
    waiting, most = [], []

    class Late:
        def __init__(self, task):
            self.task = task
            waiting.append(self)
            most.append(len(waiting))

        def result(self):
            waiting.remove(self)
            return self.task

    lots = [b"%d" % n for n in range(6)]
    assert [*shard_runs._in_order(cast(Any, Late), lots, ahead=2)] == lots
    assert max(most) == 3


def test_a_ledger_of_a_publication_of_several_is_in_one_shard(desk, monkeypatch):
    monkeypatch.setattr(rebuilding, "SHARD", 1)
    for ledger_id in (42, 43):
        run_of(desk, ledger_id)
    [one, other] = (desk.book.read(Publication, key) for key in desk.book.keys("publications/"))
    both = replace(one.record, ledgers=(*one.record.ledgers, *other.record.ledgers))
    desk.book.create(keys.publication("public/default/persistent/both", 1), both)
    desk.book.close_page()
    rebuilt(desk)
    assert len(asked(now(desk), "select * from ledgers")) == 2


def test_an_answer_of_the_move_that_is_lost_is_looked_up(desk, monkeypatch):
    run_of(desk, 42)
    rebuild(desk.stack)
    really, lost = desk.objects.put, list[bool]()

    def put(key, body, **how):
        done = really(key, body, **how)
        if key.endswith(KEY) and not lost:
            lost.append(True)
            really(key, body, **how)  # the client's own second try, which the first one beats
        return done

    monkeypatch.setattr(desk.objects, "put", put)
    assert rebuild(desk.stack).moved
    assert lost


def test_one_that_is_killed_changes_nothing_and_the_next_one_works(desk, monkeypatch):
    run_of(desk, 42)
    before = posted(desk)

    class DiesError(Exception):
        pass

    def die(*_given, **_how):
        raise DiesError

    for name in ("prove", "_spool_wide", "move_to"):
        with monkeypatch.context() as patch:
            patch.setattr(rebuilding, name, die)
            with pytest.raises(DiesError):
                rebuild(desk.stack)
        assert read_generation(desk.stack).folder == FIRST
        assert seen(now(desk))["ledgers"] == before["ledgers"]
    desk.stack.run_id = "next"
    assert rebuild(desk.stack).moved
    assert seen(now(desk))["ledgers"] == before["ledgers"]


@pytest.mark.parametrize(
    "body",
    [
        b"no json",
        b'{"schema":"tierkeeper/catalogue/1"}\n',
        b'{"folder":3,"schema":"tierkeeper/catalogue/1"}\n',
        b'{"folder":"3","schema":"x/1"}\n',
    ],
)
def test_a_pointer_that_cannot_be_read_fails_by_name_and_is_healed(desk, body):
    run_of(desk, 42)
    before = posted(desk)
    desk.objects.put(desk.key_of(KEY), body)
    why = "not JSON" if body == b"no json" else "it names no folder"
    with pytest.raises(CatalogueError, match=rf"current\.json cannot be read: .*{why}.*rebuild"):
        now(desk)
    assert rebuild(desk.stack).moved
    assert seen(now(desk))["ledgers"] == before["ledgers"]


def test_a_pointer_that_somebody_changed_is_not_believed(desk):
    rebuild(desk.stack)
    desk.change(KEY, b'"2-poster"', b'"9-poster"')
    with pytest.raises(CatalogueError, match="cannot be read"):
        now(desk)


def test_number_of_a_folder():
    assert generation.Generation(folder=None).number == 1
    assert generation.Generation(folder="12-run").number == 12
    assert generation.Generation(folder="x").number == 1


# ----- what it heals


def log_of(desk, name):
    return Path(now(desk).place.root, name, "_delta_log")


def harm_log(desk):
    for path in log_of(desk, "ledger_changes").glob("*.json"):
        path.write_text("no log\n")


def harm_checkpoint(desk):
    import deltalake

    root = now(desk).place.root
    deltalake.DeltaTable(f"{root}/blocks").create_checkpoint()
    for path in log_of(desk, "blocks").glob("*.checkpoint.parquet"):
        path.write_bytes(b"PAR1 half")
    for path in log_of(desk, "blocks").glob("*.json"):
        path.unlink()


def harm_file(desk):
    for path in Path(now(desk).place.root, "ledger_changes").glob("*.parquet"):
        path.unlink()


def harm_half(desk):
    for path in Path(now(desk).place.root, "ledger_changes").glob("*.parquet"):
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


@pytest.mark.parametrize("harm", [harm_log, harm_checkpoint, harm_file, harm_half])
def test_damaged_tables_fail_by_name_and_are_healed(desk, harm, monkeypatch):
    run_of(desk, 42)
    before = posted(desk)
    harm(desk)
    # As another process asks: this one remembers the footers that are gone.
    monkeypatch.setattr("tiering_assets.resources.tables.SESSIONS", KeptSessions())
    with pytest.raises(CatalogueError):
        seen(now(desk))
    assert rebuild(desk.stack).moved
    after = seen(now(desk))
    assert after["ledgers"] == before["ledgers"]
    assert after["blocks"] == before["blocks"]
    run_of(desk, 7)
    post(desk.stack, now(desk))
    assert len(asked(now(desk), "select * from ledgers")) == 2
    assert json.loads(desk.bytes_of(KEY))["folder"] == "2-poster"
