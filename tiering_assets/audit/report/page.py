"""The readable part of a report, told from its facts alone. Pure.

Owns: the same facts and the same seal give the same page, character for character, so that an
edited one shows. A change of what is told here needs a new number in the facts' schema.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

from tiering_assets.audit.report.facts import AuditFacts, LedgerVerdict
from tiering_assets.audit.report.page_parts import (
    Grid,
    Page,
    Paragraph,
    Points,
    Section,
    Theirs,
    Words,
)
from tiering_assets.audit.report.seal import NOBODY
from tiering_assets.audit.topic_figures import figures_by_topic
from tiering_assets.ground.moments import moment

_IDS_SHOWN: Final = 20
_VERDICTS: Final = {
    LedgerVerdict.EQUAL: "both objects are there as certified, and nothing is wrong",
    LedgerVerdict.FINDINGS: "something is wrong; see the findings",
    LedgerVerdict.GONE: "objects are gone, and a record says that their ledger is",
    LedgerVerdict.NOTHING: "no object is asked of it: it is under way, or was given up",
}


def page_of(facts: AuditFacts, *, sha256: str, signed_by: str | None) -> Page:
    title = ("Audit of instance ", Theirs(facts.instance), " in bucket ", Theirs(facts.bucket))
    return Page(
        title,
        (
            Section("Result", (Paragraph(_result(facts)),)),
            Section("What was checked", (_checked(facts),)),
            Section("Against what", (Points(tuple(_against(facts))),)),
            Section("By topic", (_by_topic(facts),)),
            Section("Attempts by verdict", (_by_verdict(facts),)),
            Section("Findings", (_findings(facts),)),
            Section("Facts", (Points(tuple(_seal(sha256, signed_by))),)),
        ),
    )


def _result(facts: AuditFacts) -> Words:
    count = len(facts.findings)
    return (f"{count} findings." if count else "Nothing is wrong.",)


def _checked(facts: AuditFacts) -> Grid:
    bytes_read = "yes, every byte" if facts.deep else "no, records and heads of objects alone"
    rows: list[tuple[str, Words]] = [
        ("Instance", (Theirs(facts.instance),)),
        ("Bucket", (Theirs(facts.bucket),)),
        ("Selection", _selection(facts)),
        ("Bytes read", (bytes_read,)),
        ("Begun at, by the store's clock", (moment(facts.made_at),)),
        ("A release may be under way for", (f"{facts.in_flight_s:g} s",)),
        ("Version of tierkeeper", (Theirs(facts.tool_version),)),
    ]
    return Grid(("What", "Value"), tuple(((name,), value) for name, value in rows))


def _selection(facts: AuditFacts) -> Words:
    asked = facts.asked
    if asked.everything:
        return ("every ledger with records",)
    words: list[str | Theirs] = []
    for kind, names in (("topic ", asked.topics), ("namespace ", asked.namespaces)):
        for name in names:
            words += [kind, Theirs(name), ", "]
    ids = asked.ledger_ids
    told = ", ".join(map(str, ids[:_IDS_SHOWN]))
    more = f" and {len(ids) - _IDS_SHOWN} more" if len(ids) > _IDS_SHOWN else ""
    return (*words, f"ledgers {told}{more}")


def _against(facts: AuditFacts) -> list[Words]:
    lines = facts.ledgers
    records = sum(len(one.records) for one in lines) + len(facts.publications)
    certificates = sum("certificates" in one.records for one in lines)
    objects = sum(len(one.objects) for one in lines)
    told: list[Words] = [
        (
            f"Chains: {records} records of {len(lines)} attempts, each by its digest and by the "
            f"record before it.",
        ),
        (f"Certificates: {certificates}, each by its own sums and by the records around it.",),
        (f"Objects: {objects}, by key, size, ETag and version.",),
    ]
    read = sum(one.bytes_read for one in lines)
    told.append(
        (f"Bytes: {read} read, each block by its SHA-256.",)
        if facts.deep
        else ("Bytes: none read; ", Theirs("--deep"), " reads them.")
    )
    if facts.public_keys:
        signed = sum(one.signed_by is not None for one in lines)
        names = ", ".join(facts.public_keys)
        told.append(
            (
                f"Signatures: {signed} of {certificates} certificates have a good one. Accepted "
                f"public keys: ",
                Theirs(names),
            )
        )
    else:
        told.append(("Signatures: no public key was set, so none counted.",))
    if facts.other_records:
        others = "failure records, forget plans and pages of the day book"
        told.append((f"Besides: {facts.other_records} {others}.",))
    if facts.forgotten:
        told.append((f"Left out: {facts.forgotten} attempts that a recorded plan forgets.",))
    return told


def _by_topic(facts: AuditFacts) -> Grid:
    ledgers = len({one.ledger_id for one in facts.ledgers}) + facts.other_ledgers
    rows = figures_by_topic(facts.ledgers, facts.publications, facts.findings, ledgers=ledgers)
    head = ("Topic", "Ledgers", "Attempts", "Records", "Objects", "Bytes read", "Findings")
    cells: list[tuple[Words, ...]] = []
    for one in rows:
        counts = (one.ledgers, one.attempts, one.records, one.objects, one.bytes_read, one.findings)
        cells.append(((Theirs(one.topic),), *((str(count),) for count in counts)))
    return Grid(head, tuple(cells), numbers=6)


def _by_verdict(facts: AuditFacts) -> Grid:
    counts = Counter(one.verdict for one in facts.ledgers)
    rows = [
        ((kind.value,), (said,), (str(counts[kind]),))
        for kind, said in _VERDICTS.items()
        if counts[kind]
    ]
    return Grid(("Verdict", "Means", "Attempts"), tuple(rows), numbers=1)


def _findings(facts: AuditFacts) -> Points | Paragraph:
    if not facts.findings:
        return Paragraph(("None.",))
    return Points(tuple((Theirs(str(one)),) for one in facts.findings))


def _seal(sha256: str, signed_by: str | None) -> list[Words]:
    signed: Words = (f"Not signed: {NOBODY}.",)
    if signed_by is not None:
        signed = ("Signed (Ed25519) by key ", Theirs(signed_by), ".")
    return [
        ("The facts stand at the end of this file: an attempt a line, with records and objects.",),
        ("SHA-256 of the facts: ", Theirs(sha256)),
        signed,
        ("Check it by ", Theirs("tierkeeper audit verify --check-report FILE"), "."),
    ]
