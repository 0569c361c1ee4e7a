#!/usr/bin/env python3
"""Requests and replies over loopback at a fixed rate, with the faults that a service has: some requests in two writes, some replies late,
connections that come and go. Says how often it had to wait for the machine.

usage: load.py PORT RATE SECONDS [CONNECTIONS]
"""
import os
import random
import select
import socket
import sys
import time


def serve(listener: socket.socket) -> None:
    """120 bytes in, 64 out; a reply to bytes that begin with L comes 5 ms later."""
    poll, kept, late = select.epoll(), {}, []
    poll.register(listener, select.EPOLLIN)
    while True:
        wait = max(0.0, late[0][0] - time.monotonic()) if late else -1
        for number, _ in poll.poll(wait):
            if number == listener.fileno():
                connection, _ = listener.accept()
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                kept[connection.fileno()] = [connection, 0, False]
                poll.register(connection, select.EPOLLIN)
                continue
            one = kept[number]
            try:
                data = one[0].recv(4096)
            except ConnectionResetError:
                data = b""
            if not data:
                poll.unregister(number)
                kept.pop(number)[0].close()
                continue
            one[2] = data.startswith(b"L") if one[1] == 0 else one[2]
            one[1] += len(data)
            while one[1] >= 120:
                one[1] -= 120
                if one[2]:
                    late.append((time.monotonic() + 0.005, one[0]))
                else:
                    one[0].sendall(bytes(64))
        while late and late[0][0] <= time.monotonic():
            try:
                late.pop(0)[1].sendall(bytes(64))
            except OSError:
                pass


def main() -> None:
    port, rate, seconds = int(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3])
    count = int(sys.argv[4]) if len(sys.argv) > 4 else 20
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", port))
    listener.listen(256)
    server = os.fork()
    if server == 0:
        serve(listener)
    chance = random.Random(1)

    def connect() -> socket.socket:
        return socket.create_connection(("127.0.0.1", port))

    try:
        clients, sent, began = [connect() for _ in range(count)], 0, time.monotonic()
        # One client writes in two pieces and waits for Nagle's end: 25 a second of its own.
        if os.fork() == 0:
            try:
                with connect() as split:
                    while time.monotonic() - began < seconds:
                        split.sendall(bytes(20))
                        split.sendall(bytes(100))
                        split.recv(64)
                        time.sleep(0.04)
            finally:
                # The server may have ended before.
                os._exit(0)
        behind = 0
        while (now := time.monotonic()) - began < seconds:
            due = began + sent / rate
            if due > now:
                time.sleep(due - now)
            elif now - due > 0.1:
                behind += 1
            batch = clients[:8] if rate >= 800 else clients[:1]
            for client in batch:
                client.sendall((b"L" if chance.random() < 0.01 else b"x") + bytes(119))
            for client in batch:
                client.recv(64)
            sent += len(batch)
            clients = clients[len(batch) :] + batch
            if chance.random() < 0.01:
                clients.pop(0).close()
                clients.append(connect())
        print(f"{sent} requests, {sent / (time.monotonic() - began):.0f}/s; {behind} times more than 0.1 s late", flush=True)
    finally:
        os.kill(server, 9)


main()
