"""Answers have the shapes that the services of BookKeeper 4.17 give."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.support.bookie_admin import CollectingBookie, DiskInfo
from tiering_assets.resources.bookkeeper.admin import BookieState
from tiering_assets.resources.errors import BookieError


class Server:
    def __init__(self):
        self.url = ""
        self.answers = {}
        self.seen = []


@pytest.fixture
def server():
    state = Server()

    class Handler(BaseHTTPRequestHandler):
        def _answer(self):
            length = int(self.headers.get("Content-Length") or 0)
            body = self.rfile.read(length)
            state.seen.append((self.command, self.path, json.loads(body) if body else None))
            status, text = state.answers.get(self.path, (404, "no such path"))
            self.send_response(status)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text.encode())

        do_GET = do_PUT = _answer  # noqa: N815

        def log_message(self, *args):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        http.daemon_threads = True
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        state.url = f"http://127.0.0.1:{http.server_address[1]}"
        yield state
        http.shutdown()
        thread.join()


@pytest.fixture
def admin(server):
    with CollectingBookie(server.url + "/", timeout_s=5) as made:
        yield made


@pytest.mark.parametrize(("major", "minor"), [(False, False), (True, False), (False, True)])
def test_both_flags_are_said_out_loud(server, admin, major, minor):
    server.answers["/api/v1/bookie/gc"] = (200, '"Triggered GC on BookieServer: bk"')
    admin.trigger_gc(force_major=major, force_minor=minor)
    assert server.seen == [("PUT", "/api/v1/bookie/gc", {"forceMajor": major, "forceMinor": minor})]


@pytest.mark.parametrize(("text", "running"), [("true", True), ("false", False)])
def test_gc_running_reads_the_string_it_gets(server, admin, text, running):
    server.answers["/api/v1/bookie/gc"] = (200, f'{{\n  "is_in_force_gc" : "{text}"\n}}')
    assert admin.gc_running() is running


def test_details_disk_state_and_entry_logs(server, admin):
    details = {
        "forceCompacting": False,
        "majorCompacting": True,
        "minorCompacting": False,
        "lastMajorCompactionTime": 1760000000000,
        "lastMinorCompactionTime": 0,
        "lastEntryLocationCompactionTime": 0,
        "majorCompactionCounter": 0,
        "minorCompactionCounter": 0,
        "entryLocationCompactionCounter": 0,
    }
    server.answers |= {
        "/api/v1/bookie/gc_details": (200, json.dumps([details])),
        "/api/v1/bookie/info": (200, '{"freeSpace": 10, "totalSpace": 30}'),
        "/api/v1/bookie/state": (
            200,
            '{"running":true,"readOnly":false,"shuttingDown":false,'
            '"availableForHighPriorityWrites":true}',
        ),
        "/api/v1/bookie/list_disk_file?file_type=entrylog": (
            200,
            json.dumps({"entrylog files": "0.log\t1a.log\t"}),
        ),
    }
    [found] = admin.gc_details()
    assert (found.major_compacting, found.last_major_compaction_ms) == (True, 1760000000000)
    assert admin.disk_info() == DiskInfo(10, 30)
    assert admin.state() == BookieState(running=True, read_only=False, shutting_down=False)
    assert admin.entry_log_files() == ["0.log", "1a.log"]


CALLS = {
    "/gc": CollectingBookie.gc_running,
    "/gc_details": CollectingBookie.gc_details,
    "/info": CollectingBookie.disk_info,
    "/state": CollectingBookie.state,
}


@pytest.mark.parametrize("path", CALLS)
@pytest.mark.parametrize(
    "answer",
    [
        (500, "boom"),
        (200, "<html>"),
        (200, "null"),
        (200, "{}"),
        (200, "[{}]"),
        (200, "[1]"),
        (200, '{"freeSpace": "many", "totalSpace": null}'),
    ],
)
def test_any_other_answer_is_a_bookie_error(server, admin, path, answer):
    server.answers["/api/v1/bookie" + path] = answer
    with pytest.raises(BookieError, match="bookie admin"):
        CALLS[path](admin)


def test_a_put_that_is_refused_and_a_bookie_without_http_are_bookie_errors(server, admin):
    server.answers["/api/v1/bookie/gc"] = (405, "Not supported method")
    with pytest.raises(BookieError, match="405"):
        admin.trigger_gc()
    with (
        CollectingBookie("http://127.0.0.1:1", timeout_s=1) as nobody,
        pytest.raises(BookieError, match=r"127\.0\.0\.1:1/"),
    ):
        nobody.gc_running()
