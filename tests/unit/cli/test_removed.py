"""What commands say of ledgers that are gone from their topics."""

import json

import pytest

from tests.support.trimmed_cluster import DAY_S, HOUR_S, TrimmedCluster, document
from tests.support.two_checkers import kinds, second_opinion
from tiering_assets.audit.audit import audit_store
from tiering_assets.clean import removal
from tiering_assets.cli.main import run

COMMANDS = (["scrub", "run"], ["orphan", "sweep", "--execute"])


@pytest.fixture
def cluster(monkeypatch, tmp_path):
    cluster = TrimmedCluster()
    cluster.serve_commands(monkeypatch, tmp_path)
    return cluster


def audited(cluster):
    report = audit_store(cluster.stack.objects, cluster.stack.settings)
    found = kinds(report.findings)
    assert second_opinion(cluster.stack.objects, cluster.stack.instance)[0] == found
    return found, report.removed


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: words[0])
def test_a_trim_is_recorded_and_audits_know(cluster, capsys, words):
    cluster.trim()
    assert audited(cluster) == ({("object_missing", 0)}, 0)
    capsys.readouterr()
    assert run([*words, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["removed"] == [0]
    assert audited(cluster) == (set(), 1)
    cluster.trim(1)
    assert run(words) == 0
    assert "1 ledgers are gone from their topics; recorded" in capsys.readouterr().out


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: words[0])
def test_too_many_at_once_are_a_finding(cluster, capsys, words, monkeypatch):
    monkeypatch.setattr(removal, "SMALL", 0)
    cluster.trim()
    capsys.readouterr()
    assert run(words) == 1
    told = capsys.readouterr().out
    assert "the ledgers of 1 of 3 attempts at once, more than the 10% of" in told
    assert audited(cluster) == ({("object_missing", 0)}, 0)


def test_what_an_approved_plan_deleted_is_missed_by_nobody(cluster, capsys, monkeypatch):
    """Its broker could not delete the objects; a person had them deleted."""
    with monkeypatch.context() as patch:
        patch.setattr(cluster.broker.objects, "delete", lambda _key: None)
        cluster.trim()
    cluster.later(DAY_S)
    plan = document(capsys, "expired-copy", "--plan")["plan"]
    cluster.later(2 * HOUR_S)
    [done] = document(capsys, "expired-copy", "--approved", plan, "--execute")["copies"]
    assert done["decision"] == "deleted"
    assert audited(cluster) == (set(), 1)
