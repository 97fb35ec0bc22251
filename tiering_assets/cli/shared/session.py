"""What every command starts from: the common options, the settings and one open stack.

Owns: settings are read once and only when a command needs them; progress and logs go to standard
error. Steps, boto3 and the rest are imported when a stack is opened, so that `--help` is quick.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from tiering_assets.cli.shared.usage import UsageError
from tiering_assets.cli.terminal.screen import error_screen
from tiering_assets.resources.plain_text import plain

if TYPE_CHECKING:
    from tiering_assets.cli.terminal.progress import ProgressBar
    from tiering_assets.ground.stack import Stack
    from tiering_assets.resources.settings import Settings
    from tiering_assets.resources.settings_sources import LoadedSettings


class LogFormat(StrEnum):
    TEXT = "text"
    JSON = "json"


class Runner(StrEnum):
    """Where copy and verification tasks run."""

    LOCAL = "local"
    SPARK = "spark"


@dataclass(slots=True)
class Session:
    """One run of the command line. The common options may come before or after the command."""

    config: Path | None = None
    flags: dict[str, str] = field(default_factory=dict)
    as_json: bool = False
    verbosity: int = 0
    log_format: LogFormat = LogFormat.TEXT
    command: str = ""
    _loaded: LoadedSettings | None = None
    _bar: ProgressBar | None = None

    def loaded(self) -> LoadedSettings:
        """Settings and where each came from. SettingsError for anything wrong with them."""
        if self._loaded is None:
            from tiering_assets.resources.settings_sources import load_settings

            self._loaded = load_settings(self.flags, file=self.config)
        return self._loaded

    @property
    def settings(self) -> Settings:
        return self.loaded().settings

    @contextmanager
    def stack(self, runner: Runner = Runner.LOCAL) -> Iterator[Stack]:
        """Connect to everything the settings name."""
        from tiering_assets.ground.stack import open_stack

        run_id = uuid4().hex[:12]
        with ExitStack() as exits:
            tasks = None
            if runner is Runner.SPARK:
                from tiering_assets.spark.runner import open_spark_runner

                tasks = exits.enter_context(
                    open_spark_runner(self.settings, run_id=run_id, narrate=self.progress)
                )
            yield exits.enter_context(
                open_stack(
                    self.settings,
                    runner=tasks,
                    run_id=run_id,
                    narrate=self.progress,
                    bar=self.bar(),
                    command=self.command,
                )
            )

    def bar(self) -> ProgressBar | None:
        """What draws how far a run is; None where nobody watches, or logs come between."""
        plain_text = self.log_format is LogFormat.TEXT and not self.verbosity
        if self._bar is None and plain_text and error_screen().redraws:
            from tiering_assets.cli.terminal.progress import ProgressBar

            self._bar = ProgressBar(error_screen)
        return self._bar

    def progress(self, line: str) -> None:
        """A line for whoever watches; never a result. As JSON with what it is about."""
        with nullcontext() if self._bar is None else self._bar.aside():
            self._print(line)

    def _print(self, line: str) -> None:
        if self.log_format is LogFormat.JSON:
            event = getattr(line, "event", {})
            line = json.dumps({"level": "progress", "message": line, **event}, ensure_ascii=False)
        else:
            line, on = plain(line), error_screen()
            if on.colour:
                from tiering_assets.cli.terminal.progress import show_progress

                show_progress(line, on)
                return
        sys.stderr.write(line + "\n")
        sys.stderr.flush()

    def start_logging(self) -> None:
        """Send the logs to standard error: warnings, with -v what is done, with -vv everything."""
        handler = logging.StreamHandler(sys.stderr)
        if self.log_format is LogFormat.JSON:
            handler.setFormatter(_JsonFormatter())
        else:
            handler.setFormatter(_PlainFormatter("%(asctime)s %(levelname)s %(name)s %(message)s"))
        level = (logging.WARNING, logging.INFO, logging.DEBUG)[min(self.verbosity, 2)]
        logger = logging.getLogger("tiering_assets")
        logger.handlers[:] = [handler]
        logger.setLevel(level)
        logger.propagate = False


class _PlainFormatter(logging.Formatter):
    """A message is one line, whatever names are in it; a traceback after it keeps its lines."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802  logging's name
        return plain(super().formatMessage(record))


class _JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": self.formatTime(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **getattr(record, "event", {}),
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)


def parse_flags(pairs: list[str]) -> dict[str, str]:
    """`section.field=value` pairs; whether the setting exists is for settings_sources to say."""
    flags = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or "." not in name:
            # The value is not repeated: it may be a secret.
            raise UsageError(f"--set {name!r}: expected SECTION.FIELD=VALUE")
        flags[name] = value
    return flags
