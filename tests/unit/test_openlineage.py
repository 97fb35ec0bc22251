"""Events by the project's own client to a real HTTP server; nobody waits longer than is said."""

import socket
import sys
import time

import pytest

from tests.support.lineage_server import DRIP, DROP, HOLD, lineage_server
from tests.unit.records.examples import AT
from tiering_assets.catalogue.openlineage.datasets import EventPlace, posting_events
from tiering_assets.catalogue.openlineage.event_json import run_event
from tiering_assets.resources.errors import PrerequisiteError
from tiering_assets.resources.openlineage import (
    OpenLineageEndpoint,
    Reception,
    missing_package,
    require_package,
)
from tiering_assets.resources.settings_lineage import OpenLineageSettings

KEY = "planted-api-key"
PLACE = EventPlace(
    instance="inst", bucket="b", topics="pulsar://c", root="/tables", records="tierkeeper/inst/"
)
[EVENT, _END] = [
    run_event(said, namespace="n", cluster="c") for said in posting_events(1, 2, AT, PLACE)
]


def sent(url, *, seconds=5.0, **settings):
    endpoint = OpenLineageEndpoint(OpenLineageSettings(url=url, **settings))
    try:
        return endpoint.send(EVENT, seconds=seconds)
    finally:
        endpoint.close()


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


@pytest.mark.parametrize("slash", ["", "/"])
@pytest.mark.parametrize("below", ["", "/openapi/openlineage"])
def test_an_event_arrives_below_the_address_with_the_key(below, slash):
    with lineage_server() as server:
        assert sent(server.url + below + slash, api_key=KEY) == (Reception.TAKEN, "", False)
    assert server.asked == [(f"{below}/api/v1/lineage", f"Bearer {KEY}")]
    assert [one["eventType"] for one in server.events] == ["START"]


def test_without_a_key_none_is_sent_whatever_a_netrc_says(tmp_path, monkeypatch):
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login me password mine\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    with lineage_server() as server:
        assert sent(server.url).taken is Reception.TAKEN
    assert server.asked == [("/api/v1/lineage", None)]


@pytest.mark.parametrize(
    ("status", "taken"),
    [
        (201, Reception.TAKEN),
        (302, Reception.UNTAKEN),
        (304, Reception.UNTAKEN),
        (400, Reception.REFUSED),
        (401, Reception.UNTAKEN),
        (404, Reception.UNTAKEN),
        (413, Reception.REFUSED),
        (422, Reception.REFUSED),
        (429, Reception.UNTAKEN),
        (500, Reception.UNTAKEN),
        (503, Reception.UNTAKEN),
    ],
)
def test_each_event_is_asked_once_and_its_answer_tells_what_became_of_it(status, taken):
    with lineage_server(status) as server:
        answer = sent(server.url, api_key=KEY)
    assert answer.taken is taken
    assert len(server.asked) == 1
    assert (answer.why == "") == (taken is Reception.TAKEN)
    if taken is not Reception.TAKEN and status != 302:
        assert answer.why == f"127.0.0.1 answered {status}"


def test_an_address_that_sends_elsewhere_is_told_and_the_key_goes_nowhere_else():
    with lineage_server(302) as server:
        answer = sent(server.url, api_key=KEY)
    assert answer.why == "127.0.0.1 sends elsewhere: set openlineage.url to there"
    assert [path for path, _key in server.asked] == ["/api/v1/lineage"]


@pytest.mark.parametrize("answer", [HOLD, DRIP])
def test_nobody_waits_longer_than_is_said(answer):
    """Also where bytes come all the time: each is in time, and their end is not."""
    with lineage_server(answer) as server:
        began = time.monotonic()
        found = sent(server.url, seconds=0.3)
        assert time.monotonic() - began < 2.0
    assert (found.taken, found.is_silence) == (Reception.UNTAKEN, True)
    assert found.why == "127.0.0.1 did not answer within 0.3 s"


def test_a_connection_that_ends_without_an_answer_is_told_by_the_host():
    with lineage_server(DROP) as server:
        found = sent(server.url)
    assert (found.taken, found.is_silence) == (Reception.UNTAKEN, False)
    assert found.why.startswith("no answer from 127.0.0.1: ")


def test_where_nobody_listens_it_ends_at_once():
    began = time.monotonic()
    found = sent(f"http://127.0.0.1:{free_port()}", api_key=KEY)
    assert time.monotonic() - began < 2.0
    assert found.why == "no answer from 127.0.0.1: ConnectionError"


def test_the_key_is_in_no_text(capsys, caplog):
    caplog.set_level(0)
    for answer in (200, 302, 401, 500, DROP):
        with lineage_server(answer) as server:
            found = sent(server.url, api_key=KEY)
        assert KEY not in repr(found)
    assert KEY not in repr(OpenLineageSettings(url="http://h", api_key=KEY))
    shown = capsys.readouterr()
    assert KEY not in caplog.text + shown.out + shown.err


@pytest.mark.parametrize("module", ["openlineage", "openlineage.client"])
def test_without_the_client_its_package_is_named(module, monkeypatch):
    """Other packages bring `openlineage` without its client."""
    require_package()
    assert missing_package() is None
    monkeypatch.setitem(sys.modules, module, None)
    assert missing_package() == "openlineage-python"
    with pytest.raises(PrerequisiteError, match=r"pip install 'tierkeeper\[openlineage\]'"):
        require_package()
