import json
from contextlib import contextmanager

import pytest

from tests.unit.catalogue.conftest import Booked, catalogue, desk
from tiering_assets.catalogue.post import post
from tiering_assets.catalogue.view import Catalogue, least
from tiering_assets.cli.main import run
from tiering_assets.cli.shared.session import Session

__all__ = ["catalogue", "desk"]


class Told:
    """Lines of an answer; its document with `document`."""

    def __init__(self, lines, document):
        self._lines, self.document = lines, document

    def __call__(self, *words, code=0):
        return self._lines(*words, code=code)


@pytest.fixture
def scene():
    """One topic with a closed ledger 0; whatever a test does, no invariant may break."""
    scene = Booked()
    yield scene
    assert scene.world.monitor.found == []


@pytest.fixture
def chain(desk):
    """A ledger with every record up to its release."""
    return desk.chain(42)


@pytest.fixture
def posted(scene, catalogue):
    """Tables and how far they go, with everything that the scene's runs wrote."""

    def all_of_it():
        scene.end()
        while post(scene.stack, catalogue).pages:
            pass
        tables = catalogue.opened()
        return tables, least(catalogue, tables)

    return all_of_it


def _command(words):
    """Most are of `lineage`, which is not said then."""
    return [] if words[:2] == ("topic", "read") else ["lineage"]


@pytest.fixture
def told(scene, catalogue, posted, monkeypatch, capsys):
    """`lineage` and `topic read` as commands: what it prints, or its document with `document`."""

    @contextmanager
    def opened(_session, _runner=None):
        yield scene.stack

    monkeypatch.setattr(Session, "stack", opened)
    monkeypatch.setattr(Catalogue, "of", lambda _stack: catalogue)

    def lines(*words, code=0):
        capsys.readouterr()
        assert run([*_command(words), *map(str, words)]) == code
        found = capsys.readouterr()
        return (found.out + found.err).splitlines()

    def document(*words, code=0):
        capsys.readouterr()
        assert run([*_command(words), *map(str, words), "--json"]) == code
        found = json.loads(capsys.readouterr().out)
        name = "-".join([*_command(words), *words[: 1 if _command(words) else 2]])
        assert found["schema"] == f"tierkeeper/{name}/1"
        return found

    return Told(lines, document)
