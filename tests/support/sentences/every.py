"""Every sentence that a user can meet: help, code, records, pages; and which are refused."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from tests.support.sentences.code import of_code
from tests.support.sentences.commands import of_commands
from tests.support.sentences.known_words import is_known
from tests.support.sentences.pages import of_pages
from tests.support.sentences.records import of_records
from tests.support.sentences.rules import problems
from tests.support.sentences.text import Sentence

_FROM: dict[str, Callable[[], Iterator[Sentence]]] = {
    "help": of_commands,
    "code": of_code,
    "records": of_records,
    "docs": of_pages,
}
PARTS = tuple(_FROM)


def every_sentence(only: str | None = None) -> list[Sentence]:
    """Each text once, at its first place: an option's help stands in the code as well."""
    found: dict[str, Sentence] = {}
    for part, of in _FROM.items():
        if only in (None, part):
            for one in of():
                found.setdefault(one.text, one)
    return list(found.values())


def refused(sentences: Iterable[Sentence]) -> Iterator[tuple[Sentence, list[str]]]:
    for one in sentences:
        if reasons := problems(one.text, is_known):
            yield one, reasons


def refused_line(one: Sentence, reasons: list[str]) -> str:
    """As it stands in the list of those that are still open: no line number, which moves."""
    return f"{one.home} | {'; '.join(reasons)} | {one.text}"
