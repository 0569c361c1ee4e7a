"""Applications with known faults, each with its own clock. A line on standard output says `ready` or what was measured, in seconds."""
import os
import socket
import sys
import time


def say(*words):
    print(*words, flush=True)


def listen(port, backlog=64):
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("0.0.0.0", port))
    listener.listen(backlog)
    say("ready")
    return listener


def read(connection, count):
    got = 0
    while got < count:
        try:
            part = connection.recv(min(count - got, 1 << 16))
        except ConnectionResetError:
            part = b""
        if not part:
            sys.exit(0)
        got += len(part)


def echo(port):
    """Answers each 120 bytes with 64, to one client after another."""
    listener = listen(port)
    while True:
        connection, _ = listener.accept()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if os.fork() == 0:
            while True:
                read(connection, 120)
                connection.sendall(bytes(64))
        connection.close()


def split(host, port):
    """Writes each request in two pieces; says how long each exchange took."""
    connection = socket.create_connection((host, port))
    say("ready")
    while True:
        began = time.monotonic()
        connection.sendall(bytes(20))
        connection.sendall(bytes(100))
        read(connection, 64)
        say(time.monotonic() - began)


def whole(host, port):
    """Writes each request at once, 5 ms apart."""
    connection = socket.create_connection((host, port))
    say("ready")
    while True:
        began = time.monotonic()
        connection.sendall(bytes(120))
        read(connection, 64)
        say(time.monotonic() - began)
        time.sleep(0.005)


def source(port, length):
    """Answers each byte with so many."""
    listener = listen(port)
    body = bytes(length)
    while True:
        connection, _ = listener.accept()
        if os.fork() == 0:
            while True:
                read(connection, 1)
                connection.sendall(body)
        connection.close()


def fetch(host, port, length, buffer, pause, when="early"):
    """Fetches so many bytes again and again, `pause` seconds apart, with SO_RCVBUF set where it is not 0: before it connects, or behind."""
    connection = socket.socket()
    # The kernel doubles it.
    if buffer and when == "early":
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer // 2)
    connection.connect((host, port))
    if buffer and when == "late":
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer // 2)
    say("ready")
    while True:
        began = time.monotonic()
        connection.sendall(b"x")
        read(connection, length)
        say(time.monotonic() - began)
        time.sleep(pause)


def corked(port):
    """Answers each 120 bytes with 64 under TCP_CORK, which it never takes off."""
    listener = listen(port)
    connection, _ = listener.accept()
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 1)
    while True:
        read(connection, 120)
        connection.sendall(bytes(64))


def deaf(port):
    """Accepts one connection and never reads."""
    connection, _ = listen(port).accept()
    time.sleep(600)


def talk(host, port):
    """Writes without a pause."""
    connection = socket.create_connection((host, port))
    say("ready")
    while True:
        connection.sendall(bytes(1 << 16))


def full(port):
    """Listens with a backlog of 4, accepts nothing, and is connected to more often than that."""
    listener = listen(port, 4)
    kept = []
    for _ in range(12):
        client = socket.socket()
        client.setblocking(False)
        client.connect_ex(("127.0.0.1", port))
        kept.append(client)
    say("full")
    time.sleep(600)


role, *words = sys.argv[1:]
globals()[role](*[int(word) if word.isdigit() else float(word) if word.replace(".", "", 1).isdigit() else word for word in words])
