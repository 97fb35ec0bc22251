"""`schema archive|list|show` over a simulated cluster, and what follows a publication."""

import json
from base64 import b64encode
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import pytest

from tests.support.sim_scene import TOPIC, Scene
from tests.support.stored_schemas import Registry
from tiering_assets.cli.main import run
from tiering_assets.cli.shared.session import Session
from tiering_assets.resources.errors import (
    FormatError,
    IntegrityError,
    LedgerNotFoundError,
    MetadataError,
    ObjectStoreError,
    TierkeeperError,
)
from tiering_assets.schemas.archive import ArchivedTopic
from tiering_assets.schemas.topics import (
    NotArchived,
    archive_published,
    archive_topics,
    errors_of,
    topics_with_schemas,
    whole_topics,
)

ONE, TWO = b'{"type":"string"}', b'{"type":"long"}'
NAME = "t/ns/orders"
OTHER = "t/ns/persistent/payments"


@pytest.fixture
def scene(monkeypatch):
    scene = Scene()

    @contextmanager
    def opened(_session, _runner=None):
        yield scene.process("command")

    monkeypatch.setattr(Session, "stack", opened)
    return scene


@pytest.fixture
def registry(scene):
    return Registry(scene.cluster, "/schemas/t/ns/orders")


class Told:
    """Lines of a command's standard output and error, or its document."""

    def __init__(self, capsys):
        self._capsys = capsys

    def __call__(self, *words, code=0):
        self._capsys.readouterr()
        assert run(["schema", *map(str, words)]) == code
        found = self._capsys.readouterr()
        return found.out.splitlines(), found.err.splitlines()

    def document(self, *words, code=0):
        found = json.loads("\n".join(self(*words, "--json", code=code)[0]))
        assert found.pop("schema") == f"tierkeeper/schema-{words[0]}/1"
        return found


@pytest.fixture
def told(scene, capsys):
    return Told(capsys)


def test_archive_list_and_show_one_topic(registry, told):
    registry.register(ONE, properties={"a": "b"})
    out, err = told("archive", NAME)
    assert out == ["1 of 1 versions of 1 topics are new in the bucket"]
    assert err == ["1 of 1 topics: persistent://t/ns/orders"]
    assert told("archive", NAME)[0] == ["0 of 1 versions of 1 topics are new in the bucket"]
    assert told("list", NAME)[0][-1] == "1 schemas"
    assert "AVRO" in told("list", NAME)[0][1]
    shown = told("show", NAME)[0]
    assert shown[-1] == ONE.decode()
    assert 'properties     {"a": "b"}' in shown


def test_documents_have_all_of_it(registry, told):
    registry.register(ONE)
    registry.register(b"\xff")
    assert told.document("archive", "--all") == {
        "topics": [
            {"topic": f"persistent://{NAME}", "versions": 2, "written": [0, 1], "errors": []}
        ]
    }
    listed = told.document("list", NAME)
    assert [one["version"] for one in listed["schemas"]] == [0, 1]
    assert [one["bytes"] for one in listed["schemas"]] == [len(ONE), 1]
    first, second = (told.document("show", NAME, "--version", n) for n in (0, 1))
    assert (first["definition"], second["definition"]) == (ONE.decode(), None)
    assert second["definition_base64"] == b64encode(b"\xff").decode()
    assert first["found"]
    assert first["registered_at"] == "1970-01-01T00:00:00.001000+00:00"


def test_of_incarnations_the_newest_is_meant(registry, told):
    registry.register(ONE)
    told("archive", NAME)
    first = told.document("show", NAME)["incarnation"]
    registry.forget()
    registry.register(TWO)
    told("archive", NAME)
    assert told.document("show", NAME)["definition"] == TWO.decode()
    assert told.document("show", NAME, "--incarnation", first)["definition"] == ONE.decode()


def test_what_is_not_archived_is_said(registry, told):
    assert "no such schema is archived" in told("show", NAME, code=1)[0][0]
    assert told.document("show", NAME, code=1)["found"] is False
    assert told("list", NAME)[0][-1] == "0 schemas"


def test_errors_are_told_and_decide_the_exit_code(registry, told, scene):
    registry.register(ONE)
    scene.cluster.delete_ledger(registry.ledgers[0])
    code = LedgerNotFoundError.exit_code
    out, err = told("archive", NAME, code=code)
    assert any("which BookKeeper does not have" in line for line in err)
    assert out == ["0 of 1 versions of 1 topics are new in the bucket"]
    [one] = told.document("archive", "--all", code=code)["topics"]
    assert [error["error"] for error in one["errors"]] == ["LedgerNotFoundError"]


def test_a_topic_or_all_and_one_that_is_understood(told):
    for words in ((), (NAME, "--all"), ("none/such/topic",)):
        told("archive", *words, code=2)
    told("list", "no-topic", code=2)


def test_all_are_user_topics_with_schemas(scene, registry):
    registry.register(ONE)
    for number in range(2):
        scene.broker.create_topic(f"{OTHER}-partition-{number}")
    scene.broker.create_topic("t/ns/persistent/__change_events")
    Registry(scene.cluster, "/schemas/t/ns/payments").register(TWO)
    Registry(scene.cluster, "/schemas/t/ns/__change_events").register(TWO)
    assert topics_with_schemas(scene.stack) == {
        TOPIC: [TOPIC],
        OTHER: [f"{OTHER}-partition-0", f"{OTHER}-partition-1"],
    }


def test_a_topic_that_fails_hides_no_other(scene, registry):
    registry.register(ONE)
    scene.cluster.metadata.put("/schemas/t/ns/broken", b"\xff")
    names = ["t/ns/persistent/broken", TOPIC]
    broken, sound = archive_topics(scene.process("run"), whole_topics(names))
    assert isinstance(broken, NotArchived)
    assert [type(error) for error in errors_of(broken)] == [FormatError]
    assert isinstance(sound, ArchivedTopic)
    assert (errors_of(sound), len(sound.written)) == ([], 1)


@pytest.mark.parametrize("error", [MetadataError("down"), ObjectStoreError("down")])
def test_an_outage_ends_it(scene, error):
    with (
        patch("tiering_assets.schemas.topics.archive_schemas", side_effect=error),
        pytest.raises(type(error)),
    ):
        list(archive_topics(scene.stack, whole_topics([TOPIC])))


class Following:
    def __init__(self, error=None):
        self.asked, self.told, self.error = [], [], error
        self.time = True

    def __call__(self, published):
        def archive(_stack, name, _partitions):
            self.asked.append(name)
            if self.error is not None:
                raise self.error
            return ArchivedTopic(ml_name=name, versions=1, failed=((0, IntegrityError("x")),))

        with patch("tiering_assets.schemas.topics.archive_schemas", archive):
            stack: Any = None
            return archive_published(
                stack, published, has_time=lambda: self.time, tell=self.told.append
            )


PUBLISHED = [(7, TOPIC), (8, f"{OTHER}-partition-0"), (8, f"{OTHER}-partition-1"), (9, TOPIC)]


def test_each_topic_that_was_published_is_archived_once():
    following = Following()
    assert following(PUBLISHED) is None
    assert following.asked == [TOPIC, OTHER]
    assert following.told == [f"schemas of {name} are not archived: x" for name in (TOPIC, OTHER)]


def test_without_time_the_first_is_done_and_the_page_of_the_next_is_told():
    following = Following()
    following.time = False
    assert following(PUBLISHED) == 8
    assert following.asked == [TOPIC]
    assert following([]) is None


@pytest.mark.parametrize("error", [MetadataError("down"), TierkeeperError("odd")])
def test_nothing_fails_because_schemas_do(error):
    following = Following(error)
    assert following(PUBLISHED) is None
    assert len(following.told) == 2
