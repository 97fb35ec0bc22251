"""Notebooks as they may be committed: what stands in one, and what makes it unfit.

    python -m tests.support.notebooks       takes out what runs left in notebooks/

Owns: a committed notebook is a source: no output, no count, no state of a widget, nothing that
names the machine it was tried on, and no more metadata than a kernel's name.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.support.rooms import ROOT

FOLDER = ROOT / "notebooks"
CELLS_MAX, LINES_MAX = 30, 18
_KERNEL = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
_METADATA = {"kernelspec": _KERNEL, "language_info": {"name": "python"}}
_OF_A_MACHINE = re.compile(r"/(?:home|Users|root|tmp|work|mnt|var/folders)/|[A-Z]:\\\\|file://")


def committed() -> dict[str, str]:
    """The text of each by its name."""
    return {path.stem: path.read_text(encoding="utf-8") for path in sorted(FOLDER.glob("*.ipynb"))}


def source_of(cell: Mapping[str, Any]) -> str:
    return "".join(cell["source"])


def problems(text: str) -> Iterator[str]:
    """Why a notebook may not be committed; nothing where it may."""
    document = json.loads(text)
    if document["metadata"] != _METADATA:
        yield f"metadata: expected a kernel's name alone, found {document['metadata']}"
    if (document["nbformat"], document["nbformat_minor"]) != (4, 5):
        yield "its format is not 4.5, whose cells have ids"
    for folder in {str(ROOT), str(ROOT.parent), str(Path.home())} - {"/"}:
        if f"{folder}/" in text:
            yield f"names {folder}"
    yield from (f"names a place of a machine: {one}" for one in _OF_A_MACHINE.findall(text))
    ids = [cell.get("id") for cell in document["cells"]]
    if len({*ids}) != len(ids) or None in ids:
        yield "a cell has no id of its own"
    for cell in document["cells"]:
        yield from (f"cell {cell.get('id')}: {said}" for said in _of_cell(cell))


def cleaned(text: str) -> str:
    """Without anything that a run or an editor left; a cell's id, text and tag stay."""
    document = json.loads(text)
    document["metadata"] = _METADATA
    for cell in document["cells"]:
        tags = [one for one in cell["metadata"].get("tags", ()) if one == "parameters"]
        cell["metadata"] = {"tags": tags} if tags else {}
        if cell["cell_type"] == "code":
            cell.update(outputs=[], execution_count=None)
        cell.pop("attachments", None)
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def _of_cell(cell: Mapping[str, Any]) -> Iterator[str]:
    wanted = {"cell_type", "id", "metadata", "source"}
    if cell["cell_type"] == "code":
        wanted |= {"execution_count", "outputs"}
        if cell.get("outputs"):
            yield "has an output"
        if cell.get("execution_count") is not None:
            yield "has an execution count"
    if more := cell.keys() - wanted:
        yield f"has {', '.join(sorted(more))}"
    if cell["metadata"] not in ({}, {"tags": ["parameters"]}):
        yield f"has metadata {cell['metadata']}"


if __name__ == "__main__":
    for name, text in committed().items():
        (FOLDER / f"{name}.ipynb").write_text(cleaned(text), encoding="utf-8")
