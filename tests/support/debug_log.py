"""What a module logs, whatever a command line before has set up."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager


class _Listed(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


@contextmanager
def debug_log(name: str) -> Iterator[list[str]]:
    """Messages of this logger within the block, of every level."""
    logger, handler = logging.getLogger(name), _Listed()
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    try:
        yield handler.lines
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
