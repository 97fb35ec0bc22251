"""The installed `tierkeeper` command as a process of its own, as a person or a script runs it."""

from __future__ import annotations

import json
import os
import subprocess
import sysconfig
from collections.abc import Container
from pathlib import Path
from typing import Any

from resources.devstack.stack import DevStack

COMMAND = [Path(sysconfig.get_path("scripts")) / "tierkeeper"]


class Shell:
    """Runs `tierkeeper` with this stack's settings; `document` is what --json printed."""

    def __init__(self, stack: DevStack, directory: Path) -> None:
        self._environment = stack.environment()
        self._directory = directory

    def __call__(
        self,
        *words: object,
        code: int | Container[int] = 0,
        timeout_s: float = 180.0,
        **changes: str,
    ) -> subprocess.CompletedProcess[str]:
        kept = {k: v for k, v in os.environ.items() if not k.startswith("TIERKEEPER_")}
        done = subprocess.run(
            [*COMMAND, *map(str, words)],
            env=kept | self._environment | changes,
            cwd=self._directory,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )
        allowed = (code,) if isinstance(code, int) else code
        assert done.returncode in allowed, (
            f"{words}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        )
        assert "Traceback" not in done.stderr
        for name in ("TIERKEEPER_STORE_SECRET_KEY", "TIERKEEPER_STORE_ACCESS_KEY"):
            assert self._environment[name] not in done.stdout + done.stderr
        return done

    def document(
        self,
        *words: Any,
        code: int | Container[int] = 0,
        schema: str | None = None,
        timeout_s: float = 180.0,
        **changes: str,
    ) -> dict[str, Any]:
        done = self(*words, "--json", code=code, timeout_s=timeout_s, **changes)
        found: dict[str, Any] = json.loads(done.stdout)
        assert found["schema"] == f"tierkeeper/{schema or '-'.join(words[:2])}/1"
        return found
