"""Which broker a client is sent to, by a real server of HTTP; reading is in tests/stack."""

import json
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import Any

import pytest

from tiering_assets.notebook.consumer_now import SCHEMA, consumer_reads, service_url_of
from tiering_assets.resources.errors import BrokerError
from tiering_assets.resources.settings import BrokerSettings

TOPIC = "t/n/with space"


@pytest.fixture
def admin():
    """Settings of a server that answers as `said` has it, and what it was asked."""
    asked: list[tuple[str, str | None]] = []
    said: dict[str, Any] = {"status": 200, "body": {"brokerUrl": "pulsar://b:6650"}}

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append((self.path, self.headers.get("Authorization")))
            self.send_response(said["status"])
            self.end_headers()
            self.wfile.write(json.dumps(said["body"]).encode())

        def log_message(self, *_words):
            pass

    server = HTTPServer(("127.0.0.1", 0), Answers)
    thread = Thread(target=server.serve_forever)
    thread.start()
    url = f"http://127.0.0.1:{server.server_port}/"
    yield BrokerSettings(admin_url=url, timeout_s=5), said, asked
    server.shutdown()
    thread.join()
    server.server_close()


def test_the_broker_that_has_the_topic_is_asked_for(admin):
    settings, said, asked = admin
    assert service_url_of(settings, TOPIC) == "pulsar://b:6650"
    said["body"] = {"brokerUrl": None, "brokerUrlTls": "pulsar+ssl://b:6651"}
    assert service_url_of(replace(settings, token="tok"), TOPIC) == "pulsar+ssl://b:6651"
    path = "/lookup/v2/topic/persistent/t/n/with%20space"
    assert asked == [(path, None), (path, "Bearer tok")]


@pytest.mark.parametrize(
    ("status", "body"), [(404, {"reason": "no namespace"}), (200, {})], ids=["refused", "nobody"]
)
def test_no_broker_is_an_error_that_says_what_was_answered(admin, status, body):
    settings, said, _asked = admin
    said.update(status=status, body=body)
    with pytest.raises(BrokerError, match=f"with%20space: {status} "):
        service_url_of(settings, TOPIC)


def test_one_that_does_not_answer_is_named(closed_port):
    settings = BrokerSettings(admin_url=f"http://127.0.0.1:{closed_port}", timeout_s=5)
    with pytest.raises(BrokerError, match=f"{closed_port}/lookup"):
        consumer_reads(settings, [TOPIC])


def test_without_a_topic_nobody_is_asked(closed_port):
    settings = BrokerSettings(admin_url=f"http://127.0.0.1:{closed_port}")
    found = consumer_reads(settings, [])
    assert (found.schema, found.num_rows) == (SCHEMA, 0)


def test_credentials_of_a_netrc_file_are_not_sent(admin, tmp_path, monkeypatch):
    settings, _said, asked = admin
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login somebody password secret\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    service_url_of(settings, TOPIC)
    service_url_of(replace(settings, token="tok"), TOPIC)
    assert [sent for _path, sent in asked] == [None, "Bearer tok"]
