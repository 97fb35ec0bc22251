"""What runs first in a worker, as Spark would run it: unpickled in a process that has none of our
code.
"""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark import cloudpickle

from tests.support.sim_ledger import SimBookies, SimLedger
from tiering_assets.spark import bootstrap
from tiering_assets.spark.build import build_hash, shipped_zip
from tiering_assets.spark.schemas import block_row, block_row_schema, refusal_of
from tiering_assets.tasks.descriptors import TaskKind

# -S: no .pth file is read, so an editable installation is not there.
WORKER = """
import sys
sys.path[:0] = {paths!r}
import pickle
import pyarrow as pa
function = pickle.loads(open({pickled!r}, "rb").read())
batches = [pa.RecordBatch.from_pydict({{"descriptor": ["-"], "refusal": [open({row!r}).read()]}})]
for batch in function(iter(batches)):
    sys.stdout.write(repr(batch.to_pylist()))
"""


@pytest.fixture
def task():
    from contextlib import ExitStack

    with ExitStack() as stack:
        yield SimLedger.store(SimBookies(stack), 5, [b"x"] * 3, block_bytes=4096).task()


def elsewhere(tmp_path, function, task, *paths):
    """The rows that a process with only these paths and packages gives."""
    pickled, row = tmp_path / "function", tmp_path / "row"
    pickled.write_bytes(cloudpickle.dumps(function))
    row.write_text(refusal_of(task))
    everywhere = [*map(str, paths), sysconfig.get_path("purelib")]
    program = WORKER.format(paths=everywhere, pickled=str(pickled), row=str(row))
    said = subprocess.run(
        [sys.executable, "-S", "-c", program],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
    )
    assert said.returncode == 0, said.stderr
    return [block_row(columns) for columns in eval(said.stdout, {})]


def without_code(**expected):
    """A function for another build or Python than this one's, if told so."""
    function = bootstrap.checked("json:loads", {})
    assert isinstance(function, partial)
    function.keywords["expected"].update(expected)
    return function


def test_a_worker_without_our_code_says_so_in_a_row(tmp_path, task):
    [row] = elsewhere(tmp_path, without_code(), task)
    assert (row.ledger_id, row.attempt, row.kind) == (5, "attempt-5", TaskKind.COPY)
    assert (row.error_class, row.retryable) == ("PrerequisiteError", False)
    assert f"has no code of tierkeeper, build {build_hash()} is expected" in row.error
    assert "spark.code = ship" in row.error


def test_another_build_is_named_with_both_hashes(tmp_path, task):
    [row] = elsewhere(tmp_path, without_code(build="0123456789abcdef"), task, shipped_zip())
    assert f"has build {build_hash()} of tierkeeper, the driver 0123456789abcdef" in row.error


def test_another_python_is_named_with_both_versions_before_anything_is_loaded(tmp_path, task):
    [row] = elsewhere(tmp_path, without_code(python="2.7", build="-"), task)
    assert f"has Python {sys.version_info[0]}.{sys.version_info[1]}" in row.error
    assert "the driver 2.7" in row.error


def test_a_package_that_the_image_lacks_is_named(tmp_path, task):
    function = without_code()
    function.keywords["entry"] = "package_of_nobody:run"
    [row] = elsewhere(tmp_path, function, task, shipped_zip())
    assert "No module named 'package_of_nobody'" in row.error
    assert "spark.archive" in row.error


def test_refused_rows_have_the_columns_of_all_rows(task):
    batches = iter([pa.RecordBatch.from_pydict({"refusal": [refusal_of(task)]})])
    [batch] = without_code(python="2.7")(batches)
    assert batch.schema.names == block_row_schema().names
    assert [str(kind) for kind in batch.schema.types] == [
        {"string": "string", "long": "int64", "double": "double", "boolean": "bool"}[x]
        for x in (field.dataType.typeName() for field in block_row_schema().fields)
    ]


def test_the_module_imports_nothing_of_ours_at_its_top():
    text = Path(bootstrap.__file__).read_text()
    top = [line for line in text.splitlines() if line.startswith(("from ", "import "))]
    assert not [line for line in top if "tiering_assets" in line or "resources" in line]
