"""Run a notebook from its first cell to its last, and keep what came out: a notebook and a page.

Owns: nothing is written over, and a notebook that failed is kept with its error, for people to
read. papermill runs it, in a kernel of this Python; nbconvert makes the page, which loads nothing.
Both are of the extra `notebook`, and are imported when they are used.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any, Final

from tiering_assets.resources.errors import PrerequisiteError, SettingsError, TierkeeperError

FOLDER: Final = Path(__file__).parents[2] / "notebooks"
"""Where they lie in a checkout; what is built of it has none."""
KERNEL: Final = "python3"
CELL_MAX_S: Final = 3600
_PAGE: Final = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>{title}</title>
<style>
body {{ font-family: sans-serif; margin: 2em auto; max-width: 60em; }}
pre {{ background: #f6f6f6; overflow: auto; padding: 0.5em; }}
table {{ border-collapse: collapse; font-size: 85%; }}
td, th {{ border: 1px solid #ccc; padding: 0.2em 0.5em; text-align: left; }}
</style>
</head>
<body>
{body}
</body>
</html>
"""


class NotebookFailedError(TierkeeperError):
    """A cell of a notebook ended with an error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Executed:
    """Both files of one execution."""

    notebook: Path
    page: Path


def source_of_notebook(name: str) -> Path:
    """The notebook as it is committed. PrerequisiteError where there is no checkout."""
    path = FOLDER / f"{name}.ipynb"
    if not path.is_file():
        raise PrerequisiteError(f"{path} is not there: notebooks are part of a checkout")
    return path


def execute(
    source: Path, target: Path, parameters: Mapping[str, Any], *, cwd: Path | None = None
) -> Executed:
    """Run a notebook with these parameters; `target` is a new file that ends with .ipynb.

    Raises:
        PrerequisiteError: the extra `notebook` is not installed.
        SettingsError: a parameter that the notebook has not, or a file that is there.
        NotebookFailedError: a cell failed; the file tells which, and this names it.
    """
    page = target.with_suffix(".html")
    there = next((one for one in (target, page) if one.exists()), None)
    if there is not None or target.suffix != ".ipynb":
        raise SettingsError(f"{there or target}: expected the name of a new file, such as a.ipynb")
    try:
        import papermill
        from papermill.exceptions import PapermillException
    except ImportError as error:
        raise PrerequisiteError(
            f"notebooks need the extra `notebook` of tierkeeper: {error}"
        ) from None
    unknown = sorted({*parameters} - {*papermill.inspect_notebook(str(source))})
    if unknown:
        raise SettingsError(f"{source.name} has no parameter {', '.join(unknown)}")
    logging.getLogger("papermill").setLevel(logging.WARNING)
    try:
        papermill.execute_notebook(
            str(source),
            str(target),
            parameters=dict(parameters),
            kernel_name=KERNEL,
            progress_bar=False,
            execution_timeout=CELL_MAX_S,
            config=_in_private(),
            cwd=None if cwd is None else str(cwd),
        )
    except PapermillException as error:
        raise NotebookFailedError(f"{source.name}: {_last_line(error)}; see {target}") from error
    page.write_text(_page_of(target), encoding="utf-8")
    return Executed(notebook=target, page=page)


def _last_line(error: Exception) -> str:
    lines = [line for line in str(error).splitlines() if line.strip()]
    return lines[-1] if lines else type(error).__name__


def _in_private() -> Any:
    """A kernel listens at a socket file of its own, and at no port that others reach."""
    from traitlets.config import Config

    return Config({"KernelManager": {"transport": "ipc"}})


def _page_of(notebook: Path) -> str:
    """One file that loads nothing: the usual page of nbconvert asks others for scripts."""
    import nbconvert

    exporters: Any = nbconvert  # some of its functions have no types
    exporter = exporters.HTMLExporter(template_name="basic")
    body, _resources = exporter.from_filename(str(notebook))
    return _PAGE.format(title=escape(notebook.stem), body=body)
