"""What people see of events: in status, by posting, and from doctor."""

import json
import sys
from dataclasses import replace

import pytest

from tests.support.lineage_server import lineage_server
from tests.unit.catalogue.openlineage.outbox import Outbox
from tests.unit.test_openlineage import free_port
from tiering_assets.catalogue.openlineage import telling_state as states
from tiering_assets.catalogue.openlineage.telling_state import (
    WAIT_MAX,
    TellingState,
    check,
    judged,
    telling_state,
)
from tiering_assets.catalogue.pages import newest_page
from tiering_assets.catalogue.view import Catalogue
from tiering_assets.cli import main as cli
from tiering_assets.cli.shared.session import Session
from tiering_assets.ground.finding import asked
from tiering_assets.resources.settings import CatalogueSettings, Settings
from tiering_assets.resources.settings_lineage import OpenLineageSettings


def state(outbox):
    return telling_state(outbox.stack, posted=newest_page(outbox.stack))


def test_where_they_are_switched_off_there_is_nothing_to_tell(desk):
    assert telling_state(desk.stack, posted=0) is None
    desk.objects.calls.clear()
    assert [*check(Settings())] == []
    assert desk.objects.calls == []


def test_before_the_first_posting_nothing_was_sent(desk, catalogue, server):
    found = state(Outbox(desk, catalogue, server.url))
    assert found == TellingState(host="127.0.0.1")
    assert str(found) == "to 127.0.0.1: nothing yet, they begin with the next posting"
    assert judged(found).level == "ok"


def test_the_lag_is_the_age_of_the_oldest_page_that_is_not_told(outbox):
    assert (state(outbox).pages_behind, state(outbox).waits_s) == (0, 0.0)
    outbox.offload([1])
    outbox.pass_by(100)
    outbox.offload([2], run="later")
    found = state(outbox)
    assert (found.page, found.pages_behind) == (0, 4)
    assert 100 <= found.waits_s < 101
    outbox.tell_all()
    found = state(outbox)
    assert (found.page, found.pages_behind, found.waits_s, found.sent) == (4, 0, 0.0, 6)


def test_a_page_that_is_gone_waits_since_its_batch_was_begun(outbox, server):
    outbox.offload([1])
    server.answers.append(500)
    outbox.tell()
    outbox.desk.drop("day-book/" + "9" * 18 + "8.json")  # page 1
    outbox.pass_by(60)
    assert 60 <= state(outbox).waits_s < 61


def test_they_warn_after_an_hour_and_say_why(outbox, server):
    outbox.offload([1])
    server.answers.append(503)
    outbox.tell()
    outbox.pass_by(WAIT_MAX.total_seconds() - 1)
    assert judged(state(outbox)).level == "ok"
    outbox.pass_by(2)
    found = judged(state(outbox))
    assert found.level == "warn"
    assert "1 tries failed: 127.0.0.1 answered 503" in found.text
    assert "look at that address (openlineage.url)" in found.next_step


def test_where_nobody_posts_it_says_so(outbox):
    outbox.offload([1])
    outbox.pass_by(2 * WAIT_MAX.total_seconds())
    found = judged(state(outbox))
    assert found.level == "warn"
    assert found.next_step.startswith("look at the sensor `catalogue`")


@pytest.fixture
def doctor(outbox, monkeypatch):
    """Doctor's question about the outbox's bucket."""

    def findings(**settings):
        monkeypatch.setattr(states, "open_stack", lambda _settings: Opened(outbox.stack))
        monkeypatch.setattr(Catalogue, "of", lambda _stack: outbox.catalogue)
        found = replace(outbox.stack.settings, **settings)
        return [*asked("openlineage", lambda: check(found))]

    return findings


class Opened:
    def __init__(self, stack):
        self.stack = stack

    def __enter__(self):
        return self.stack

    def __exit__(self, *_why):
        return None


def test_doctor_asks_how_far_they_came(doctor):
    [found] = doctor()
    assert (found.level, found.check) == ("ok", "openlineage")
    assert found.text == "to 127.0.0.1: 0 sent, told up to page 0"


def test_doctor_says_what_events_need(doctor, monkeypatch):
    [warned, _state] = doctor(catalogue=CatalogueSettings(enabled=False))
    assert (warned.level, "catalogue.enabled is false" in warned.text) == ("warn", True)
    monkeypatch.setattr(states, "missing_package", lambda: "deltalake")
    [failed] = doctor()
    assert (failed.level, "deltalake is not installed" in failed.text) == ("fail", True)
    monkeypatch.setitem(sys.modules, "openlineage", None)
    [failed] = doctor()
    assert (failed.level, "openlineage-python is not installed" in failed.text) == ("fail", True)


class TestCommands:
    """`catalogue post` and `catalogue status` over a simulated cluster."""

    @pytest.fixture
    def run(self, scene, monkeypatch, capsys, tmp_path):
        monkeypatch.chdir(tmp_path)

        def run(*words, url, code=0):
            settings = replace(scene.stack.settings, openlineage=OpenLineageSettings(url=url))
            stack = replace(scene.stack, settings=settings)
            monkeypatch.setattr(Session, "stack", lambda _self: Opened(stack))
            monkeypatch.setattr(Session, "settings", settings)
            assert cli.run(["catalogue", *words]) == code
            return capsys.readouterr()

        return run

    def test_posting_sends_and_status_tells(self, run, scene):
        with lineage_server() as server:
            assert "they begin behind page 0" in run("post", url=server.url).out
            scene.publish()
            scene.end()
            said = run("post", url=server.url).out.splitlines()
            assert said[-1].startswith("4 OpenLineage events sent: told up to page 2")
            found = json.loads(run("status", "--json", url=server.url).out)["openlineage"]
            assert (found["host"], found["page"], found["sent"]) == ("127.0.0.1", 2, 4)
            lines = run("status", url=server.url).out
            assert "OpenLineage events" in lines
            assert "to 127.0.0.1: 4 sent, told up to page 2" in lines
            assert server.told[:2] == ["offload START 0", "offload COMPLETE 1"]

    def test_a_dead_address_is_no_error_of_a_posting(self, run, scene):
        url = f"http://127.0.0.1:{free_port()}"
        run("post", url=url)
        scene.publish()
        scene.end()
        found = json.loads(run("post", "--json", url=url).out)
        assert found["pages"] == 2
        assert "no answer from 127.0.0.1" in found["openlineage"]["why"]
        assert json.loads(run("status", "--json", url=url).out)["openlineage"]["tries"] == 1

    def test_without_the_client_pages_are_posted_and_then_it_fails_by_name(
        self, run, scene, monkeypatch
    ):
        monkeypatch.setitem(sys.modules, "openlineage", None)
        scene.publish()
        scene.end()
        told = run("post", url="http://lineage.example", code=12)
        assert told.out.startswith("2 pages with")
        assert "tierkeeper[openlineage]" in told.err

    def test_switched_off_there_is_no_word_of_it(self, run, scene):
        scene.publish()
        scene.end()
        assert "OpenLineage" not in run("post", url="").out + run("status", url="").out
        assert json.loads(run("status", "--json", url="").out)["openlineage"] is None
