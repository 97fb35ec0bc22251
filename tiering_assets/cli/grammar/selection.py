"""Which ledgers and topics a command is about: the same options wherever a selection is made.

Owns: a selection is made in exactly one way: ids, a file of ids, topics, namespaces, or --all. What
it means on a cluster is for selected.py.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from tiering_assets.cli.grammar.completion import ledgers_like, namespaces_like, topics_like
from tiering_assets.cli.grammar.id_file import read_ids
from tiering_assets.cli.grammar.option_group import OptionGroup
from tiering_assets.cli.shared.session import Session
from tiering_assets.cli.shared.usage import UsageError

PANEL = "Selection"
_TOPIC_HELP = "tenant/namespace/topic or persistent://…; a partitioned topic means all partitions."

AskTopics = Annotated[
    bool,
    typer.Option(
        "--ask-topics",
        help="Ask topics' own policies even where no broker owns their bundle: one will, and loads "
        "topics for it.",
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """One of the five is given; with none of them it means everything."""

    ledger_ids: tuple[int, ...] = ()
    topics: tuple[str, ...] = ()
    namespaces: tuple[str, ...] = ()
    by_report: Path | None = None

    @property
    def everything(self) -> bool:
        return not (self.ledger_ids or self.topics or self.namespaces or self.by_report)


def ledger_selection(*, optional: bool = False, or_report: bool = False) -> OptionGroup:
    """ID..., --ids, --topic, --namespace, and --all where a selection has to be made.

    `optional` is for what reads all without one, or chooses by an option of its own as well.
    `or_report`: --check-report takes the place of a selection.
    """
    options = {**_LEDGER_OPTIONS, **_TOPIC_OPTIONS}
    if not optional:
        options |= _ALL
    if or_report:
        options |= _REPORT

    def make(_session: Session, **given: Any) -> Chosen:
        taken = {"ID": given["ledger_ids"], "--ids": given["ids_file"], **_taken(given)}
        if or_report:
            taken["--check-report"] = given["check_report"]
        (_require_at_most_one if optional else require_one_choice)(**taken)
        from_file = given["ids_file"]
        ids = given["ledger_ids"] or ([] if from_file is None else read_ids(from_file, sys.stdin))
        return Chosen(
            ledger_ids=tuple(sorted(set(ids))),
            by_report=given.get("check_report"),
            **_topics_of(given),
        )

    return OptionGroup(options, make)


def topic_selection(*, optional: bool = True) -> OptionGroup:
    """TOPIC..., --topic, --namespace; --all where a selection has to be made.

    A ledger id, or a file of them, means the topics of these ledgers: no topic's name is a number.
    """
    ids_file = {"ids_file": _LEDGER_OPTIONS["ids_file"]}
    options = {**_TOPIC_ARGUMENTS, **ids_file, **_TOPIC_OPTIONS, **({} if optional else _ALL)}

    def make(_session: Session, **given: Any) -> Chosen:
        named = given.pop("named") or ()
        ids = [int(name) for name in named if _is_id(name)]
        topics = [name for name in named if not _is_id(name)]
        given["topics"] = [*topics, *(given["topics"] or ())]
        from_file = given["ids_file"]
        taken = {"ID": ids, "--ids": from_file, **_taken(given)}
        (_require_at_most_one if optional else require_one_choice)(**taken)
        ids += [] if from_file is None else read_ids(from_file, sys.stdin)
        return Chosen(ledger_ids=tuple(sorted(set(ids))), **_topics_of(given))

    return OptionGroup(options, make)


def scope_selection() -> OptionGroup:
    """--topic, --namespace and --all: what is braked as a whole."""
    options = {**_TOPIC_OPTIONS, **_ALL}

    def make(_session: Session, **given: Any) -> Chosen:
        require_one_choice(**_taken(given))
        return Chosen(**_topics_of(given))

    return OptionGroup(options, make)


def _is_id(name: str) -> bool:
    return name.isascii() and name.isdecimal() and len(name) < 20


def require_one_choice(**choices: object) -> None:
    """Usage error unless exactly one of the ways to choose was taken."""
    taken = [name for name, value in choices.items() if value]
    if len(taken) != 1:
        ways = ", ".join(choices)
        found = f"found {' and '.join(taken)}" if taken else "found none"
        raise UsageError(f"choose by exactly one of {ways}; {found}")


def _require_at_most_one(**choices: object) -> None:
    if any(choices.values()):
        require_one_choice(**choices)


def _taken(given: dict[str, Any]) -> dict[str, Any]:
    found = {"--topic": given["topics"], "--namespace": given["namespaces"]}
    return found | ({"--all": given["everything"]} if "everything" in given else {})


def _topics_of(given: dict[str, Any]) -> dict[str, Any]:
    return {
        "topics": tuple(dict.fromkeys(given["topics"] or ())),
        "namespaces": tuple(dict.fromkeys(given["namespaces"] or ())),
    }


def _option(kind: Any, *names: str, **more: Any) -> Any:
    return Annotated[kind, typer.Option(*names, rich_help_panel=PANEL, **more)]


_LEDGER_OPTIONS: dict[str, tuple[Any, Any]] = {
    "ledger_ids": (
        Annotated[
            list[int] | None,
            typer.Argument(metavar="ID", min=0, help="Ledger ids.", autocompletion=ledgers_like),
        ],
        None,
    ),
    "ids_file": (
        _option(
            Path | None,
            "--ids",
            metavar="FILE",
            allow_dash=True,
            help="File with one ledger id a line; - is standard input.",
        ),
        None,
    ),
}
_TOPIC_ARGUMENTS: dict[str, tuple[Any, Any]] = {
    "named": (
        Annotated[
            list[str] | None,
            typer.Argument(
                metavar="TOPIC",
                help=f"{_TOPIC_HELP} A ledger id means its topic.",
                autocompletion=topics_like,
            ),
        ],
        None,
    ),
}
_TOPIC_OPTIONS: dict[str, tuple[Any, Any]] = {
    "topics": (
        _option(
            list[str] | None,
            "--topic",
            metavar="TOPIC",
            help=f"{_TOPIC_HELP} May be repeated.",
            autocompletion=topics_like,
        ),
        None,
    ),
    "namespaces": (
        _option(
            list[str] | None,
            "--namespace",
            metavar="TENANT/NAMESPACE",
            help="All topics of a namespace. May be repeated.",
            autocompletion=namespaces_like,
        ),
        None,
    ),
}
_ALL: dict[str, tuple[Any, Any]] = {
    "everything": (_option(bool, "--all", help="Everything."), False),
}
_REPORT: dict[str, tuple[Any, Any]] = {
    "check_report": (
        _option(
            Path | None,
            "--check-report",
            metavar="FILE",
            help="Check a report that --report wrote, and compare its facts with the bucket.",
        ),
        None,
    ),
}
