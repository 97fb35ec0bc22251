"""What a shell is answered when somebody presses Tab.

Owns: a Tab asks no server and no settings: commands and options from the command line itself,
topics and ids from what was listed lately (known_names.py).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from itertools import islice
from typing import Any, Final

from tiering_assets.cli.grammar.known_names import read_names

VARIABLE: Final = "_TIERKEEPER_COMPLETE"
PROGRAM: Final = "tierkeeper"
_SHOWN_MAX = 200  # more is no help to anybody, and shells ask first


def topics_like(incomplete: str) -> list[str]:
    """Known topics that begin so, with `persistent://` if it was typed."""
    scheme = "persistent://" if incomplete.startswith("persistent:") else ""
    begin = incomplete.removeprefix("persistent://") if scheme else incomplete
    found = (f"{scheme}{name}" for name in read_names().topics if name.startswith(begin))
    return [*islice(found, _SHOWN_MAX)]


def namespaces_like(incomplete: str) -> list[str]:
    """Namespaces of known topics that begin so."""
    found = dict.fromkeys(name.rpartition("/")[0] for name in read_names().topics)
    return [*islice((name for name in found if name.startswith(incomplete)), _SHOWN_MAX)]


def ledgers_like(incomplete: str) -> list[str]:
    """Known ledger ids that begin so, the newest first."""
    found = (str(one) for one in read_names().ledger_ids)
    return [*islice((one for one in found if one.startswith(incomplete)), _SHOWN_MAX)]


def answer_shell(build: Callable[[], Any]) -> bool:
    """Answer a Tab, if this process was started for one; otherwise build nothing, return False."""
    instruction = os.environ.get(VARIABLE)
    if not instruction:
        return False
    from typer.completion import completion_init, shell_complete  # type: ignore[attr-defined]

    completion_init()
    shell_complete(build(), {}, PROGRAM, VARIABLE, instruction)
    return True
