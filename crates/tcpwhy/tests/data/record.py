#!/usr/bin/env python3
"""Records the two captures beside it: twelve rounds of write(20), write(100), read(64) over loopback, as two writes and
as one, on the real kernel. Needs tcpdump and the right to capture. The applications' own clock goes to standard output:
the client's times per round in microseconds."""

import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

HERE = Path(__file__).parent
ROUNDS = 12


def serve(listener):
    connection, _ = listener.accept()
    with connection:
        while True:
            request = b""
            while len(request) < 120:
                piece = connection.recv(4096)
                if not piece:
                    return
                request += piece
            connection.sendall(b"r" * 64)


def record(name, port, pieces):
    listener = socket.create_server(("127.0.0.1", port))
    server = threading.Thread(target=serve, args=(listener,))
    server.start()
    command = ["tcpdump", "-i", "lo", "-s", "96", "-U", "--immediate-mode", "-w", str(HERE / name), f"tcp port {port}"]
    dump = subprocess.Popen(command, stderr=subprocess.PIPE)
    dump.stderr.readline()
    time.sleep(0.3)
    times_us = []
    with socket.create_connection(("127.0.0.1", port)) as client:
        for _ in range(ROUNDS):
            start = time.monotonic_ns()
            for piece in pieces:
                client.sendall(piece)
            reply = b""
            while len(reply) < 64:
                reply += client.recv(4096)
            times_us.append((time.monotonic_ns() - start) // 1000)
    server.join()
    time.sleep(0.3)
    dump.terminate()
    dump.wait()
    listener.close()
    print(name, *times_us)


if __name__ == "__main__":
    record("split.pcap", 18080, [b"h" * 20, b"b" * 100])
    record("one-write.pcap", 18081, [b"h" * 20 + b"b" * 100])
    sys.exit(0)
