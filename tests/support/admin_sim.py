"""A loopback HTTP server that answers admin requests from a table and remembers them."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tiering_assets.resources.settings import Settings


@dataclass(slots=True)
class Answer:
    body: Any = None  # bytes as they are, None empty, anything else as JSON
    status: int = 200
    location: str | None = None
    hang_up: bool = False  # read the request, close without an answer
    release: threading.Event | None = None  # answer only when set


@dataclass(slots=True)
class AdminSimulator:
    """`answers` maps "GET /admin/v2/…" to an Answer; anything else is a 404 with a reason."""

    url: str = ""
    answers: dict[str, Answer] = field(default_factory=dict)
    requests: list[tuple[str, str | None]] = field(default_factory=list)

    @property
    def address(self) -> str:
        return self.url.removeprefix("http://")

    def get(self, path: str, body: Any = None, **answer: Any) -> None:
        self.answers[f"GET /admin/v2{path}"] = Answer(body, **answer)

    def own(self, bundles: Iterable[str], **answer: Any) -> None:
        """Let it tell that it owns these bundles."""
        encoded = self.address.replace(":", "%3A")
        status = {"broker_assignment": "shared", "is_controlled": False, "is_active": True}
        self.get(f"/brokers/c1/{encoded}/ownedNamespaces", dict.fromkeys(bundles, status), **answer)


def tell_broker(admin: AdminSimulator, settings: Settings) -> None:
    """Let it be a broker of cluster c1 that reads our bucket; namespace t/ns has no policies."""
    store = settings.store
    admin.get(
        "/brokers/configuration/runtime",
        {
            "clusterName": "c1",
            "managedLedgerDefaultEnsembleSize": "1",
            "managedLedgerOffloadDriver": settings.offload.driver,
            "managedLedgerOffloadBucket": store.bucket,
            "managedLedgerOffloadRegion": store.region,
            "managedLedgerOffloadServiceEndpoint": store.endpoint,
        },
    )
    admin.get("/brokers/c1", [admin.address])
    admin.get("/namespaces/t/ns", {})


@contextmanager
def running_admin_simulator() -> Iterator[AdminSimulator]:
    simulator = AdminSimulator()

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            line = f"{self.command} {self.path}"
            simulator.requests.append((line, self.headers.get("Authorization")))
            known = simulator.answers.get(line)
            found = known or Answer({"reason": "Topic not found"}, status=404)
            if found.release is not None:
                found.release.wait(10)
            if found.hang_up:
                self.close_connection = True
                return
            body = found.body
            if body is None:
                body = b""
            elif not isinstance(body, bytes):
                body = json.dumps(body).encode()
            self.send_response(found.status)
            if found.location:
                self.send_header("Location", found.location)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_PUT = do_POST = answer  # noqa: N815 - the names http.server looks for

        def log_message(self, format: str, *args: Any) -> None:
            """Keep the test output clean."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    simulator.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield simulator
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
