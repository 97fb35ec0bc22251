"""A report is what its facts make it: whatever is edited in one is found, in a sentence."""

import json
import re
import subprocess
from hashlib import sha256
from html.parser import HTMLParser

import pytest
from cryptography.hazmat.primitives import serialization as pem
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from markdown_it import MarkdownIt

from tests.support.audit_reports import (
    HOSTILE,
    ReportScene,
    changed,
    facts_block,
    facts_digest,
    leaves,
    spell,
)
from tests.support.rooms import ROOT
from tiering_assets.audit.report.report_file import ReportKind, make_report, read_report
from tiering_assets.records.signature import Signer
from tiering_assets.resources.errors import FormatError, IntegrityError

KINDS = pytest.mark.parametrize("kind", ReportKind, ids=lambda kind: kind.name)
GOLDEN = ROOT / "tests" / "unit" / "audit" / "golden"
FACTS = ReportScene(names=HOSTILE).facts()


def signer():
    key = Ed25519PrivateKey.generate()
    form = (pem.Encoding.PEM, pem.PrivateFormat.PKCS8, pem.NoEncryption())
    return Signer(key.private_bytes(*form))


SIGNER = signer()
TEXTS = {kind: make_report(kind, FACTS, SIGNER)[0] for kind in ReportKind}


def refused(text):
    with pytest.raises((FormatError, IntegrityError)) as told:
        read_report(text if isinstance(text, bytes) else text.encode(), name="report")
    said = str(told.value)
    assert said.startswith("report")
    assert "\n" not in said
    return said


@KINDS
def test_it_reads_back_as_the_facts_that_it_was_made_of(kind):
    found = read_report(TEXTS[kind].encode(), name="report")
    assert found.facts == FACTS
    assert (found.kind, found.seal.signed_by) == (kind, SIGNER.key_id)


@KINDS
def test_its_digest_is_that_of_its_facts_by_other_means(kind):
    digest, body = facts_digest(TEXTS[kind], kind)
    assert f'"facts_sha256":"{digest}"' in TEXTS[kind]
    assert TEXTS[kind].count(digest) == 2  # for people, and in the seal
    assert len(body["ledgers"]) == len(FACTS.ledgers) == 3 + len(HOSTILE)
    assert spell(body) == facts_block(TEXTS[kind], kind)
    assert {one["topic"] for one in body["ledgers"]} == {one.topic for one in FACTS.ledgers}


def test_both_kinds_have_the_same_facts():
    html, markdown = (facts_block(TEXTS[kind], kind) for kind in ReportKind)
    assert html == markdown


@KINDS
def test_every_fact_that_is_changed_is_found(kind):
    block = facts_block(TEXTS[kind], kind)
    body = json.loads(block)
    paths = [*leaves(body)]
    assert len(paths) > 150
    for path in paths:
        other = spell(changed(body, path))
        assert other != block
        assert "were edited" in refused(TEXTS[kind].replace(block, other)), path


@KINDS
def test_every_character_that_is_changed_is_found(kind):
    text = TEXTS[kind]
    for at in range(0, len(text), 7):
        other = "x" if text[at] != "x" else "y"
        refused(text[:at] + other + text[at + 1 :])


@KINDS
def test_it_is_found_to_be_cut_wherever_that_was(kind):
    text = TEXTS[kind]
    for at in [*range(0, len(text), 41), len(text) - 1]:
        refused(text[:at])
    assert "cut off" in refused(text[: len(text) // 2])
    refused(text + "\n")
    refused(text.replace("\n", "\r\n"))


@KINDS
def test_an_edited_table_is_found_though_its_facts_are_sound(kind):
    text = TEXTS[kind]
    cell = "public/default/audited"
    said = refused(text.replace(cell, "public/default/audites", 1))
    assert "its readable part was edited: line" in said
    assert "readable part" in refused(text.replace("Nothing is wrong.", "All is well."))


@KINDS
def test_an_edited_digest_is_found(kind):
    digest, _body = facts_digest(TEXTS[kind], kind)
    other = digest.translate(str.maketrans("0123", "1032"))
    assert "readable part" in refused(TEXTS[kind].replace(digest, other, 1))
    sealed = TEXTS[kind].replace(f'"facts_sha256":"{digest}"', f'"facts_sha256":"{other}"')
    assert "signature" in refused(sealed)
    plain = make_report(kind, FACTS, None)[0]
    found = refused(plain.replace(f'"facts_sha256":"{digest}"', f'"facts_sha256":"{other}"'))
    assert "seal" in found


def with_part_of(pattern, other, text):
    [found] = [match[0] for match in pattern.finditer(other)]
    return pattern.sub(lambda _match: found, text)


@KINDS
def test_a_swapped_signature_is_found(kind):
    of_other_facts = make_report(kind, ReportScene().facts(), SIGNER)[0]
    by_other_key = make_report(kind, FACTS, signer())[0]
    value = re.compile(r'"signature":\{"key_id":"(\w+)","value":"([^"]+)"\}')
    key = re.compile(r'"public_key":"[^"]+"')
    for other in (of_other_facts, by_other_key):
        assert "signature was swapped" in refused(with_part_of(value, other, TEXTS[kind]))
    refused(with_part_of(key, by_other_key, TEXTS[kind]))


class Elements(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags, self.shown = [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, tuple(attrs)))

    def handle_comment(self, data):
        raise AssertionError(data)

    def handle_data(self, data):
        self.shown.append(data)


def elements(text):
    parser = Elements()
    parser.feed(text)
    parser.close()
    return parser


def test_no_element_of_the_page_comes_from_a_name():
    tame = ReportScene(names=tuple(f"t/ns/persistent/tame{n}" for n in range(len(HOSTILE))))
    expected = elements(make_report(ReportKind.HTML, tame.facts(), SIGNER)[0])
    found = elements(TEXTS[ReportKind.HTML])
    assert found.tags == expected.tags
    assert [tag for tag, _attrs in found.tags].count("script") == 2
    assert not any(name in ("src", "href") for _tag, attrs in found.tags for name, _ in attrs)
    shown = "".join(found.shown)
    assert "persistent://t/ns/<script>alert(1)</script>" in shown
    assert "persistent://t/ns/[red]x[/red]" in shown


def tokens(text):
    for token in MarkdownIt("commonmark").enable("table").parse(text):
        yield token
        yield from token.children or ()


def test_no_markup_of_the_text_comes_from_a_name():
    found = [*tokens(TEXTS[ReportKind.MARKDOWN])]
    kinds = {token.type for token in found}
    assert not kinds & {"html_inline", "html_block", "link_open", "image", "strong_open", "em_open"}
    assert [token.info for token in found if token.type == "fence"] == ["json seal", "json facts"]
    code = {token.content for token in found if token.type == "code_inline"}
    assert "persistent://t/ns/<script>alert(1)</script>" in code
    assert r"persistent://t/ns/a\x7cb\x7c\x60c\x60**d**![e](http://x)" in code
    rows = [token for token in found if token.type == "tr_open"]
    cells = [token for token in found if token.type in ("td_open", "th_open")]
    table = TEXTS[ReportKind.MARKDOWN].count("\n|")
    assert len(rows) == table - 3  # three lines of dashes
    assert len(cells) == 8 * 2 + (2 + len(HOSTILE)) * 7 + 3 * 3


@pytest.mark.parametrize("body", [b"", b"text", b"<!doctype html>\n<p>", b"\x89PNG", b"# Audit"])
def test_what_is_no_report_is_told(body):
    with pytest.raises(FormatError, match=r"is no report|cut off"):
        read_report(body, name="report")


def test_facts_in_another_spelling_or_of_another_schema_are_told():
    text = make_report(ReportKind.MARKDOWN, FACTS, None)[0]
    digest, body = facts_digest(text, ReportKind.MARKDOWN)
    block = facts_block(text)

    def with_facts(other):
        return text.replace(block, other).replace(digest, sha256(other.encode()).hexdigest())

    assert "does not know the schema" in refused(
        with_facts(spell({**body, "schema": "tierkeeper/audit-report/9"}))
    )
    assert "another way" in refused(with_facts(json.dumps(body) + "\n"))
    assert "another way" in refused(with_facts(spell({**body, "more": 1})))
    assert "damaged" in refused(with_facts(spell({**body, "deep": 1})))
    assert "damaged" in refused(with_facts("{" * 500 + "\n"))


@pytest.mark.parametrize("name", ["report.html", "report.md"])
def test_a_report_of_an_earlier_day_is_told_alike_today(name):
    """What is told of the same facts changes with the schema's number alone."""
    found = read_report((GOLDEN / name).read_bytes(), name=name)
    assert len(found.facts.ledgers) == 3 + len(HOSTILE)
    assert found.seal.signed_by is not None


@pytest.mark.parametrize("name", ["report.html", "report.md"])
def test_the_commands_of_the_page_give_its_digest(name, tmp_path):
    page = (ROOT / "docs" / "audit.md").read_text(encoding="utf-8")
    ending = name.removeprefix("report")
    [command] = re.findall(rf"^sed .* audit\{ending} .* > facts\.json$", page, re.MULTILINE)
    (tmp_path / f"audit{ending}").write_bytes((GOLDEN / name).read_bytes())
    subprocess.run(["bash", "-c", command], cwd=tmp_path, check=True)
    done = subprocess.run(
        ["sha256sum", "facts.json"], cwd=tmp_path, check=True, capture_output=True, text=True
    )
    kind = ReportKind(ending)
    digest, _body = facts_digest((GOLDEN / name).read_text(encoding="utf-8"), kind)
    assert done.stdout.split()[0] == digest
    assert read_report((GOLDEN / name).read_bytes(), name=name).seal.facts_sha256 == digest
