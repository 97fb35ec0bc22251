"""Each question of docs/catalogue.md is one that the tables answer."""

import re

import pytest

from tests.support.rooms import ROOT
from tiering_assets.catalogue.post import post
from tiering_assets.catalogue.view import answer

PAGE = (ROOT / "docs" / "catalogue.md").read_text()
QUESTIONS = re.findall(r"^```sql\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
COLUMNS = set(re.findall(r"`([a-z0-9_]+)`", "".join(re.findall(r"^\| `.*", PAGE, re.MULTILINE))))


@pytest.fixture
def tables(scene, catalogue):
    scene.publish()
    scene.end()
    post(scene.stack, catalogue)
    return catalogue.opened()


@pytest.mark.parametrize("question", QUESTIONS)
def test_it_is_answered(tables, question):
    assert answer(tables, question).num_columns >= 2


def test_the_page_has_questions_and_every_column(tables):
    assert len(QUESTIONS) == 6
    for name in tables:
        columns = set(answer(tables, f"select * from {name}").column_names)
        assert columns <= COLUMNS
