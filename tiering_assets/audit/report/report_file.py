"""A whole report: the readable part, then its seal and its facts in blocks of their own. Pure.

Owns: a file is taken for a report only where it is, byte for byte, what its facts and its seal make
it. So whatever else was changed in it shows, and is told in one sentence.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from tiering_assets.audit.report.facts import AuditFacts
from tiering_assets.audit.report.facts_text import facts_text, read_facts
from tiering_assets.audit.report.html_page import TAIL, render_html
from tiering_assets.audit.report.markdown_page import render_markdown
from tiering_assets.audit.report.page import page_of
from tiering_assets.audit.report.seal import ReportSeal, check_seal, read_seal, seal_text
from tiering_assets.records.signature import Signer
from tiering_assets.resources.errors import FormatError, IntegrityError


class ReportKind(StrEnum):
    """By the ending of a file's name."""

    HTML = ".html"
    MARKDOWN = ".md"


@dataclass(frozen=True, slots=True)
class _Form:
    """How a file begins, and the lines around its blocks. `end` never stands in a block."""

    begin: str
    seal: str
    facts: str
    end: str
    tail: str


_FORMS: Final = {
    ReportKind.HTML: _Form(
        begin="<!doctype html>",
        seal='<script type="application/json" id="seal">\n',
        facts='<script type="application/json" id="facts">\n',
        end="</script>\n",
        tail=TAIL,
    ),
    ReportKind.MARKDOWN: _Form(
        begin="# Audit of instance ",
        seal="```json seal\n",
        facts="```json facts\n",
        end="```\n",
        tail="",
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenReport:
    kind: ReportKind
    facts: AuditFacts
    seal: ReportSeal


def make_report(kind: ReportKind, facts: AuditFacts, signer: Signer | None) -> tuple[str, str]:
    """The file's text, and the SHA-256 of its facts."""
    told = facts_text(facts)
    read_facts(told, name="the new report")  # what nobody could read is not written
    sealed = seal_text(told, signer)
    seal = read_seal(sealed, name="the new report")
    return _compose(kind, facts, told, seal, sealed), seal.facts_sha256


def read_report(body: bytes, *, name: str) -> WrittenReport:
    """A report that is as it was written.

    Raises:
        FormatError: it is none, is cut off, or is of a schema that this version does not know.
        IntegrityError: it was edited.
    """
    kind = _kind_of(body, name)
    try:
        text = body.decode()
    except UnicodeDecodeError:
        raise IntegrityError(f"{name}: it was edited: it is no UTF-8 text any more") from None
    form = _FORMS[kind]
    sealed = _block(text, form.seal, form.end, name)
    told = _block(text, form.facts, form.end, name)
    seal = read_seal(sealed, name=name)
    check_seal(seal, told, name=name)
    facts = read_facts(told, name=name)
    expected = _compose(kind, facts, told, seal, sealed)
    if text != expected and expected.startswith(text):
        raise FormatError(f"{name} is cut off behind its facts")
    if text != expected:
        raise IntegrityError(f"{name}: {_where(text, expected)}")
    return WrittenReport(kind=kind, facts=facts, seal=seal)


def _compose(kind: ReportKind, facts: AuditFacts, told: str, seal: ReportSeal, sealed: str) -> str:
    page = page_of(facts, sha256=seal.facts_sha256, signed_by=seal.signed_by)
    form = _FORMS[kind]
    shown = render_html(page) if kind is ReportKind.HTML else render_markdown(page)
    return f"{shown}{form.seal}{sealed}{form.end}{form.facts}{told}{form.end}{form.tail}"


def _kind_of(body: bytes, name: str) -> ReportKind:
    for kind, form in _FORMS.items():
        if body.startswith(form.begin.encode()):
            return kind
    raise FormatError(f"{name} is no report of an audit")


def _block(text: str, begin: str, end: str, name: str) -> str:
    _before, found, rest = text.partition(f"\n{begin}")
    block, ended, _rest = rest.partition(f"\n{end}")
    if not found or not ended:
        raise FormatError(f"{name} is cut off, or is no report: its block of facts is not whole")
    return f"{block}\n"


def _where(text: str, expected: str) -> str:
    """The first line that is another."""
    have, want = text.splitlines(), expected.splitlines()
    pairs = enumerate(zip(have, want, strict=False), start=1)
    number = next((n for n, (a, b) in pairs if a != b), min(len(have), len(want)) + 1)
    return f"its readable part was edited: line {number} is not what its facts say"
