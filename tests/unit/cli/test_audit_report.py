"""`audit verify --report` and `--check-report`, from the command line on simulated servers."""

import json

import pytest

from tests.support.audit_reports import facts_digest
from tests.support.trimmed_cluster import DAY_S, HOUR_S, TOPIC, TrimmedCluster, document
from tiering_assets.audit.report.report_file import ReportKind, make_report
from tiering_assets.cli.main import run
from tiering_assets.cli.shared.exit_codes import FINDINGS, USAGE
from tiering_assets.offload_format.keys import data_key
from tiering_assets.records import keys
from tiering_assets.records.models import Attempt, Certificate, Outcome
from tiering_assets.records.sweep_models import Swept
from tiering_assets.resources.errors import FormatError, IntegrityError, RefusedError

STORE = ("endpoint=http://127.0.0.1:1", "access_key=a", "secret_key=b", "bucket=sim-bucket")
OPTIONS = [word for one in STORE for word in ("--set", f"store.{one}")]


class Audited(TrimmedCluster):
    def __init__(self, monkeypatch, folder, capsys):
        super().__init__()
        self.serve_commands(monkeypatch, folder)
        for module in ("tiering_assets.audit.audit", "tiering_assets.resources.object_store.s3"):
            monkeypatch.setattr(f"{module}.S3ObjectStore", lambda *_a: self.stack.objects)
        self.capsys = capsys

    def verify(self, *words, code=0):
        self.capsys.readouterr()
        assert run(["audit", "verify", *words, *OPTIONS]) == code
        said = self.capsys.readouterr()
        return said.err if code not in (0, FINDINGS) else said.out

    def check(self, *words, code=0):
        return self.verify("--check-report", "r.html", *words, code=code).splitlines()

    def uid(self, ledger_id):
        [key] = self.stack.book.keys(keys.attempts_of(ledger_id))
        return keys.pair_of(key)[1]


@pytest.fixture
def cluster(monkeypatch, tmp_path, capsys):
    return Audited(monkeypatch, tmp_path, capsys)


@pytest.mark.parametrize("kind", ReportKind, ids=lambda kind: kind.name)
def test_a_report_is_written_checked_and_equal(cluster, tmp_path, kind):
    name = f"r{kind.value}"
    told = cluster.verify("--all", "--deep", "--report", name).splitlines()
    digest, body = facts_digest((tmp_path / name).read_text(), kind)
    assert told[-1] == (
        f"report {name}: {(tmp_path / name).stat().st_size / 1024:.1f} KiB, not signed, "
        f"SHA-256 of its facts {digest}"
    )
    assert [one["ledger_id"] for one in body["ledgers"]] == [0, 1, 2]
    assert body["deep"] is True
    for words in ((), ("--deep",)):
        assert cluster.verify("--check-report", name, *words).endswith(
            "3 attempts compared with the bucket: all is equal\n"
        )


def test_json_says_it_all(cluster):
    made = json.loads(cluster.verify("--all", "--report", "r.html", "--json"))
    assert made["written"]["file"] == "r.html"
    assert made["written"]["signed_by"] is None
    checked = json.loads("\n".join(cluster.check("--json")))
    assert checked["result"] == "ok"
    assert checked["findings"] == []
    assert checked["report_check"]["facts_sha256"] == made["written"]["facts_sha256"]
    cluster.world.objects.delete(data_key(cluster.uid(1), 1))
    checked = json.loads("\n".join(cluster.check("--json", code=FINDINGS)))
    [found] = checked["report_check"]["compared"]["differences"]
    assert (found["ledger_id"], found["found"]) == (1, "nothing")
    assert json.loads(cluster.verify("--all", "--json", code=FINDINGS))["written"] is None


@pytest.mark.parametrize("words", [["1", "2"], ["--topic", "t/ns/orders"], ["--namespace", "t/ns"]])
def test_a_selection_is_checked_by_the_same_one(cluster, tmp_path, words):
    cluster.verify(*words, "--report", "r.html")
    _digest, body = facts_digest((tmp_path / "r.html").read_text(), ReportKind.HTML)
    assert body["asked"]["ledger_ids"] == ([1, 2] if words == ["1", "2"] else [0, 1, 2])
    cluster.check()


def test_an_object_that_a_trim_took_is_gone_since_by_its_record(cluster):
    cluster.verify("--all", "--report", "r.html")
    key, uid = data_key(cluster.uid(0), 0), cluster.uid(0)
    cluster.trim()
    assert f"finding: ledger 0, {key}: object: expected 161 bytes, found nothing" in cluster.check(
        code=FINDINGS
    )
    assert run(["scrub", "run", "--execute"]) == 0
    told = cluster.check()
    assert f"ledger 0, {key}: gone since, by record {keys.removal(0, uid)}" in told
    assert told[-1].endswith("2 gone since: all is equal")


def test_an_object_that_a_plan_of_people_took_is_gone_since(cluster, capsys, monkeypatch):
    cluster.verify("--all", "--report", "r.html")
    with monkeypatch.context() as patch:
        patch.setattr(cluster.broker.objects, "delete", lambda _key: None)
        cluster.trim()
    cluster.later(DAY_S)
    plan = document(capsys, "expired-copy", "--plan")["plan"]
    cluster.later(2 * HOUR_S)
    document(capsys, "expired-copy", "--approved", plan, "--execute")
    assert sum("gone since, by record removals/0/" in line for line in cluster.check()) == 2
    uid = cluster.uid(0)
    cluster.stack.book.delete(keys.removal(0, uid))
    cluster.stack.book.delete(keys.swept(0, uid))
    told = cluster.check()
    assert sum(f"gone since, by record {keys.expired_plan(plan)}" in line for line in told) == 2


def test_an_attempt_that_was_given_up_and_swept_is_gone_since(cluster):
    """At the time of the report nobody had decided about it."""
    book, uid = cluster.stack.book, cluster.uid(2)
    outcome = book.require(Outcome, keys.outcome(2, uid))
    [publication] = [key for key in book.keys("publications/") if '"ledger_id":2' in raw(book, key)]
    book.delete(outcome.key)
    book.delete(publication)
    cluster.verify("2", "--report", "r.html")
    certificate = book.require(Certificate, keys.certificate(2, uid))
    objects = (certificate.record.data.key, certificate.record.index.key)
    book.create(
        outcome.key,
        Outcome(
            ledger_id=2,
            uid=uid,
            outcome="abandon",
            reason="late",
            decided_at=outcome.record.decided_at,
            writer=outcome.record.writer,
            previous=certificate.sha256,
        ),
    )
    for key in objects:
        cluster.world.objects.delete(key)
    assert len(cluster.check(code=FINDINGS)) == 4
    swept = Swept(
        ledger_id=2,
        uid=uid,
        ml_name=TOPIC,
        objects=objects,
        uploads=0,
        bytes_freed=1,
        bytes_stay=0,
        why_stay="",
        swept_at=outcome.record.decided_at,
        writer=outcome.record.writer,
        previous=certificate.sha256,
    )
    book.create(keys.swept(2, uid), swept)
    told = cluster.check()
    assert f"ledger 2, {objects[0]}: gone since, by record {keys.swept(2, uid)}" in told


def raw(book, key):
    return json.dumps(dict(book._records.read(key).record), separators=(",", ":"))


def test_what_is_wrong_is_one_line_by_ledger_and_key(cluster):
    cluster.verify("--all", "--report", "r.html")
    uid = cluster.uid(1)
    attempt = cluster.stack.book.require(Attempt, keys.attempt(1, uid))
    cluster.stack.book.delete(attempt.key)
    told = cluster.check(code=FINDINGS)
    assert (
        f"finding: ledger 1, {attempt.key}: SHA-256 of the record: expected {attempt.sha256}, "
        f"found nothing"
    ) in told
    assert told[-1].endswith("findings")


USAGE_ERRORS = {
    "another ending": (["--all", "--report", "r.pdf"], "has to end with .html or .md"),
    "a file that is there": (["--all", "--report", "there.md"], "a report is a new file"),
    "no folder": (["--all", "--report", "none/r.md"], "there is no folder"),
    "two selections": (["--all", "--check-report", "r.md"], "choose by exactly one of"),
    "ids, too": (["1", "--check-report", "r.md"], "choose by exactly one of"),
    "both": (["--check-report", "r.md", "--report", "s.md"], "--report does not go with"),
    "a time": (["--check-report", "r.md", "--in-flight", "1"], "--in-flight does not go with"),
    "no file": (["--check-report", "none.md"], "No such file"),
}


@pytest.mark.parametrize("case", USAGE_ERRORS)
def test_a_wrong_command_line_reads_nothing(cluster, tmp_path, case, monkeypatch):
    words, said = USAGE_ERRORS[case]
    (tmp_path / "there.md").write_text("mine")

    def touched(*_given):
        raise AssertionError("the bucket was opened")

    for module in ("tiering_assets.audit.audit", "tiering_assets.resources.object_store.s3"):
        monkeypatch.setattr(f"{module}.S3ObjectStore", touched)
    assert said in cluster.verify(*words, code=USAGE)
    assert (tmp_path / "there.md").read_text() == "mine"
    assert {path.name for path in tmp_path.iterdir()} == {"there.md"}


def test_a_report_that_does_not_count_ends_in_one_sentence(cluster, tmp_path):
    cluster.verify("--all", "--report", "r.html")
    path = tmp_path / "r.html"
    text = path.read_text()
    cases = {
        text.replace("Nothing is wrong.", "Nothing was wrong."): IntegrityError,
        text[:-20]: FormatError,
        text[:-2]: FormatError,
        text[: len(text) // 2]: FormatError,
        "hello": FormatError,
    }
    for other, error in cases.items():
        path.write_text(other)
        [said] = cluster.check(code=error.exit_code)
        assert said.startswith("error: r.html")
    path.write_text(text)
    said = cluster.verify(
        "--check-report", "r.html", "--instance", "beta", code=RefusedError.exit_code
    )
    assert said == "error: r.html is of instance alpha, and --instance is beta\n"


def test_a_file_that_appears_meanwhile_is_not_overwritten(cluster, tmp_path, monkeypatch):

    def late(*given):
        (tmp_path / "r.md").write_text("mine")
        return make_report(*given)

    monkeypatch.setattr("tiering_assets.audit.report.new_report.make_report", late)
    assert "cannot be written" in cluster.verify("--all", "--report", "r.md", code=11)
    assert (tmp_path / "r.md").read_text() == "mine"
