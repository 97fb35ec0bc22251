"""How old an answer from the catalogue may be, for the commands that list and count."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Final

from tiering_assets.cli.grammar.quantities import duration_option
from tiering_assets.cli.shared.output import print_line

if TYPE_CHECKING:
    from tiering_assets.catalogue.nominate import ProvenTables

FRESH_S: Final = 1800.0
Fresh = Annotated[
    float,
    duration_option(
        "--fresh",
        default="30 min",
        help="Read topics and records where the catalogue last looked at topics longer ago, to some "
        "minutes. 0 always reads them.",
    ),
]


def fresh_of(seconds: float) -> timedelta:
    return timedelta(seconds=seconds)


def print_source(source: ProvenTables | None) -> None:
    """The last line of an answer that came from the catalogue: how far it goes."""
    from tiering_assets.fleet.source import said_of

    said = said_of(source)
    if said is not None:
        print_line(said)
