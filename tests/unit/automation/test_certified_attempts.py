"""Which attempts have a certificate is asked ledger by ledger where that is cheaper."""

import pytest

from tests.support.sim_scene import TOPIC, Scene
from tiering_assets.automation import tick_memory
from tiering_assets.automation.tick_memory import CertifiedAttempts


@pytest.fixture
def scene():
    scene = Scene()
    scene.fill(TOPIC)
    for ledger_id in (0, 1):
        scene.certify(ledger_id)
    return scene


@pytest.mark.parametrize(
    ("nominated", "prefixes"),
    [(True, ["certificates/0/", "certificates/1/"]), (False, ["certificates/"])],
)
def test_ledgers_that_were_nominated_are_few_of_all(scene, monkeypatch, nominated, prefixes):
    monkeypatch.setattr(tick_memory, "SINGLES_MAX", 1)
    asked = []
    really = type(scene.stack.book).pairs

    def pairs(book, prefix):
        asked.append(prefix)
        return really(book, prefix)

    monkeypatch.setattr(type(scene.stack.book), "pairs", pairs)
    attempts = CertifiedAttempts(scene.stack, nominated=nominated)
    attempts.ask([0, 1])
    assert [len(attempts.attempts(ledger_id)) for ledger_id in (0, 1)] == [1, 1]
    assert sorted(asked) == prefixes


def test_beyond_so_many_all_are_listed_at_once(scene, monkeypatch):
    monkeypatch.setattr(tick_memory, "NOMINATED_MAX", 1)
    attempts = CertifiedAttempts(scene.stack, nominated=True)
    attempts.ask([0, 1])
    assert attempts._all
    assert len(attempts.attempts(1)) == 1
