"""A store that takes multipart uploads and throws the bodies away: what a client can do at most.

    python -m benchmarks.sink        prints its port; ends when standard input does

Owns nothing but the count of bytes, which its Complete answers with as the ETag. It answers just
what boto3's multipart upload needs, and checks nothing.
"""

from __future__ import annotations

import os
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

_BUFFER_BYTES = 1024 * 1024
_CREATED = b"<InitiateMultipartUploadResult><UploadId>%d</UploadId></InitiateMultipartUploadResult>"
_COMPLETED = b'<CompleteMultipartUploadResult><ETag>"%d"</ETag></CompleteMultipartUploadResult>'


class Sink(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1
    swallowed = 0
    lock = threading.Lock()

    def do_PUT(self) -> None:
        size = self._swallow()
        with Sink.lock:
            Sink.swallowed += size
        self._answer(b"")

    def do_POST(self) -> None:
        self._swallow()
        with Sink.lock:
            if "uploadId=" in self.path:
                self._answer(_COMPLETED % Sink.swallowed)
            else:
                Sink.swallowed = 0
                self._answer(_CREATED % 1)

    def handle_expect_100(self) -> bool:
        """Answer at once: a client waits a second for it."""
        done = super().handle_expect_100()
        self.wfile.flush()
        return done

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""

    def _swallow(self) -> int:
        left = size = int(self.headers.get("Content-Length", 0))
        buffer = memoryview(bytearray(min(_BUFFER_BYTES, max(1, size))))
        while left:
            count = self.rfile.readinto1(buffer[: min(left, len(buffer))])
            if count == 0:
                break
            left -= count
        return size - left

    def _answer(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("ETag", '"sink"')
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()


def main() -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Sink)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.server_address[1], flush=True)
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    main()
