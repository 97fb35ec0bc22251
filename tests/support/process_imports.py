"""What each kind of process imports, heavy packages only, as JSON: `{kind: [package, …]}`.

    python -m tests.support.process_imports

Owns: the kinds are found, not listed: every verb of the command line is one, and the processes of
Dagster and Spark are the rest. A kind imports what stands at the top of its modules and what the
functions that it runs import when they run; those are followed in the source through the rooms that
may import so. Each kind is looked at in a fork of a process that has imported no more than all
verbs do. What a library imports when it is first used (Great Expectations, pyspark's session) is in
no figure.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import importlib
import inspect
import json
import os
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import FunctionType
from typing import Any

import typer

import tiering_assets.cli.main as cli
from tiering_assets.cli.shared.session import Session

HEAVY = [
    "alembic",
    "altair",
    "boto3",
    "botocore",
    "cryptography",
    "dagster",
    "duckdb",
    "fastavro",
    "google.protobuf",
    "great_expectations",
    "grpc",
    "httpx2",
    "jupyter_client",
    "kazoo",
    "matplotlib",
    "nbconvert",
    "numpy",
    "openlineage",
    "pandas",
    "papermill",
    "prometheus_client",
    "psutil",
    "pyarrow",
    "pydantic",
    "pydantic_settings",
    "pyspark",
    "requests",
    "scipy",
    "sqlalchemy",
    "tomlkit",
]
FOLLOWED = ("tiering_assets.cli", "tiering_assets.doctor.doctor")
Imports = set[tuple[str, str]]  # (module, name taken from it or "")


def verbs() -> Iterator[tuple[str, Callable[..., Any]]]:
    """Every command of the command line with the function that was declared."""

    def inside(group: Any, words: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
        for name, found in group.commands.items():
            if hasattr(found, "commands"):
                yield from inside(found, (*words, name))
            else:
                declared = inspect.unwrap(found.callback)
                own = inspect.getclosurevars(declared).nonlocals["function"]
                yield " ".join((*words, name)), own

    yield from inside(typer.main.get_command(cli.app), ())


def imported_when_run(function: Any) -> Imports:
    """What `function`, and what it uses of the followed rooms, imports inside of functions."""
    found: Imports = set()
    todo, seen = [function], set()
    while todo:
        one = todo.pop()
        if one in seen or not str(getattr(one, "__module__", "")).startswith(FOLLOWED):
            continue
        seen.add(one)
        tree = ast.parse(textwrap.dedent(inspect.getsource(one)))
        found |= _imports_in(tree)
        known = vars(sys.modules[one.__module__])
        for node in ast.walk(tree):
            if isinstance(node, ast.Name):
                todo += _callables(known.get(node.id))
            elif isinstance(node, ast.Attribute):
                todo += _callables(vars(Session).get(node.attr))
            elif isinstance(node, ast.ImportFrom) and str(node.module).startswith(FOLLOWED):
                module = importlib.import_module(str(node.module))
                todo += [f for a in node.names for f in _callables(vars(module).get(a.name))]
    return found


def _callables(value: Any) -> list[Any]:
    if isinstance(value, property):
        return [value.fget]
    if value is Session:  # named by every command; followed by what is asked of it
        return []
    return [inspect.unwrap(value)] if isinstance(value, FunctionType | type) else []


def _imports_in(tree: ast.AST) -> Imports:
    found: Imports = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {(alias.name, "") for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {(str(node.module), alias.name) for alias in node.names}
    return found


def imported_inside(package: str) -> Imports:
    """What functions of the package's modules import when they run; all of them, used or not."""
    folder = importlib.import_module(package).__path__[0]
    found: Imports = set()
    for root, _folders, names in os.walk(folder):
        for name in sorted(names):
            if not name.endswith(".py"):
                continue
            with open(os.path.join(root, name), encoding="utf-8") as file:
                tree = ast.parse(file.read())
            for node in ast.walk(tree):
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                    found |= _imports_in(node)
    return found


def do_imports(wanted: Iterable[Sequence[str]]) -> None:
    for module, name in sorted(map(tuple, wanted)):
        importlib.import_module(module)
        if name:
            with contextlib.suppress(ModuleNotFoundError):  # then it is a name and no module
                importlib.import_module(f"{module}.{name}")


def definitions() -> None:
    importlib.import_module("tiering_assets.definitions")


def sensor_tick() -> None:
    definitions()
    do_imports(imported_inside("tiering_assets.defs.automation"))
    do_imports({("tiering_assets.ground.stack", "open_stack")})


def run() -> None:
    definitions()
    do_imports(imported_inside("tiering_assets.defs"))


def worker() -> None:
    for module in ("spark.bootstrap", "spark.worker_main", "tasks.copy", "tasks.read_back"):
        importlib.import_module(f"tiering_assets.{module}")


def in_a_child(act: Callable[[], Any]) -> Any:
    """What `act` returns, as JSON has it, in a fork: what it imports stays there."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            with open(writing, "w", encoding="utf-8") as answer:
                json.dump(act(), answer)
            code = 0
        finally:
            os._exit(code)
    os.close(writing)
    with open(reading, encoding="utf-8") as told:
        said = told.read()
    if os.waitpid(child, 0)[1] != 0:
        raise SystemExit(f"{act}: its imports failed")
    return json.loads(said)


def loaded(act: Callable[[], None]) -> list[str]:
    """Heavy packages of a fork that did `act`."""

    def look() -> list[str]:
        act()
        return [package for package in HEAVY if package in sys.modules]

    found: list[str] = in_a_child(look)
    return found


def main() -> None:
    said = {"help": loaded(lambda: None)}
    wanted = in_a_child(lambda: {name: [*imported_when_run(own)] for name, own in verbs()})
    for act in (definitions, sensor_tick, run, worker):
        said[act.__name__.replace("_", " ")] = loaded(act)
    opening = {
        name
        for name, found in wanted.items()
        if ["tiering_assets.ground.stack", "open_stack"] in found
    }
    for name in sorted(wanted.keys() - opening):
        said[name] = loaded(functools.partial(do_imports, wanted[name]))
    importlib.import_module(
        "tiering_assets.ground.stack"
    )  # most of what these import, once for all
    for name in sorted(opening):
        said[name] = loaded(functools.partial(do_imports, wanted[name]))
    sys.stdout.write(json.dumps(said) + "\n")


if __name__ == "__main__":
    main()
