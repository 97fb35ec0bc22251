"""stack.json: what is needed to find, use and stop a stack that this process did not start.

Owns: the file is mode 0600 (it holds the S3 keys) and is replaced whole. It never says that a
server runs, only which process to look for.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tiering_assets.resources.devstack.options import StackOptions
from tiering_assets.resources.devstack.processes import ProcessRef
from tiering_assets.resources.devstack.servers import Credentials, Plan
from tiering_assets.resources.errors import FormatError, PrerequisiteError

STATE_FILE = "stack.json"
_SCHEMA = "tierkeeper.devstack/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class StackState:
    stack_id: str
    plan: Plan
    processes: dict[str, ProcessRef]


def write_private(path: Path, text: str) -> None:
    """Replace `path` with `text`, readable by its owner only, at no moment half written."""
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_name(path.name + ".new")
    scratch.unlink(missing_ok=True)
    descriptor = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
    scratch.replace(path)


def write_state(state: StackState) -> None:
    """Write stack.json in the stack's directory."""
    plan = state.plan
    document = {
        "schema": _SCHEMA,
        "stack_id": state.stack_id,
        "distribution": str(plan.distribution),
        "options": asdict(plan.options),
        "ports": dict(plan.ports),
        "credentials": asdict(plan.credentials),
        "processes": {name: asdict(ref) for name, ref in state.processes.items()},
    }
    write_private(plan.directory / STATE_FILE, json.dumps(document, indent=2) + "\n")


def read_state(directory: Path) -> StackState:
    """Read stack.json. PrerequisiteError if there is none, FormatError if it is not ours."""
    path = directory / STATE_FILE
    try:
        text = path.read_text()
    except FileNotFoundError:
        raise PrerequisiteError(
            f"no stack in {directory}: start one with `tierkeeper stack up --dir {directory}`"
        ) from None
    try:
        return _decode(json.loads(text), directory)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise FormatError(f"{path} is not a stack's state: {error}") from error


def _decode(document: Any, directory: Path) -> StackState:
    if document["schema"] != _SCHEMA:
        raise FormatError(f"{directory / STATE_FILE}: schema {document['schema']!r}, not {_SCHEMA}")
    plan = Plan(
        directory=directory,
        distribution=Path(document["distribution"]),
        options=StackOptions(**document["options"]),
        ports=document["ports"],
        credentials=Credentials(**document["credentials"]),
    )
    processes = {name: ProcessRef(**ref) for name, ref in document["processes"].items()}
    return StackState(stack_id=document["stack_id"], plan=plan, processes=processes)
