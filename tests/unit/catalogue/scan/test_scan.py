"""A scan of topics: what moved is read and nothing else, and nothing is lost whoever is faster."""

from unittest.mock import patch

import pytest

from tests.support.sim_scene import TOPIC
from tests.unit.catalogue.desk import asked
from tiering_assets.catalogue.post import post
from tiering_assets.catalogue.scan import scan as scanning
from tiering_assets.catalogue.scan.scan import scan, scan_again
from tiering_assets.catalogue.scans_told import ScansTold
from tiering_assets.catalogue.settled import SETTLED
from tiering_assets.catalogue.upkeep.keep import keep
from tiering_assets.catalogue.upkeep.settle import settle
from tiering_assets.look.topic.user_topics import readable_topics
from tiering_assets.resources.errors import CatalogueError
from tiering_assets.resources.metastore.topic_names import managed_ledger_path
from tiering_assets.resources.tables import Table

OTHER = "t/ns/persistent/other"


def ledgers(catalogue):
    rows = asked(catalogue, "select * from ledgers order by ledger_id")
    return {row["ledger_id"]: row for row in rows}


def topics(catalogue):
    return {row["topic"]: row for row in asked(catalogue, "select * from topics")}


def states(catalogue):
    return {ledger_id: row["state"] for ledger_id, row in ledgers(catalogue).items()}


def turns(catalogue):
    tables = catalogue.opened()
    return tables["ledger_changes"].turn, tables["topic_changes"].turn


def test_what_no_run_has_taken_up_is_known(scene, catalogue):
    done = scan(scene.stack, catalogue)
    assert (done.topics, done.asked, done.moved, done.ledgers, done.resume) == (1, 1, 1, 2, None)
    found = ledgers(catalogue)
    info, node = scene.stack.topics.read(TOPIC)
    assert [*found] == [one.ledger_id for one in info.ledgers] == [0, 1]
    sealed, opened = found.values()
    assert (sealed["state"], opened["state"]) == ("sealed", "open")
    assert (sealed["entries"], sealed["bytes"]) == (info.ledgers[0].entries, info.ledgers[0].size)
    assert sealed["closed_at"] == info.ledgers[0].closed_at
    assert (sealed["listed_as"], opened["listed_as"]) == ("bookies", "open")
    assert (opened["entries"], opened["bytes"], opened["closed_at"]) == (None, None, None)
    assert {row["topic"] for row in found.values()} == {TOPIC}
    assert {row["ml_version"] for row in found.values()} == {node.stat.version}
    [topic] = topics(catalogue).values()
    assert (topic["czxid"], topic["mzxid"]) == (node.stat.czxid, node.stat.mzxid)
    assert (topic["ledgers"], topic["on_bookies"], topic["offloaded"]) == (2, 1, 0)
    assert topic["on_bookies_bytes"] == info.ledgers[0].size
    assert (topic["terminated"], topic["left_alone"], topic["why"]) == (False, None, None)


def test_a_node_that_did_not_move_is_not_read(scene, catalogue, monkeypatch):
    scan(scene.stack, catalogue)
    before = turns(catalogue)
    read = scene.stack.topics.read_many
    monkeypatch.setattr(
        scene.stack.topics, "read_many", lambda names: read(names) if not names else 1 / 0
    )
    done = scan(scene.stack, catalogue)
    assert (done.asked, done.moved, done.ledgers) == (1, 0, 0)
    assert turns(catalogue) == before  # nothing is written


def test_only_ledgers_of_which_something_is_new_get_rows(scene, catalogue):
    scan(scene.stack, catalogue)
    scene.fill(TOPIC)
    done = scan(scene.stack, catalogue)
    assert (done.moved, done.ledgers) == (1, 2)  # ledger 1 is closed, ledger 2 is open
    assert states(catalogue) == {0: "sealed", 1: "sealed", 2: "open"}


def test_ledgers_of_a_topic_that_is_gone_are_expired(scene, catalogue):
    scene.broker.create_topic(OTHER)
    scan(scene.stack, catalogue)
    del scene.cluster.metadata.nodes[managed_ledger_path(TOPIC)]
    done = scan(scene.stack, catalogue)
    assert (done.moved, done.ledgers) == (1, 2)
    found = ledgers(catalogue)
    assert [found[i]["state"] for i in (0, 1)] == ["expired", "expired"]
    assert {found[i]["listed_as"] for i in (0, 1)} == {"gone"}
    topic = topics(catalogue)[TOPIC]
    assert (topic["czxid"], topic["mzxid"], topic["ledgers"]) == (None, None, None)
    assert topics(catalogue)[OTHER]["czxid"] is not None
    assert scan(scene.stack, catalogue).moved == 0


def test_a_topic_that_was_made_again_is_another_one(scene, catalogue):
    scan(scene.stack, catalogue)
    path = managed_ledger_path(TOPIC)
    before = scene.cluster.metadata.nodes.pop(path)
    scene.cluster.metadata.put(path, before.data)
    done = scan(scene.stack, catalogue)
    assert (done.moved, done.ledgers) == (1, 0)
    stat = scene.cluster.metadata.nodes[path].stat
    assert topics(catalogue)[TOPIC]["czxid"] == stat.czxid != before.stat.czxid


def test_a_ledger_that_its_topic_let_go_of_is_expired_and_the_others_are_not(scene, catalogue):
    scene.publish(0)
    younger = scene.fill(TOPIC)
    scene.end()
    post(scene.stack, catalogue)
    scan(scene.stack, catalogue)
    scene.trim()
    scan(scene.stack, catalogue)
    found = states(catalogue)
    assert found[0] == "expired"
    assert found[younger] == "sealed"


def test_a_node_that_cannot_be_read_is_told_and_changes_no_ledger(scene, catalogue):
    scan(scene.stack, catalogue)
    before = ledgers(catalogue)
    scene.cluster.metadata.put(managed_ledger_path(TOPIC), b"\xff no message")
    done = scan(scene.stack, catalogue)
    assert (done.moved, done.ledgers) == (1, 0)
    assert ledgers(catalogue) == before
    [topic] = topics(catalogue).values()
    assert managed_ledger_path(TOPIC) in topic["why"]
    assert (topic["ledgers"], topic["on_bookies"]) == (None, None)
    assert scan(scene.stack, catalogue).moved == 0  # until somebody writes it


def test_ledgers_that_a_shadow_lists_stay_those_of_their_own_topic(scene, catalogue):
    path, shadow = managed_ledger_path(TOPIC), managed_ledger_path("t/ns/persistent/shadow")
    scan(scene.stack, catalogue)
    before = ledgers(catalogue)
    scene.make_shadow()
    nodes = scene.cluster.metadata.nodes
    own, listed = nodes[path].data, nodes[shadow].data
    scene.cluster.metadata.put(shadow, own + listed)  # messages that stand side by side are one
    scan(scene.stack, catalogue)
    assert ledgers(catalogue) == before
    found = topics(catalogue)["t/ns/persistent/shadow"]
    assert "shadow topic of" in found["left_alone"]


def test_a_time_that_is_up_ends_a_scan_and_the_next_goes_on(scene, catalogue, monkeypatch):
    for number in range(5):
        scene.broker.create_topic(f"t/ns/persistent/n{number}")
    monkeypatch.setattr(scanning, "_STATS", 2)
    first = scan(scene.stack, catalogue, seconds=0)
    assert (first.topics, first.asked, first.moved) == (6, 2, 2)
    assert first.resume == "t/ns/persistent/n1"
    second = scan(scene.stack, catalogue, after=first.resume, seconds=0)
    third = scan(scene.stack, catalogue, after=second.resume, seconds=0)
    assert (second.resume, third.resume) == ("t/ns/persistent/n3", None)
    assert [*sorted(topics(catalogue))] == [*(f"t/ns/persistent/n{n}" for n in range(5)), TOPIC]
    assert scan(scene.stack, catalogue, seconds=60).asked == 6


def test_topics_that_are_known_not_to_have_changed_are_not_asked_for(scene, catalogue):
    scan(scene.stack, catalogue)
    scene.broker.create_topic(OTHER)
    done = scan(scene.stack, catalogue, may_have_moved=lambda _names: [])
    assert (done.topics, done.asked, done.moved) == (2, 1, 1)  # of the new one there is no row
    scene.fill(TOPIC)
    done = scan(
        scene.stack, catalogue, may_have_moved=lambda names: [n for n in names if n == OTHER]
    )
    assert (done.topics, done.asked, done.moved) == (2, 1, 0)
    assert scan(scene.stack, catalogue).moved == 1


def test_large_lots_are_written_one_after_the_other(scene, catalogue, monkeypatch):
    scene.broker.create_topic(OTHER)
    monkeypatch.setattr(scanning, "_LEDGERS", 1)
    assert scan(scene.stack, catalogue).ledgers == 3
    assert turns(catalogue) == (2, 3)  # the last one tells of the pass


# ----- beside posters, and killed


def test_rows_keep_what_records_said_and_records_keep_what_a_scan_saw(scene, catalogue):
    scan(scene.stack, catalogue)
    scene.certify()
    scene.end()
    post(scene.stack, catalogue)
    row = ledgers(catalogue)[0]
    assert row["certified_at"] is not None
    assert row["closed_at"] == scene.stack.topics.read(TOPIC)[0].ledgers[0].closed_at
    scene.fill(TOPIC)
    scan(scene.stack, catalogue)
    assert ledgers(catalogue)[0] == row


def test_a_scan_of_before_counts_less_than_a_record_of_later(scene, catalogue):
    scan(scene.stack, catalogue)
    scene.wait(60)
    scene.publish()
    scene.end()
    post(scene.stack, catalogue)
    assert (states(catalogue)[0], ledgers(catalogue)[0]["listed_as"]) == ("published", "bookies")


def test_a_context_that_went_after_its_record_is_seen_by_the_next_scan(scene, catalogue):
    """The topic lists the ledger as before: its row would not change but for the record between."""
    node = scene.cluster.metadata.nodes[managed_ledger_path(TOPIC)]
    scan(scene.stack, catalogue)
    scene.publish()
    scene.end()
    post(scene.stack, catalogue)
    scene.cluster.metadata.put(managed_ledger_path(TOPIC), node.data)
    scene.wait(60)
    scan(scene.stack, catalogue)
    assert states(catalogue)[0] == "verified"


def test_a_copy_that_a_broker_wrote_is_its_own(scene, catalogue):
    scene.publish()
    scan(scene.stack, catalogue)  # no page was posted: nobody knows of a certificate
    row = ledgers(catalogue)[0]
    assert (row["state"], row["offloaded_by"], row["bookie_copy"]) == (
        "published",
        "broker",
        "live",
    )
    assert row["uid"] == row["context_uid"] == str(scene.context().uid)
    scene.end()
    post(scene.stack, catalogue)
    row = ledgers(catalogue)[0]
    assert (row["offloaded_by"], row["attempts"]) == ("tierkeeper", 1)


def test_a_mark_of_a_broker_is_followed_by_its_delete(scene, catalogue):
    scene.publish()
    scene.past_the_lag()
    scene.release()
    scan(scene.stack, catalogue)
    row = ledgers(catalogue)[0]
    assert (row["listed_as"], row["state"], row["bookie_copy"]) == ("marked", "released", "deleted")


@pytest.mark.parametrize("name", ["ledger_changes", "topic_changes"])
def test_a_poster_that_is_faster_is_let_go_first(scene, catalogue, name):
    really, others = Table.append, [2]
    scene.certify()
    scene.end()

    def late(table, rows, **how):
        if table.name == name and others[0] and how.get("mark") is None:
            others[0] -= 1
            with patch.object(Table, "append", really):
                post(scene.stack, catalogue)
            return False
        return really(table, rows, **how)

    with patch.object(Table, "append", late):
        scan(scene.stack, catalogue)
    assert states(catalogue) == {0: "verified", 1: "open"}
    assert [*topics(catalogue)] == [TOPIC]


def test_one_that_never_gets_its_turn_says_so(scene, catalogue, monkeypatch):
    monkeypatch.setattr(Table, "append", lambda *_given, **_how: False)
    with pytest.raises(CatalogueError, match="other posters were faster 20 times"):
        scan(scene.stack, catalogue)


def test_one_that_dies_between_ledgers_and_topic_looks_again(scene, catalogue):
    really = Table.append

    def dies(table, rows, **how):
        if table.name == "topic_changes":
            raise KeyboardInterrupt
        return really(table, rows, **how)

    with patch.object(Table, "append", dies), pytest.raises(KeyboardInterrupt):
        scan(scene.stack, catalogue)
    assert states(catalogue) == {0: "sealed", 1: "open"}
    done = scan(scene.stack, catalogue)
    assert (done.moved, done.ledgers) == (1, 0)
    assert [*topics(catalogue)] == [TOPIC]


def test_what_commits_tell_of_pages_goes_on(scene, catalogue):
    scene.certify()
    scene.end()
    post(scene.stack, catalogue)
    before = catalogue.as_of(catalogue.opened()["ledger_changes"])
    scan(scene.stack, catalogue)
    assert catalogue.as_of(catalogue.opened()["ledger_changes"]) == before
    assert before.written_at is not None
    assert ledgers(catalogue)[1]["page"] == before.page


# ----- when it was


def told(catalogue):
    return ScansTold.by(catalogue.opened()["topic_changes"]).scanned_at


def test_when_the_last_whole_pass_began_is_told_every_five_minutes(scene, catalogue):
    assert told(catalogue) is None
    first = scan(scene.stack, catalogue).began
    assert told(catalogue) == first
    scene.wait(299)
    scan(scene.stack, catalogue)
    assert told(catalogue) == first
    scene.wait(2)
    later = scan(scene.stack, catalogue).began
    assert first < later == told(catalogue)
    scene.fill(TOPIC)
    scan(scene.stack, catalogue)
    assert told(catalogue) is not None


def test_a_part_of_a_pass_tells_nothing_and_the_last_one_when_the_first_began(
    scene, catalogue, monkeypatch
):
    scene.broker.create_topic(OTHER)
    monkeypatch.setattr(scanning, "_STATS", 1)
    first = scan(scene.stack, catalogue, seconds=0)
    assert told(catalogue) is None
    scene.wait(60)
    scan(scene.stack, catalogue, after=first.resume, began=first.began, seconds=0)
    assert told(catalogue) == first.began


# ----- settled


def test_topics_that_are_settled_are_asked_as_before(scene, catalogue):
    scene.broker.create_topic(OTHER)
    scan(scene.stack, catalogue)
    before = topics(catalogue)
    for name in SETTLED:
        assert settle(catalogue, name, at=scene.stack.now(), tail_max=0).rows == len(
            before if name == "topics" else ledgers(catalogue)
        )
    assert topics(catalogue) == before
    scene.fill(TOPIC)
    done = scan(scene.stack, catalogue)
    assert (done.moved, done.ledgers) == (1, 2)
    now = topics(catalogue)
    assert now[OTHER] == before[OTHER]
    assert now[TOPIC]["mzxid"] > before[TOPIC]["mzxid"]
    assert told(catalogue) == ScansTold.by(catalogue.opened()["topic_changes"]).scanned_at
    assert scan(scene.stack, catalogue).moved == 0


def test_how_often_rows_were_wrong_and_when_a_scan_began_outlives_joined_files(
    scene, catalogue, monkeypatch
):
    monkeypatch.setattr("tiering_assets.catalogue.upkeep.keep.SMALL_MAX", 1)
    began = scan(scene.stack, catalogue).began
    [topic] = readable_topics(scene.stack, [TOPIC])
    scan_again(scene.stack, catalogue, [topic], wrong=3)
    scan_again(scene.stack, catalogue, [topic], wrong=2)
    before = ScansTold.by(catalogue.opened()["topic_changes"])
    assert (before.wrong, before.scanned_at) == (5, began)
    kept = keep(catalogue, store_now=scene.stack.now(), now=scene.stack.now())
    assert "topic_changes" in kept.joined
    assert ScansTold.by(catalogue.opened()["topic_changes"]) == before
