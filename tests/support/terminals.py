"""What every command prints of one simulated fleet, at a terminal and in a pipe; docs/terminals/.

    python -m tests.support.terminals          writes docs/terminals/

Owns: a story on one fleet (terminal_fleet.py) in which each command has a line; a test misses one
that has none. Progress, which tells how long things took, is in no picture.
"""

from __future__ import annotations

import io
import re
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from tests.support.rooms import ROOT
from tests.support.terminal_fleet import TerminalFleet
from tiering_assets.cli.main import run
from tiering_assets.cli.terminal.screen import Screen, printing_on

DOCS: Final = ROOT / "docs" / "terminals"
# {sealed} and {next} are closed, {away} has no bookie, {paused} is of a paused topic; ledger 0 is
# released, 1 is held, 2 is damaged.
STORY: Final = (
    "doctor",
    "completion bash",
    "config check",
    "config show --changed",
    "ledger list",
    "topic list",
    "topic backlog",
    "topic backlog {long} t/ns/orders",
    "ledger plan {sealed} {next}",
    "ledger show 0",
    "ledger show 2",
    "ledger list --topic t/ns/orders",
    *(
        f"ledger why {ledger}"
        for ledger in ("0", "1", "2", "{sealed}", "{open}", "{away}", "{paused}")
    ),
    "topic offload-status t/ns/orders",
    "topic offload t/ns/orders --plan",
    "topic expiry",
    "topic load-overdue --plan",
    "policy show t/ns/orders",
    "policy check",
    "hold list",
    "tiering list",
    "broker list",
    "budget show",
    "metrics print",
    "audit verify --all --report audit.html",
    "audit verify --check-report audit.html",
    "audit verify --all --deep",
    "ledger why 2",
    "ledger show 2",
    "scrub status",
    "scrub run --plan --deep",
    "object show {key}",
    "object verify {key}",
    "object scan no-bucket",
    "ledger verify 0 1 2",
    "ledger release --due --plan",
    "ledger release 0 1 2 --plan",
    "ledger offload {sealed} {next} --plan",
    "ledger offload {sealed} {away}",
    "ledger offload {sealed} {next} {away} {paused} {open} --execute",
    "topic offload shop/returns/parcels --keep-bytes 0 --execute",
    "ledger release 1 2 --execute",
    "scrub run --deep",
    "scrub run --deep --execute",
    "scrub status",
    "ledger give-up {sealed} --reason wrong --author ops --execute",
    "hold set --topic t/ns/orders --reason lawsuit --author ops",
    "hold lift 1 --reason done --author ops --plan",
    "hold lift 1 --reason done --author ops --execute",
    "tiering pause --namespace shop/returns --reason move --author ops",
    "tiering resume --topic t/ns/clicks --reason done --author ops --execute",
    "budget set --upload 1MiB --author ops",
    "broker gone broker-9:8080 --reason broke --author ops --execute",
    "catalogue status",
    "catalogue prove",
    "catalogue post",
    "catalogue settle --all",
    "catalogue rebuild",
    "catalogue status",
    "catalogue sql 'select * from ledgers order by ledger_id'",
    "lineage message 1:0",
    "lineage message 1:0 --show",
    "lineage message {batched}:1 --show --prove",
    "lineage topic {topic} --at 2026-11-25",
    "topic read {topic} --from 2026-11-25 --limit 3",
    "schema archive --all",
    "schema list {topic}",
    "schema show {topic}",
    "stream on {topic} --author ops",
    "stream cut {topic}",
    "stream status {topic}",
    "stream give-up {topic} --reason stuck --plan",
    "stream off {topic} --reason done --author ops",
    "lineage object {key} --offset 130 --prove",
    "lineage coverage {topic} --prove",
    "lineage coverage --all",
    "orphan list",
    "orphan sweep --plan",
    "expired-copy list",
    "expired-copy delete --plan",
    "gone-record list",
    "gone-record delete --plan",
    "dagster rebuild --plan",
    "dagster prune --older-than 1d --plan",
    "auto status",
    "auto on --execute",
    "auto off",
    # What starts servers, serves until it is stopped, or makes a key is shown as it refuses.
    "key make",
    "stack up --bookies 0",
    "stack down --dir nothing",
    "stack status --dir nothing",
    "demo --no-such-option",
    "metrics serve --every -1",
)
PICTURES: Final = {
    "doctor": "doctor",
    "ledger-list": "ledger list",
    "ledger-show": "ledger show 2",
    "ledger-why": "ledger why",
    "ledger-plan": "ledger plan",
    "ledger-offload": "ledger offload",
    "ledger-release": "ledger release 0 1 2 --plan",
    "topic-backlog": "topic backlog",
    "scrub-status": "scrub status",
    "audit-verify": "audit verify",
}
# What people ask first, each answered by one command; docs/questions.md.
QUESTIONS: Final = {
    "how far behind is tiering, and where?": "topic backlog",
    "what happened to ledger N?": "ledger show 2",
    "what happened to topic T?": "ledger list --topic t/ns/orders",
    "why did this fail, and what do I do?": "ledger why 6",
    "who deleted ledger N's bookie copy, on what proof?": "ledger show 0",
}
WIDTH: Final = 100


@dataclass(frozen=True, slots=True)
class Rendering:
    """One command line, how it ended, and what it printed."""

    line: str
    code: int
    out: str
    err: str

    @property
    def words(self) -> list[str]:
        return shlex.split(self.line)


def tell_story(screen: Screen, lines: Iterable[str] = STORY) -> Iterator[Rendering]:
    """The story on a fleet of its own; ages are counted to the fleet's clock."""
    with tempfile.TemporaryDirectory() as folder:
        fleet = TerminalFleet()
        with fleet.served(Path(folder)):
            words = fleet.words
            for line in lines:
                given = line.format(**words)
                now = fleet.stack.objects.server_time()
                out, err = io.StringIO(), io.StringIO()
                with (
                    redirect_stdout(out),
                    redirect_stderr(err),
                    printing_on(replace(screen, now=now)),
                ):
                    code = run(shlex.split(given))
                texts = (_without_machine(one.getvalue(), folder) for one in (out, err))
                yield Rendering(given, code, *texts)


def _without_machine(text: str, folder: str) -> str:
    """Without what no two machines share."""
    text = re.sub(r"(survey_(?:duration|age)_seconds\D+)[0-9.e+-]+", r"\1TIME", text)
    text = re.sub(r"(SHA-256 of its facts )[0-9a-f]{64}", r"\1DIGEST", text)  # of run times, too
    # A record's digest is of its writer's host and process, too.
    text = re.sub(r"(to be released on certificate )[0-9a-f]{64}", r"\1DIGEST", text)
    text = re.sub(r"(released by run \S+, )\S+", r"\1HOST", text)
    return text.replace(folder, "FOLDER").replace(str(ROOT), "TREE")


def pictures(renderings: Iterable[Rendering]) -> dict[str, str]:
    """The files of docs/terminals: name and text. The renderings are of WIDTH columns."""
    found: dict[str, list[str]] = {name: [] for name in PICTURES}
    asked = dict[str, str]()
    wanted: Mapping[str, str] = PICTURES
    for one in renderings:
        errors = [line for line in one.err.splitlines(True) if line.startswith("error: ")]
        shown = "".join((f"$ tierkeeper {one.line}\n", one.out, *errors))
        asked.setdefault(one.line, shown)  # as it was before anything was changed
        for name, begin in wanted.items():
            if one.line == begin or (one.line.startswith(f"{begin} ") and name != "topic-backlog"):
                found[name].append(shown)
    answers = [
        f"# {question}\n{asked[line]}" for question, line in QUESTIONS.items() if line in asked
    ]
    files = {f"{name}.txt": "\n".join(texts) for name, texts in found.items()}
    return files | {"five-questions.txt": "\n".join(answers)}


def main() -> int:
    shutil.rmtree(DOCS, ignore_errors=True)
    DOCS.mkdir()
    for name, text in pictures(tell_story(Screen(width=WIDTH))).items():
        (DOCS / name).write_text(text, encoding="utf-8")
    sys.stdout.write(f"{len(PICTURES)} pictures in {DOCS.relative_to(ROOT)}\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
