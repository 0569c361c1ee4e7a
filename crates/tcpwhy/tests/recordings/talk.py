"""Conversations to record: `talk.py server` answers on one port for each, `talk.py client NAME` holds one of them.

Each is there for something that a reader of captures must get right, and is over within a second.
"""

import http.server
import socket
import struct
import sys
import threading
import time

V4, V6 = "10.99.0.2", "fd99::2"
HTTP, ECHO, SINK, SLOW, NOBODY = 8000, 8001, 8002, 8003, 8009


def connect(address, port, *options):
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    s = socket.socket(family)
    for option in options:
        s.setsockopt(*option)
    s.connect((address, port))
    return s


def get(address):
    with connect(address, HTTP) as s:
        s.sendall(b"GET / HTTP/1.0\r\n\r\n")
        while s.recv(65536):
            pass


def echo(address, times, *options):
    with connect(address, ECHO, *options) as s:
        for n in range(times):
            s.sendall(b"head")
            s.sendall(b"body" * (n + 1))
            want = 4 * (n + 2)
            while want:
                want -= len(s.recv(want))


def upload(address):
    with connect(address, SINK) as s:
        s.sendall(bytes(1 << 20))
        s.shutdown(socket.SHUT_WR)
        s.recv(1)


def refused(address):
    try:
        connect(address, NOBODY)
    except ConnectionRefusedError:
        pass


def zero_window(address):
    with connect(address, SLOW) as s:
        s.settimeout(0.5)
        try:
            s.sendall(bytes(1 << 20))
        except TimeoutError:
            pass
    # Closed with data unread at the other end: that end resets.


def keep_alive(address):
    tcp = socket.IPPROTO_TCP
    with connect(
        address, ECHO, (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1), (tcp, socket.TCP_KEEPIDLE, 1), (tcp, socket.TCP_KEEPINTVL, 1)
    ) as s:
        s.sendall(b"x")
        time.sleep(1.2)


def half_close(address):
    with connect(address, SINK) as s:
        s.sendall(b"the end")
        s.shutdown(socket.SHUT_WR)
        while s.recv(100):
            pass


def short_ones(address):
    for _ in range(30):
        echo(address, 1)


CONVERSATIONS = {
    "http": lambda: get(V4),
    "http6": lambda: get(V6),
    "rpc": lambda: echo(V4, 10, (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)),
    "upload": lambda: upload(V4),
    "upload6": lambda: upload(V6),
    "refused": lambda: refused(V4),
    "zero-window": lambda: zero_window(V4),
    "keep-alive": lambda: keep_alive(V4),
    "half-close6": lambda: half_close(V6),
    "short": lambda: short_ones(V4),
    # No operation, three times, and the end of the list.
    "ip-options": lambda: echo(V4, 3, (socket.IPPROTO_IP, socket.IP_OPTIONS, bytes([1, 1, 1, 0]))),
    # Destination options and a hop-by-hop header, both padding. Linux drops more than 7 bytes of it (ip6_parse_tlv).
    "extensions6": lambda: echo(
        V6,
        3,
        (socket.IPPROTO_IPV6, socket.IPV6_DSTOPTS, bytes([0, 0, 1, 4, 0, 0, 0, 0])),
        (socket.IPPROTO_IPV6, socket.IPV6_HOPOPTS, bytes([0, 0, 1, 4, 0, 0, 0, 0])),
    ),
}


def serve_echo(s):
    try:
        while data := s.recv(65536):
            s.sendall(data)
    except ConnectionResetError:
        pass
    s.close()


def serve_sink(s):
    while s.recv(65536):
        pass
    s.sendall(b"!")
    s.close()


def serve_slow(s):
    time.sleep(0.7)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    s.close()


def listen(port, serve):
    listener = socket.create_server(("::", port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=100)

    def accept():
        while True:
            s, _ = listener.accept()
            threading.Thread(target=serve, args=(s,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()


class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"page" * 5000)

    def log_message(self, *args):
        pass


class Server(http.server.ThreadingHTTPServer):
    address_family = socket.AF_INET6


if sys.argv[1] == "server":
    listen(ECHO, serve_echo)
    listen(SINK, serve_sink)
    listen(SLOW, serve_slow)
    page = Server(("::", HTTP), Page)
    print("ready", flush=True)
    page.serve_forever()
elif sys.argv[1] == "names":
    print("\n".join(CONVERSATIONS))
else:
    CONVERSATIONS[sys.argv[2]]()
