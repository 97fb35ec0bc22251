"""What docs/catalogue-questions.md does in Spark: a JVM, tables in a folder, and no jar."""

import re
from typing import Any

import pytest

from tests.support.rooms import ROOT
from tests.support.sim_scene import Scene
from tiering_assets.batch.pipeline import offload_batch
from tiering_assets.catalogue.post import post
from tiering_assets.catalogue.upkeep.upkeep import keep_up
from tiering_assets.catalogue.view import Catalogue
from tiering_assets.resources.settings import SparkSettings
from tiering_assets.resources.spark_session import spark_session
from tiering_assets.resources.table_place import TablePlace

pytestmark = [
    pytest.mark.stack,
    pytest.mark.prove(
        instead="tests/unit/catalogue/test_questions.py::test_duckdb_is_given_the_blocks"
    ),
]
PAGE = (ROOT / "docs" / "catalogue-questions.md").read_text()
OPENED, *_others, SPARK, WORKERS = re.findall(
    r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL
)


@pytest.fixture
def catalogue(tmp_path):
    """Of one published ledger."""
    scene, catalogue = Scene(), Catalogue(TablePlace(root=str(tmp_path / "tables"), options={}))
    stack = scene.process()
    [outcome] = offload_batch(stack, [0])
    assert outcome.state == "published"
    stack.book.close_page()
    post(stack, catalogue)
    keep_up(stack, catalogue, all_rows=True, tell=lambda _line: None)
    return catalogue


def test_the_pages_lines_run(catalogue):
    names: dict[str, Any] = {}
    exec(OPENED, names)
    names |= {"ROOT": catalogue.place.root, "OPTIONS": {}}
    with spark_session(SparkSettings(master="local[2,2]")) as names["spark"]:
        exec(SPARK, names)
        assert [tuple(row) for row in names["states"].collect()] == [("published", 1)]
        exec(WORKERS, names)
        [row] = names["counted"].count().collect()
        assert row["count"] == 1
