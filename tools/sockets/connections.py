#!/usr/bin/env python3
"""Holds so many established loopback connections, both ends of each, until its standard input ends.

usage: connections.py COUNT      prints `ready` when all are there
       connections.py churn      one at a time, ten each second, until it is killed
"""
import os
import socket
import sys
import time

# Two descriptors a connection, below the usual hard limit of descriptors.
A_PROCESS = 9_000


def hold(count: int, address: str, done: int, rest: int) -> None:
    listener = socket.socket()
    listener.bind((address, 0))
    listener.listen(4096)
    kept = []
    for _ in range(count):
        client = socket.socket()
        client.connect(listener.getsockname())
        kept.append((client, listener.accept()[0]))
    os.write(done, b"x")
    os.read(rest, 1)


def churn() -> None:
    listener = socket.create_server(("127.0.0.99", 0))
    while True:
        with socket.create_connection(listener.getsockname()), listener.accept()[0]:
            time.sleep(0.1)


def main() -> None:
    import resource

    if sys.argv[1] == "churn":
        churn()

    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    count = int(sys.argv[1])
    (told, done), (rest, end) = os.pipe(), os.pipe()
    processes = 0
    while count > 0:
        part = min(count, A_PROCESS)
        if os.fork() == 0:
            os.close(end)
            hold(part, f"127.0.0.{processes + 1}", done, rest)
            os._exit(0)
        count -= part
        processes += 1
    for _ in range(processes):
        os.read(told, 1)
    print("ready", flush=True)
    sys.stdin.read()


main()
