"""What does a program at one end do, and when, by its own clock?

A `Peer` is a TCP program whose calls are logged: each method is one call of an application, or a pause of its own.
Everything that a bill is judged by comes from this log, from the path's configuration, or from the kernel's counters.
"""

import json
import os
import socket
import struct
import time

PORT = 7000
FAR = os.environ.get("EXAM_FAR", "10.77.0.2")
FAMILY, ANY = (socket.AF_INET6, "::") if ":" in FAR else (socket.AF_INET, "")
QUICKACK, CORK, NODELAY = socket.TCP_QUICKACK, socket.TCP_CORK, socket.TCP_NODELAY


class Peer:
    def __init__(self, where):
        self.where, self.log, self.sock, self.listener = where, [], None, None
        self.quickack = False

    def note(self, op, start, size=0):
        self.log.append({"op": op, "start": start, "end": time.time(), "bytes": size})

    def dump(self):
        with open(self.where, "w") as out:
            json.dump(self.log, out)

    # Sockets

    def _new(self, options):
        sock = socket.socket(FAMILY)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        for name, value in options.items():
            self._set(sock, name, value)
        return sock

    def _set(self, sock, name, value):
        if name.startswith("SO_"):
            if name == "SO_LINGER":
                value = struct.pack("ii", *value)
            number = 47 if name == "SO_MAX_PACING_RATE" else getattr(socket, name)
            sock.setsockopt(socket.SOL_SOCKET, number, value)
        else:
            value = value.encode() if isinstance(value, str) else value
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)

    def set(self, **options):
        for name, value in options.items():
            self._set(self.sock, name, value)

    def listen(self, backlog=64, **options):
        self.listener = self._new(options)
        self.listener.bind((ANY, PORT))
        self.listener.listen(backlog)

    def accept(self):
        start = time.time()
        self.sock = self.listener.accept()[0]
        self.note("accept", start)

    def connect(self, host=FAR, port=PORT, **options):
        self.sock = self._new(options)
        start = time.time()
        self.sock.connect((host, port))
        self.note("connect", start)

    def close(self):
        start = time.time()
        self.sock.close()
        self.note("close", start)

    def shutdown(self):
        self.sock.shutdown(socket.SHUT_WR)

    # Calls

    def think(self, ms):
        start = time.time()
        time.sleep(ms / 1000)
        self.note("think", start)

    def write(self, size, more=False, every_ms=0, piece=0):
        """One call, or calls of `piece` bytes with pauses between them."""
        start, done, data = time.time(), 0, b"x" * min(size, piece or size)
        while done < size:
            if every_ms and done:
                time.sleep(every_ms / 1000)
            part = data[: size - done]
            self.sock.sendall(part, socket.MSG_MORE if more else 0)
            done += len(part)
        self.note("write", start, size)

    def read(self, size, every_ms=0, piece=1 << 18):
        """Reads `size` bytes; False where the peer closed first."""
        start, done = time.time(), 0
        while done < size:
            part = self.sock.recv(min(piece, size - done), socket.MSG_WAITALL if every_ms else 0)
            if not part:
                return False
            done += len(part)
            if self.quickack:
                self.set(TCP_QUICKACK=1)
            if every_ms and done < size:
                time.sleep(every_ms / 1000)
        self.note("read", start, size)
        return True

    def serve(self, request, reply, think_ms=0, connections=1):
        """Answers requests of a size until the client closes."""
        for _ in range(connections):
            self.accept()
            self.set(TCP_NODELAY=1)
            while self.read(request):
                if think_ms:
                    self.think(think_ms)
                self.write(reply)
            self.sock.close()

    def ask(self, times, request, reply, pause_ms=0):
        for n in range(times):
            if n and pause_ms:
                self.think(pause_ms)
            start = time.time()
            self.write(request)
            self.read(reply)
            self.note("exchange", start)
