"""A client with a clock: speaks a protocol over a plain socket and says when each exchange began and ended.

    client.py http PORT PATH TIMES [new]     GET over one kept connection, or over a new one each time
    client.py post PORT PATH TIMES BYTES     POST, header and body in two sends
    client.py redis PORT TIMES split|joined  SET and GET; a command in one send or in pieces
    client.py memcached PORT TIMES split|joined

Each line on standard output is `connect START END LOCALPORT` or `exchange START END REQUEST REPLY`, ns since the epoch.
"""
import os
import socket
import sys
import time


def connect(port):
    s = socket.socket()
    address = (os.environ["FAR_END"], port)
    start = time.time_ns()
    s.connect(address)
    end = time.time_ns()
    print("connect", start, end, s.getsockname()[1])
    return s


def exchange(s, pieces, is_complete):
    start = time.time_ns()
    for piece in pieces:
        s.sendall(piece)
    reply = b""
    while not is_complete(reply):
        data = s.recv(1 << 20)
        if not data:
            break
        reply += data
    end = time.time_ns()
    print("exchange", start, end, sum(map(len, pieces)), len(reply))
    return reply


def is_http_complete(reply):
    head, end, body = reply.partition(b"\r\n\r\n")
    if not end:
        return False
    for line in head.split(b"\r\n")[1:]:
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            return len(body) >= int(value)
        if name.lower() == b"transfer-encoding":
            return body.endswith(b"0\r\n\r\n")
    return False


def http(port, path, times, new=""):
    request = f"GET {path} HTTP/1.1\r\nHost: far-end\r\n\r\n".encode()
    s = None
    for _ in range(int(times)):
        if s is None or new:
            if s is not None:
                s.close()
            s = connect(int(port))
        exchange(s, [request], is_http_complete)
        time.sleep(0.01)


def post(port, path, times, size):
    body = b"x" * int(size)
    head = f"POST {path} HTTP/1.1\r\nHost: far-end\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    s = connect(int(port))
    for _ in range(int(times)):
        exchange(s, [head, body], is_http_complete)
        time.sleep(0.01)


def redis(port, times, how):
    def command(*words):
        pieces = [f"*{len(words)}\r\n".encode()] + [f"${len(w)}\r\n{w}\r\n".encode() for w in words]
        return pieces if how == "split" else [b"".join(pieces)]

    s = connect(int(port))
    for n in range(int(times)):
        exchange(s, command("SET", "key", "v" * 100), lambda r: r.endswith(b"\r\n"))
        exchange(s, command("GET", "key"), lambda r: r.count(b"\r\n") == 2)


def memcached(port, times, how):
    s = connect(int(port))
    pieces = [b"set key 0 0 100\r\n", b"v" * 100 + b"\r\n"]
    for n in range(int(times)):
        exchange(s, pieces if how == "split" else [b"".join(pieces)], lambda r: r.endswith(b"\r\n"))
        exchange(s, [b"get key\r\n"], lambda r: r.endswith(b"END\r\n"))


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
