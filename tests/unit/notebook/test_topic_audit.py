"""A topic is audited for a period over a simulated cluster; its report is checked by the command's
own function.
"""

from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest

from tests.support.pulsar_entries import message
from tests.support.sim_scene import TOPIC
from tiering_assets.audit.report.check_report import check_report
from tiering_assets.look.brakes.holds import hold
from tiering_assets.look.brakes.scopes import topic_scope
from tiering_assets.notebook import topic_audit, topic_story
from tiering_assets.records import keys
from tiering_assets.records.models import HoldLift
from tiering_assets.resources.errors import CatalogueError, IntegrityError, SettingsError

NAME = "t/ns/orders"
EVER = ("2000-01-01", "2100-01-01")
TIME = 1_795_247_080_670


@pytest.fixture
def asked(scene, looking):
    """Ledger 0 released, another one published, a third on bookies alone; their topic is held.

    When messages of ledger 0 were published is not known: they are none of Pulsar's.
    """
    scene.publish(0)
    published = scene.fill(TOPIC, message(TIME, payload=b"one"), message(TIME, payload=b"two"))
    scene.publish(published)
    scene.past_the_lag()
    scene.release()
    scene.fill(TOPIC, b"only here")
    hold(scene.stack, topic_scope(NAME), reason="audit", author="ops")
    return topic_audit.period_of(looking(), NAME, *EVER)


def test_ledgers_of_a_period_have_records_or_lie_on_bookies_alone(asked):
    assert (len(asked.ledger_ids), len(asked.bare_ids)) == (2, 1)
    assert asked.ml_names == (TOPIC,)
    audit = topic_audit.audited(asked, deep=True)
    found = topic_audit.proofs(audit)
    assert found["ledger_id"].tolist() == [*asked.ledger_ids]
    assert {*found["verdict"]} == {"equal"}
    assert (found["bytes_read"] == found["object_bytes"]).all()
    assert topic_audit.findings(audit).empty


def test_what_cannot_be_meant_and_a_topic_that_is_not_there_are_refused(asked):
    with pytest.raises(CatalogueError, match="t/ns/others is not in the catalogue"):
        topic_audit.period_of(asked.look, "t/ns/others", *EVER)
    with pytest.raises(ValueError, match="is not a time"):
        topic_audit.period_of(asked.look, NAME, "never", "ever")


def test_a_period_has_what_was_published_or_changed_in_it_and_what_is_not_known(asked):
    at = topic_story.releases(asked)["released_at"][0]

    def ids(day):
        found = topic_audit.period_of(asked.look, NAME, f"{day:%Y-%m-%d}", f"{day:%Y-%m-%d}")
        return found.ledger_ids

    published = datetime.fromtimestamp(TIME / 1000, UTC)
    assert abs(at - published) > timedelta(days=2)
    assert ids(at) == ids(published) == asked.ledger_ids
    assert ids(published - timedelta(days=900)) == (0,)  # of that one nothing is known


def test_the_story_says_who_and_when(scene, asked):
    [release] = topic_story.releases(asked).to_dict("records")
    assert (release["ledger_id"], release["faults"]) == (0, "")
    acts = topic_story.acts(asked)
    assert {"attempts", "certificates", "outcomes", "publications", "releases"} <= {*acts["kind"]}
    assert release["run_id"] in {*acts[acts["kind"] == "releases"]["run_id"]}
    covered = topic_story.coverage(asked)
    [row] = covered.figures.to_dict("records")
    assert (row["covered"], row["on_bookies"], row["findings"]) == (2, 1, 0)
    assert covered.findings.empty


def test_holds_are_those_of_now_and_lifted_ones_those_of_the_period(scene, asked, looking):
    [topic] = topic_story.holds(asked).to_dict("records")
    assert (topic["scope"], topic["author"], topic["why"]) == ("topic", "ops", "audit (ops)")
    assert topic_story.lifted(asked).empty
    for ledger_id, reason in ((asked.ledger_ids[1], "looked"), (4711, "another topic's")):
        lift = HoldLift(
            hold_key=keys.hold(ledger_id),
            hold_sha256="0" * 64,
            reason=reason,
            author="ann",
            lifted_at=scene.stack.now(),
            writer=scene.stack.writer,
        )
        scene.stack.book.create(keys.hold_lift(uuid4()), lift)
    again = topic_audit.period_of(looking(), NAME, *EVER)
    [lifted] = topic_story.lifted(again).to_dict("records")
    assert (lifted["scope"], lifted["author"], lifted["why"]) == ("ledger", "ann", "looked")
    assert len(topic_story.holds(again)) == 1


@pytest.mark.parametrize("ending", [".html", ".md"])
def test_its_report_holds_until_somebody_edits_it(scene, asked, tmp_path, ending):
    path = tmp_path / f"audit{ending}"
    audit = topic_audit.audited(asked, deep=True)
    written = topic_audit.write_audit(audit, str(path))
    body = path.read_bytes()

    def check(some, deep=False):
        return check_report(scene.stack.objects, scene.stack.settings, some, name="it", deep=deep)

    checked = check(body, deep=True)
    assert (checked.findings, checked.attempts) == ([], 2)
    assert checked.facts_sha256 == written.facts_sha256
    one = str(audit.facts.ledgers[0].bytes_read).encode()  # stands in the facts
    both = str(sum(found.bytes_read for found in audit.facts.ledgers)).encode()  # in the table
    for figure in (one, both):
        assert body.count(figure)
        with pytest.raises(IntegrityError, match="edited"):
            check(body.replace(figure, b"7", 1))


def test_facts_that_were_changed_before_they_were_written_are_other_than_the_bucket(
    scene, asked, tmp_path
):
    audit = topic_audit.audited(asked, deep=False)
    audit.report.sights.attempts.pop()  # what an edited cell of the notebook may do
    path = tmp_path / "audit.html"
    topic_audit.write_audit(audit, str(path))
    stack = scene.stack
    found = check_report(stack.objects, stack.settings, path.read_bytes(), name="it").findings
    assert found
    assert all(f"ledger {asked.ledger_ids[1]}" in one for one in found)


def test_a_report_is_a_new_file_of_a_known_kind(asked, tmp_path):
    audit = topic_audit.audited(asked, deep=False)
    with pytest.raises(SettingsError, match=r"has to end with .html or .md"):
        topic_audit.write_audit(audit, str(tmp_path / "audit.ipynb"))
    topic_audit.write_audit(audit, str(tmp_path / "audit.md"))
    with pytest.raises(SettingsError, match="cannot be written"):
        topic_audit.write_audit(audit, str(tmp_path / "audit.md"))


def test_a_time_with_nothing_in_the_bucket_is_no_audit(scene, looking):
    asked = topic_audit.period_of(looking(), NAME, *EVER)
    assert (asked.ledger_ids, len(asked.bare_ids)) == ((), 1)
    assert asked.span.first == datetime(2000, 1, 1, tzinfo=UTC)
    with pytest.raises(CatalogueError, match="no ledger of persistent://t/ns/orders has a record"):
        topic_audit.audited(asked, deep=False)
