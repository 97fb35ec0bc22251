"""Who takes a brake away is written down before it goes, and whatever its body is."""

from hashlib import sha256

import pytest

from tests.support.sim_scene import Scene
from tiering_assets.look.brakes.lifting import Taken, take_away
from tiering_assets.resources.errors import ObjectNotFoundError

KEY = "holds/7.json"


@pytest.fixture
def stack():
    found = Scene().stack
    found.objects.put(found.book.prefix + KEY, b"{not json")
    return found


def is_there(stack):
    return stack.objects.get(stack.book.prefix + KEY) is not None


def test_the_note_comes_first_and_names_what_lay_there(stack):
    noted: list[tuple[str, bool]] = []
    taken = take_away(stack, KEY, lambda digest: noted.append((digest, is_there(stack))))
    assert taken is Taken.AWAY
    assert noted == [(sha256(b"{not json").hexdigest(), True)]
    assert not is_there(stack)


def test_what_cannot_be_noted_stays(stack):
    def refuse(_digest):
        raise RuntimeError("no room")

    with pytest.raises(RuntimeError, match="no room"):
        take_away(stack, KEY, refuse)
    assert is_there(stack)


def test_where_nothing_lies_nothing_is_noted(stack):
    noted: list[str] = []
    assert take_away(stack, "holds/8.json", noted.append) is Taken.NOT_THERE
    assert noted == []


def test_where_a_store_tells_that_nothing_was_left_to_delete_somebody_else_was_first(
    stack, monkeypatch
):
    def gone(_book, key):
        raise ObjectNotFoundError(f"{key}: not there (NoSuchKey)")

    monkeypatch.setattr(type(stack.book), "delete", gone)
    noted: list[str] = []
    assert take_away(stack, KEY, noted.append) is Taken.BY_ANOTHER
    assert len(noted) == 1
