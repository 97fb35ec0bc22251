"""Each fault, by the plain decoder and side by side: all messages, or an error that names one.

What is asked of the store between plan and read is here as well, with the simulated one.
"""

from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import pytest

from tests.support.cold_fault_entries import TOPIC_FAULTS
from tests.support.cold_lab import ASKED, COLUMNS, judge_failing, judge_rows, put_topics, rows_of
from tests.unit.catalogue.desk import Desk
from tiering_assets.catalogue.post import post
from tiering_assets.catalogue.view import Catalogue
from tiering_assets.cold import singles, usual
from tiering_assets.cold.columns import COLUMNS as EVERY
from tiering_assets.cold.decode import decode_lots
from tiering_assets.cold.plain_rows import rows_of_entry
from tiering_assets.lineage.messages import as_arrow
from tiering_assets.lineage.messages.as_arrow import messages
from tiering_assets.lineage.messages.options import cold_options
from tiering_assets.lineage.messages.plan import plan_messages, reading
from tiering_assets.lineage.messages.read_messages import read_messages
from tiering_assets.resources import errors
from tiering_assets.resources.object_store.s3_errors import Request, refusal
from tiering_assets.resources.table_place import TablePlace

BY_NAME = {fault.name: fault for fault in TOPIC_FAULTS}
each = pytest.mark.parametrize("fault", TOPIC_FAULTS, ids=BY_NAME)
of_entries = [one for one in TOPIC_FAULTS if not one.of_topic]


def made_lab(folder, faults=TOPIC_FAULTS, *, versions=False):
    """A desk whose day book is posted: `ids` are ledgers by fault."""
    desk = Desk()
    if versions:
        desk.objects.keep_versions()
    ids = put_topics(desk.objects, desk.book, first_id=1000, faults=faults)
    desk.book.close_page()
    catalogue = Catalogue(TablePlace(root=str(folder), options={}))
    while post(desk.stack, catalogue).pages:
        pass
    desk.stack.spending_for = lambda _topic: nullcontext()
    desk.stack.open_points = nullcontext
    return SimpleNamespace(objects=desk.objects, stack=desk.stack, catalogue=catalogue, ids=ids)


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    return made_lab(tmp_path_factory.mktemp("tables"))


def asking(lab):
    return patch.object(Catalogue, "of", lambda _stack: lab.catalogue)


def asked(lab, fault, on_error="fail", columns=ASKED):
    """As a program asks."""
    given = {"transactions": "all", "from": "", "until": "", **fault.options}
    flags: Any = {name: given.get(name) == "true" for name in ("markers", "verify")}
    opened = patch.object(as_arrow, "open_stack", lambda _settings: nullcontext(lab.stack))
    with asking(lab), opened:
        return messages(
            fault.topic,
            begin=given["from"],
            until=given["until"],
            columns=columns,
            on_error=on_error,
            transactions=given["transactions"],
            settings=lab.stack.settings,
            **flags,
        ).read_all()


def by_columns(lab, fault, on_error):
    return rows_of(asked(lab, fault, on_error).to_pydict())


def plainly(fault, ids, on_error):
    flags = {name: fault.options.get(name) == "true" for name in ("markers", "verify")}
    return [
        tuple(row.get(name) for name in COLUMNS)
        for ledger_id, entries in zip(ids, fault.ledgers, strict=True)
        for entry_id, one in enumerate(entries)
        for row in rows_of_entry(
            one, ledger_id=ledger_id, entry_id=entry_id, on_error=on_error, **flags
        )
    ]


@pytest.mark.parametrize("fault", of_entries, ids=[one.name for one in of_entries])
def test_entry_by_entry(fault):
    ids = range(7, 7 + len(fault.ledgers))
    judge_rows(fault, ids, plainly(fault, ids, "row"))
    kind = getattr(errors, fault.error)
    judge_failing(fault, ids, lambda: plainly(fault, ids, "fail"), kind)


@each
def test_side_by_side(lab, fault):
    ids, kind = lab.ids[fault.name], getattr(errors, fault.error)
    judge_rows(fault, ids, by_columns(lab, fault, "row"))
    judge_failing(fault, ids, lambda: by_columns(lab, fault, "fail"), kind)


@each
def test_fewer_columns_make_no_answer_shorter(lab, fault):
    """Payloads are not looked into then, and an entry may be told that cannot be read."""
    try:
        found = asked(lab, fault, columns=["ledger_id", "entry_id"])
    except getattr(errors, fault.error):
        assert fault.bad
    else:
        assert found.num_rows >= len(fault.rows)


def test_batches_of_very_many_messages_are_decoded_in_several_lots(monkeypatch):
    """A few kilobytes of zeros may be a block of very many messages of no bytes."""
    from tests.support.cold_entries import TIME, entries_of
    from tests.support.pulsar_entries import MESSAGES_IN_BATCH, message

    monkeypatch.setattr(usual, "ROWS_MAX", 100)
    made = [message(TIME, (MESSAGES_IN_BATCH, 60), payload=bytes(240)) for _ in range(5)]
    for names in (EVERY.names, ["entry_id"]):
        lots = [*decode_lots(entries_of(made), names)]
        assert [one.num_rows for one in lots] == [60, 60, 60, 60, 60]


def test_what_a_batch_claims_is_not_made_room_for():
    """Neither rows nor arrays of two thousand million messages are made."""
    from tests.support.cold_entries import TIME, entries_of
    from tests.support.pulsar_entries import MESSAGES_IN_BATCH, message

    asked_for: list[int] = []
    really = singles.read_singles

    def read_singles(data, starts, ends, counts, **how):
        asked_for.append(int(counts.sum()))
        return really(data, starts, ends, counts, **how)

    liar = message(TIME, (MESSAGES_IN_BATCH, 2**31 - 1), payload=bytes(40))
    with patch.object(usual, "read_singles", read_singles):
        [found] = decode_lots(entries_of([liar]), ["entry_id", "error"], on_error="row")
        assert found.num_rows == 1
        [found] = decode_lots(entries_of([liar]), EVERY.names, on_error="row")
    assert found.num_rows == 1
    assert asked_for == [0, 0]


# ----- between plan and read

PLAIN = BY_NAME["codec-ZSTD-batch"]
JOINED = BY_NAME["pieces-in-three-ledgers"]
PLACES = [(0, -1), (1, 0), (1, 1), (1, 2), (2, -1)]


class Planned:
    """A topic whose blocks are planned, and read only then."""

    def __init__(self, lab, fault=PLAIN, **options):
        self.lab, self.fault = lab, fault
        self.asked = cold_options({"topic": fault.topic, "columns": ",".join(ASKED), **options})
        with asking(lab):
            self.plan = plan_messages(lab.stack, self.asked)
        self.keys = [*dict.fromkeys(block.data_key for block in self.plan.blocks)]

    def rows(self):
        with asking(self.lab), reading(self.lab.stack, self.plan) as read:
            found = read_messages(
                read,
                self.plan.blocks,
                self.asked.messages,
                before=self.plan.before,
                after=self.plan.after,
            )
            return [row for _, batch in found for row in rows_of(batch.to_pydict())]

    def fails(self, kind, ledger=0):
        """By the first block that it reads of a ledger."""
        ledger_id = self.lab.ids[self.fault.name][ledger]
        with pytest.raises(kind, match=rf"ledger {ledger_id}, entries \d+ to \d+: "):
            self.rows()


def test_an_object_that_is_trimmed_is_named(tmp_path):
    planned = Planned(made_lab(tmp_path, [PLAIN]))
    planned.lab.objects.delete(planned.keys[0])
    planned.fails(errors.ObjectNotFoundError)


def test_an_object_that_is_trimmed_is_a_row_of_each_of_its_blocks(tmp_path):
    planned = Planned(made_lab(tmp_path, [JOINED]), JOINED, on_error="row")
    planned.lab.objects.delete(planned.keys[1])
    first, second, third = planned.lab.ids[JOINED.name]
    found = planned.rows()
    assert [(row[0], row[1]) for row in found] == [(first, 0), (second, 0), (third, 0), (third, 1)]
    assert [row[4] is None for row in found] == [True, False, False, True]
    assert "cannot be joined" in (found[2][4] or "")


def test_a_piece_in_an_object_that_is_trimmed_is_missed(tmp_path):
    planned = Planned(made_lab(tmp_path, [JOINED]), JOINED)
    whole = planned.plan.blocks
    third = planned.lab.ids[JOINED.name][2]
    object.__setattr__(planned.plan, "blocks", [one for one in whole if one.ledger_id == third])
    assert (planned.rows()[0][0], planned.rows()[0][1]) == (third, 0)
    planned.lab.objects.delete(planned.keys[0])
    with pytest.raises(errors.FormatError, match=f"ledger {third}, entry 0: its message cannot be"):
        planned.rows()


def test_of_an_object_that_is_replaced_the_version_of_the_plan_is_read(tmp_path):
    planned = Planned(made_lab(tmp_path, [PLAIN], versions=True))
    assert all(block.version_id for block in planned.plan.blocks)
    planned.lab.objects.put(planned.keys[0], b"something else")
    judge_rows(PLAIN, planned.lab.ids[PLAIN.name], planned.rows())


@pytest.mark.parametrize("other", [b"", b"short", bytes(100_000)])
def test_an_object_that_is_replaced_where_no_versions_are_kept_is_named(tmp_path, other):
    planned = Planned(made_lab(tmp_path, [PLAIN]))
    planned.lab.objects.overwrite(planned.keys[0], other)
    planned.fails((errors.FormatError, errors.ObjectStoreError))


def test_an_object_of_another_ledger_in_its_place_is_named(tmp_path):
    """As it may come where somebody restores a bucket: the frames have other entries."""
    planned = Planned(made_lab(tmp_path, [PLAIN, JOINED]))
    other = Planned(planned.lab, JOINED)
    body, _ = planned.lab.objects.peek(other.keys[2])
    planned.lab.objects.overwrite(planned.keys[0], body)
    planned.fails((errors.FormatError, errors.ObjectStoreError))


@pytest.mark.parametrize("storage_class", ["GLACIER", "DEEP_ARCHIVE"])
def test_an_object_of_an_archive_class_is_named(tmp_path, storage_class):
    planned = Planned(made_lab(tmp_path, [PLAIN]))
    planned.lab.objects.move(planned.keys[0], storage_class)
    planned.fails(errors.ObjectArchivedError)


@pytest.mark.parametrize("code", ["AccessDenied", "InvalidAccessKeyId", "PermanentRedirect"])
@pytest.mark.parametrize("on_error", ["fail", "row"])
def test_a_store_that_refuses_is_named_whatever_becomes_of_errors(tmp_path, code, on_error):
    """Other keys, or another region, may give what these do not: that is no damage."""
    planned = Planned(made_lab(tmp_path, [PLAIN]), on_error=on_error)
    request = Request(action="GET", bucket="b", endpoint="", key=planned.keys[0])
    error = refusal(request, code=code, status=403, message="")
    planned.lab.objects.fail("get_range", error=error)
    planned.fails(errors.ObjectStoreError)


def test_an_answer_that_is_cut_is_named(tmp_path):
    planned = Planned(made_lab(tmp_path, [PLAIN]))
    planned.lab.objects.alter_range(lambda body: body[:-1])
    planned.fails((errors.FormatError, errors.ObjectStoreError))
