"""Posts to a real HTTP server on loopback; the URL's secret must be nowhere."""

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from tiering_assets.resources.errors import PrerequisiteError
from tiering_assets.resources.webhook import post_webhook

SECRET = "T0ken-in-the-path"


@contextmanager
def receiver(status):
    got = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            got.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(status)
            if status == 302:
                self.send_header("Location", "/elsewhere")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_words):
            """Keep the test output clean."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/{SECRET}", got
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_a_document_arrives_as_json():
    with receiver(200) as (url, got):
        post_webhook(url, {"schema": "s/1", "text": "ledger 7 ✓"})
    assert got == [{"schema": "s/1", "text": "ledger 7 ✓"}]


@pytest.mark.parametrize("status", [302, 403, 500])
def test_an_answer_that_is_no_success_is_told_once_without_the_url(status):
    with receiver(status) as (url, got), pytest.raises(PrerequisiteError) as raised:
        post_webhook(url, {"text": "x"})
    assert len(got) == 1
    assert str(raised.value) == f"auto.webhook_url: 127.0.0.1 answered {status}"


def test_no_answer_is_told_without_the_url():
    with receiver(200) as (url, _got):
        pass
    with pytest.raises(PrerequisiteError) as raised:
        post_webhook(url, {"text": "x"})
    assert SECRET not in repr(raised.value)
    assert raised.value.__cause__ is None
    assert "no answer from 127.0.0.1" in str(raised.value)
