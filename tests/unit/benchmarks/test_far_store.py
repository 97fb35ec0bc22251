"""A server far away answers later by the delay, and with all its bytes at their old pace."""

import socket
import threading
import time

from benchmarks.far_store import FarServer

DELAY_S = 0.05
BODY = bytes(range(256)) * 40_000  # 10 MB


def serving_bytes():
    listener = socket.create_server(("127.0.0.1", 0))

    def serve():
        connection, _ = listener.accept()
        connection.recv(1)
        connection.sendall(BODY)
        connection.close()

    threading.Thread(target=serve, daemon=True).start()
    return listener


def test_the_first_byte_waits_and_the_last_waits_no_longer():
    with serving_bytes() as listener:
        far = FarServer(listener.getsockname(), DELAY_S)
        with socket.create_connection(("127.0.0.1", far.port)) as client:
            began = time.monotonic()
            client.sendall(b"?")
            found = client.recv(1 << 16)
            assert time.monotonic() - began >= DELAY_S
            while piece := client.recv(1 << 20):
                found += piece
            whole_s = time.monotonic() - began
    assert found == BODY
    assert whole_s < 20 * DELAY_S  # ten pieces and more, and not ten times the delay
