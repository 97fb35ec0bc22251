"""A notebook is run by a real kernel: what it leaves, and what it refuses."""

import json

import pytest

from tiering_assets.notebook.executed import NotebookFailedError, execute, source_of_notebook
from tiering_assets.resources.errors import PrerequisiteError, SettingsError

KERNEL = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}


def code(source, *tags):
    return {
        "cell_type": "code",
        "execution_count": None,
        "id": f"cell-{abs(hash(source)) % 10_000}",
        "metadata": {"tags": [*tags]},
        "outputs": [],
        "source": source,
    }


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "small.ipynb"
    cells = [
        code("n = 2\nfail = False", "parameters"),
        code("assert not fail, 'it <fails>'\nn * 21"),
    ]
    metadata = {"kernelspec": KERNEL}
    path.write_text(
        json.dumps({"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5})
    )
    return path


def outputs(path):
    found = json.loads(path.read_text())["cells"]
    return [one for cell in found if cell["cell_type"] == "code" for one in cell["outputs"]]


def test_it_runs_with_its_parameters_and_leaves_a_page_that_loads_nothing(source, tmp_path):
    before = source.read_bytes()
    found = execute(source, tmp_path / "ran.ipynb", {"n": 4})
    assert [one["data"]["text/plain"] for one in outputs(found.notebook)] == [["84"]]
    page = found.page.read_text()
    assert "84" in page
    assert "<script" not in page
    assert "http" not in page
    assert source.read_bytes() == before
    with pytest.raises(SettingsError, match=r"ran.ipynb: expected the name of a new file"):
        execute(source, found.notebook, {"n": 5})


def test_one_that_fails_is_kept_with_its_error(source, tmp_path):
    target = tmp_path / "ran.ipynb"
    with pytest.raises(NotebookFailedError, match=r"small.ipynb: .*it <fails>.*see .*ran.ipynb"):
        execute(source, target, {"fail": True})
    assert "it <fails>" in json.dumps(json.loads(target.read_text()))
    assert not target.with_suffix(".html").exists()


def test_a_parameter_that_it_has_not_is_refused_before_it_runs(source, tmp_path):
    with pytest.raises(SettingsError, match=r"small.ipynb has no parameter m, o"):
        execute(source, tmp_path / "ran.ipynb", {"m": 1, "n": 1, "o": 1})
    assert not (tmp_path / "ran.ipynb").exists()


def test_a_notebook_that_is_not_there_is_named():
    with pytest.raises(PrerequisiteError, match=r"none.ipynb is not there"):
        source_of_notebook("none")
