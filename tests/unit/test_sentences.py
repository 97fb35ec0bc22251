"""Help, messages and pages are in plain English: short sentences, one denial each, known words.

Owns: a refused sentence stands in tests/support/sentences_open.txt or fails, and so does a line
there that is needed no more. So the list only shrinks.
"""

import pytest

from tests.support.rooms import ROOT
from tests.support.sentences import pages
from tests.support.sentences.code import literals
from tests.support.sentences.every import every_sentence, refused, refused_line
from tests.support.sentences.known_words import is_known
from tests.support.sentences.rules import problems
from tests.support.sentences.text import sentences_of, tokens, words

OPEN = ROOT / "tests" / "support" / "sentences_open.txt"
PLAIN = (
    "nothing was done, and no topic was loaded",
    "no key is set: certificates are not signed",
    "the ledger is not sealed; nothing was copied",
    "No gap and no overlap.",
    "It is neither published nor released.",
    "no topic list and no record names it",
    "a broker that is registered answers, so no topic is unloaded",
    "bookie X does not answer (it is not registered)",
    "It loads no topic, creates no ledger, and writes nothing.",
    "the run ended - its claim never ran out",
)
ODD = (
    "nobody that is not registered",
    "what is no position, or both options or neither, is a usage error",
    "nothing is written without an answer",
    "no topic is loaded and nothing is written",
    "a record without a digest cannot be read",
    "It is never not asked.",
    "no broker that doesn't answer counts",
    "no object hardly ever changes",
    "none of the ledgers is without a copy",
    "nothing, or nobody, is told",
)


@pytest.mark.parametrize("text", PLAIN)
def test_what_is_denied_once_in_each_clause_is_plain(text):
    assert problems(text, is_known) == []


@pytest.mark.parametrize("text", ODD)
def test_a_double_negative_is_refused(text):
    assert [reason.split(":")[0] for reason in problems(text, is_known)] == ["double negative"]


def test_a_sentence_has_at_most_twenty_five_words():
    assert problems("word " * 25, is_known) == []
    assert problems("word " * 26, is_known) == ["26 words"]
    halves = f"{'word ' * 20}; {'word ' * 20}"
    assert problems(halves, is_known) == ["40 words"], "a semicolon does not end it"
    both = f"{'Word ' * 20}is it. {'Then ' * 20}"
    assert [problems(one.text, is_known) for one in sentences_of("docs", "", both)] == [[], []]


def test_a_word_is_common_or_of_the_glossary_or_a_name():
    known = "Copied bookies behaviour planned retries ETag tierkeeper's dagster recognised"
    assert problems(known, is_known) == []
    assert problems("a frobnicated", is_known) == ["rare word: frobnicated"]


def test_code_is_one_word_and_no_word_of_the_language():
    text = "run `tierkeeper xyzzy --execute` on s3_key/xyzzy2 or zk1:2181, --xyzzy and readLac 8"
    assert words(text) == ["run", "on", "or", "and"]
    assert len(tokens(text)) == 10
    assert tokens("new options: `--all`, `--topic`, `ledger why`.") == ["new", "options:", "X."]


def test_literals_of_the_product_are_sentences_and_most_docstrings_are_not():
    source = '''
"""Words of a module here."""
import dagster as dg
@dg.asset
def shown():
    """Words that Dagster shows."""
def unseen():
    """Words that nobody sees."""
    raise ValueError(f"{a} is not in " "topic" f" {b + 'or in this one'}" + ", so there")
'''
    assert [text for _line, text in literals(source)] == [
        "Words that Dagster shows.",
        "X is not in topic X, so there",
        "or in this one",
    ]


def test_paragraphs_items_and_cells_of_a_page_are_sentences():
    text = (
        "# A heading\n\nTwo lines\nof it, see [a page](docs/xyzzy.md).\n\n"
        "* one item\n  goes on\n* two\n\n"
        "```sh\nno words\n```\n| a cell | another |\n|---|---|\n"
    )
    found = [(line, said) for line, said in pages.blocks(text) if tokens(said)]
    assert found == [
        (1, "A heading"),
        (3, "Two lines of it, see a page."),
        (6, "one item goes on"),
        (8, "two"),
        (13, "a cell"),
        (13, "another"),
    ]


def test_every_kind_of_text_is_found():
    found = every_sentence()
    for part, place in (
        ("help", "tierkeeper ledger offload"),
        ("help", "tierkeeper ledger offload:--plan"),
        ("help", "exit code 26"),
        ("code", "tiering_assets/release/gate.py"),
        ("code", "resources/settings.py"),
        ("code", "tiering_assets/defs/batch/release_assets.py"),
        ("records", "tierkeeper/certificate/2"),
        ("docs", "README.md"),
        ("docs", "docs/decisions/0001-no-catalogue.md"),
    ):
        assert any(one.part == part and one.place.startswith(place) for one in found), place


def test_no_sentence_is_hard_to_read_but_those_that_are_still_open():
    found = {refused_line(one, reasons) for one, reasons in refused(every_sentence())}
    listed = OPEN.read_text(encoding="utf-8").splitlines()
    still = {line for line in listed if line and not line.startswith("#")}
    assert sorted(found - still) == [], "`python -m tests.support.sentences --problems` explains"
    assert sorted(still - found) == [], "plain now: take these lines out"
