"""Slow readers, small buffers, filled queues and longer ways, each beside the same run with one thing changed.

What the change saves by the asker's own clock is what the cause took: `t.fixed` is the other run.
"""

import socket
import threading

from cases import answers, asks, case, chunks, download, p_now, sink
from peer import FAR, PORT

WINDOWS = "slow-start|slow-start-after-idle|congestion-window|receive-window|send-buffer@"


def slow_sink(size, piece, every_ms, **options):
    def program(p):
        p.listen(**options)
        p.accept()
        p.read(size, every_ms, piece)
        p.write(50)
        p.read(1)

    return program


def uploads(size, **options):
    def program(p):
        p.connect(**options)
        p.set(TCP_NODELAY=1)
        start = p_now()
        p.write(size)
        p.read(50)
        p.note("exchange", start)
        p.close()

    return program


def reads_slowly(reader, other=""):
    """The reader took what the run with a fast one does not take. What is left of slow start hides behind the reader."""

    def expect(t, rtt):
        fast = t.fixed.arrived()
        return {
            "handshake@": rtt,
            "round-trip@": rtt,
            f"receiver-think{other}@{reader}": lambda elapsed: (0.85 * (elapsed - fast), elapsed - 2 * rtt),
            WINDOWS: lambda elapsed: (0, max(0.0, fast - rtt) + 0.15 * elapsed),
            "bandwidth@": (0, 60),
        }

    return expect


# The reader takes 1 KB to 1 MB at a time, 1 to 5 MB a second, on ways of 0.1 to 50 ms, with a buffer of its own or the kernel's.
PACES = {"1k": (1_000, 1, 250_000), "16k": (16_384, 5, 1_500_000), "64k": (65_536, 20, 1_500_000), "1m": (1_000_000, 250, 4_000_000)}
WAYS = {"0": "veth", "10": "--delay 5ms", "50": "--delay 25ms"}
for way, path in WAYS.items():
    for pace, (piece, every_ms, size) in PACES.items():
        for buffer, options in (("", {}), ("-rcvbuf", {"SO_RCVBUF": 65_536})):
            case(f"reads-{pace}-at-{way}ms{buffer}", download(size, piece, every_ms, **options), chunks(1, size, 0, True), reads_slowly("client"),
                 path=path, clock=lambda t: t.arrived(), fix="read-promptly", changed={"near": download(size, **options)})
            case(f"sink-{pace}-at-{way}ms{buffer}", uploads(size), slow_sink(size, piece, every_ms, **options), reads_slowly("server", "|server-think"),
                 path=path, clock=lambda t: t.arrived(), fix="read-promptly|profile-server", changed={"far": slow_sink(size, 1 << 18, 0, **options)})


# A buffer that somebody set, and the reader is fast: what is left without it is what the next limit takes.


def window_held(cause, side):
    def expect(t, rtt):
        return {"handshake@": rtt, "round-trip@": rtt, f"{cause}@{side}": lambda elapsed: (0.85 * (t.waited() - t.fixed.waited()), elapsed - 2 * rtt),
                "slow-start|congestion-window|receive-window@": (0, t.fixed.waited()), "bandwidth@": (0, 60)}

    return expect


for way, size in (("10", 1_500_000), ("50", 1_000_000)):
    case(f"rcvbuf-at-{way}ms", download(size, SO_RCVBUF=32_768), chunks(1, size, 0, True), window_held("receive-window", "client"), path=WAYS[way],
         fix="no-rcvbuf", changed={"near": download(size)})
    case(f"rcvbuf-upload-at-{way}ms", uploads(size), slow_sink(size, 1 << 18, 0, SO_RCVBUF=32_768), window_held("receive-window", "server"), path=WAYS[way],
         fix="no-rcvbuf", changed={"far": slow_sink(size, 1 << 18, 0)})
    case(f"rmem-at-{way}ms", download(size), chunks(1, size, 0, True), window_held("receive-window", "client"), path=WAYS[way],
         near_sysctl=["net.ipv4.tcp_rmem=4096 65536 65536"], fix="raise-tcp-rmem", changed={"near_sysctl": []})
    case(f"sndbuf-at-{way}ms", download(size), lambda p, size=size: writes(p, size, SO_SNDBUF=32_768), window_held("send-buffer", "server"), path=WAYS[way],
         fix="no-sndbuf", changed={"far": lambda p, size=size: writes(p, size)})
    case(f"sndbuf-upload-at-{way}ms", uploads(size, SO_SNDBUF=32_768), lambda p, size=size: sink(p, size), window_held("send-buffer", "client"), path=WAYS[way],
         fix="no-sndbuf", changed={"near": uploads(size)})
    case(f"wmem-at-{way}ms", download(size), chunks(1, size, 0, True), window_held("send-buffer", "server"), path=WAYS[way],
         far_sysctl=["net.ipv4.tcp_wmem=4096 32768 32768"], fix="raise-tcp-wmem", changed={"far_sysctl": []})


def writes(p, size, **options):
    p.listen(**options)
    p.accept()
    p.read(100)
    p.write(size)
    p.read(1)


# Two limits at once: a locked buffer on a slow link costs little, an initial window and a locked buffer share the blame.
case("rcvbuf-on-slow-link", download(600_000, SO_RCVBUF=65_536), chunks(1, 600_000, 0, True),
     lambda t, rtt: {"handshake@": rtt, "round-trip@": rtt, "bandwidth@": (440, 560), "slow-start|receive-window@": (0, 3 * rtt)},
     path="--delay 10ms --rate 10mbit --queue 100k", fix="no-rcvbuf", changed={"near": download(600_000)})
case("sndbuf-and-rcvbuf", download(800_000, SO_RCVBUF=40_000), lambda p: writes(p, 800_000, SO_SNDBUF=65_536),
     lambda t, rtt: {"handshake@": rtt, "round-trip@": rtt, "receive-window|slow-start|send-buffer|congestion-window@": "rest-bandwidth"}, path="--delay 15ms",
     fix="no-rcvbuf", changed={"near": download(800_000)})

# Slow start, and what a connection that is kept would have saved.


def connects_each(times, size):
    def program(p):
        for _ in range(times):
            start = p_now()
            p.connect()
            p.set(TCP_NODELAY=1)
            p.write(100)
            p.read(size)
            p.note("exchange", start)
            p.close()
        p.log = [entry for entry in p.log if entry["op"] != "connect"]

    return program


def serves_each(times, size):
    def program(p):
        p.listen()
        for _ in range(times):
            p.accept()
            p.set(TCP_NODELAY=1)
            while p.read(100):
                p.write(size)
            p.sock.close()

    return program


def connects_once(times, size):
    def program(p):
        p.connect()
        p.set(TCP_NODELAY=1)
        opened = p.log[-1]["start"]
        for n in range(times):
            start = opened if n == 0 else p_now()
            p.write(100)
            p.read(size)
            p.note("exchange", start)
        p.log = [entry for entry in p.log if entry["op"] != "connect"]
        p.close()

    return program


for name, size in (("small", 2_000), ("100k", 100_000), ("500k", 500_000)):
    case(f"connects-each-{name}", connects_each(5, size), serves_each(5, size),
         lambda t, rtt: {"handshake@": 5 * rtt, "round-trip@": 5 * rtt, "slow-start|receive-window@": "rest-bandwidth"}, path="--delay 15ms",
         fix="reuse-connection", changed={"near": connects_once(5, size)})
case("initcwnd-small", download(60_000), chunks(1, 60_000, 0, True),
     lambda t, rtt: {"handshake@": rtt, "round-trip@": rtt, "slow-start@server": "rest-bandwidth"}, path="--delay 25ms", fix="initcwnd",
     changed={"host_setup": {"far": ["ip route change 10.77.0.1 dev DEV proto static scope link congctl cubic initcwnd 50"]}})


def idles(size, pauses=(30, 1500, 1500)):
    def program(p):
        p.connect()
        p.set(TCP_NODELAY=1)
        for pause in (0, *pauses):
            if pause:
                p.think(pause)
            start = p_now()
            p.write(100)
            p.read(size)
            p.note("exchange", start)
        p.close()

    return program


case("restarts-after-idle", idles(200_000), chunks(1, 200_000, 0, True),
     lambda t, rtt: {"handshake@": rtt, "round-trip@": 4 * rtt, "slow-start-after-idle@server": sum(t.spans("near", "exchange")[2:]) - 2 * rtt,
                     "slow-start|receive-window|congestion-window@": sum(t.spans("near", "exchange")[:2]) - 2 * rtt},
     path="--delay 20ms", fix="slow-start-after-idle-off", changed={"far_sysctl": ["net.ipv4.tcp_slow_start_after_idle=0"]})

# Servers of about 200 ms: never a cork.


def jittered(times, low, high, request=200, reply=300, pieces=1):
    def program(p):
        import random

        random.seed(3)
        p.listen()
        p.accept()
        for _ in range(times):
            if not p.read(request):
                return
            p.think(random.uniform(low, high))
            for _ in range(pieces):
                p.write(reply // pieces)
        p.read(1)

    return program


def all_think(times):
    return lambda t, rtt: {"handshake@": rtt, "round-trip@": times * rtt, "server-think@server": t.sum("far", "think"), "nagle|nagle-delayed-ack@server": (0, 0)}


for way, path in {"0": "veth", "10": "--delay 5ms", "100": "--delay 50ms"}.items():
    for name, low, high, pieces in (("constant", 205, 205, 1), ("jitter", 180, 230, 1), ("two-writes", 200, 210, 2)):
        case(f"thinks-200-{name}-at-{way}ms", asks(8), jittered(8, low, high, pieces=pieces),
             all_think(8) if pieces == 1 else lambda t, rtt: {"handshake@": rtt, "round-trip@": 8 * rtt, "server-think@server": t.sum("far", "think"),
                                                              "nagle|nagle-delayed-ack@server": t.sum("near", "exchange") - 8 * rtt - t.sum("far", "think")},
             path=path, each=lambda t: t.asked(), fix="profile-server", changed={"far": jittered(8, 0, 0, pieces=pieces)})


def many(times, clients, request=200, reply=300):
    """Each client on a connection of its own."""

    def program(p):
        from peer import Peer

        def one():
            q = Peer(None)
            q.connect()
            q.set(TCP_NODELAY=1)
            q.ask(times, request, reply)
            q.close()
            p.log.extend(q.log)

        threads = [threading.Thread(target=one) for _ in range(clients)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    return program


def pool(clients, workers, think_ms, request=200, reply=300):
    """A thread for each connection, and a place for so many at a time: waits come in steps."""

    def program(p):
        import time
        from peer import Peer

        places = threading.Semaphore(workers)
        p.listen()

        def one(sock):
            q = Peer(None)
            q.sock = sock
            q.set(TCP_NODELAY=1)
            while q.read(request):
                start = time.time()
                with places:
                    time.sleep(think_ms / 1000)
                q.note("think", start)
                q.write(reply)
            p.log.extend(q.log)

        threads = [threading.Thread(target=one, args=(p.listener.accept()[0],)) for _ in range(clients)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    return program


for think_ms, workers in ((50, 2), (200, 4)):
    case(f"pool-of-{workers}-thinks-{think_ms}", many(4, 8), pool(8, workers, think_ms),
         lambda t, rtt: {"handshake@": 8 * rtt, "round-trip@": 32 * rtt, "server-think@server": t.sum("far", "think")}, path="--delay 5ms",
         each=lambda t: t.asked(), fix="profile-server", changed={"far": pool(8, 8, think_ms)})

# A queue that an upload fills beside small questions, and a way that becomes longer for good.


def beside_upload(p):
    bulk = socket.create_connection((FAR, PORT))
    threading.Thread(target=lambda: bulk.sendall(b"b" * 2_500_000), daemon=True).start()
    p.think(400)
    asks_quietly(p)


def asks_quietly(p):
    p.connect()
    p.set(TCP_NODELAY=1)
    p.ask(6, 200, 300, 20)
    p.close()


def no_upload(p):
    bulk = socket.create_connection((FAR, PORT))
    bulk.sendall(b"b" * 100)
    p.think(400)
    asks_quietly(p)


def drains(p):
    p.listen()
    bulk = p.listener.accept()[0]

    def drain():
        while bulk.recv(1 << 18):
            pass

    threading.Thread(target=drain, daemon=True).start()
    p.serve(200, 300)


case("asks-beside-upload", beside_upload, drains,
     lambda t, rtt: {"handshake@": None, "round-trip@": 7 * rtt, "queueing@path": (0.8 * (t.waited() - 7 * rtt), 1.1 * (t.waited() - 5 * rtt)),
                     "bandwidth|slow-start|receive-window|congestion-window|loss|rto|send-buffer@": None},
     path="--delay 10ms --rate 20mbit --queue 150k", fix="aqm", changed={"near": no_upload})
for think_ms in (0, 40):
    case(f"way-becomes-longer-thinks-{think_ms}", asks(16, pause_ms=5), answers(think_ms=think_ms),
         lambda t, rtt: {"handshake@": rtt, "round-trip@": (16 * rtt, 16 * rtt + 360), "queueing@": (0, 360), "server-think@server": t.sum("far", "think")},
         path="--delay 10ms --backward 'reorder data 7-999 by 30ms' --backward 'reorder ack 3-999 by 30ms'", each=lambda t: t.asked(),
         each_at=("near",))  # when an answer arrives, on a way back that became longer, no packet tells its sender
