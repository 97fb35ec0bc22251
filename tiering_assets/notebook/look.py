"""One look at a cluster from a notebook: its stack, and the catalogue's tables at one version each.

Owns: nothing is changed. Every cell asks the same versions of the tables, so that its answers fit
together, and `as_of` says how far they go.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

import pandas as pd

from tiering_assets.catalogue.view import AsOf, Catalogue, Tables, answer, least
from tiering_assets.ground.stack import Stack, open_stack
from tiering_assets.resources.settings import Settings
from tiering_assets.resources.settings_sources import load_settings

COMMAND = "notebook"
"""What the day book would say that was run, if a notebook wrote records."""


@dataclass(frozen=True, kw_only=True)
class ClusterLook:
    """Open until `close`, or until a `with` ends. The process's end closes it as well."""

    stack: Stack
    tables: Tables
    as_of: AsOf
    _opened: ExitStack = field(repr=False)

    @property
    def settings(self) -> Settings:
        return self.stack.settings

    def sql(self, question: str) -> pd.DataFrame:
        """Rows of one question to the catalogue's tables; columns are in docs/catalogue.md.

        CatalogueError for what is no question, or a table that is damaged.
        """
        return answer(self.tables, question).to_pandas()

    def close(self) -> None:
        self._opened.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def settings_of(settings_file: str = "") -> Settings:
    """Settings as commands take them: of that file, else of TIERKEEPER_CONFIG or
    ./tierkeeper.toml, and of TIERKEEPER_* variables in any case. SettingsError for a wrong one.
    """
    return load_settings(file=Path(settings_file) if settings_file else None).settings


def open_look(settings_file: str = "", *, settings: Settings | None = None) -> ClusterLook:
    """Connect as commands do.

    Args:
        settings_file: as `settings_of` takes it.
        settings: instead of them.

    Raises:
        SettingsError: a setting is missing or wrong.
        TierkeeperError: a server does not answer; names it.
    """
    with ExitStack() as opening:
        stack = opening.enter_context(
            open_stack(settings or settings_of(settings_file), command=COMMAND)
        )
        catalogue = Catalogue.of(stack)
        tables = catalogue.opened()
        as_of = least(catalogue, tables)
        return ClusterLook(stack=stack, tables=tables, as_of=as_of, _opened=opening.pop_all())
