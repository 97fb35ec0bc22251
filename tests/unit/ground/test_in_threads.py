"""What is asked side by side, and in whose thread once a person has asked the process to end."""

from threading import get_ident

from tiering_assets.ground.stack import _in_threads
from tiering_assets.resources import ending


def threads_of(count):
    return {*_in_threads(lambda _item: get_ident(), list(range(count)))}


def test_several_are_asked_in_threads_of_their_own():
    assert get_ident() not in threads_of(8)


def test_who_was_asked_to_end_gives_up_in_the_thread_that_was_asked(monkeypatch):
    """Other threads end at their next request, which is what giving up a claim takes."""
    monkeypatch.setattr(ending, "asked", lambda: True)
    assert threads_of(8) == {get_ident()}
