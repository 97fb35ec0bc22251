"""Reports of a small bucket, taken apart and forged without the code that writes them.

Owns: `facts_block` and `spell` know the format from docs/audit.md alone, so that a report is
checked by somebody else's means, too.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from hashlib import sha256
from typing import Any

from tests.support.audited_bucket import Chain, put_chain
from tests.support.object_store_sim import SimulatedObjectStore
from tiering_assets.audit.audit import audit_store
from tiering_assets.audit.report.check_report import ReportCheck, check_report
from tiering_assets.audit.report.facts import AskedFor, AuditFacts, facts_of
from tiering_assets.audit.report.facts_text import read_facts
from tiering_assets.audit.report.report_file import ReportKind, make_report
from tiering_assets.ground.record_book import RecordBook
from tiering_assets.ground.signing import load_signer
from tiering_assets.resources.metastore.topic_names import encode_name
from tiering_assets.resources.settings import Settings

_LOCAL = (
    "<script>alert(1)</script>",
    "[red]x[/red]",
    "```\n<!--\n```json facts",
    "a|b|`c`**d**![e](http://x)",
    "\u202e</script>&amp;",
)
HOSTILE = (
    *(f"t/ns/persistent/{encode_name(name)}" for name in _LOCAL),
    "<b>no topic</b>/`at|all",
)
MARKS = {
    ReportKind.HTML: ('<script type="application/json" id="facts">', "</script>"),
    ReportKind.MARKDOWN: ("```json facts", "```"),
}


class ReportScene:
    """Three released ledgers and an abandoned attempt; `make` writes a report, `check` reads it."""

    def __init__(self, settings: Settings | None = None, names: tuple[str, ...] = ()) -> None:
        self.settings = settings or Settings()
        self.store = SimulatedObjectStore()
        self.book = RecordBook(self.store, "inst")
        self.chains: list[Chain] = [put_chain(self.store, self.book, i) for i in (41, 42)]
        self.chains += [
            put_chain(self.store, self.book, 50 + number, ml_name=name)
            for number, name in enumerate(names)
        ]
        self.given_up = put_chain(self.store, self.book, 43, outcome="abandon")
        self.store.advance(60.0)

    def facts(self, *, deep: bool = True, ids: tuple[int, ...] = ()) -> AuditFacts:
        asked = AskedFor(everything=not ids, ledger_ids=ids)
        report = audit_store(self.store, self.settings, ledger_ids=ids or None, deep=deep)
        return facts_of(report, asked, tool_version="0.1.0", in_flight_s=3600.0)

    def make(self, kind: ReportKind = ReportKind.MARKDOWN, **how: Any) -> str:
        return make_report(kind, self.facts(**how), load_signer(self.settings))[0]

    def check(self, text: str | bytes, **how: Any) -> ReportCheck:
        body = text.encode() if isinstance(text, str) else text
        return check_report(self.store, self.settings, body, name="report", **how)


def facts_block(text: str, kind: ReportKind = ReportKind.MARKDOWN) -> str:
    """All lines between the marks."""
    begin, end = MARKS[kind]
    lines = text.split("\n")
    first = lines.index(begin) + 1
    return "\n".join(lines[first : lines.index(end, first)]) + "\n"


def facts_digest(text: str, kind: ReportKind) -> tuple[str, dict[str, Any]]:
    """SHA-256 of the facts, and what they say."""
    block = facts_block(text, kind)
    return sha256(block.encode()).hexdigest(), json.loads(block)


def spell(body: dict[str, Any]) -> str:
    """The one spelling of facts."""

    def one(value: Any) -> str:
        text = json.dumps(value, sort_keys=True, separators=(",", ":"))
        return "".join(f"\\u{ord(c):04x}" if c in "<>&`" else c for c in text)

    def many(value: Any) -> str:
        if not isinstance(value, list) or not value:
            return one(value)
        return "[\n" + ",\n".join(map(one, value)) + "\n]"

    return "{\n" + ",\n".join(f'"{key}":{many(body[key])}' for key in sorted(body)) + "\n}\n"


def forge(body: dict[str, Any], kind: ReportKind = ReportKind.MARKDOWN) -> str:
    """A report of other facts, sealed and told anew, as by somebody who has our code and no key."""
    return make_report(kind, read_facts(spell(body), name="forged"), None)[0]


Path = tuple[str | int, ...]


def leaves(value: Any, path: Path = ()) -> Iterator[Path]:
    """The path of every leaf; an empty object or list is one."""
    inner = value.items() if isinstance(value, dict) else enumerate(value)
    for key, one in inner if isinstance(value, (dict, list)) else ():
        if isinstance(one, (dict, list)) and one:
            yield from leaves(one, (*path, key))
        else:
            yield (*path, key)


def changed(body: dict[str, Any], path: Path) -> dict[str, Any]:
    """The same with another value at one leaf, of the same type where it has one."""
    found = copy.deepcopy(body)
    holder: Any = found
    for key in path[:-1]:
        holder = holder[key]
    holder[path[-1]] = _another(holder[path[-1]])
    return found


def _another(value: Any) -> Any:
    match value:
        case bool():
            return not value
        case int() | float():
            return value + 1
        case str() if value[:1].isalnum():
            return ("1" if value[0] == "0" else "0") + value[1:]
        case str():
            return value + "x"
        case list():
            return ["x"]
        case dict():
            return {"x": None}
        case _:
            return "x"
