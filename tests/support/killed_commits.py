"""A command of tierkeeper that is killed at a commit of a table: right before it, or behind it.

    python -m tests.support.killed_commits 3 before catalogue post

With 0 it is not killed; its last line on standard error is how many commits it made.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

from tiering_assets.cli.main import run
from tiering_assets.resources.tables import Table


def main() -> int:
    nth, when, *words = sys.argv[1:]
    really, made = Table.commit, [0]

    def commit(table: Table, *given: Any, **how: Any) -> bool:
        made[0] += 1
        dies = made[0] == int(nth)
        if dies and when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        done = really(table, *given, **how)
        if dies:
            os.kill(os.getpid(), signal.SIGKILL)
        return done

    Table.commit = commit  # type: ignore[method-assign,assignment]
    code = run(words)
    sys.stderr.write(f"{made[0]}\n")
    return code


if __name__ == "__main__":
    raise SystemExit(main())
