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


def later(host, port, other, sign):
    """As `whole`, to one server, and when a file of that name is there to another one as well."""
    connections = [socket.create_connection((host, port))]
    say("ready")
    while True:
        for connection in connections:
            connection.sendall(bytes(120))
            read(connection, 64)
            time.sleep(0.005)
        if len(connections) == 1 and os.path.exists(sign):
            connections.append(socket.create_connection((host, other)))


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


def fixed(host, port):
    """Connects with SO_SNDBUF set, and does nothing."""
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 20_000)
    connection.connect((host, port))
    say("ready")
    time.sleep(600)


def corked(port):
    """Answers each 120 bytes with 64 under TCP_CORK, which it never takes off."""
    listener = listen(port)
    connection, _ = listener.accept()
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 1)
    while True:
        read(connection, 120)
        connection.sendall(bytes(64))


def node(port, script):
    """Becomes Node, which inherits a listening socket with TCP_CORK set: so have its connections (tcp_sk(newsk)->nonagle is copied)."""
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 1)
    listener.bind(("0.0.0.0", port))
    listener.listen(16)
    if listener.fileno() != 3:
        os.dup2(listener.fileno(), 3)
    os.set_inheritable(3, True)
    os.execvp("node", ["node", script])


def get(host, port, path, buffer):
    """Gets a file by HTTP again and again over one connection, SO_RCVBUF set behind the handshake; says how long each took."""
    connection = socket.create_connection((host, port))
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer // 2)
    say("ready")
    while True:
        began = time.monotonic()
        connection.sendall(f"GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
        head = b""
        while b"\r\n\r\n" not in head:
            head += connection.recv(1 << 16)
        head, body = head.split(b"\r\n\r\n", 1)
        length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
        read(connection, length - len(body))
        say(time.monotonic() - began)


def sip(host, port):
    """Asks PostgreSQL (protocol 3.0) for 20 MB again and again, and reads them 20 kB each 5 ms."""
    connection = socket.create_connection((host, port))

    def message(kind, body):
        return kind + (len(body) + 4).to_bytes(4, "big") + body

    connection.sendall(message(b"", (3 << 16).to_bytes(4, "big") + b"user\0postgres\0database\0postgres\0\0"))
    while b"Z\0\0\0\5I" not in connection.recv(1 << 16):
        pass
    say("ready")
    query = message(b"Q", b"copy (select repeat('x', 1000) from generate_series(1, 20000)) to stdout\0")
    while True:
        connection.sendall(query)
        tail = b""
        while not tail.endswith(b"Z\0\0\0\5I"):
            part = connection.recv(20_000)
            if not part:
                sys.exit(0)
            tail = (tail + part)[-6:]
            time.sleep(0.005)


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
