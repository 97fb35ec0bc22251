"""pytest plugin: `-p tests.support.last_use` ends what serves a whole session behind its last test.

A stack of servers that nobody asks for takes a twelfth of a processor. Tests without servers come
last, so each process would keep its stacks for a third of its time. With `--dist loadfile` and
`--no-loadscope-reorder` a process gets its pieces of work in the order in which they were found.
Behind the last piece that asks for something, none of its tests does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from tests.support.together import piece_of

_places: dict[str, int] = {}  # by file, which piece of work it is of
_last: dict[str, int] = {}  # by fixture, the last piece of work with a test that may ask for it
_set_up: dict[pytest.FixtureDef[Any], Any] = {}  # fixtures of the session, each with its request


def places_of(files: Iterable[str]) -> dict[str, int]:
    """By file, the place of its piece of work among all."""
    pieces: dict[str, int] = {}
    return {file: pieces.setdefault(piece_of(file), len(pieces)) for file in files}


def pytest_collection_finish(session: pytest.Session) -> None:
    _places.update(places_of(map(_file, session.items)))
    for item in session.items:
        for name in getattr(item, "fixturenames", ()):
            _last[name] = max(_last.get(name, 0), _places[_file(item)])


def _file(item: pytest.Item) -> str:
    return item.nodeid.partition("::")[0]


def pytest_fixture_setup(fixturedef: pytest.FixtureDef[Any], request: Any) -> None:
    if fixturedef.scope == "session":
        _set_up[fixturedef] = request


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(nextitem: pytest.Item | None) -> Iterator[None]:
    try:
        return (yield)
    finally:
        if nextitem is not None:
            _end_before(_places[_file(nextitem)])


def _end_before(place: int) -> None:
    """Of those set up for the session, the ones that no piece from this one on asks for.

    One that ends ends those first that use it.
    """
    for one, request in [*_set_up.items()]:
        if _last.get(one.argname, place) < place:
            del _set_up[one]
            one.finish(request)
