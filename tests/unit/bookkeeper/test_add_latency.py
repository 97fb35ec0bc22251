"""A bookie's page of figures: what a bookie of 4.17 served, read; anything else is no figure."""

import socket
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from tiering_assets.resources.bookkeeper.add_latency import AddLatency, parse_add_latency
from tiering_assets.resources.bookkeeper.figures_page import PATH, read_add_latency
from tiering_assets.resources.errors import BookieError, FormatError

# Lines of a real page, of a bookie with one journal that a broker had sent 4,002 adds.
REAL = b"""\
# TYPE bookkeeper_server_ADD_ENTRY_REQUEST summary
bookkeeper_server_ADD_ENTRY_REQUEST{success="true",quantile="0.99"} NaN
bookkeeper_server_ADD_ENTRY_REQUEST_count{success="true"} 0
bookkeeper_server_ADD_ENTRY_REQUEST_sum{success="true"} 0.0
bookkeeper_server_ADD_ENTRY_IN_PROGRESS 0
bookkeeper_server_ADD_ENTRY{success="false",quantile="0.99", threadPool="BookieJournal",thread="0"} 7777.0
bookkeeper_server_ADD_ENTRY{success="false",quantile="1.0", threadPool="BookieJournal",thread="0"} -Infinity
bookkeeper_server_ADD_ENTRY_count{success="false", threadPool="BookieJournal",thread="0"} 3
bookkeeper_server_ADD_ENTRY_sum{success="false", threadPool="BookieJournal",thread="0"} 9999.0
bookkeeper_server_ADD_ENTRY{success="true",quantile="0.95", threadPool="BookieJournal",thread="0"} 3.17
bookkeeper_server_ADD_ENTRY{success="true",quantile="0.99", threadPool="BookieJournal",thread="0"} 27.985
bookkeeper_server_ADD_ENTRY{success="true",quantile="0.999", threadPool="BookieJournal",thread="0"} 73.931
bookkeeper_server_ADD_ENTRY_count{success="true", threadPool="BookieJournal",thread="0"} 4002
bookkeeper_server_ADD_ENTRY_sum{success="true", threadPool="BookieJournal",thread="0"} 6186.0
bookkeeper_server_ADD_ENTRY_BLOCKED_WAIT{success="true",quantile="0.99"} 99999.0
"""
SECOND = (
    REAL.replace(b'thread="0"', b'thread="1"').replace(b"27.985", b"30.5").replace(b" 4002", b" 8")
)


def test_a_real_page_gives_the_adds_that_succeeded():
    found = parse_add_latency(REAL)
    assert found == AddLatency(p99_s=27.985 / 1000, count=4002, total_s=6186.0 / 1000)


def test_of_several_journals_the_slowest_counts_and_adds_are_summed():
    found = parse_add_latency(REAL + SECOND)
    assert found.p99_s == pytest.approx(0.0305)
    assert found.count == 4010
    assert found.total_s == pytest.approx(2 * 6.186)


def test_without_adds_in_the_last_window_there_is_no_quantile():
    found = parse_add_latency(REAL.replace(b"27.985", b"NaN"))
    assert found.p99_s is None
    assert found.count == 4002


def test_a_bookie_that_nobody_added_to_yet_has_no_latency():
    """As a bookie's first page: the figure comes with the first add, that of adds under way not."""
    idle = b"".join(
        line
        for line in REAL.splitlines(keepends=True)
        if not line.startswith((b"bookkeeper_server_ADD_ENTRY{", b"bookkeeper_server_ADD_ENTRY_c"))
        and not line.startswith(b"bookkeeper_server_ADD_ENTRY_s")
    )
    assert parse_add_latency(idle) == AddLatency(p99_s=None, count=0, total_s=0.0)


@pytest.mark.parametrize(
    "page",
    [
        b"",
        REAL.replace(b'quantile="0.99"', b'quantile="0.98"'),
        REAL.replace(b"_count{", b"_number{"),
        REAL.replace(b"_sum{", b"_total{"),
        REAL.replace(b"27.985", b"fast"),
        REAL.replace(b" 4002", b" inf"),
    ],
)
def test_a_page_without_the_figure_is_refused(page):
    with pytest.raises(FormatError, match="bookkeeper_server_ADD_ENTRY"):
        parse_add_latency(page)


@contextmanager
def serving(page, status=200):
    asked = []

    class Page(BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            self.send_response(status)
            self.send_header("Content-Length", str(len(page)))
            self.end_headers()
            self.wfile.write(page)

        def log_message(self, *_args):
            pass

    server = HTTPServer(("127.0.0.1", 0), Page)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server.server_address, asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_the_page_is_asked_for_once():
    with serving(REAL) as (address, asked):
        assert read_add_latency(address) == parse_add_latency(REAL)
    assert asked == [PATH]


def test_a_status_that_is_not_200_is_no_answer_whatever_it_says():
    with serving(REAL, status=500) as (address, _), pytest.raises(BookieError, match="HTTP 500"):
        read_add_latency(address)


def test_another_page_is_named_with_its_address():
    with serving(b"hello") as (address, _), pytest.raises(BookieError) as caught:
        read_add_latency(address)
    assert f"http://127.0.0.1:{address[1]}/metrics" in str(caught.value)


def test_nobody_there_and_a_silent_server_are_errors_in_time(closed_port):
    with pytest.raises(BookieError, match="refused"):
        read_add_latency(("127.0.0.1", closed_port))
    with socket.create_server(("127.0.0.1", 0)) as silent, pytest.raises(BookieError):
        read_add_latency(silent.getsockname(), timeout_s=0.05)
