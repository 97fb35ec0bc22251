"""What a person waits for at a count: nobody imports pandas for it, which takes half a second."""

import subprocess
import sys

ASKED = """
import sys
import tempfile
import pyarrow
from tiering_assets.resources.arrow_columns import texts, whole
from tests.unit.fleet.test_waiting import READ, Topics
from tiering_assets.fleet.backlog import take_backlog
topics = Topics(1, tempfile.mkdtemp())
topics.fill()
figures = take_backlog(topics.stack, fresh=READ).figures
assert len(figures.topics) == len(dict(figures.topics)) > 3
figures.topics.largest(3)
[*figures.topics.lagging()]
table = pyarrow.table({"topic": texts(["a"])})
assert len(whole(table.slice(1)["topic"])) == len(whole(pyarrow.table({"a": texts([])})["a"])) == 0
none = pyarrow.Table.from_batches([], table.schema)["topic"]
assert none.num_chunks == 0
assert whole(none).type == pyarrow.string()
print("pandas" in sys.modules)
"""


def test_a_count_imports_no_pandas():
    """One by rows: stack/test_catalogue.py."""
    done = subprocess.run(
        [sys.executable, "-c", ASKED], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.split()[-1] == "False"
