"""Old tables go a week after the last of them was written and others were asked instead."""

from datetime import timedelta

import pytest

from tests.unit.records.examples import AT
from tiering_assets.catalogue.generation import FIRST, Generation, move_to, read_generation
from tiering_assets.catalogue.upkeep.old_tables import drop_old_tables, folders_to_drop

WEEK = timedelta(days=7)
LATER = AT + WEEK + timedelta(seconds=1)


def dropped(newest, folder="2-b", since=AT, now=LATER):
    return folders_to_drop(newest, Generation(folder=folder, since=since), now=now)


def test_what_is_neither_asked_nor_young_goes():
    assert dropped({"1": AT, "2-b": AT, "3-killed": AT}) == ["1", "3-killed"]


@pytest.mark.parametrize(
    "how",
    [
        {"now": AT + WEEK},
        {"since": AT + timedelta(seconds=1)},
        {"newest": {"1": AT + timedelta(seconds=1), "2-b": AT}},
        {"folder": None},
        {"folder": "9-elsewhere"},
    ],
)
def test_else_nothing_goes(how):
    assert dropped(**{"newest": {"1": AT, "2-b": AT}, **how}) == []


def test_before_any_rebuild_only_what_one_left_goes():
    assert dropped({"1": AT, "2-killed": AT}, FIRST, None) == ["2-killed"]
    assert dropped({"2-killed": AT}, FIRST, None) == []


def keys_below(desk):
    prefix = f"{desk.book.prefix}catalogue/"
    return sorted(
        key.removeprefix(prefix) for key in desk.objects.peek_keys() if "catalogue" in key
    )


def test_their_objects_are_deleted_and_no_others(desk):
    desk.outcome(42)
    for key in ("1/blocks/a", "2-b/blocks/a", "2-b/blocks/b", "20/blocks/a"):
        desk.objects.put(desk.key_of(f"catalogue/{key}"), b"x")
    assert move_to(desk.stack, "2-b", before=read_generation(desk.stack), made={})
    before = {*desk.objects.peek_keys()}
    assert drop_old_tables(desk.stack, now=desk.objects.now) == 0
    desk.objects.advance(WEEK.total_seconds() + 60)
    desk.objects.put(desk.key_of("catalogue/20/blocks/b"), b"x")
    assert drop_old_tables(desk.stack, now=desk.objects.now) == 1
    assert keys_below(desk) == [
        "2-b/blocks/a",
        "2-b/blocks/b",
        "20/blocks/a",
        "20/blocks/b",
        "current.json",
    ]
    assert len(before - {*desk.objects.peek_keys()}) == 1


def test_what_lies_beside_the_folders_stays(desk):
    """Which tables are asked, and how far events came; neither is a folder of tables."""
    assert move_to(desk.stack, "2-b", before=read_generation(desk.stack), made={})
    for key in ("2-b/blocks/a", "openlineage.json", "1/blocks/a"):
        desk.objects.put(desk.key_of(f"catalogue/{key}"), b"x")
    desk.objects.advance(WEEK.total_seconds() + 60)
    desk.objects.calls.clear()
    assert drop_old_tables(desk.stack, now=desk.objects.now) == 1
    assert keys_below(desk) == ["2-b/blocks/a", "current.json", "openlineage.json"]
    assert [name for name, _key in desk.objects.calls].count("list_objects") == 2
