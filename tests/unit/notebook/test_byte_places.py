"""Bytes by state, topic and age, beside what the bucket lists."""

from datetime import timedelta

from tests.support.sim_scene import TOPIC
from tiering_assets.notebook import byte_places
from tiering_assets.notebook.byte_places import KINDS


def figures(frame, name):
    columns = ["ledgers", "bookie_bytes", "object_bytes"]
    return {row[name]: [row[one] for one in columns] for row in frame.to_dict("records")}


def test_bytes_are_where_they_lie(scene, looking):
    scene.publish(0)  # "first" and "last"
    scene.past_the_lag()
    scene.release()
    published = scene.fill(TOPIC, b"one", b"two")
    scene.publish(published)
    scene.fill(TOPIC, b"only here")
    look = looking()
    objects = scene.stack.objects
    size = {i: objects.head(f"{scene.context(i).uid}-ledger-{i}").size for i in (0, published)}
    found = figures(byte_places.by_state(look), "state")
    assert found["released"] == [1, 0, size[0]]
    assert found["published"] == [1, 6, size[published]]
    assert found["sealed"] == [1, 9, 0]
    [[_count, here, there]] = figures(byte_places.by_topic(look), "topic").values()
    assert (here, there) == (15, sum(size.values()))
    listed = {row["kind"]: row for row in byte_places.in_bucket(look).to_dict("records")}
    assert [*listed] == [*KINDS]
    assert (listed["data objects"]["objects"], listed["data objects"]["bytes"]) == (2, there)
    assert listed["index objects"]["objects"] == 2
    assert listed["records and tables"]["objects"] > 5


def test_ages_are_by_when_a_ledger_was_closed(scene, looking):
    look = looking()
    [closed] = look.sql("select closed_at from ledgers where state = 'sealed'")["closed_at"]
    names = []
    for days in (0.5, 3, 20, 100, 800):
        found = byte_places.by_age(look, now=closed.to_pydatetime() + timedelta(days=days))
        [name] = [row["age"] for row in found.to_dict("records") if row["bookie_bytes"]]
        names.append(name)
    assert names == [
        "younger than a day",
        "younger than a week",
        "younger than 30 days",
        "younger than a year",
        "older",
    ]
