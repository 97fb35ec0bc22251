"""An answer of before is given again as long as its tables are as they were."""

from functools import partial

import pyarrow as pa
import pytest

from tests.unit.catalogue.test_nominate import fill
from tiering_assets.catalogue import view
from tiering_assets.catalogue.columns import TABLES
from tiering_assets.catalogue.nominate import closing_times
from tiering_assets.resources import kept_answers
from tiering_assets.resources.kept_answers import KeptAnswers
from tiering_assets.resources.tables import ask

ROW = {"topic": "t/ns/persistent/a", "namespace": "t/ns", "listed_as": "open"}
SQL = "select ledger_id from ledgers"


@pytest.fixture
def asked(monkeypatch):
    """What the engine was asked."""
    questions = []
    really = ask

    def counting(sql, tables, **how):
        questions.append(sql)
        return really(sql, tables, **how)

    monkeypatch.setattr(view, "ask", counting)
    return questions


def test_a_question_is_asked_again_when_anybody_has_written(catalogue, asked):
    fill(catalogue, "ledger_changes", {**ROW, "ledger_id": 0})
    found = [[*closing_times(catalogue.opened())] for _ in range(3)]
    assert len(asked) == 1
    assert found == [[{**found[0][0], "topic": ROW["topic"], "has_open": True}]] * 3
    tables = fill(
        catalogue, "ledger_changes", {**ROW, "ledger_id": 1, "topic": "t/ns/persistent/b"}
    )
    assert [row["topic"][-1] for row in closing_times(tables)] == ["a", "b"]
    assert len(asked) == 2


def test_a_table_that_its_owner_wrote_to_is_asked_anew(catalogue):
    kept, own = KeptAnswers(), catalogue.opened(make=True)

    def ids():
        found = kept.answer(SQL, own.registered, lambda: view.answer(own, SQL))
        return found["ledger_id"].to_pylist()

    assert ids() == []
    table = own["ledger_changes"]
    row = {**ROW, "ledger_id": 7, "turn": table.turn + 1}
    assert table.append(pa.Table.from_pylist([row], schema=TABLES[table.name]), told={})
    assert ids() == [7]


def test_what_is_too_large_or_too_much_is_not_kept(catalogue, asked, monkeypatch):
    tables, kept = fill(catalogue, "ledger_changes", {**ROW, "ledger_id": 0}), KeptAnswers()
    questions = [f"{SQL} where ledger_id >= {n}" for n in range(5)]

    def ask_all():
        for sql in questions:
            kept.answer(sql, tables.registered, partial(view.answer, tables, sql))

    ask_all()
    kept.answer(questions[-1], tables.registered, asked.clear)
    assert len(asked) == 5
    ask_all()
    assert len(asked) == 10
    monkeypatch.setattr(kept_answers, "_BYTES_MAX", 0)
    for _ in range(2):
        kept.answer(SQL, tables.registered, lambda: view.answer(tables, SQL))
    assert len(asked) == 12
