"""What Spark says when a job fails before our first line, in words that PySpark itself makes."""

from __future__ import annotations

import pytest
from pyspark.errors import PySparkImportError, PySparkRuntimeError

from tiering_assets.resources.errors import PrerequisiteError
from tiering_assets.spark.lost_jobs import explain
from tiering_assets.spark.runner import attempt_tag

OTHER_PYTHON = PySparkRuntimeError(
    errorClass="PYTHON_VERSION_MISMATCH",
    messageParameters={"worker_version": "3.10", "driver_version": "3.11"},
)
NO_ARROW = PySparkImportError(
    errorClass="PACKAGE_NOT_INSTALLED",
    messageParameters={"package_name": "PyArrow", "minimum_version": "18.0.0"},
)


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (str(OTHER_PYTHON), ("Python 3.10, the driver 3.11", "spark.python")),
        (str(NO_ARROW), ("lack the Python package PyArrow", "image")),
        ("ModuleNotFoundError: No module named 'numpy'", ("package numpy",)),
        (
            'java.io.IOException: Cannot run program "python9": error=2, No such file or directory',
            ("no program python9", "spark.python"),
        ),
    ],
)
def test_what_a_worker_lacks_is_named_with_the_next_step(said, words):
    error = explain(f"Job aborted due to stage failure:\n{said}\n\tat java.lang.Thread.run()")
    assert isinstance(error, PrerequisiteError)
    for word in words:
        assert word in str(error)


def test_anything_else_is_a_job_that_was_given_up_in_spark_s_own_words_cut_short():
    error = explain("ExecutorLostFailure\n" + "x" * 9000)
    assert not isinstance(error, PrerequisiteError)
    assert str(error).startswith("Spark gave the job up: ExecutorLostFailure x")
    assert len(str(error)) < 600


def test_tags_hold_nothing_that_spark_refuses():
    assert attempt_tag("6ba7b810-9dad") == "tierkeeper-attempt-6ba7b810-9dad"
    assert attempt_tag("a,b c/ü") == "tierkeeper-attempt-a_b_c__"
    assert attempt_tag("") == "tierkeeper-attempt-"
