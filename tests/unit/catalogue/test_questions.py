"""Each question of docs/catalogue-questions.md is one that the tables answer, from Python, too."""

import re
import shlex
import sys
from types import SimpleNamespace

import pytest

from tests.support.documented import documented
from tests.support.rooms import ROOT
from tests.support.sim_scene import TOPIC
from tiering_assets.catalogue.post import post
from tiering_assets.catalogue.scan.scan import scan
from tiering_assets.catalogue.upkeep.upkeep import keep_up
from tiering_assets.catalogue.view import answer
from tiering_assets.look.brakes.holds import hold
from tiering_assets.look.brakes.scopes import ledger_scope
from tiering_assets.scrub.give_up_copy import give_up_copy

PAGE = ROOT / "docs" / "catalogue-questions.md"
OF_TABLES = (ROOT / "docs" / "catalogue.md").read_text()
COLUMNS = set(
    re.findall(r"`([a-z0-9_]+)`", "".join(re.findall(r"^\| `.*", OF_TABLES, re.MULTILINE)))
)
QUESTIONS = [shlex.split(line)[3] for line in documented("tierkeeper catalogue sql", [PAGE])]
OPENED, PANDAS, DUCKDB, SPARK, WORKERS = re.findall(
    r"^```python\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL
)
HERE = (  # what the page calls them, and what they are in the scene
    ("12345", "0"),
    ("0f1e2d3c4b5a", "run"),
    ("public/default/persistent/orders", TOPIC),
)


@pytest.fixture
def posted(scene, catalogue):
    """One of five ledgers is released; others are certified, held, given up, on bookies alone."""
    certified, held, bad, _alone = [scene.fill(TOPIC) for _ in range(4)]
    scene.publish()
    scene.past_the_lag()
    scene.release()
    scene.publish(bad)
    give_up_copy(scene.process(), bad, reason="a test", author="kim")
    scene.certify(certified)
    hold(scene.process(), ledger_scope(held), reason="an audit", author="kim")
    scene.end()
    post(scene.stack, catalogue)
    scan(scene.stack, catalogue)
    return catalogue


def test_there_are_ten():
    assert len({*QUESTIONS}) == 10


@pytest.mark.parametrize("question", QUESTIONS)
def test_it_is_answered(posted, question):
    for theirs, ours in HERE:
        question = question.replace(theirs, ours)
    found = answer(posted.opened(), question)
    assert found.num_columns >= 2
    by_hour = "publish_max" in question  # what is simulated is no message of Pulsar's
    assert (found.num_rows == 0) is by_hour


def test_every_column_is_on_the_page_of_the_tables(posted):
    tables = posted.opened()
    for name in tables:
        columns = set(answer(tables, f"select * from {name}").column_names)
        assert columns <= COLUMNS


# ----- from Python


def names_of(catalogue):
    """What the page's first lines define, where the tables are here."""
    names: dict[str, object] = {}
    exec(OPENED, names)
    names |= {"ROOT": catalogue.place.root, "OPTIONS": {}}
    return names


def states(catalogue):
    found = answer(
        catalogue.opened(), "select state, count(bytes) as n from ledgers group by state"
    )
    return {row["state"]: row["n"] for row in found.to_pylist()}


def test_pandas_finds_the_newest_rows_settled_or_not(posted, scene):
    scene.publish(1)
    scene.end()
    keep_up(scene.stack, posted, all_rows=True, tell=lambda _line: None)
    scan(scene.stack, posted)
    names = names_of(posted)
    exec(PANDAS, names)
    assert dict(names["states"]["count"]) == states(posted)


def test_duckdb_is_given_the_blocks(posted, monkeypatch):
    asked: list[str] = []
    duckdb: object = SimpleNamespace(
        sql=lambda sql: SimpleNamespace(show=lambda: asked.append(sql))
    )
    monkeypatch.setitem(sys.modules, "duckdb", duckdb)
    names = names_of(posted)
    exec(DUCKDB, names)
    [sql] = asked
    found = answer(posted.opened(), sql).to_pylist()
    assert [row["topic"] for row in found] == [TOPIC]
    assert names["blocks"].count_rows() == answer(posted.opened(), "select * from blocks").num_rows
