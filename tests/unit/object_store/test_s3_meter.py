"""The S3 client with a meter: every try of every request asks, and slow bodies arrive whole."""

from __future__ import annotations

import threading
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tiering_assets.resources.errors import ObjectStoreError, SettingsError
from tiering_assets.resources.object_store.s3 import S3ObjectStore
from tiering_assets.resources.object_store.store import Part
from tiering_assets.resources.settings import StoreSettings


class Meter:
    """Allows slices of so many bytes; `log` has every question in order."""

    def __init__(self, *, slices=None):
        self.slices, self.log = slices, []

    def request(self):
        self.log.append("request")

    def upload(self, size):
        self.log.append(("upload", size))
        return min(size, self.slices)

    def bounds_uploads(self):
        return self.slices is not None


class Server:
    """Answers PUTs with 200 after it refused so many; `bodies` are all that came."""

    def __init__(self, refusals):
        self.bodies: list[bytes] = []
        self.announced: list[str | None] = []
        self.types: list[str | None] = []
        self.refusals = refusals
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, format, *args):
                """Nothing goes to standard error."""

            def do_PUT(self):
                assert "Transfer-Encoding" not in self.headers
                server.announced.append(self.headers["Expect"])
                server.types.append(self.headers["Content-Type"])
                server.bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
                self.send_response(503 if server.refusals > 0 else 200)
                server.refusals -= 1
                self.send_header("ETag", '"e"')
                self.send_header("Content-Length", "0")
                self.end_headers()

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.02,))

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.thread.join(5)
        self.server.server_close()

    def store(self, meter):
        settings = StoreSettings(
            endpoint=f"http://127.0.0.1:{self.server.server_port}",
            bucket="b",
            access_key="k",
            secret_key="s",
            attempts_max=3,
        )
        return S3ObjectStore(settings, meter=meter)


BODY = bytes(range(256)) * 40_000  # ten megabytes


@pytest.mark.parametrize(
    "body", [BODY, bytearray(BODY), memoryview(BODY)], ids=lambda b: str(type(b))
)
def test_a_part_leaves_in_the_slices_that_were_allowed(body):
    meter = Meter(slices=100_000)
    with Server(refusals=0) as server:
        part = server.store(meter).upload_part(
            "k", "u", part_number=1, body=body, sha256=sha256(BODY).digest()
        )
    assert part.size == len(BODY)
    assert server.bodies == [BODY]
    assert meter.log[0] == "request"
    assert meter.log[1:] == [("upload", left) for left in range(len(BODY), 0, -100_000)]


def test_every_try_asks_anew_and_sends_the_whole_body():
    meter = Meter(slices=7_000_000)
    with Server(refusals=1) as server:
        server.store(meter).put("k", BODY)
    assert server.bodies == [BODY, BODY]
    once = ["request", ("upload", 10_240_000), ("upload", 3_240_000)]
    assert meter.log == once * 2


def test_without_a_bound_of_uploads_bodies_are_sent_as_they_are():
    meter = Meter()
    with Server(refusals=0) as server:
        server.store(meter).put("k", BODY)
    assert server.bodies == [BODY]
    assert meter.log == ["request"]


@pytest.mark.parametrize("if_absent", [True, False])
@pytest.mark.parametrize("body", [BODY, b"short"], ids=["long", "short"])
def test_only_a_long_body_that_a_condition_may_refuse_waits_for_a_word(body, if_absent):
    """It is a round trip more."""
    with Server(refusals=0) as server:
        server.store(Meter()).put("k", body, if_absent=if_absent)
    long_and_conditional = if_absent and body == BODY
    assert server.announced == ["100-continue" if long_and_conditional else None]


def test_a_part_is_sent_at_once_and_says_that_it_is_bytes():
    """A store that is not told looks for itself, and may compress what it takes for text."""
    with Server(refusals=0) as server:
        digest = sha256(BODY).digest()
        server.store(Meter()).upload_part("k", "u", part_number=1, body=BODY, sha256=digest)
    assert server.announced == [None]
    assert server.types == ["application/octet-stream"]


def test_a_request_of_words_is_metered_as_bytes():
    """The body that completes an upload is XML that botocore writes itself."""
    meter = Meter(slices=50)
    with Server(refusals=0) as server, pytest.raises(ObjectStoreError):  # it answers no POST
        server.store(meter).complete_upload("k", "u", [Part(part_number=1, size=1, etag="e")])
    asked = [each for each in meter.log if each != "request"]
    assert asked
    assert all(kind == "upload" for kind, _left in asked)


@pytest.mark.parametrize("ask", ["head", "get", "delete"])
def test_a_meter_may_read_by_the_store_it_is_of(ask):
    """A budget is a record: what has no body does not ask for the bound that it is to tell."""

    class Reads(Meter):
        def bounds_uploads(self):
            raise AssertionError("nothing is uploaded")

    meter = Reads()
    with Server(refusals=0) as server, pytest.raises(ObjectStoreError):  # it answers PUTs alone
        getattr(server.store(meter), ask)("k")
    assert set(meter.log) == {"request"}


def test_what_a_meter_raises_comes_out_as_it_is():
    class Refuses(Meter):
        def request(self):
            raise SettingsError("budget upload_bytes_per_s = 1: at least 5")

    with Server(refusals=0) as server, pytest.raises(SettingsError, match="at least 5"):
        server.store(Refuses()).put("k", b"x")
    assert server.bodies == []
