"""Reading the nodes of very many topics: one after the other, and with several reads on their way.

    python benchmarks/many_reads.py --topics 20000 --delay-ms 20

Nodes of three ledgers each lie in a real ZooKeeper, behind a proxy that holds back every answer by
the delay. Prints a JSON line per window: topics in a second, the whole, decoding included. One
after the other reads a twentieth of them.
"""

from __future__ import annotations

import argparse
import json
import queue
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Iterable
from pathlib import Path
from unittest.mock import patch

from benchmarks.first_start import fill
from tiering_assets.resources.devstack.options import StackOptions
from tiering_assets.resources.devstack.stack import DevStack
from tiering_assets.resources.metastore import zookeeper
from tiering_assets.resources.metastore.ledger_info import decode_managed_ledger
from tiering_assets.resources.metastore.topics import TopicDirectory
from tiering_assets.resources.metastore.zookeeper import ZooKeeperStore

WINDOWS = (1, 16, 64, 256, 1024)


class DelayingProxy:
    """Forwards at once, and holds back what comes the other way."""

    def __init__(self, upstream: str, delay_s: float) -> None:
        host, port = upstream.rsplit(":", 1)
        self._upstream, self._delay_s = (host, int(port)), delay_s
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            client, _ = self._listener.accept()
            server = socket.create_connection(self._upstream)
            held: queue.Queue[tuple[float, bytes]] = queue.Queue()
            for act, args in (
                (self._forward, (client, server)),
                (self._hold, (server, held)),
                (self._let_go, (held, client)),
            ):
                threading.Thread(target=act, args=args, daemon=True).start()

    @staticmethod
    def _forward(source: socket.socket, target: socket.socket) -> None:
        while data := source.recv(1 << 16):
            target.sendall(data)

    def _hold(self, source: socket.socket, held: queue.Queue[tuple[float, bytes]]) -> None:
        while data := source.recv(1 << 16):
            held.put((time.monotonic() + self._delay_s, data))

    @staticmethod
    def _let_go(held: queue.Queue[tuple[float, bytes]], target: socket.socket) -> None:
        while True:
            due_s, data = held.get()
            time.sleep(max(0.0, due_s - time.monotonic()))
            target.sendall(data)


def read(store: ZooKeeperStore, names: Iterable[str], window: int) -> int:
    topics = TopicDirectory(store)
    if window == 1:
        return sum(topics.read(name) is not None for name in names)
    with patch.object(zookeeper, "READS_AT_ONCE", window):
        found = (node for _name, node in topics.read_many(names) if node is not None)
        return sum(1 for node in found if decode_managed_ledger(node.data).ledgers)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--topics", type=int, default=20_000)
    parser.add_argument("--delay-ms", type=float, nargs="+", default=[0.0, 20.0])
    asked = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as directory,
        DevStack.start(Path(directory) / "stack", StackOptions()) as stack,
    ):
        direct = ZooKeeperStore(f"zk:{stack.endpoints.zookeeper}")
        fill(direct, asked.topics, 3)
        names = [f"public/default/persistent/bulk-{topic:05d}" for topic in range(asked.topics)]
        direct.close()
        for delay_ms in asked.delay_ms:
            proxy = DelayingProxy(stack.endpoints.zookeeper, delay_ms / 1000)
            store = ZooKeeperStore(f"zk:{proxy.address}")
            for window in WINDOWS:
                wanted = names[: len(names) // 20] if window == 1 else names
                started, used = time.perf_counter(), time.process_time()
                count = read(store, wanted, window)
                seconds = time.perf_counter() - started
                line = {
                    "delay_ms": delay_ms,
                    "on_their_way": window,
                    "topics": count,
                    "seconds": round(seconds, 2),
                    "topics_per_s": round(count / seconds),
                    "cpu_s": round(time.process_time() - used, 2),
                }
                print(json.dumps(line), flush=True)
            store.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
