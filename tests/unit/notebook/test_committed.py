"""What is committed in notebooks/: sources alone, thin, and in plain English."""

import ast
import copy
import json

import pytest

from tests.support.notebooks import CELLS_MAX, LINES_MAX, cleaned, committed, problems, source_of
from tests.support.rooms import ROOT
from tests.support.sentences import pages
from tests.support.sentences.known_words import is_known
from tests.support.sentences.rules import problems as refused
from tests.support.sentences.text import sentences_of
from tiering_assets.notebook.executed import FOLDER, source_of_notebook

NAMES = ["audit_a_topic", "follow_one_ledger", "query_cold_messages", "where_the_bytes_went"]
TEXTS = committed()
each = pytest.mark.parametrize("name", NAMES)


def cells(name, kind):
    return [one for one in json.loads(TEXTS[name])["cells"] if one["cell_type"] == kind]


def test_they_are_these():
    assert [*TEXTS] == NAMES
    assert [source_of_notebook(name) for name in NAMES] == [FOLDER / f"{n}.ipynb" for n in NAMES]


@each
def test_nothing_of_a_run_is_committed(name):
    assert [*problems(TEXTS[name])] == []
    assert TEXTS[name].endswith("}\n")


@each
def test_each_begins_with_what_it_answers_then_its_parameters(name):
    first, second, *rest = json.loads(TEXTS[name])["cells"]
    assert source_of(first).startswith("# ")
    assert "?" in source_of(first)
    tagged = [one["id"] for one in (second, *rest) if one["metadata"]]
    assert tagged == [second["id"]] == ["parameters"]
    assert {type(node) for node in ast.parse(source_of(second)).body} == {ast.Assign}


@each
def test_cells_are_few_and_short_and_define_nothing(name):
    found = cells(name, "code")
    assert len(json.loads(TEXTS[name])["cells"]) <= CELLS_MAX
    assert [one["id"] for one in found if len(one["source"]) > LINES_MAX] == []
    for one in found:
        for node in ast.walk(ast.parse(source_of(one))):
            assert not isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.Lambda, ast.Try))


@each
def test_what_they_say_is_plain(name):
    said = [
        (one.text, why)
        for cell in cells(name, "markdown")
        for _line, block in pages.blocks(source_of(cell))
        for one in sentences_of("docs", name, block)
        if (why := refused(one.text, is_known))
    ]
    assert said == []


def changed(how):
    document = copy.deepcopy(json.loads(TEXTS["follow_one_ledger"]))
    code = next(one for one in document["cells"] if one["cell_type"] == "code")
    how(document, code)
    return json.dumps(document)


@pytest.mark.parametrize(
    ("how", "said"),
    [
        (lambda _d, c: c["outputs"].append({"output_type": "stream"}), "has an output"),
        (lambda _d, c: c.update(execution_count=3), "has an execution count"),
        (lambda d, _c: d["metadata"].update(widgets={"state": {}}), "metadata: expected a kernel"),
        (lambda d, _c: d["metadata"]["language_info"].update(version="3.11.4"), "metadata"),
        (lambda _d, c: c["metadata"].update(execution={"iopub.status.busy": ""}), "has metadata"),
        (lambda _d, c: c.update(attachments={}), "has attachments"),
        (lambda _d, c: c["source"].append(f"\nopen('{ROOT}/a')"), f"names {ROOT}"),
        (lambda _d, c: c["source"].append("\nopen('/home/somebody/a')"), "place of a machine"),
        (lambda d, c: d["cells"].append(c), "a cell has no id of its own"),
    ],
    ids=["output", "count", "widgets", "version", "times", "attachment", "root", "home", "id"],
)
def test_what_a_run_leaves_is_refused(how, said):
    found = [*problems(changed(how))]
    assert any(said in one for one in found), found


@each
def test_what_a_run_left_is_taken_out(name):
    document = json.loads(TEXTS[name])
    document["metadata"].update(widgets={}, papermill={"duration": 4.2})
    for cell in document["cells"]:
        cell["metadata"]["execution"] = {}
        if cell["cell_type"] == "code":
            cell.update(outputs=[{"output_type": "stream", "text": "here"}], execution_count=7)
    assert cleaned(json.dumps(document)) == TEXTS[name]
