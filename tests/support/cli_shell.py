"""The `tierkeeper` command as a person or a script runs it: first as a process, then again in this
one.

A process of its own shows that the installed command starts, keeps its two outputs apart, ends and
has the right exit code. Once per command shows it, in each process that runs tests; starting costs
two seconds of processor time.
"""

from __future__ import annotations

import io
import json
import logging
import os
import subprocess
import sysconfig
from collections.abc import Container, Iterator, Mapping
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout
from itertools import takewhile
from pathlib import Path
from typing import Any, ClassVar
from unittest.mock import patch

from tiering_assets.cli.main import run
from tiering_assets.resources.devstack.stack import DevStack

COMMAND = [Path(sysconfig.get_path("scripts")) / "tierkeeper"]


class Shell:
    """Runs `tierkeeper` with this stack's settings; `document` is what --json printed.

    The first call of each command, whichever shell makes it, is a process. The others are made in
    this one, with the environment and the folder that the process would have. `alone` asks for a
    process at any time: a Spark session of this one would answer with its own environment.
    `environment` adds to the stack's. Without `processes` every call is made here, unless `alone`.
    """

    _started: ClassVar[set[tuple[str, ...]]] = set()

    def __init__(
        self, stack: DevStack, directory: Path, *, processes: bool = True, **environment: str
    ) -> None:
        self._environment = stack.environment() | environment
        self._directory, self._processes = directory, processes

    def __call__(
        self,
        *words: object,
        code: int | Container[int] = 0,
        timeout_s: float = 180.0,
        alone: bool = False,
        **changes: str,
    ) -> subprocess.CompletedProcess[str]:
        said = [str(word) for word in words]
        kept = {k: v for k, v in os.environ.items() if not k.startswith("TIERKEEPER_")}
        environment = kept | self._environment | changes
        command = tuple(takewhile(str.isalpha, said[:2]))
        if alone or (self._processes and command not in self._started):
            self._started.add(command)
            done = self._process(said, environment, timeout_s)
        else:
            done = self._here(said, environment)
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
        alone: bool = False,
        **changes: str,
    ) -> dict[str, Any]:
        done = self(*words, "--json", code=code, timeout_s=timeout_s, alone=alone, **changes)
        found: dict[str, Any] = json.loads(done.stdout)
        assert found["schema"] == f"tierkeeper/{schema or '-'.join(words[:2])}/1"
        return found

    def _process(
        self, words: list[str], environment: Mapping[str, str], timeout_s: float
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*COMMAND, *words],
            env=environment,
            cwd=self._directory,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )

    def _here(
        self, words: list[str], environment: Mapping[str, str]
    ) -> subprocess.CompletedProcess[str]:
        out, err = io.StringIO(), io.StringIO()
        with (
            patch.dict(os.environ, environment, clear=True),
            chdir(self._directory),
            redirect_stdout(out),
            redirect_stderr(err),
            _logging_put_back(),
        ):
            code = run(words)
        return subprocess.CompletedProcess(words, code, out.getvalue(), err.getvalue())


@contextmanager
def _logging_put_back() -> Iterator[None]:
    """A command sends our logs to its standard error; later tests read them where pytest does."""
    logger = logging.getLogger("tiering_assets")
    handlers, level, propagate = logger.handlers[:], logger.level, logger.propagate
    try:
        yield
    finally:
        logger.handlers[:] = handlers
        logger.setLevel(level)
        logger.propagate = propagate
